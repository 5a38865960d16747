"""Stage `export`: writes the curated set as a folder that `datasets.load_dataset` can read, with a data card.

export/README.md             the card
export/data/train.parquet    the selected rows, or all remaining training rows if none were selected
export/data/heldout.parquet  the rows for evaluation, if there are any
export/card.json             the numbers of the card
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from truegold.pipeline.accounting import describe_losses
from truegold.pipeline.config.stages import ExportConfig
from truegold.pipeline.export.card import COUNTED, RowCounts, SplitFile, count_row, gather_card, reasons_by_row, render
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import RECORD, StageReport, stage_function
from truegold.pipeline.sources.provenance import provenance_of_row
from truegold.pipeline.tables.rows import RowKey, TableWriter, read_rows, row_key, table_schema
from truegold.pipeline.tables.run_files import RunFiles

CARD = "README.md"
NUMBERS = "card.json"
DATA_DIR = "data"
SPLITS = ("train", "heldout")
FLAGS_FIELD = pa.field("flags", pa.list_(pa.string()))
"""The column with the reasons of a row's flags."""

PROVENANCE_FIELDS = (pa.field("license", pa.string()), pa.field("origin", pa.string()))
"""The columns with a row's licence and origin. The licence is null if the source does not state one."""


@stage_function(version=5)
def export(inputs: Mapping[str, Path], config: ExportConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Write the set and its card.

    The inputs are the tables of rows (`rows`, or `selected` and `heldout`), the `stage.json` of every earlier stage
    under the stage's name, and optionally the table `suspicion`. Raises InputError if `suspicion` lacks a column.
    """
    tables = [inputs[name] for name in ("rows", "selected", "heldout") if name in inputs]
    stages = [name for name, path in inputs.items() if path.name == RECORD]
    progress.start("writing the curated set")
    files = RunFiles.open(inputs, stages)
    splits, schema, tally = write_splits(tables, reasons_by_row(files), out_dir)
    progress.start("writing its card")
    card = gather_card(files, config, splits, schema, tally, tables, inputs)
    for account in card.by_source:
        if account.records and not account.left and not account.heldout:
            progress.note(f"nothing is left of source {account.source!r}: {describe_losses(account)}")
    (out_dir / CARD).write_text(render(card), encoding="utf-8")
    numbers = asdict(card)
    numbers |= numbers.pop("counts")
    (out_dir / NUMBERS).write_bytes(orjson.dumps(numbers, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")
    rows = sum(split.rows for split in splits)
    counts = {f"split:{split.name}": split.rows for split in splits}
    return StageReport(rows, rows, counts, {"label_errors": asdict(card.label_errors)})


def write_splits(
    tables: Sequence[Path], flags: Mapping[RowKey, list[str]], out_dir: Path
) -> tuple[list[SplitFile], pa.Schema, RowCounts]:
    """Write every row of `tables` to the file of its split, with the reasons of its flags.

    Without held-out rows, no file is written for them. The columns are those of ROW_SCHEMA, and all further columns of
    the tables. Rows of a table without such a column get null.
    """
    schema = max((table_schema(path).remove_metadata() for path in tables), key=len)
    for column in (FLAGS_FIELD, *PROVENANCE_FIELDS):
        schema = schema.append(column)
    (out_dir / DATA_DIR).mkdir(exist_ok=True)
    tally: RowCounts = {name: Counter() for name in (*COUNTED, "flags")}
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(TableWriter(out_dir / DATA_DIR / f"{name}.parquet", schema)) for name in SPLITS
        }
        for path in tables:
            for row in read_rows(path):
                reasons = flags.get(row_key(row), [])
                count_row(tally, row, reasons)
                split = "heldout" if row["split"] == "heldout" else "train"
                provenance = provenance_of_row(row)._asdict()
                writers[split].write({**row, FLAGS_FIELD.name: reasons, **provenance})
    splits = []
    for name, writer in writers.items():
        path = out_dir / DATA_DIR / f"{name}.parquet"
        if writer.rows or name == "train":
            splits.append(
                SplitFile(name, f"{DATA_DIR}/{path.name}", writer.rows, _arrow_bytes(path), path.stat().st_size)
            )
        else:
            path.unlink()
    return splits, schema, tally


def _arrow_bytes(path: Path) -> int:
    with pq.ParquetFile(path, pre_buffer=False) as file:
        return sum(int(batch.nbytes) for batch in file.iter_batches())
