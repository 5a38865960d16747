"""Counts from rows and verdicts: a JSON summary of one grader on one set of rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from math_rows import APART, HARD_CORPUS, IDENTITY_CORPUS, Row

Record = dict[str, Any]
Judged = Sequence[tuple[Row, Record]]


@dataclass(slots=True)
class Tally:
    """Errors on counted rows. "Could not judge" is a false negative where the row is right, and no false positive."""

    positives: int = 0
    fn: int = 0
    negatives: int = 0
    fp: int = 0
    unjudged: int = 0
    hangs: int = 0

    def add(self, row: Row, record: Record) -> None:
        """Count one verdict."""
        score = record["score"]
        self.unjudged += score is None
        self.hangs += record["note"] == "hang"
        if row.label:
            self.positives += 1
            self.fn += score is not True
        else:
            self.negatives += 1
            self.fp += score is True


def summary(judged: Judged) -> dict[str, Any]:
    """Every count of one peer on one set. Policy and noise rows stand apart; time is of all rows."""
    counted = [pair for pair in judged if pair[0].standing == "counted"]
    main = [pair for pair in counted if pair[0].corpus not in APART]
    return {
        "main": tally(main),
        "all": tally(counted),
        "read": _kinds_of([pair for pair in counted if pair[0].was_read]),
        "counted only": _kinds_of([pair for pair in counted if not pair[0].was_read]),
        "by_corpus": by(counted, lambda row: row.corpus),
        "by_rule": by([pair for pair in counted if pair[0].rule], lambda row: row.rule),
        "policy": accepted([pair for pair in judged if pair[0].standing == "policy"]),
        "noise": accepted([pair for pair in judged if pair[0].standing == "noise"]),
        "speed": speed([record["cpu_ms"] for _, record in judged]),
    }


def tally(judged: Iterable[tuple[Row, Record]]) -> dict[str, int]:
    """Return the counts of verdicts."""
    total = Tally()
    for row, record in judged:
        total.add(row, record)
    return asdict(total)


def _kinds_of(judged: Judged) -> dict[str, dict[str, int]]:
    """Return the counts of the main rows, of those that no rule has made, and of each corpus apart or shown apart."""
    main = [pair for pair in judged if pair[0].corpus not in APART]
    real = [pair for pair in main if not pair[0].rule and pair[0].corpus != IDENTITY_CORPUS]
    shown = [pair for pair in judged if pair[0].corpus in {*APART, HARD_CORPUS}]
    return {"all": tally(main), "real corpora": tally(real), **by(shown, lambda row: row.corpus)}


def by(judged: Judged, key: Callable[[Row], str]) -> dict[str, dict[str, int]]:
    """Return the counts of each group of rows."""
    groups: dict[str, list[tuple[Row, Record]]] = defaultdict(list)
    for row, record in judged:
        groups[key(row)].append((row, record))
    return {name: tally(group) for name, group in groups.items()}


def accepted(judged: Judged) -> dict[str, dict[str, int]]:
    """By rule, or by corpus where there is none: how many rows, how many of them the peer accepts or cannot judge."""
    groups: dict[str, dict[str, int]] = defaultdict(lambda: {"rows": 0, "accepted": 0, "unjudged": 0})
    for row, record in judged:
        group = groups[row.rule or row.corpus]
        group["rows"] += 1
        group["accepted"] += record["score"] is True
        group["unjudged"] += record["score"] is None
    return dict(groups)


def speed(cpu_ms: Sequence[float]) -> dict[str, float]:
    """Rows per CPU second, and the distribution of CPU milliseconds a row (nearest rank)."""
    if not cpu_ms:
        return {}
    ordered = sorted(cpu_ms)
    total = max(sum(ordered), 1e-6)

    def rank(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return {
        "rows": len(ordered),
        "cpu_s": round(total / 1000, 3),
        "per_cpu_s": round(1000 * len(ordered) / total, 2),
        "mean_ms": round(total / len(ordered), 4),
        "p50_ms": rank(0.5),
        "p99_ms": rank(0.99),
        "max_ms": ordered[-1],
    }
