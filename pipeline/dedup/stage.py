"""Stage `dedup`: keeps one of the rows with the same problem and answer, and flags different answers to one problem.

    train.jsonl:3   "What is 6*7?"    gold "42"    stays
    train.jsonl:9   "what is  6*7?"   gold "42.0"  drop exact_duplicate {"kept": "train.jsonl:3", "kept_id": "9f0c..."}
    train.jsonl:12  "How many legs?"  gold "4"     flag conflicting_labels {"golds": {"4": 1, "8": 1}, "rows": [...]}
    train.jsonl:15  "How many legs?"  gold "8"     flag conflicting_labels, the same evidence
    train.jsonl:20  the problem of train.jsonl:3 in other words
                                                   drop same_problem {"kept": ..., "score": 4.2, "words": 0.81, ...}

Inputs: `rows`, and `sources` if a run has several (`rewordings`).

1. Exact copies are found first (`near.exact_copies`), then rewordings among the rest (`rewordings`), unless `reworded`
   is false or `case_sensitive` true.
2. Held-out rows are kept, and train rows that repeat them are dropped as `leaked_heldout`. Among others, a row with
   gold is preferred, then a complete text, then the longer worked solution, then the first row. Golds that cannot be
   compared are not a conflict (`near.golds`): both rows are kept.
3. A conflict between copies holds its rows back for review, unless a better source settles it. A conflict between
   rewordings only advises.
4. With `embedder`, possible translations are flagged `possible_translation`, which only advises (`flags`).
5. With `template_cap`, rows beyond the best of a template are dropped as `template_cap`.

`near.measures.describe_pairs` explains the evidence of a rewording. The file is read four times: for hashes, for
rewordings (about 500 bytes for each row that is not a copy), for evidence, and to write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truegold.pipeline.config.stages import DedupConfig
from truegold.pipeline.dedup.copy_table import KEY_COLUMNS, CopyTable
from truegold.pipeline.dedup.flags import Conflict, conflict_flag, translation_evidence, translation_flag
from truegold.pipeline.dedup.rewordings import (
    DedupOutcome,
    compare_rows,
    keep_all_but_copies,
    overrule,
    read_heldout,
    read_ranks,
)
from truegold.pipeline.near.arrays import Ints, release_memory
from truegold.pipeline.near.gold_keys import gold_key
from truegold.pipeline.near.measures import Relation
from truegold.pipeline.running.parts import Part, split_inputs, sum_reports
from truegold.pipeline.running.progress import Progress, paced
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.tables.conversation import read_compared_rows
from truegold.pipeline.tables.ledger import FLAG_SCHEMA, FLAGS_FILE, Ledger
from truegold.pipeline.tables.reasons import CONFLICTING_LABELS, POSSIBLE_TRANSLATION
from truegold.pipeline.tables.rows import ROW_SCHEMA, Row, TableWriter, count_rows, read_rows

ROWS_FILE = "rows.parquet"
OVERRULED = "conflict_with_better_source"
"""The reason for dropping a row whose gold a better source contradicts."""


@stage_function(version=14)
def dedup(inputs: Mapping[str, Path], config: DedupConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Drop duplicates and flag conflicting labels."""
    path = inputs["rows"]
    total = count_rows(path)
    ranks = read_ranks(path, inputs["sources"]) if "sources" in inputs else None
    table = CopyTable(config.case_sensitive, has_ranks=ranks is not None)
    for position, row in enumerate(paced(read_compared_rows(path, KEY_COLUMNS), progress, "hashing", total)):
        table.add(row, 0 if ranks is None else int(ranks[position]))
    copies = table.resolve()
    release_memory()
    if config.reworded and not config.case_sensitive:
        outcome = compare_rows(path, copies, config, out_dir, progress, ranks)
    else:
        outcome = keep_all_but_copies(copies)
    if ranks is not None:
        outcome = overrule(outcome, ranks, read_heldout(path))
    decided = _Decided(
        outcome,
        _KeptRows(path, outcome),
        _read_conflicts(path, outcome),
        translation_evidence(path, outcome.kept_translations),
        ranks,
        config.reworded_conflicts,
    )
    release_memory()
    progress.start("deduplicating", total)
    reports, start = [], 0
    for part in split_inputs(inputs, out_dir):
        reports.append(decided.write(part, start))
        start += reports[-1].rows_in
        progress.advance(reports[-1].rows_in)
    return sum_reports(reports)


