"""Chooses the checker that judges a suite's outputs: the one that the problem's text or a worked solution shows.

"You can print each letter in any case", outputs YES and NO        case does not matter
"... error does not exceed 10^-4", outputs 0.33, 2                 numbers within 1e-4, 2 and 2.0 alike
"Print the points in any order", outputs of several lines          lines in any order

A checker is only changed in the direction that is shown to be right, and never where the tests have a checker program
of their own. Where several answers are right, only such a program can judge; outputs show that by being alike:

"YES\\n0 0\\n3 4"   and  "YES\\n0 0\\n4 3"      alike: another solution of the same shape
"PATH\\n2 5 1"     and  "PATH\\n2 5 1 7"      alike: the same first line, then a solution of another length
"0\\n4\\n1\\n2"     and  "4\\n0\\n1\\n2"         alike: the same values in another order
"17"             and  "18"                not alike: a single value that differs is an error
"1\\n2\\n3"        and  "1\\n2\\n4"            not alike: one value for each of several questions
"2\\n1 5\\n3 4"    and  "1\\n2 6"             alike only where the problem asks for a construction
[1, 2, 3]        and  [3, 1, 2]           alike
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from truegold.verifiers.audit.suites.vet_state import Severity, Spec, SuiteFinding, VetReason
from truegold.verifiers.code.output_comparison import NUMBER_PATTERN, read_spec, tolerance_options
from truegold.verifiers.code.suite.reading import Calls, Stdio
from truegold.verifiers.code.suite.statement import Statement
from truegold.verifiers.code.value_comparison import read_call_spec

DEFAULT_TOLERANCE = 1e-6
"""The tolerance of the verifier where a checker names none."""
LOOSE = 1e-4
"""The widest tolerance that is tried without the problem's text saying so."""
MAX_WORDS = 8
"""With more different words in the outputs, they are texts and no fixed answers such as YES and NO."""

_INTEGER = re.compile(r"[+-]?\d+")
MAX_COMPARED_CHARS = 2**20
"""The part of an output that is compared. Stops outputs of megabytes from taking long."""

MIN_TEXT_CHARS = 3
"""Single words that differ are alike only from this length on, and only if both have the same length."""

MIN_DISTINCT = 3
"""With this many different values in an output, the same values in another order are no accident."""


@dataclass(frozen=True, slots=True)
class CheckerCandidate:
    """A checker to try on a worked solution that fails."""

    reason: VetReason
    """What is wrong with the tests if the solution passes with it."""
    checker: Spec
    sure: bool
    """Whether the pass alone shows that the checker is right."""


def has_checker_program(tests: object) -> bool:
    """Whether a checker program, testlib's or another, or an interactor judges the outputs."""
    if getattr(tests, "interactor", None) is not None:
        return True
    checker = getattr(tests, "checker", None)
    return isinstance(checker, Mapping) and checker.get("type") == "program"


def candidate_checkers(tests: Stdio | Calls, statement: Statement) -> Iterator[CheckerCandidate]:
    """Yield checkers that may explain why a right program fails, the strictest first."""
    spec = checker_spec(tests)
    is_order_free = statement.any_order is not None
    if isinstance(tests, Calls):
        tolerance = max(statement.tolerance or LOOSE, DEFAULT_TOLERANCE)
        yield CheckerCandidate(VetReason.TOLERANCE, {**spec, "abs_tol": tolerance, "rel_tol": tolerance}, True)
        yield CheckerCandidate(VetReason.ANY_ORDER, {**spec, "unordered": True}, is_order_free)
        return
    if spec["type"] not in ("tokens", "floats"):
        # Tokens leave free the blanks at the ends of lines, and how many there are between words.
        spec = {"type": "tokens", **{key: value for key, value in spec.items() if key == "case_sensitive"}}
        yield CheckerCandidate(VetReason.TOLERANCE, spec, False)
    tolerance = max(statement.tolerance or DEFAULT_TOLERANCE, DEFAULT_TOLERANCE)
    for size in (tolerance, LOOSE) if statement.tolerance is None else (tolerance,):
        floats = {**spec, "type": "floats", "abs_tol": size, "rel_tol": size}
        yield CheckerCandidate(VetReason.TOLERANCE, floats, True)
    yield CheckerCandidate(VetReason.CASE, {**spec, "case_sensitive": False}, True)
    for unit in ("tokens_in_line", "lines", "tokens"):
        yield CheckerCandidate(VetReason.ANY_ORDER, {**spec, "unordered": unit}, is_order_free)


