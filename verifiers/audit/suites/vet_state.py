"""Holds the state of a vetting (a check of tests) for its steps: the suite after repairs so far, and the findings.

    state = VetState({"tests": {...}}, prompt="You are given ...", options=VetOptions())
    state.report(VetReason.PAID_NULL, Severity.DROP, {"programs": ["returns True"]}, "add cases with other answers")
    state.repair(without={3}, checker={"type": "tokens", "unordered": "lines"})

A suite with a finding of severity `drop` is dropped. A suite without such a finding is repaired if a finding has the
severity `repair`, and kept if none has. A `flag` asks a person to look at the suite; a `note` is only information.
Repairs are mechanical: cases are removed, the checker is changed, or a limit is raised.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from truegold.verifiers.audit.suites.known_cases import count_cases, known_cases
from truegold.verifiers.audit.suites.trials import Bench, Trial
from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.response_program import extract_code
from truegold.verifiers.code.suite.reading import Calls, Stdio, Suite, normal_form, read_suite
from truegold.verifiers.code.suite.row_tests import Unusable, exact
from truegold.verifiers.code.suite.statement import Statement, read_statement
from truegold.verifiers.sandbox import Tier
from truegold.verifiers.strict_json import parse_json

SHOWN_CHARS = 160
"""Maximum number of characters of an input or output in the evidence."""
MAX_RUNS = 20
"""The largest value of the option `runs`."""
MAX_MUTANTS = 1_000
"""The largest value of the option `mutants`."""

Spec = Mapping[str, Any]
"""A checker with its options, as in the verifier's arguments."""


class VetReason(StrEnum):
    """The possible findings of a vetting."""

    UNREADABLE = "unreadable_tests"
    """The verifier cannot read the tests; the evidence has its message."""
    NO_REFERENCE = "no_reference"
    """There is no worked solution, so it is unknown whether the tests can be passed and which faults they catch."""
    REFERENCE_FAILS = "reference_fails"
    """The worked solution fails its own tests, and no mechanical repair makes it pass."""
    MISSING_PACKAGE = "missing_package"
    """The worked solution or the tests import a package that is not installed."""
    REFERENCES_DISAGREE = "references_disagree"
    """Some of the worked solutions pass and some do not."""
    FLAKY = "flaky_cases"
    """The same program sometimes passes a case and sometimes fails it."""
    ORDER_DEPENDENT = "order_dependent"
    """The worked solution fails if its calls come in another order, because cases depend on earlier calls."""
    NEEDS_CHECKER = "needs_checker"
    """Several answers are right, and the tests accept only one. A checker program is needed."""
    INTERACTIVE = "interactive"
    """The problem needs an interactor, and the tests have none."""
    ANY_ORDER = "any_order"
    """The problem allows any order of lines or items, but the tests accept only one."""
    CASE = "case_insensitive"
    """The problem allows capital and small letters, but the tests accept only one of them."""
    TOLERANCE = "float_tolerance"
    """Numbers may differ by more than the tests allow."""
    TIGHT_LIMIT = "tight_limit"
    """The worked solution needs more of the CPU limit than the share `VetOptions.max_headroom`."""
    TRUNCATED = "truncated_cases"
    """An input or an output is cut off."""
    CONTRADICTORY = "contradictory_cases"
    """The same input has different outputs."""
    DUPLICATE = "duplicate_cases"
    """The same case appears more than once."""
    EMPTY_INPUT = "empty_inputs"
    """A case has no input although other cases have."""
    TOO_FEW = "too_few_cases"
    """There are too few cases, or too few remain after broken cases were removed."""
    PAID_NULL = "paid_null"
    """A program that solves nothing passes."""
    WEAK = "low_kill_rate"
    """The tests miss many small faults that were planted in the worked solution."""
    GUESSABLE = "guessable"
    """A guess is likely to pass, because there are few different answers."""
    WRONG_ACCEPTED = "wrong_accepted"
    """A program known to be wrong passes."""
    RIGHT_REJECTED = "right_rejected"
    """A program known to be right fails."""
    LEAKED = "leaked_cases"
    """The problem's text shows a large share of the cases with their outputs."""
    MEMORIZABLE = "memorizable"
    """The problem's text shows all cases, so that a table of their outputs passes."""
    UNNAMED = "entry_point_not_in_prompt"
    """The tests call a name that the problem's text does not mention."""
    CASES_ADDED = "cases_added"
    """Wrong programs passed, so cases were added that these programs fail."""
    ONE_PROCESS = "one_process"
    """Tests and solution must share a process, so that the solution could tamper with the tests."""


