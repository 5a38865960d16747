"""The typed rows have the columns of the tables that they are read from."""

from __future__ import annotations

from typing import get_type_hints

import pyarrow as pa
import pytest

from truegold.pipeline.ledger import FLAG_SCHEMA, LEDGER_SCHEMA, FlagRecord, LedgerRecord
from truegold.pipeline.profile.pass_rates import PROFILE_SCHEMA, ProfileRow
from truegold.pipeline.profile.sampling import SAMPLE_SCHEMA, SampleRow
from truegold.pipeline.rows import Row, RowReference
from truegold.pipeline.select.stage import SELECTED_SCHEMA

ARROW_TYPES = {
    str: pa.string(),
    str | None: pa.string(),
    float: pa.float64(),
    float | None: pa.float64(),
    bool: pa.bool_(),
    list[int]: pa.list_(pa.int32()),
    list[float]: pa.list_(pa.float32()),
}


@pytest.mark.parametrize(
    ("row_type", "schema"),
    [
        (Row, SELECTED_SCHEMA),
        (LedgerRecord, LEDGER_SCHEMA),
        (FlagRecord, FLAG_SCHEMA),
        (SampleRow, SAMPLE_SCHEMA),
        (ProfileRow, PROFILE_SCHEMA),
    ],
)
def test_typed_rows_have_the_columns_of_their_schema(row_type: type[RowReference], schema: pa.Schema) -> None:
    columns = get_type_hints(row_type)
    assert set(columns) == set(schema.names)
    for name, kind in columns.items():
        column = schema.field(name).type
        assert pa.types.is_integer(column) if kind is int else column == ARROW_TYPES[kind]
