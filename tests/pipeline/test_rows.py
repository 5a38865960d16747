"""A table's columns are those of its typed row."""

from __future__ import annotations

from typing import NotRequired

import pyarrow as pa

from truegold.pipeline.tables.rows import Float32List, Int32, RowReference, arrow_schema


class Measured(RowReference):
    """A row with columns of every kind."""

    count: Int32
    rate: float | None
    whole: bool
    logprobs: Float32List
    note: NotRequired[str]


def test_a_schema_has_the_required_fields_in_order() -> None:
    assert arrow_schema(Measured) == pa.schema(
        {
            "id": pa.string(),
            "source": pa.string(),
            "source_row": pa.int64(),
            "count": pa.int32(),
            "rate": pa.float64(),
            "whole": pa.bool_(),
            "logprobs": pa.list_(pa.float32()),
        }
    )
