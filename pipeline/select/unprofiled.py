"""Stage `take_rows`: every curated row goes to training as it is, where nothing has profiled it.

What an environment's dialogues are worth cannot be told from single answers, so that a run with `train.turns` has no
profile, and chooses no rows by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from truegold.pipeline.config.base import StageConfig
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.select.stage import SELECTED_SCHEMA
from truegold.pipeline.tables.rows import ROW_SCHEMA, TableWriter, read_rows, write_rows


class TakeRowsConfig(StageConfig):
    """Nothing is to be set."""


@stage_function(version=1)
def take_rows(inputs: Mapping[str, Path], config: TakeRowsConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Write the input `rows` as selected.parquet, those of the split `heldout` as heldout.parquet, and an empty
    reserve.parquet."""
    progress.start("taking rows")
    unknown = dict.fromkeys(SELECTED_SCHEMA.names)
    counts = {"selected": 0, "heldout": 0}
    with (
        TableWriter(out_dir / "selected.parquet", SELECTED_SCHEMA) as selected,
        TableWriter(out_dir / "heldout.parquet", ROW_SCHEMA) as heldout,
    ):
        for row in read_rows(inputs["rows"]):
            if row["split"] == "heldout":
                heldout.write(row)
                counts["heldout"] += 1
            else:
                selected.write({**unknown, **row})
                counts["selected"] += 1
    write_rows(out_dir / "reserve.parquet", [], SELECTED_SCHEMA)
    return StageReport(sum(counts.values()), counts["selected"], {"heldout": counts["heldout"]})