def checker_spec(tests: Stdio | Calls) -> dict[str, Any]:
    """Return the tests' checker with its options written out, also where a name abbreviates it."""
    if isinstance(tests, Calls):
        return {"type": "values", **read_call_spec(tests.checker, "checker")}
    kind, options = read_spec(tests.checker, "checker")
    return {"type": kind if kind in ("floats", "lines", "exact", "program") else "tokens", **options}


def requested_checker(tests: Stdio | Calls, statement: Statement) -> tuple[dict[str, Any] | None, list[SuiteFinding]]:
    """Return the checker that the text asks for, None where the tests have it, and findings on what is to change."""
    spec = checker_spec(tests)
    findings: list[SuiteFinding] = []
    for reason, changes, sentence in _changes(tests, spec, statement):
        if changes is None:
            suggestion = "set tests.checker to one that leaves the order free where the problem does"
            findings.append(SuiteFinding(reason, Severity.FLAG, {"said": sentence}, suggestion))
        else:
            spec = {**spec, **changes}
            findings.append(SuiteFinding(reason, Severity.REPAIR, {"said": sentence, "checker": dict(spec)}))
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


class AnswersSign(StrEnum):
    """The sign by which several right answers were recognised."""

    TEXT = "text"
    """The problem's text says so."""
    OUTPUTS = "outputs"
    """The worked solution answers otherwise, in the shape of an answer."""
    SAME_INPUT = "same_input"
    """Two cases with the same input have such outputs."""


def needs_checker(sign: AnswersSign, evidence: dict[str, Any], statement: Statement) -> SuiteFinding:
    """Return the finding that several answers are right; the problem's text, where it says so, is the better sign."""
    if statement.several_answers is not None:
        sign = AnswersSign.TEXT
    sentence = statement.several_answers or statement.any_order or statement.constructs
    evidence = {"sign": str(sign), "said": sentence, **evidence}
    suggestion = "write a checker program and set tests.checker to it"
    return SuiteFinding(VetReason.NEEDS_CHECKER, Severity.DROP, evidence, suggestion)


def are_all_alike(pairs: Sequence[tuple[Any, Any]], constructs: bool = False) -> bool:
    """Whether there are pairs of outputs, and all of them are alike. constructs: as for `are_alike`."""
    return bool(pairs) and all(are_alike(left, right, constructs) for left, right in pairs)


def are_alike(left: Any, right: Any, constructs: bool = False) -> bool:
    """Whether two outputs that differ look like two right answers.

    constructs: whether the problem asks for something to be constructed.
    """
    if isinstance(left, str) and isinstance(right, str):
        return _are_texts_alike(_lines(left[:MAX_COMPARED_CHARS]), _lines(right[:MAX_COMPARED_CHARS]), constructs)
    collections = (list, tuple, dict, set)
    return isinstance(left, collections) and isinstance(right, collections) and len(left) == len(right) > 1


Line = Sequence[str]
"""The words of a line of output."""


def _lines(text: str) -> list[Line]:
    return [line.split() for line in text.splitlines() if line.strip()]


def _are_texts_alike(left: Sequence[Line], right: Sequence[Line], constructs: bool) -> bool:
    if [len(line) for line in left] == [len(line) for line in right] and all(
        _are_lines_alike(*pair, constructs) for pair in zip(left, right, strict=True) if pair[0] != pair[1]
    ):
        return True
    if _are_reordered(left, right):
        return True
    if constructs:
        return _has_list(left) and _has_list(right)
    return _has_list(left[1:]) and _has_list(right[1:]) and left[0] == right[0]


def _has_list(lines: Sequence[Line]) -> bool:
    return any(len(line) > 1 for line in lines)


def _are_lines_alike(left: Line, right: Line, constructs: bool) -> bool:
    if len(left) > 1:
        return True
    has_digit = any(char.isdigit() for char in left[0] + right[0])  # This covers 17, 5/6 and 0x1f.
    # In a construction a row of digits such as 0110 is a text.
    is_text = not has_digit or (constructs and len(left[0]) > MIN_TEXT_CHARS)
    return is_text and len(left[0]) == len(right[0]) >= MIN_TEXT_CHARS


def _are_reordered(left: Sequence[Line], right: Sequence[Line]) -> bool:
    values = Counter(word for line in left for word in line)
    return len(values) >= MIN_DISTINCT and values == Counter(word for line in right for word in line)
