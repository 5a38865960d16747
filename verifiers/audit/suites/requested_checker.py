"""Repairs that the problem's text asks for, whether or not a worked solution happens to need them.

"You can print each letter in any case", outputs YES and NO        case does not matter
"... error does not exceed 10^-4", outputs 0.33, 2                 numbers within 1e-4, 2 and 2.0 alike
"Print the points in any order", outputs of several lines          lines in any order
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from truegold.verifiers.audit.suites.findings import Finding, Severity, VetReason
from truegold.verifiers.audit.suites.repairs import checker_spec
from truegold.verifiers.code.output_comparison import NUMBER_PATTERN, tolerance_options
from truegold.verifiers.code.suite import Calls, Stdio
from truegold.verifiers.code.suite.statement import Statement

MAX_WORDS = 8
"""With more different words in the outputs, they are texts and no fixed answers such as YES and NO."""

_INTEGER = re.compile(r"[+-]?\d+")


def requested_checker(tests: Stdio | Calls, statement: Statement) -> tuple[dict[str, Any] | None, list[Finding]]:
    """Return the checker that the text asks for, None where the tests have it, and findings on what is to change."""
    spec = checker_spec(tests)
    findings: list[Finding] = []
    for reason, changes, sentence in _changes(tests, spec, statement):
        if changes is None:
            suggestion = "set tests.checker to one that leaves the order free where the problem does"
            findings.append(Finding(reason, Severity.FLAG, {"said": sentence}, suggestion))
        else:
            spec = {**spec, **changes}
            findings.append(Finding(reason, Severity.REPAIR, {"said": sentence, "checker": dict(spec)}))
    return (spec if spec != checker_spec(tests) else None), findings


def _changes(
    tests: Stdio | Calls, spec: dict[str, Any], statement: Statement
) -> Iterator[tuple[VetReason, dict[str, Any] | None, str | None]]:
    """Yield a reason, options of the checker to set (None where none fits), and the sentence that asks for them."""
    if isinstance(tests, Calls):
        if statement.order_of_output and not spec.get("unordered") and not statement.several_answers:
            lists = all(isinstance(case.expected, list) for case in tests.cases)
            yield VetReason.ANY_ORDER, {"unordered": True} if lists else None, statement.order_of_output
        return
    if spec["type"] not in ("tokens", "floats"):
        return
    outputs = [case.output for case in tests.cases]
    if statement.any_case and spec.get("case_sensitive", True) and _have_few_words(outputs):
        yield VetReason.CASE, {"case_sensitive": False}, statement.any_case
    if changes := _tolerance_options(spec, outputs, statement):
        kind = "a relative error" if statement.tolerance_is_relative else "an error"
        yield VetReason.TOLERANCE, changes, f"{kind} of {statement.tolerance:g} is allowed"
    if statement.order_of_output and not spec.get("unordered") and not statement.several_answers:
        unit = _unordered_unit(outputs)
        yield VetReason.ANY_ORDER, {"unordered": unit} if unit else None, statement.order_of_output


def _have_few_words(outputs: Sequence[str]) -> bool:
    words = {token.casefold() for output in outputs for token in output.split() if token.isalpha()}
    return 0 < len(words) <= MAX_WORDS


def _tolerance_options(spec: dict[str, Any], outputs: Sequence[str], statement: Statement) -> dict[str, Any] | None:
    if statement.tolerance is None:
        return None
    tokens = [token for output in outputs for token in output.split()]
    if not tokens or not all(NUMBER_PATTERN.fullmatch(token) for token in tokens):
        return None
    changes: dict[str, Any] = {}
    if spec["type"] == "tokens" and any(_INTEGER.fullmatch(token) for token in tokens):
        changes["type"] = "floats"
    for option, size in tolerance_options(statement.tolerance, statement.tolerance_is_relative).items():
        if spec.get(option, 0.0) < size:
            changes[option] = size
    return changes


def _unordered_unit(outputs: Sequence[str]) -> str | None:
    """Return what may be in any order; None where the outputs do not show it."""
    shapes = [[len(line.split()) for line in output.splitlines() if line.strip()] for output in outputs]
    longest = [max(shape, default=0) for shape in shapes]
    if all(len(shape) <= 2 for shape in shapes) and max(longest, default=0) > 1:
        return "tokens_in_line"
    if all(length <= 1 for length in longest) and any(len(shape) > 1 for shape in shapes):
        return "lines"
    return None
