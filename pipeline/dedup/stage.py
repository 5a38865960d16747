"""Stage `dedup`: of rows with the same problem and the same answer one is kept; different answers are flagged.

    train.jsonl:3   "What is 6*7?"    gold "42"    stays
    train.jsonl:9   "what is  6*7?"   gold "42.0"  drop exact_duplicate {"kept": "train.jsonl:3", "kept_id": "9f0c..."}
    train.jsonl:12  "How many legs?"  gold "4"     flag conflicting_labels {"golds": {"4": 1, "8": 1}, "rows": [...]}
    train.jsonl:15  "How many legs?"  gold "8"     flag conflicting_labels, the same evidence
    train.jsonl:20  the problem of train.jsonl:3 in other words
                                                   drop same_problem {"kept": ..., "score": 4.2, "words": 0.81, ...}

Input: `rows`. A held-out row wins over train rows, which are dropped as `leaked_heldout`; then a row with gold over one
without, a complete text, and the longer worked solution. Exact copies come first: prompts are compared without regard
to whitespace and case, golds also to how a plain number is written; for code the tests count as part of the problem.
What is left is compared for rewordings (`dedup_near`, `near`), unless `reworded` is off or case counts; with
`template_cap` rows beyond the best of a template are dropped as `template_cap`. The evidence of a rewording is
explained in `near.evidence`. The file is read four times: for hashes (`dedup_table`), for rewordings (some 500 bytes
for each row that is no copy), for what the evidence needs, and to write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from truegold.pipeline.config.stages import DedupConfig
from truegold.pipeline.dedup.exact_copies import KEY_COLUMNS, DedupTable, canonical_gold
from truegold.pipeline.dedup.near.relation import Relation
from truegold.pipeline.dedup.rewordings import Outcome, compare_rows, exact_only
from truegold.pipeline.ledger import FLAG_SCHEMA, FLAGS_FILE, Ledger, flag_record
from truegold.pipeline.rows import ROW_SCHEMA, Row, TableWriter, count_rows, read_rows
from truegold.pipeline.running.progress import Progress, paced
from truegold.pipeline.running.stage import StageReport, stage_function

ROWS_FILE = "rows.parquet"
CONFIDENCE = 0.9
"""That something is wrong with one of the labels; now and then both are right, in other words."""
SHOWN = 10
"""Golds and rows named in a conflict's evidence: ten thousand copies of one prompt must not each list ten thousand."""
GOLD_CHARS = 200


@stage_function(version=2)
def dedup(inputs: Mapping[str, Path], config: DedupConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Drop exact duplicates and flag conflicting labels."""
    path = inputs["rows"]
    total = count_rows(path)
    table = DedupTable(config.case_sensitive)
    for row in paced(read_rows(path, KEY_COLUMNS), progress, "hashing", total):
        table.add(row)
    same = table.resolve()
    if config.reworded and not config.case_sensitive:
        outcome = compare_rows(path, same, config, out_dir, progress)
    else:
        outcome = exact_only(same)
    known = _collect(path, outcome)
    with (
        Ledger(out_dir, "dedup") as ledger,
        TableWriter(out_dir / ROWS_FILE, ROW_SCHEMA) as rows,
        TableWriter(out_dir / FLAGS_FILE, FLAG_SCHEMA) as flags,
    ):
        for position, row in enumerate(paced(read_rows(path), progress, "deduplicating", total)):
            winner = int(outcome.winner[position])
            if winner != position:
                split, kept, kept_id = known.winner(winner)
                leaked = split == "heldout" and row["split"] != "heldout"
                reason = "leaked_heldout" if leaked else _reason(outcome, position)
                ledger.drop(row, reason, kept=kept, kept_id=kept_id, **outcome.details(position))
                continue
            rows.write(row)
            if (conflict := int(outcome.conflict[position])) >= 0:
                evidence = known.conflicts[conflict].evidence()
                ledger.flag(row, "conflicting_labels", **evidence)
                flags.write(
                    flag_record(row, "conflicting_labels", detector="dedup", evidence=evidence, confidence=CONFIDENCE)
                )
    return StageReport(total, rows.rows, dict(ledger.counts))


def _reason(outcome: Outcome, position: int) -> str:
    if outcome.capped[position]:
        return "template_cap"
    return "exact_duplicate" if outcome.relation[position] == Relation.EXACT else "same_problem"


@dataclass(slots=True)
class _Conflict:
    """The golds of one prompt, duplicates counted: canonical form -> [as first written, how often]."""

    golds: dict[str | None, tuple[str, int]] = field(default_factory=dict)
    rows: list[str] = field(default_factory=list)
    others: int = 0

    def add(self, row: Row) -> None:
        if len(self.rows) < SHOWN:
            self.rows.append(f"{row['source']}:{row['source_row']}")
        canonical = canonical_gold(row["gold"])
        if canonical in self.golds:
            text, count = self.golds[canonical]
            self.golds[canonical] = (text, count + 1)
        elif len(self.golds) < SHOWN:
            self.golds[canonical] = ((row["gold"] or "")[:GOLD_CHARS], 1)
        else:
            self.others += 1

    def evidence(self) -> dict[str, Any]:
        golds: dict[str, int] = {}
        for text, count in self.golds.values():
            golds[text] = golds.get(text, 0) + count
        evidence: dict[str, Any] = {"golds": golds, "rows": self.rows}
        return {**evidence, "rows_with_other_golds": self.others} if self.others else evidence


class _Known:
    """What the evidence says about other rows: identities of rows kept for duplicates, and the conflicts."""

    def __init__(self, same: Outcome) -> None:
        self._positions = np.flatnonzero(same.has_duplicates)
        self._ids = np.empty(len(self._positions), dtype="S20")
        self._rows = np.empty(len(self._positions), dtype=np.int64)
        self._places = np.empty(len(self._positions), dtype=np.uint32)
        self._names: dict[tuple[str, str], int] = {}
        self._filled = 0
        self.conflicts = [_Conflict() for _ in range(int(same.conflict.max(initial=-1)) + 1)]

    def fill(self, row: Row) -> None:
        """The next row that has duplicates, in the order of positions."""
        place = self._names.setdefault((row["split"], row["source"]), len(self._names))
        self._ids[self._filled] = row["id"]
        self._rows[self._filled] = row["source_row"]
        self._places[self._filled] = place
        self._filled += 1

    def winner(self, position: int) -> tuple[str, str, str]:
        """Split, "source:row" and id of a kept row."""
        index = int(np.searchsorted(self._positions, position))
        split, source = list(self._names)[int(self._places[index])]
        return split, f"{source}:{self._rows[index]}", self._ids[index].decode()


def _collect(path: Path, same: Outcome) -> _Known:
    known = _Known(same)
    has_duplicates = same.has_duplicates
    columns = ["id", "source", "source_row", "split", "gold"]
    for position, row in enumerate(read_rows(path, columns)):
        if has_duplicates[position]:
            known.fill(row)
        if (conflict := int(same.conflict[position])) >= 0:
            known.conflicts[conflict].add(row)
    return known
