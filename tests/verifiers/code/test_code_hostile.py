"""Hostile and odd programs, in every form of tests, in both strong tiers: what each earns, and what it leaves behind.

`hostile_programs.jsonl` holds a program a line:

    {"id", "category": reward_hack|robustness|resource|escape|benign|opt_out, "modes": [...], "expect": fail|pass,
     "note", "code", "tests"?, "limits"?, "info"?}

Most define `add(a, b)`, or print the sum of two numbers, without doing so honestly; `modes` are the forms of tests that
they meet (SUITES). Mode `own` stands for the row's own `tests`. A program that fails has the score 0.0, never None: a
policy that could get None would opt out of every problem that it cannot solve. Programs of category `escape` give the
right answer where they got out.

Each program runs in one of its modes and one of the tiers, those that try to escape in both tiers;
TRUEGOLD_ALL_ATTACKS=1 runs all of them everywhere.
"""

import json
import os
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sandboxes import box_of

from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.sandbox import Sandbox, Tier, sandbox
from truegold.verifiers.sandbox.pool import Kind

ROWS = {
    row["id"]: row
    for row in map(json.loads, Path(__file__).with_name("hostile_programs.jsonl").read_text("utf-8").splitlines())
}
LIMITS = {"cpu_s": 1.5, "memory_mb": 512, "output_mb": 2.0}
THREADS = 8
ALL_MODES = os.environ.get("TRUEGOLD_ALL_ATTACKS") == "1"
OUTSIDE = [f"{folder}/truegold-left" for folder in ("", "/usr/lib", "/var/tmp", "/tmp", "/dev/shm", "/etc")] + [
    "/dev/shm/h8"
]
CATEGORIES = ("reward_hack", "robustness", "resource", "escape", "benign", "opt_out")
SLOW = ("resource", "robustness")
HONEST = "def add(a, b):\n    return a + b\nif __name__ == '__main__':\n    print(int(input()) + int(input()))"
SCORES = {"fail": 0.0, "pass": 1.0}

PATCHED = """\
import unittest
import gc
from unittest.mock import patch

class TestAdd(unittest.TestCase):
    def test_quietly(self):
        with patch("builtins.print"):
            self.assertEqual(add(1, 2), 3)
            self.assertEqual(add(-5, 5), 0)
"""
RANDOM = """\
import random

def check(candidate):
    for _ in range(4):
        a, b = random.randint(1, 9**9), random.randint(1, 9**9)
        assert candidate(a, b) == a + b
    assert abs(candidate(2, 2) - 4) < 1e-9
"""
UNITTEST = """\
import unittest

class TestAdd(unittest.TestCase):
    def test_small(self):
        self.assertEqual(add(1, 2), 3)
        self.assertTrue(add(-5, 5) == 0)

    def test_many(self):
        self.assertTrue(all(add(a, 7) == a + 7 for a in range(-3, 9, 4)))
"""
PYTEST = """\
import pytest

@pytest.fixture
def seven():
    yield 7

class TestAdd:
    @pytest.mark.parametrize("a, b, c", [(1, 2, 3), (-5, 5, 0)])
    def test_small(self, a, b, c):
        assert add(a, b) == c

    def test_many(self, seven):
        assert all(add(a, seven) == a + seven for a in range(-3, 9, 4))
"""
SUITES: dict[str, dict[str, Any]] = {
    "calls": {
        "type": "calls",
        "entry_point": "add",
        "cases": [{"args": [1, 2], "expected": 3}, {"args": [-5, 5], "expected": 0}],
    },
    "asserts": {
        "type": "asserts",
        "entry_point": "add",
        "code": "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert abs(candidate(-5, 9) - 4) < 1e-6\n",
    },
    "loop": {"type": "asserts", "entry_point": "add", "code": RANDOM},
    "unittest": {"type": "unittest", "entry_point": "add", "code": UNITTEST},
    "pytest": {"type": "unittest", "entry_point": "add", "code": PYTEST},
    "together": {"type": "unittest", "entry_point": "add", "code": PATCHED},
    "stdio": {
        "type": "stdio",
        "cases": [{"input": "3\n4\n", "output": "7\n"}, {"input": "-50\n8\n", "output": "-42\n"}],
    },
}