class Severity(StrEnum):
    """The consequence of a finding for the suite, the most serious first."""

    DROP = "drop"
    REPAIR = "repair"
    FLAG = "flag"
    NOTE = "note"


class SuiteOutcome(StrEnum):
    """The recommendation for a suite."""

    KEEP = "keep"
    REPAIR = "repair"
    """The suite is kept with changed tests."""
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class SuiteFinding:
    """A fault or property of a suite, with its evidence."""

    reason: VetReason
    severity: Severity
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """The evidence as JSON data."""
    suggestion: str | None = None
    """Advice for a person, or None."""


def outcome_of(findings: Iterable[SuiteFinding]) -> SuiteOutcome:
    """Return the outcome of the most serious finding."""
    severities = {finding.severity for finding in findings}
    if Severity.DROP in severities:
        return SuiteOutcome.DROP
    return SuiteOutcome.REPAIR if Severity.REPAIR in severities else SuiteOutcome.KEEP


def evidence_text(value: Any) -> str:
    """Return the beginning of a value as text for evidence. Lone surrogates are replaced, since UTF-8 lacks them."""
    text = value if isinstance(value, str) else repr(value)
    cut = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
    return cut.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class VetOptions:
    """The options of a vetting. Raises ValueError for an option out of bounds."""

    runs: int = 3
    """The number of runs of each worked solution, with different hash seeds."""
    mutants: int = 30
    """The number of faults planted in the worked solution."""
    seed: int = 0
    """The random seed for choosing the faults."""
    min_cases: int = 2
    """Minimum number of cases of a repaired suite."""
    min_case_share: float = 0.5
    """Minimum share of the cases that a repaired suite must keep."""
    min_kill_rate: float = 0.8
    """Minimum share of planted faults that the tests catch (the kill rate). Tests below it are called weak."""
    max_guess_chance: float = 0.05
    """The largest chance that a guess passes. Tests above it are called guessable."""
    max_leaked: float = 0.5
    """The largest share of the cases that the problem's text may show."""
    max_headroom: float = 0.5
    """The largest share of the CPU limit that the worked solution may use."""
    max_repeat_s: float = 60.0
    """CPU seconds for each kind of repetition; slow solutions get fewer runs and mutants."""
    mend: bool = False
    """Whether proposed cases are added to weak tests."""
    tier: Tier | None = None
    """The sandbox tier (see `CodeVerifier`)."""
    python: str = sys.executable
    """The Python interpreter (see `CodeVerifier`)."""

    def __post_init__(self) -> None:
        for name, low, high in (("runs", 1, MAX_RUNS), ("mutants", 0, MAX_MUTANTS), ("min_cases", 1, 10**6)):
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} must be a whole number from {low} to {high}, got {getattr(self, name)!r}")
        for name in ("min_case_share", "min_kill_rate", "max_guess_chance", "max_leaked", "max_headroom"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be a number from 0 to 1, got {getattr(self, name)!r}")
        if not 0 < self.max_repeat_s < 1e9:
            raise ValueError(f"max_repeat_s must be a number of seconds, got {self.max_repeat_s!r}")

    def affordable(self, repetitions: int, seconds_each: float) -> int:
        """Return the number of repetitions that fit into `max_repeat_s`."""
        return repetitions if repetitions * seconds_each <= self.max_repeat_s else int(self.max_repeat_s / seconds_each)


def apply_repair(
    info: Mapping[str, Any], without: Set[int] = frozenset(), checker: Spec | None = None, cpu_s: float | None = None
) -> dict[str, Any]:
    """Return the verifier's arguments after a repair.

    without: the indexes of cases to remove. checker, cpu_s: the new checker and CPU limit, or None to keep the old one.
    """
    tests, is_nested = normal_form(info)
    if without:
        tests["cases"] = [case for index, case in enumerate(tests["cases"]) if index not in without]
    if checker is not None:
        tests["checker"] = dict(checker)
    if cpu_s is not None:
        tests["limits"] = {**(info.get("limits") or {}), **(tests.get("limits") or {}), "cpu_s": cpu_s}
    return {**info, "tests": tests} if is_nested else {**info, **tests}


def add_cases(info: Mapping[str, Any], cases: Sequence[str]) -> dict[str, Any]:
    """Return the verifier's arguments with further cases. Raises BadSuite for an invalid case.

    cases: for test code lines of code, for other tests one JSON object for each case:

        assert f(3) == 4
        {"args": [3], "expected": 4}
        {"input": "3\\n", "output": "4\\n"}
    """
    tests, is_nested = normal_form(info)
    if isinstance(tests.get("code"), str):
        tests["code"] = "\n".join([*filter(None, [tests["code"].rstrip("\n")]), *cases, ""])
    elif isinstance(tests.get("cases"), list):
        try:
            tests["cases"] = [*tests["cases"], *map(_read_case, filter(str.strip, cases))]
        except (ValueError, Unusable) as error:
            raise BadSuite(f"a case to add is not JSON: {error}") from error
    changed = {**info, "tests": tests} if is_nested else {**info, **tests}
    read_suite(changed)
    return changed


def _read_case(text: str) -> object:
    """Return a case as a row's JSON holds it. Raises ValueError for an infinite number, which JSON cannot hold."""
    case = exact(parse_json(text), "cases")
    json.dumps(case, allow_nan=False)
    return case


class VetState:
    """The shared state of the steps of a vetting. Raises BadSuite if the tests cannot be read."""

    def __init__(self, info: Mapping[str, Any], prompt: str | None, options: VetOptions) -> None:
        self.info: Mapping[str, Any] = info
        """The verifier's arguments after the repairs so far."""
        self.suite: Suite = read_suite(info)
        self.prompt, self.options = prompt, options
        self.statement: Statement = read_statement(prompt)
        self.known = known_cases(self.suite.tests)
        self.findings: list[SuiteFinding] = []
        self.changed = False
        self.reference: str | None = None
        """A worked solution that passes, or None."""
        self.agreeing: list[str] = []
        """Other worked solutions that pass."""
        self.trial: Trial | None = None
        """The slowest run of `reference`."""
        self.total = self.cases
        """The number of cases before repairs."""

    @property
    def cases(self) -> int:
        """The number of cases after the repairs so far. For test code, it is the number of tests or assertions."""
        tests = self.suite.tests
        is_code = not isinstance(tests, Stdio | Calls)
        return self.trial.total if is_code and self.trial is not None else count_cases(tests)

    @property
    def dropped(self) -> bool:
        """Whether a finding drops the suite."""
        return any(finding.severity is Severity.DROP for finding in self.findings)

    def report(
        self, reason: VetReason, severity: Severity, evidence: Mapping[str, Any], suggestion: str | None = None
    ) -> None:
        """Add a finding."""
        self.findings.append(SuiteFinding(reason, severity, evidence, suggestion))

    def bench(self) -> Bench:
        """Return a bench that runs programs on the current suite."""
        return Bench(self.suite, self.options.tier, self.options.python)

    def repair(self, without: Set[int] = frozenset(), checker: Spec | None = None, cpu_s: float | None = None) -> None:
        """Repair the suite with `apply_repair`. Report it as dropped if too few cases remain."""
        if not without and checker is None and cpu_s is None:
            return
        if without:
            left = self.cases - len(without)
            if left < max(self.options.min_cases, math.ceil(self.options.min_case_share * self.total)):
                self.report(VetReason.TOO_FEW, Severity.DROP, {"left": left, "of": self.total}, "find whole tests")
            if left == 0:  # A suite without cases is invalid.
                return
        self.change(apply_repair(self.info, without, checker, cpu_s))

    def change(self, info: Mapping[str, Any]) -> None:
        """Replace the tests by those in `info`."""
        self.info, self.suite = info, read_suite(info)
        self.known = known_cases(self.suite.tests)
        self.changed = True

    def programs(self, solutions: Sequence[str]) -> list[str]:
        """Return the program of each solution that is not blank."""
        return [self._program(solution) for solution in solutions if solution.strip()]

    def _program(self, solution: str) -> str:
        """Return the program of a solution. A solution that continues the stub gets the stub in front."""
        if not (stub := getattr(self.suite.tests, "stub", "")):
            return solution
        entry_point = getattr(self.suite.tests, "entry_point", None) or ""
        name = entry_point.partition(".")[0].removesuffix("()") or None
        fence = "~~~~" if "```" in solution else "```"
        extracted = extract_code(f"{fence}\n{solution}\n{fence}", self.suite.language, name, stub)
        return extracted.code if extracted is not None else solution