@dataclass(frozen=True)
class _Decided:
    """The decisions about all rows, by position."""

    outcome: DedupOutcome
    kept_rows: _KeptRows
    conflicts: Sequence[Conflict]
    translations: Mapping[int, Sequence[dict[str, Any]]]
    ranks: Ints | None
    reworded_conflicts: bool

    def write(self, part: Part, start: int) -> StageReport:
        """Write the kept rows of a part with their flags, and its dropped rows. `start` is its first row's position."""
        with (
            Ledger(part.output, "dedup") as ledger,
            TableWriter(part.output(ROWS_FILE), ROW_SCHEMA) as rows,
            TableWriter(part.output(FLAGS_FILE), FLAG_SCHEMA) as flags,
        ):
            for position, row in enumerate(read_rows(part.inputs["rows"]), start):
                if int(self.outcome.winner[position]) == position:
                    rows.write(row)
                    self._flag(row, position, ledger, flags)
                else:
                    self._drop(row, position, ledger)
        return StageReport(part.count_rows(), rows.rows, ledger.counts)

    def _drop(self, row: Row, position: int, ledger: Ledger) -> None:
        outcome, ranks = self.outcome, self.ranks
        winner = int(outcome.winner[position])
        split, kept, kept_id = self.kept_rows.identity(winner)
        leaked = split == "heldout" and row["split"] != "heldout"
        reason = "leaked_heldout" if leaked else _drop_reason(outcome, position)
        evidence = outcome.drop_evidence(position)
        if ranks is not None and ranks[winner] < ranks[position] and split == row["split"]:
            evidence["priority"] = f"{kept.rpartition(':')[0]} before {row['source']}"
        if reason == OVERRULED:
            evidence |= self.conflicts[int(outcome.conflict[winner])].evidence()
        ledger.drop(row, reason, kept=kept, kept_id=kept_id, **evidence)

    def _flag(self, row: Row, position: int, ledger: Ledger, flags: TableWriter) -> None:
        outcome = self.outcome
        are_copies = bool(outcome.copies_conflict[position])
        conflict = int(outcome.conflict[position])
        if conflict >= 0 and (are_copies or self.reworded_conflicts):
            evidence = self.conflicts[conflict].evidence()
            ledger.flag(row, CONFLICTING_LABELS, **evidence)
            is_settled = outcome.settled is not None and bool(outcome.settled[position])
            flags.write(conflict_flag(row, evidence, are_copies, is_settled))
        for evidence in self.translations.get(position, ()):
            ledger.flag(row, POSSIBLE_TRANSLATION, **evidence)
            flags.write(translation_flag(row, evidence))


def _drop_reason(outcome: DedupOutcome, position: int) -> str:
    if outcome.overruled is not None and outcome.overruled[position]:
        return OVERRULED
    if outcome.capped[position]:
        return "template_cap"
    return "exact_duplicate" if outcome.relation[position] == Relation.EXACT else "same_problem"


class _KeptRows:
    """The names of rows that are kept in place of duplicates."""

    def __init__(self, path: Path, outcome: DedupOutcome) -> None:
        self._positions = np.flatnonzero(outcome.has_duplicates)
        rows = pl.scan_parquet(path).select("id", "split", "source", "source_row").with_row_index("position")
        self._rows = rows.filter(pl.col("position").is_in(pl.Series(self._positions))).collect()

    def identity(self, position: int) -> tuple[str, str, str]:
        """Return split, "source:row" and id of a kept row."""
        _, row_id, split, source, source_row = self._rows.row(int(np.searchsorted(self._positions, position)))
        return split, f"{source}:{source_row}", row_id


def _read_conflicts(path: Path, outcome: DedupOutcome) -> list[Conflict]:
    conflicts = [Conflict() for _ in range(int(outcome.conflict.max(initial=-1)) + 1)]
    columns = ["source", "source_row", "prompt", "gold"]
    for position, row in enumerate(read_compared_rows(path, columns)) if conflicts else ():
        if (conflict := int(outcome.conflict[position])) >= 0:
            name = f"{row['source']}:{row['source_row']}"
            conflicts[conflict].add(name, row["prompt"], row["gold"], gold_key(row["gold"]))
    return conflicts