@dataclass(frozen=True)
class Arena:
    """Where programs run."""

    tier: Tier
    verifier: CodeVerifier
    box: Sandbox
    threads: ThreadPoolExecutor

    def descendants(self) -> set[int]:
        """How many processes a zygote has below it: which ones run depends on how many jobs waited."""
        counts = set()
        for zygote in self.box.pids():
            pids = [zygote]
            for parent in pids:  # The list grows on the way.
                pids += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
            counts.add(len(pids) - 1)
        return counts

    def left(self) -> list[str]:
        """Files in working folders, and those that programs of the list try to make elsewhere."""
        inside = [str(path) for folder in self.box.folders() for path in Path(folder).iterdir()]
        return [*inside, *filter(os.path.exists, OUTSIDE)]


@pytest.fixture(scope="module", params=[Tier.FULL, Tier.CONTAINER])
def arena(request: pytest.FixtureRequest) -> Iterator[Arena]:
    box_of(request.param)
    verifier = CodeVerifier(tier=request.param)
    with ThreadPoolExecutor(THREADS) as threads:
        arena = Arena(request.param, verifier, sandbox(Kind(request.param)), threads)
        # All seats are started, so that what is there before a program and after it can be compared.
        for imported, mode in (("time", "stdio"), ("time", "unittest"), ("time, numpy", "stdio"), ("time", "pytest")):
            waiting = partial(judge, arena, f"import {imported}\ntime.sleep(0.3)\n{HONEST}", mode)
            assert [job.result() for job in [threads.submit(waiting) for _ in range(THREADS)]] == [1.0] * THREADS
        yield arena


def chosen(row: dict[str, Any], tier: Tier) -> list[str]:
    """The modes in which a program is run."""
    modes: list[str] = row["modes"] + ["pytest"] * ("unittest" in row["modes"])
    chance = zlib.crc32(row["id"].encode())
    if ALL_MODES:
        return modes
    if row["category"] != "escape" and chance % 2 == (tier is Tier.FULL):
        return []
    return [modes[chance // 2 % len(modes)]]


def judge(arena: Arena, program: str, mode: str, row: dict[str, Any] | None = None) -> float | None:
    row = row or {}
    tests = row["tests"] if mode == "own" else SUITES[mode]
    info = {"tests": tests, "limits": {**LIMITS, **row.get("limits", {})}, **row.get("info", {})}
    verdict = arena.verifier(f"~~~~python\n{program}\n~~~~", info=info)
    json.dumps(dict(verdict.evidence), ensure_ascii=False).encode()
    return verdict.score


@pytest.fixture(scope="module")
def outcomes(arena: Arena) -> dict[tuple[str, str], float | None]:
    """The scores of all programs, those that take their limits first, so that others fill the time they wait."""
    runs = [(row, mode) for row in ROWS.values() for mode in chosen(row, arena.tier)]
    runs.sort(key=lambda run: run[0]["category"] not in SLOW)
    descendants = arena.descendants()
    scores = arena.threads.map(lambda run: judge(arena, run[0]["code"], run[1], run[0]), runs)
    score_of = {(row["id"], mode): score for (row, mode), score in zip(runs, scores, strict=True)}
    assert arena.descendants() == descendants
    assert arena.left() == []
    return score_of


@pytest.mark.parametrize("category", CATEGORIES)
def test_programs_earn_what_they_are_worth_and_leave_nothing_behind(
    outcomes: dict[tuple[str, str], float | None], category: str
) -> None:
    wrong = [
        f"{name} in mode {mode}: {score}, {ROWS[name]['note']}"
        for (name, mode), score in outcomes.items()
        if ROWS[name]["category"] == category and score != SCORES[ROWS[name]["expect"]]
    ]
    if sys.version_info >= (
        3,
        12,
    ):  # Such a Python ends deep recursion through C, whatever a program sets as its limit.
        wrong = [line for line in wrong if not line.startswith("ok-recursion ")]
    assert wrong == []


def test_after_all_of_them_an_honest_program_passes_in_every_form(arena: Arena) -> None:
    assert {mode: judge(arena, HONEST, mode) for mode in SUITES} == dict.fromkeys(SUITES, 1.0)


def test_the_programs_are_described_completely() -> None:
    met = {mode for row in ROWS.values() for mode in row["modes"]}
    assert met | {"pytest"} == SUITES.keys() | {"own"}
    assert {row["category"] for row in ROWS.values()} == set(CATEGORIES)
    for row in ROWS.values():
        assert row["expect"] == ("pass" if row["category"] == "benign" else "fail"), row["id"]
        assert ("own" in row["modes"]) == ("tests" in row), row["id"]
        assert row["note"], row["id"]
    codes = [(row["code"], json.dumps(row.get("tests"))) for row in ROWS.values()]
    assert len(set(codes)) == len(codes)
