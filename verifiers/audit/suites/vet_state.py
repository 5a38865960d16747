"""The state of one vetting, which its steps share: the suite after the repairs so far, and the findings.

    state = VetState({"tests": {...}}, prompt="You are given ...", options=VetOptions())
    state.report(VetReason.PAID_NULL, Severity.DROP, {"programs": ["returns True"]}, "add cases with other answers")
    state.repair(without={3}, checker={"type": "tokens", "unordered": "lines"})

A suite with a finding of severity `drop` is dropped, else one with a `repair` is repaired, else it is kept; `flag` is
for a reader to weigh, `note` is for the record. Repairs need no person's judgement: cases taken out, another checker, a
higher limit.
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
from truegold.verifiers.code.suite.reading import Calls, Stdio, Suite, read_suite
from truegold.verifiers.code.suite.shapes import normal_form
from truegold.verifiers.code.suite.statement import Statement, read_statement
from truegold.verifiers.sandbox import Tier

SHOWN_CHARS = 160
"""The part of an input or an output that evidence shows. Stops outputs of megabytes from being copied into reports."""
MAX_RUNS = 20
"""The most runs of a worked solution that can be asked for."""
MAX_MUTANTS = 1_000
"""The most planted faults that can be asked for."""

Spec = Mapping[str, Any]
"""A checker with its options, as in the verifier's arguments."""


class VetReason(StrEnum):
    """The findings of a vetting; a closed vocabulary, so that reports can count by it."""

    UNREADABLE = "unreadable_tests"
    """The verifier cannot read the tests; the evidence has its message."""
    NO_REFERENCE = "no_reference"
    """There is no worked solution: whether the tests can be passed, and what they catch, is not known."""
    REFERENCE_FAILS = "reference_fails"
    """The worked solution fails its own tests, and no mechanical repair makes it pass."""
    MISSING_PACKAGE = "missing_package"
    """The worked solution or the tests import a package that programs do not have here."""
    REFERENCES_DISAGREE = "references_disagree"
    """Some of the worked solutions pass and some do not."""
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
    CASES_ADDED = "cases_added"
    """The tests let wrong programs pass, and got further cases that these fail."""
    ONE_PROCESS = "one_process"
    """Tests and solution have to share a process, where the solution could tamper with the tests."""


class Severity(StrEnum):
    """The consequences of a finding, the gravest first."""

    DROP = "drop"
    REPAIR = "repair"
    FLAG = "flag"
    NOTE = "note"


class SuiteOutcome(StrEnum):
    """The recommendation for a suite."""

    KEEP = "keep"
    REPAIR = "repair"
    """Kept with changed tests."""
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class SuiteFinding:
    """One reason to look at a suite, with its evidence."""

    reason: VetReason
    severity: Severity
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """The evidence of the finding; JSON-able."""
    suggestion: str | None = None
    """Advice to a person."""


def outcome_of(findings: Iterable[SuiteFinding]) -> SuiteOutcome:
    """Return the outcome that the gravest finding asks for."""
    severities = {finding.severity for finding in findings}
    if Severity.DROP in severities:
        return SuiteOutcome.DROP
    return SuiteOutcome.REPAIR if Severity.REPAIR in severities else SuiteOutcome.KEEP


def evidence_text(value: Any) -> str:
    """Return a value for evidence: the beginning of its text, with lone surrogates replaced, which no file can hold."""
    text = value if isinstance(value, str) else repr(value)
    cut = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
    return cut.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class VetOptions:
    """The options of a vetting. ValueError where one is out of its bounds."""

    runs: int = 3
    """Runs of each worked solution, each under another hash seed."""
    mutants: int = 30
    """Faults planted in the first worked solution that passes."""
    seed: int = 0
    """Chooses among the possible faults."""
    min_cases: int = 2
    """The cases that have to be left when broken ones are taken out."""
    min_case_share: float = 0.5
    """The share of the cases that has to be left."""
    min_kill_rate: float = 0.8
    """Tests with a lower kill rate are called weak."""
    max_guess_chance: float = 0.05
    """Tests that a guess passes with a greater chance are called guessable."""
    max_leaked: float = 0.5
    """The share of the cases that may stand in the problem's text."""
    max_headroom: float = 0.5
    """The share of the CPU limit that the worked solution may need."""
    max_repeat_s: float = 60.0
    """CPU seconds for each sort of repetition; where a solution is slow, there are fewer runs and mutants."""
    mend: bool = False
    """Whether the cases that are proposed for weak tests are added to them."""
    tier: Tier | None = None
    """The sandbox's tier, as `CodeVerifier` takes it."""
    python: str = sys.executable
    """The interpreter, as `CodeVerifier` takes it."""

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
        """Return how many of the repetitions there is time for."""
        return repetitions if repetitions * seconds_each <= self.max_repeat_s else int(self.max_repeat_s / seconds_each)


