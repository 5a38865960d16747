"""From test cases that passed or failed to one verdict.

    all passed                          score 1, match
    one failed                          score 0: mismatch, or timeout or limit where that is what ended the program
    reward "pass_rate", 3 of 4 passed   score 0.75 (by weight), partial

The evidence names what held the program (`tier`), whether tests and solution ran apart (`isolation`), and the first
failing case with its input, what was expected and what came, each cut. Times are left out: the verdict on the same row
is always the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from truegold.verifiers.code.execution import End, Execution
from truegold.verifiers.verdict import Reason, Verdict

SHOWN_CHARS = 300
"""What evidence shows of an input or an output. Stops a megabyte of output being copied into every verdict."""

APART = "apart"
"""Expected values and tests were in other processes than the solution."""

TOGETHER = "one_process"
"""Tests ran in the solution's process, which could have tampered with them: a weak verdict."""

_ENDS = {
    End.CPU_LIMIT: (Reason.TIMEOUT, "it used more CPU time than the limit"),
    End.WALL_LIMIT: (Reason.TIMEOUT, "it waited longer than the limit"),
    End.MEMORY_LIMIT: (Reason.LIMIT, "it used more memory, processes or threads than the limit"),
    End.OUTPUT_LIMIT: (Reason.LIMIT, "it wrote more than the limit"),
}


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One test case. reason: match where it passed, else why not. shown: what evidence says of it."""

    passed: bool
    reason: Reason = Reason.MATCH
    weight: float = 1.0
    shown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judged:
    """The cases that were run, in order. total, total_weight: of the whole suite, run or not."""

    cases: Sequence[CaseResult]
    total: int
    total_weight: float
    isolation: str = APART


class CannotJudge(Exception):
    """No verdict on the program follows: the suite or the checker is at fault."""

    def __init__(self, message: str, reason: Reason = Reason.VERIFIER_ERROR) -> None:
        super().__init__(message)
        self.reason = reason


_PASSED = CaseResult(True, Reason.MATCH)


def passed(weight: float = 1.0) -> CaseResult:
    return _PASSED if weight == 1.0 else CaseResult(True, Reason.MATCH, weight)


_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,16}\b")


def failed(weight: float, reason: Reason = Reason.MISMATCH, /, **shown: object) -> CaseResult:
    if isinstance(error := shown.get("error"), str):
        shown["error"] = _ADDRESS.sub("", error)  # another one in every process
    return CaseResult(False, reason, weight, {name: cut(value) for name, value in shown.items() if value is not None})


def ended(execution: Execution) -> tuple[Reason, str] | None:
    """Why a program that did not end as it should did not; None where it did."""
    if execution.end in _ENDS:
        return _ENDS[execution.end]
    if execution.ok:
        return None
    how = f"signal {execution.status}" if execution.end is End.SIGNALLED else f"exit status {execution.status}"
    return Reason.MISMATCH, f"it ended with {how}: {last_line(execution.stderr)}".removesuffix(": ")


def verdict_of(judged: Judged, reward: str, evidence: Mapping[str, Any], extracted: str) -> Verdict:
    """reward: `all` or `pass_rate`."""
    good = [case for case in judged.cases if case.passed]
    bad = next((number for number, case in enumerate(judged.cases) if not case.passed), None)
    found: dict[str, Any] = {**evidence, "isolation": judged.isolation, "passed": len(good), "total": judged.total}
    if bad is None and len(good) == judged.total:
        return Verdict(1.0, Reason.MATCH, extracted, found)
    reason = judged.cases[bad].reason if bad is not None else Reason.MISMATCH
    if bad is not None:
        found["failed"] = {"case": bad, **judged.cases[bad].shown}
    if reward == "all":
        return Verdict(0.0, reason, extracted, found)
    rate = sum(case.weight for case in good) / judged.total_weight if judged.total_weight else 0.0
    # Rounding must not turn "nearly all" into "all".
    score = min(rate, 1.0 - 1e-9) if len(good) < judged.total else 1.0
    return Verdict(score, Reason.PARTIAL if score > 0 else reason, extracted, found)


def cut(value: object) -> str:
    """Text that every writer takes: lone surrogates, which programs can print and raise, are written out."""
    text = value if isinstance(value, str) else repr(value)
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}… ({len(text)} characters)"


def last_line(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:SHOWN_CHARS] if lines else ""
