"""Findings of the gallery's runs: whether labels of older findings still apply, and agreement with published reviews.

Readers labelled findings of an older truegold. `Findings.renew` checks whether the current run has the same result: the
same finding, no finding, or the same matched pair; and whether the finding excludes its row now. `reviewed` compares
the findings of a set with a published review of all its rows.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from first_contact import read
from flag_readings import QUESTIONS, UNFLAGGED

from truegold.verifiers.rates import wilson_interval

Row = dict[str, Any]

TIERS = ("drop", "review", "keep")
_NOISE = re.compile(r"\s+(all|top 8|random 8|random 4)\s+(\d+)%  (.+?) \| (.+?) \| AP ([\d.]+) \| ([\d.]+)")
"""A line of `curation_label_noise.py`."""


def table(path: Path) -> list[Row]:
    """Return the rows of a Parquet file."""
    return pl.read_parquet(path).to_dicts()


class Findings:
    """The findings of runs, leaks and suspicions on the rows of some corpora."""

    def __init__(self, folder: Path, corpora: Sequence[str], leaks: Sequence[str]) -> None:
        self.blocks: dict[tuple[str, str, int, str], bool] = {}
        """By corpus, source, its row and reason: whether that leaves the row out or holds it back."""
        self.tiers: dict[tuple[str, str, int], str] = {}
        self.pairs: set[tuple[str, str, str]] = set()
        for corpus in corpora:
            self._read_run(corpus, folder / corpus / "run")
            if (suspicion := folder / corpus / "flag" / "suspicion.parquet").is_file():
                self.tiers |= {(corpus, row["source"], row["source_row"]): row["tier"] for row in table(suspicion)}
        for corpus in leaks:
            matches = table(folder / "leaks" / corpus / "matches.parquet")
            self.pairs |= {(corpus, match["id"], match["kind"]) for match in matches}

    def _read_run(self, corpus: str, run: Path) -> None:
        for flag in table(run / "flag" / "flags.parquet"):
            self.blocks[corpus, flag["source"], flag["source_row"], flag["reason"]] = flag["blocks"]
        ledgers = [run / stage / "ledger.parquet" for stage in ("clean", "dedup", "vet_tests")]
        for ledger in filter(Path.exists, ledgers):
            for record in table(ledger):
                if record["action"] in ("drop", "flag"):
                    finding = corpus, record["source"], record["source_row"], record["reason"]
                    self.blocks[finding] = self.blocks.get(finding, False) or record["action"] == "drop"

    def renew(self, key: Mapping[str, Any]) -> Row:
        """Return a reading's key with `stands` (whether the finding is still made) and whether it excludes its row."""
        corpus, reason = key["corpus"], key["reason"]
        row = corpus, key["source"], key["source_row"]
        kind, _, detail = reason.partition(":")
        if kind == "leak":
            return {**key, "stands": (corpus, key["id"], detail) in self.pairs}
        if kind == "suspicion":
            tier = self.tiers.get(row, "keep")
            return {**key, "reason": f"{kind}:{tier}", "blocks": tier == "drop", "stands": True}
        if reason == UNFLAGGED:
            return {**key, "stands": all(finding[:3] != row for finding in self.blocks)}
        blocks = self.blocks.get((*row, reason))
        if key["control"]:  # That of a pair is the same row beside an unrelated one.
            return {**key, "stands": blocks is None or QUESTIONS[reason].needs == "pair"}
        return {**key, "blocks": bool(blocks), "stands": blocks is not None}


def reviewed(settings: Row, folder: Path) -> Row:
    """Return tables of a set with a published review: by reason, by the review's status, and by tier of suspicion."""
    review = settings["review"]
    (corpus,) = settings["runs"]
    findings = Findings(folder, [corpus], [])
    lines = read(Path(os.path.expandvars(review["file"])))
    verdicts = {row: line[review["column"]] for row, line in enumerate(lines, start=1)}
    by_reason: dict[tuple[str, bool], set[int]] = defaultdict(set)
    for (_, _, row, reason), blocks in findings.blocks.items():
        by_reason[reason, blocks].add(row)
    blocked, named = ({row for (_, _, row, _), blocks in findings.blocks.items() if blocks is does_block}
                      for does_block in (True, False))  # fmt: skip
    tiers = {tier: {row for (_, _, row), of_row in findings.tiers.items() if of_row == tier} for tier in TIERS}
    suspected = tiers["drop"] | tiers["review"]
    kinds = Counter(verdicts.values())
    counted = []
    for kind, _ in kinds.most_common():
        of_kind = {row for row, verdict in verdicts.items() if verdict == kind}
        parts = (blocked, named - blocked, suspected, of_kind - blocked - named - suspected)
        counted.append((kind, kinds[kind], *(len(of_kind & part) for part in parts)))
    return {
        "reasons": [
            (reason, "left out or held back" if blocks else "advice", *_rate(rows, verdicts, review["fine"]))
            for (reason, blocks), rows in sorted(by_reason.items(), key=lambda entry: -len(entry[1]))
        ],
        "kinds": counted,
        "tiers": [(tier, *_rate(rows, verdicts, review["fine"])) for tier, rows in tiers.items()],
        "noise": list(_noise(folder / "noise" / f"{corpus}.txt")),
    }


def _rate(rows: set[int], verdicts: Mapping[int, str], fine: str) -> tuple[int, str, str]:
    """Return rows, how many of them the review finds at fault, and for what."""
    faults = Counter(verdicts[row] for row in rows if verdicts[row] != fine)
    if not rows:
        return 0, "", ""
    low, high = wilson_interval(faults.total(), len(rows))
    by_fault = ", ".join(f"{fault} {count}" for fault, count in faults.most_common())
    return len(rows), f"{faults.total()} ({low:.2f} to {high:.2f})", by_fault


def _noise(path: Path) -> Iterator[tuple[str, ...]]:
    """Yield the lines of a report of `curation_label_noise.py`, where there is one."""
    for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
        if match := _NOISE.fullmatch(line.rstrip()):
            name, share, *figures = match.groups()
            yield name, f"{share} %", *figures