def apply_repair(
    info: Mapping[str, Any], without: Set[int] = frozenset(), checker: Spec | None = None, cpu_s: float | None = None
) -> dict[str, Any]:
    """Return the verifier's arguments after a repair, in the form that the verifier documents.

    without: the indexes of the cases to take out. checker, cpu_s: the checker and the CPU limit to set; None keeps it.
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
    """Return the verifier's arguments with further cases; BadSuite where they have no place for them.

    cases: of tests that are code, lines of it; else the JSON of a case.

        assert f(3) == 4
        {"args": [3], "expected": 4}
        {"input": "3\\n", "output": "4\\n"}
    """
    tests, is_nested = normal_form(info)
    if isinstance(tests.get("code"), str):
        tests["code"] = "\n".join([tests["code"].rstrip("\n"), *cases, ""])
    elif isinstance(tests.get("cases"), list):
        try:
            tests["cases"] = [*tests["cases"], *map(json.loads, filter(str.strip, cases))]
        except ValueError as error:
            raise BadSuite(f"a case to add is no JSON: {error}") from error
    changed = {**info, "tests": tests} if is_nested else {**info, **tests}
    read_suite(changed)
    return changed


class VetState:
    """The state that the steps of a vetting share. Raises BadSuite where the tests cannot be read."""

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
        """A worked solution that passes."""
        self.agreeing: list[str] = []
        """Other worked solutions that pass."""
        self.trial: Trial | None = None
        """The slowest run of that solution."""
        self.total = self.cases
        """The cases of the suite as it came."""

    @property
    def cases(self) -> int:
        """The cases of the suite as it is; for test code those that a run has shown, else its assertions."""
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
        """Return a bench to try programs on the suite as it is."""
        return Bench(self.suite, self.options.tier, self.options.python)

    def repair(self, without: Set[int] = frozenset(), checker: Spec | None = None, cpu_s: float | None = None) -> None:
        """Change the suite as `apply_repair` does; where too few cases would be left, drop it."""
        if not without and checker is None and cpu_s is None:
            return
        if without:
            left = self.cases - len(without)
            if left < max(self.options.min_cases, math.ceil(self.options.min_case_share * self.total)):
                self.report(VetReason.TOO_FEW, Severity.DROP, {"left": left, "of": self.total}, "find whole tests")
            if left == 0:  # A suite without cases could not be read.
                return
        self.change(apply_repair(self.info, without, checker, cpu_s))

    def change(self, info: Mapping[str, Any]) -> None:
        """Go on with other tests."""
        self.info, self.suite = info, read_suite(info)
        self.known = known_cases(self.suite.tests)
        self.changed = True

    def programs(self, solutions: Sequence[str]) -> list[str]:
        """Return what the verifier would run of each solution that is not blank."""
        return [self._program(solution) for solution in solutions if solution.strip()]

    def _program(self, solution: str) -> str:
        """Return the solution's text, or the stub that it continues."""
        if not (stub := getattr(self.suite.tests, "stub", "")):
            return solution
        entry_point = getattr(self.suite.tests, "entry_point", None) or ""
        name = entry_point.partition(".")[0].removesuffix("()") or None
        fence = "~~~~" if "```" in solution else "```"
        extracted = extract_code(f"{fence}\n{solution}\n{fence}", self.suite.language, name, stub)
        return extracted.code if extracted is not None else solution
