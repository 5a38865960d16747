"""What vetting reports about a suite of tests: reasons out of a closed vocabulary, and what follows from them.

    Finding(VetReason.PAID_NULL, Severity.DROP, {"programs": ["returns True"]}, "add cases with other answers")

A suite with a finding of severity `drop` is dropped, else one with a `repair` is repaired, else it is kept; `flag` is
for a reader to weigh, `note` is for the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

SHOWN_CHARS = 160
"""The part of an input or an output that evidence shows. Stops outputs of megabytes from being copied into reports."""


class VetReason(StrEnum):
    """What vetting can find; a closed vocabulary, so that reports can count by it."""

    UNREADABLE = "unreadable_tests"
    """The verifier cannot read the tests; the evidence has its message."""
    NO_REFERENCE = "no_reference"
    """There is no worked solution: whether the tests can be passed, and what they catch, is not known."""
    REFERENCE_FAILS = "reference_fails"
    """The worked solution fails its own tests, and no mechanical repair makes it pass."""
    MISSING_PACKAGE = "missing_package"
    """The worked solution or the tests import a package that programs do not have here."""
    REFERENCES_DISAGREE = "references_disagree"
    """Of several worked solutions some pass and some do not."""
    FLAKY = "flaky_cases"
    """The same program sometimes passes a case and sometimes fails it."""
    ORDER_DEPENDENT = "order_dependent"
    """The worked solution fails when its calls come in another order: tests lean on what earlier calls leave behind."""
    NEEDS_CHECKER = "needs_checker"
    """Several answers are right, and the tests know one: only a checker program can judge."""
    INTERACTIVE = "interactive"
    """The program has to talk to an interactor, and the tests have none."""
    ANY_ORDER = "any_order"
    """The order of lines or items does not matter, and the tests insist on one."""
    CASE = "case_insensitive"
    """Upper and lower case do not matter, and the tests insist on one."""
    TOLERANCE = "float_tolerance"
    """Numbers may differ by more than the tests allow."""
    TIGHT_LIMIT = "tight_limit"
    """The worked solution needs more than half of the CPU time allowed, or more than all of it."""
    TRUNCATED = "truncated_cases"
    """An input or an output is cut off."""
    CONTRADICTORY = "contradictory_cases"
    """The same input stands with different outputs."""
    DUPLICATE = "duplicate_cases"
    """The same case stands more than once."""
    EMPTY_INPUT = "empty_inputs"
    """A case has no input although others have."""
    TOO_FEW = "too_few_cases"
    """There are too few cases, or too few are left once the broken ones are out."""
    PAID_NULL = "paid_null"
    """A program that solves nothing passes."""
    WEAK = "low_kill_rate"
    """Many small faults planted in the worked solution go unnoticed."""
    GUESSABLE = "guessable"
    """There are so few different answers that a guess often passes."""
    WRONG_ACCEPTED = "wrong_accepted"
    """A program known to be wrong passes."""
    RIGHT_REJECTED = "right_rejected"
    """A program known to be right fails."""
    LEAKED = "leaked_cases"
    """Cases stand in the problem's text with their outputs, beyond what examples usually are."""
    MEMORIZABLE = "memorizable"
    """All cases stand in the problem's text: a table of them passes."""
    UNNAMED = "entry_point_not_in_prompt"
    """The tests call a name that the problem's text does not mention."""
    ONE_PROCESS = "one_process"
    """Tests and solution have to share a process, where the solution could tamper with the tests."""


class Severity(StrEnum):
    """What follows from a finding, the gravest first."""

    DROP = "drop"
    REPAIR = "repair"
    FLAG = "flag"
    NOTE = "note"


class Outcome(StrEnum):
    """What should become of a suite."""

    KEEP = "keep"
    REPAIR = "repair"
    """Kept with changed tests."""
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason to look at a suite, with its evidence."""

    reason: VetReason
    severity: Severity
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """What shows it; JSON-able."""
    suggestion: str | None = None
    """What a person could do."""


def outcome_of(findings: Iterable[Finding]) -> Outcome:
    """Return the outcome that the gravest finding asks for."""
    severities = {finding.severity for finding in findings}
    if Severity.DROP in severities:
        return Outcome.DROP
    return Outcome.REPAIR if Severity.REPAIR in severities else Outcome.KEEP


def evidence_text(value: Any) -> str:
    """Return a value for evidence: the beginning of its text, with lone surrogates replaced, which no file can hold."""
    text = value if isinstance(value, str) else repr(value)
    cut = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
    return cut.encode("utf-8", "replace").decode()
