"""Mechanical repairs that need no person's judgement: cases taken out, another checker, a higher limit.

    Repair(without={3}, checker={"type": "tokens", "unordered": "lines"})

A checker is only changed in the direction that the problem's text or the worked solution shows to be right, and never
where the tests have a checker program of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from truegold.verifiers.audit.suites.findings import VetReason
from truegold.verifiers.code.suite import Calls, Stdio
from truegold.verifiers.code.suite.shapes import normal_form
from truegold.verifiers.code.suite.statement import Statement

DEFAULT_TOLERANCE = 1e-6
"""The tolerance of the verifier where a checker names none."""
LOOSE = 1e-4
"""The widest tolerance that is tried without the problem's text saying so."""

Spec = Mapping[str, Any]
"""A checker with its options, as in the verifier's arguments."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What to change of a suite; false where that is nothing."""

    without: frozenset[int] = frozenset()
    """The indexes of the cases to take out."""
    checker: Spec | None = None
    """The checker to set; None keeps it."""
    cpu_s: float | None = None
    """The CPU limit to set; None keeps it."""

    def __bool__(self) -> bool:
        return bool(self.without) or self.checker is not None or self.cpu_s is not None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A checker to try on a worked solution that fails."""

    reason: VetReason
    """What is wrong with the tests if the solution passes with it."""
    checker: Spec
    sure: bool
    """Whether the pass alone shows that the checker is right."""


def apply_repair(info: Mapping[str, Any], repair: Repair) -> dict[str, Any]:
    """Return the verifier's arguments after the repair, in the form that the verifier documents."""
    tests, is_nested = normal_form(info)
    if repair.without:
        tests["cases"] = [case for index, case in enumerate(tests["cases"]) if index not in repair.without]
    if repair.checker is not None:
        tests["checker"] = dict(repair.checker)
    if repair.cpu_s is not None:
        tests["limits"] = {**(info.get("limits") or {}), **(tests.get("limits") or {}), "cpu_s": repair.cpu_s}
    return {**info, "tests": tests} if is_nested else {**info, **tests}


def has_checker_program(tests: object) -> bool:
    """Whether a checker program, testlib's or another, or an interactor judges the outputs."""
    if getattr(tests, "interactor", None) is not None:
        return True
    checker = getattr(tests, "checker", None)
    return isinstance(checker, Mapping) and checker.get("type") == "program"


def candidate_checkers(tests: Stdio | Calls, statement: Statement) -> Iterator[Candidate]:
    """Yield checkers that may explain why a right program fails, the strictest first."""
    spec = checker_spec(tests)
    is_order_free = statement.any_order is not None
    if isinstance(tests, Calls):
        tolerance = max(statement.tolerance or LOOSE, DEFAULT_TOLERANCE)
        yield Candidate(VetReason.TOLERANCE, {**spec, "abs_tol": tolerance, "rel_tol": tolerance}, True)
        yield Candidate(VetReason.ANY_ORDER, {**spec, "unordered": True}, is_order_free)
        return
    if spec["type"] not in ("tokens", "floats"):
        # Tokens leave free the blanks at the ends of lines, and how many there are between words.
        spec = {"type": "tokens", **{key: value for key, value in spec.items() if key == "case_sensitive"}}
        yield Candidate(VetReason.TOLERANCE, spec, False)
    tolerance = max(statement.tolerance or DEFAULT_TOLERANCE, DEFAULT_TOLERANCE)
    yield Candidate(VetReason.TOLERANCE, {**spec, "type": "floats", "abs_tol": tolerance, "rel_tol": tolerance}, True)
    if statement.tolerance is None:
        yield Candidate(VetReason.TOLERANCE, {**spec, "type": "floats", "abs_tol": LOOSE, "rel_tol": LOOSE}, True)
    yield Candidate(VetReason.CASE, {**spec, "case_sensitive": False}, True)
    for unit in ("tokens_in_line", "lines", "tokens"):
        yield Candidate(VetReason.ANY_ORDER, {**spec, "unordered": unit}, is_order_free)


def checker_spec(tests: Stdio | Calls) -> dict[str, Any]:
    """Return the tests' checker with its options written out, also where a name abbreviates it."""
    checker = tests.checker
    if not isinstance(checker, str):
        return {"type": "tokens" if isinstance(tests, Stdio) else "values", **checker}
    short: dict[str, dict[str, Any]] = {
        "case_insensitive": {"type": "tokens", "case_sensitive": False},
        "unordered_lines": {"type": "tokens", "unordered": "lines"},
        "unordered_tokens": {"type": "tokens", "unordered": "tokens"},
        "unordered": {"type": "values", "unordered": True},
        "strict": {"type": "values", "strict": True},
    }
    return short.get(checker, {"type": checker})
