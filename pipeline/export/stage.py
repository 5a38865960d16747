"""Stage `export`: the curated set as a folder, with a data card that says how it came to be.

    export/README.md             the card; its YAML head is what `datasets.load_dataset("runs/NAME/export")` goes by
    export/data/train.parquet    the rows worth training on, or those that curation left where nothing is selected
    export/data/heldout.parquet  the rows set aside for evaluation, where there are any
    export/card.json             the card's numbers

The inputs are the tables of rows, under `rows` or under `selected` and `heldout`; the `stage.json` of every earlier
stage, under its name; and the table `suspicion` where the configuration names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import orjson

from truegold.pipeline.accounting.by_source import describe_losses
from truegold.pipeline.config.stages import ExportConfig
from truegold.pipeline.export.card import Card, gather_card, reasons_by_row
from truegold.pipeline.export.markdown import render
from truegold.pipeline.export.tables import write_splits
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import RECORD, StageReport, stage_function
from truegold.pipeline.tables.run_files import RunFiles

CARD = "README.md"
NUMBERS = "card.json"


@stage_function(version=5)
def export(inputs: Mapping[str, Path], config: ExportConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Write the set and its card. InputError where `suspicion` lacks a column."""
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
    (out_dir / NUMBERS).write_bytes(_numbers(card))
    rows = sum(split.rows for split in splits)
    counts = {f"split:{split.name}": split.rows for split in splits}
    return StageReport(rows, rows, counts, {"label_errors": asdict(card.label_errors)})


def _numbers(card: Card) -> bytes:
    return orjson.dumps(asdict(card), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"
