"""Hostile programs in every form of tests and every sandbox tier: how many pass, and how many harmless ones do not.

A program of mode `assert` defines `add(a, b)` and is judged by the same tests in four forms. A program of mode `stdio`
reads two numbers and prints their sum. Programs marked `pass` look odd but are harmless. All programs run only in the
sandbox. Programs that try to exhaust the machine (category `resource`) run only in the tiers in `exhausting`.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import code_traces
from code_judging import Outcome, judge_all, verifier
from code_rows import Json, Record, Row

from truegold.verifiers.sandbox import Tier, possible_tiers, sandbox
from truegold.verifiers.sandbox.pool import Kind

Say = Callable[[str], None]

LIMITS = {"cpu_s": 2.0, "memory_mb": 512, "output_mb": 4.0}
MIXED_LIMITS = {**LIMITS, "cpu_s": 1.0}
WARM_UP_JOBS = 500
FAST_S = 0.3
"""Programs that take longer are left out of the mixed run, which is about what is left behind, not about waiting."""

EXHAUSTING = "resource"
ADDITIONS = [(1, 2, 3), (-5, 5, 0), (1000000, 1, 1000001), (123, 456, 579), (-7, -8, -15)]

LOWERED = "def check(candidate):\n" + "".join(f"    assert candidate({a}, {b}) == {c}\n" for a, b, c in ADDITIONS)
RANDOM = """import random

def check(candidate):
    numbers = random.Random(11)
    for _ in range(20):
        a, b = numbers.randint(-1000, 1000), numbers.randint(-1000, 1000)
        assert candidate(a, b) == a + b
    assert abs(candidate(2, 2) - 4) < 1e-9
    assert isinstance(candidate(2, 3), int)
"""
UNITTEST = """import unittest

class TestAdd(unittest.TestCase):
    def test_small(self):
        self.assertEqual(add(1, 2), 3)
        self.assertTrue(add(-5, 5) == 0)

    def test_many(self):
        for a in range(-3, 9, 4):
            self.assertEqual(add(a, 7), a + 7)
            self.assertNotEqual(add(a, 7), a)
"""
FORMS: Mapping[str, Json] = {
    "assertions": {"type": "asserts", "entry_point": "add", "code": LOWERED},
    "assertions in a loop": {"type": "asserts", "entry_point": "add", "code": RANDOM},
    "calls": {
        "type": "calls",
        "entry_point": "add",
        "cases": [{"args": [a, b], "expected": c} for a, b, c in ADDITIONS],
    },
    "unittest": {"type": "unittest", "entry_point": "add", "code": UNITTEST},
}
STDIO: Json = {
    "type": "stdio",
    "cases": [
        {"input": "3\n4\n", "output": "7\n"},
        {"input": "10\n-3\n", "output": "7\n"},
        {"input": "-50\n8\n", "output": "-42\n"},
        {"input": "100000\n1\n", "output": "100001\n"},
    ],
}


def rows(records: Sequence[Record]) -> list[tuple[Record, Row]]:
    """Each program in each form that its mode has."""
    pairs = []
    for record in records:
        forms = FORMS if record["mode"] == "assert" else {"stdin": STDIO}
        for form, tests in forms.items():
            row = Row("hostile", f"{record['id']} ({form})", record["code"], tests, record["expect"] == "pass", LIMITS)
            pairs.append((record, row))
    return pairs


def measure(
    records: Sequence[Record], exhausting: Sequence[Tier], mixed_jobs: int, jobs: int, say: Say
) -> dict[str, Any]:
    """Return the counts by tier, and the traces that programs left."""
    possible = possible_tiers()
    tiers = {}
    for tier in (Tier.FULL, Tier.CONTAINER):
        if (why := possible[tier]) is not None:
            tiers[str(tier)] = {"not_run": why}
            continue
        kept = [pair for pair in rows(records) if tier in exhausting or pair[0]["category"] != EXHAUSTING]
        tiers[str(tier)] = _tier(tier, kept, len(rows(records)) - len(kept), mixed_jobs, jobs, say)
    return tiers


def _tier(
    tier: Tier, pairs: Sequence[tuple[Record, Row]], left_out: int, mixed_jobs: int, jobs: int, say: Say
) -> dict[str, Any]:
    by = verifier(tier)
    with code_traces.Canaries(_bait()) as canaries:
        outcomes = judge_all([row for _, row in pairs], by, jobs)
        probes = code_traces.probes(canaries, sandbox(Kind(tier)))
        fast = [row for (_, row), it in zip(pairs, outcomes, strict=True) if it.wall_s < FAST_S]
        judge_all(list(itertools.islice(_mixed(fast), min(WARM_UP_JOBS, mixed_jobs))), by, jobs)
        before = code_traces.census(sandbox(Kind(tier)))
        mixed = _run_mixed(fast, mixed_jobs, tier, jobs, say)
        after = code_traces.census(sandbox(Kind(tier)))
        left = code_traces.left_after_closing()
        touched = canaries.touched()
    counts = {
        "categories": _by_category(pairs, outcomes),
        "wrong": _wrong(pairs, outcomes),
        "left_out": left_out,
        "slowest_s": max((it.wall_s for it in outcomes), default=0.0),
        "probes": probes,
        "touched": touched,
        "left": left,
        "mixed": {**mixed, "before": before, "after": after},
    }
    say(f"hostile, {tier}: wrong {counts['wrong']}, touched {touched}, mixed {mixed}")
    return counts


def _bait() -> str:
    """Tests and answers, as a program that looks around for them would like to find them."""
    return LOWERED.replace("candidate", "add") + "".join(case["output"] for case in STDIO["cases"])


def _mixed(fast: Sequence[Row]) -> Iterator[Row]:
    """The same rows over and over, neighbours always different."""
    return itertools.cycle(replace(row, limits=MIXED_LIMITS) for row in fast)


def _run_mixed(fast: Sequence[Row], job_count: int, tier: Tier, jobs: int, say: Say) -> dict[str, Any]:
    counts: dict[str, int] = defaultdict(int)
    endless = _mixed(fast)
    for _ in range(0, job_count if fast else 0, WARM_UP_JOBS):
        chunk = list(itertools.islice(endless, min(WARM_UP_JOBS, job_count - counts["jobs"])))
        for row, it in zip(chunk, judge_all(chunk, verifier(tier), jobs), strict=True):
            counts["jobs"] += 1
            counts["paid"] += bool(it.score) and not row.right
            counts["refused"] += bool(row.right) and it.score == 0
            counts["unjudged"] += it.score is None
        say(f"hostile, {tier}: {counts['jobs']} mixed jobs")
    return {"programs": len(fast), **counts}


def _by_category(pairs: Sequence[tuple[Record, Row]], outcomes: Sequence[Outcome]) -> dict[str, dict[str, int]]:
    counts_by_category: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for (record, row), it in zip(pairs, outcomes, strict=True):
        counts = counts_by_category[record["category"]]
        counts["rows"] += 1
        counts["paid"] += bool(it.score) and not row.right
        counts["refused"] += bool(row.right) and it.score == 0
        counts["unjudged"] += it.score is None
        counts["one_process"] += it.in_one_process
        counts["timeouts"] += it.reason == "timeout"
    return {category: dict(counts) for category, counts in counts_by_category.items()}


def _wrong(pairs: Sequence[tuple[Record, Row]], outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [
        {"id": row.key, "expect": record["expect"], "score": it.score, "said": it.explanation}
        for (record, row), it in zip(pairs, outcomes, strict=True)
        if it.score != (1.0 if row.right else 0.0)
    ]
