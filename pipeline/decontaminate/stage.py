"""Stage `decontaminate`: drops training rows that occur in an evaluation set, before any sampling.

    train.jsonl:3  "tom has 3 red cars and  buys 4 more. How many ..."    drop evaluation_copy
    train.jsonl:9  "Solve: Tom has 3 red cars and buys 4 more. How ..."   drop evaluation_overlap
    train.jsonl:12 "Tom, who owned three red cars, buys 4 more. ..."      drop evaluation_rewording
                   {"against": "evals.jsonl", "against_id": "g1", "item": "Tom has 3 red cars ...", "score": 0.97}

Inputs: `rows`, and the files and folders of `against` as `against 0`, `against 1` and so on, which the cache key needs.
Rows are compared before duplicates are dropped, because a dropped rewording may be the one that matches.
`matches.parquet` has every pair with both texts (`matches`); its `row` is the row's number in `rows`. Held-out rows
that match are not trained on. They are kept, with a ledger record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.config.stages import DecontaminateConfig, EvalSetConfig, MatchKind
from truegold.pipeline.decontaminate.matches import find_matches
from truegold.pipeline.problems import BATCH_ROWS, Batch, ProblemColumns
from truegold.pipeline.running.parts import Part, PartWork, run_parts, split_inputs, sum_reports
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.tables.conversation import read_compared_rows
from truegold.pipeline.tables.ledger import Ledger
from truegold.pipeline.tables.reasons import MATCHES_FILE, items_by_set
from truegold.pipeline.tables.rows import ROW_SCHEMA, Row, TableWriter, read_rows

ROWS_FILE = "rows.parquet"
REASONS = {
    MatchKind.EXACT: "evaluation_copy",
    MatchKind.OVERLAP: "evaluation_overlap",
    MatchKind.REWORDED: "evaluation_rewording",
}
"""The ledger's reason for each kind of match."""
ITEMS_NAMED = 5
"""The number of further items in the evidence, if a row matches several."""


@stage_function(version=5)
def decontaminate(
    inputs: Mapping[str, Path], config: DecontaminateConfig, out_dir: Path, progress: Progress
) -> StageReport:
    """Drop the training rows that occur in an evaluation set. Raises InputError if a set cannot be read."""
    path = inputs["rows"]
    sets = {entry.set: problem_columns(entry) for entry in config.against}
    find_matches(lambda clean: _batches(path), sets, out_dir, progress)
    matches = pl.scan_parquet(out_dir / MATCHES_FILE).select("row", "against").unique()
    matching = dict(matches.group_by("against").len().collect(engine="streaming").iter_rows())
    parts = split_inputs(inputs, out_dir)
    starts = list(accumulate((part.count_rows() for part in parts), initial=0))
    work = PartWork("truegold.pipeline.decontaminate.stage:drop_part", config, starts)
    reports = run_parts(work, parts, progress, "dropping what matches")
    sizes = items_by_set(out_dir / MATCHES_FILE)
    compared = {name: {"items": size, "rows": matching.get(name, 0)} for name, size in sizes.items()}
    return sum_reports(reports, {"against": compared})


def drop_part(part: Part, config: DecontaminateConfig, starts: Sequence[int], progress: Progress) -> StageReport:
    """Write the kept and the dropped rows of one part; `starts` has the number of rows before each part."""
    first, last = starts[part.index] + 1, starts[part.index + 1]
    part_matches = pl.scan_parquet(part.out_dir / MATCHES_FILE).filter(pl.col("row").is_between(first, last)).collect()
    by_row = part_matches.rows_by_key("row", named=True, include_key=True)
    with Ledger(part.output, "decontaminate") as ledger, TableWriter(part.output(ROWS_FILE), ROW_SCHEMA) as rows:
        for row_number, row in enumerate(read_rows(part.inputs["rows"]), first):
            if row_number not in by_row or not _drops(row, by_row[row_number], config, ledger):
                rows.write(row)
            progress.advance()
    return StageReport(last - first + 1, rows.rows, ledger.counts)


def problem_columns(entry: EvalSetConfig) -> ProblemColumns:
    """Return the configured columns of an evaluation set."""
    named = entry.columns
    spelling = f"decontaminate.against: [{{set: {entry.set}, columns: {{{{role}}: COLUMN}}}}]"
    return ProblemColumns(named.prompt, named.gold, named.id, preset=entry.preset, spelling=spelling)


def _batches(path: Path) -> Iterator[Batch]:
    numbered = enumerate(read_compared_rows(path, ["id", "prompt", "gold"]), 1)
    while chunk := list(islice(numbered, BATCH_ROWS)):
        yield Batch(
            [row["id"] for _, row in chunk],
            [row_number for row_number, _ in chunk],
            [row["prompt"] for _, row in chunk],
            [row["gold"] for _, row in chunk],
            [0] * len(chunk),
        )


def _drops(row: Row, matches: Sequence[Mapping[str, Any]], config: DecontaminateConfig, ledger: Ledger) -> bool:
    """Record the match of a row, and return True if the row is dropped. The record has the surest match of a kind that
    drops rows. Without such a match, it has the surest of any kind."""
    order = list(MatchKind)
    surest, *others = sorted(
        matches,
        key=lambda match: (match["kind"] not in config.drop, order.index(match["kind"]), -match["score"]),
    )
    evidence: dict[str, Any] = {
        "against": surest["against"],
        "against_id": surest["against_id"],
        "item": orjson.loads(surest["evidence"])["item"],
        "score": round(surest["score"], 3),
    }
    if others:
        evidence["others"] = [f"{match['against']}:{match['against_id']}" for match in others[:ITEMS_NAMED]]
    kind = MatchKind(surest["kind"])
    if row["split"] != "heldout" and kind in config.drop:
        ledger.drop(row, REASONS[kind], **evidence)
        return True
    ledger.keep(row, REASONS[kind], **evidence)
    return False
