"""Why a worked solution fails its own tests, and which repair makes it pass.

    a case passes in one run and fails in another          flaky: taken out
    it ends at the end of its input                        the input is cut off: taken out
    it needs 3 s where 2 s are allowed                      the limit is raised
    0.333333 where 0.3333 is expected                       numbers are compared with a tolerance
    "2 1" where "1 2" is expected, "in any order"           the order is left free
    "YES 3 4" where "YES 4 3" is expected                   several answers are right: a checker program is needed
    anything else                                           the solution or the tests are wrong: nobody can tell which

A run is the list of a program's attempts at all cases.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from truegold.verifiers.audit.suites.agreement import are_all_alike
from truegold.verifiers.audit.suites.findings import Finding, Severity, VetReason, evidence_text
from truegold.verifiers.audit.suites.repairs import Candidate, candidate_checkers, has_checker_program
from truegold.verifiers.audit.suites.trials import Attempt, Trial
from truegold.verifiers.code.output_comparison import checker_of
from truegold.verifiers.code.suite import Calls, Stdio
from truegold.verifiers.code.suite.statement import Statement
from truegold.verifiers.code.value_comparison import call_checker_of
from truegold.verifiers.verdict import Reason

SHOWN_CASES = 5
"""The most cases whose evidence a finding shows."""

_NO_MODULE = re.compile(r"No module named '([\w.]{1,100})'")
_READS = re.compile(r"\binput\(|stdin|readline|\bread\(|\bnext\(|\.split\(|\bopen\(0")
_ENDS = re.compile(r"(?m)^(EOFError|ValueError|IndexError|StopIteration)\b")

Run = Sequence[Attempt]


@dataclass(slots=True)
class Diagnosis:
    """What is wrong and how to repair it; without findings the solution passes."""

    findings: list[Finding] = field(default_factory=list)
    without: set[int] = field(default_factory=set)
    """The indexes of the cases to take out."""
    checker: dict[str, Any] | None = None
    """The checker to set; None keeps it."""


def diagnose(tests: object, trials: Sequence[Trial], statement: Statement) -> Diagnosis:
    """Say why a solution fails. trials: of one solution, all cases in each."""
    error = next((trial.error for trial in trials if trial.error is not None), None)
    if error is not None:
        return Diagnosis([missing_package(error) or _solution_fails({"error": evidence_text(error)})])
    runs = [_fill_up(trial) for trial in trials]
    failing = [index for index in range(len(runs[0])) if not all(run[index].passed for run in runs)]
    if not failing:
        return Diagnosis()
    if (missing := _missing_package(runs[0], failing)) is not None:
        return Diagnosis([missing])
    if isinstance(tests, Stdio | Calls):
        return _diagnose_cases(tests, runs, failing, statement)
    return Diagnosis([_diagnose_test_code(runs, failing)])


def _diagnose_test_code(runs: Sequence[Run], failing: Sequence[int]) -> Finding:
    """Name the fault of test code, which no case can be taken out of."""
    evidence = _show_cases(runs, failing)
    if _are_flaky(runs, failing):
        return Finding(VetReason.FLAKY, Severity.DROP, evidence, "take the flaky assertions out")
    return _solution_fails(evidence)


def _diagnose_cases(tests: Stdio | Calls, runs: Sequence[Run], failing: list[int], statement: Statement) -> Diagnosis:
    diagnosis = Diagnosis()
    cut_off = [index for index in failing if all(_ran_out_of_input(run[index]) for run in runs)]
    if cut_off and len(cut_off) <= len(runs[0]) // 2:
        diagnosis.without |= set(cut_off)
        diagnosis.findings.append(Finding(VetReason.TRUNCATED, Severity.REPAIR, _show_cases(runs, cut_off)))
        failing = [index for index in failing if index not in cut_off]
    if not failing:
        return diagnosis
    evidence = _show_cases(runs, failing, _expected(tests))
    has_program = has_checker_program(tests)
    if not has_program and (better := _better_checker(tests, runs, failing, statement)) is not None:
        diagnosis.checker = dict(better.checker)
        evidence["checker"] = diagnosis.checker
        diagnosis.findings.append(Finding(better.reason, Severity.REPAIR, evidence))
    elif not has_program and _look_right(tests, runs, failing, statement):
        diagnosis.findings.append(needs_checker(Sign.OUTPUTS, evidence, statement))
    elif _are_flaky(runs, failing):
        diagnosis.without |= set(failing)
        diagnosis.findings.append(Finding(VetReason.FLAKY, Severity.REPAIR, evidence))
    else:
        diagnosis.findings.append(_solution_fails(evidence))
    return diagnosis


def _are_flaky(runs: Sequence[Run], failing: Sequence[int]) -> bool:
    return all(any(run[index].passed for run in runs) for index in failing)


class Sign(StrEnum):
    """The sign by which several right answers were recognised."""

    TEXT = "text"
    """The problem's text says so."""
    OUTPUTS = "outputs"
    """The worked solution answers otherwise, in the shape of an answer."""
    SAME_INPUT = "same_input"
    """Two cases with the same input have such outputs."""


def needs_checker(sign: Sign, evidence: dict[str, Any], statement: Statement) -> Finding:
    """Return the finding that several answers are right; the problem's text, where it says so, is the better sign."""
    if statement.several_answers is not None:
        sign = Sign.TEXT
    sentence = statement.several_answers or statement.any_order or statement.constructs
    evidence = {"sign": str(sign), "said": sentence, **evidence}
    suggestion = "write a checker program and set tests.checker to it"
    return Finding(VetReason.NEEDS_CHECKER, Severity.DROP, evidence, suggestion)


def missing_package(message: str) -> Finding | None:
    """Return the finding that a package is missing, where a message of Python says that."""
    module = _NO_MODULE.search(message)
    if module is None:
        return None
    suggestion = "install it, or name an interpreter that has it"
    return Finding(VetReason.MISSING_PACKAGE, Severity.DROP, {"module": module[1]}, suggestion)


def _missing_package(run: Run, failing: Sequence[int]) -> Finding | None:
    findings = (missing_package(f"{run[index].why}\n{run[index].stderr}") for index in failing)
    return next((finding for finding in findings if finding is not None), None)


def _better_checker(
    tests: Stdio | Calls, runs: Sequence[Run], failing: Sequence[int], statement: Statement
) -> Candidate | None:
    """Return the first checker that accepts every output of every run, where that checker can be right."""
    if statement.several_answers is not None or any(run[index].output is None for run in runs for index in failing):
        return None
    varies = any(repr(run[index].output) != repr(runs[0][index].output) for run in runs for index in failing)
    for candidate in candidate_checkers(tests, statement):
        # An order that changes from run to run cannot be what a right solution is asked for.
        if (candidate.sure or varies) and _accepts(tests, candidate, runs, failing):
            return candidate
    return None


def _accepts(tests: Stdio | Calls, candidate: Candidate, runs: Sequence[Run], failing: Sequence[int]) -> bool:
    differs: Any = checker_of(candidate.checker) if isinstance(tests, Stdio) else call_checker_of(candidate.checker)
    expected = _expected(tests)
    return all(differs(expected[index], run[index].output) is None for run in runs for index in failing)


def _look_right(tests: Stdio | Calls, runs: Sequence[Run], failing: Sequence[int], statement: Statement) -> bool:
    """Whether the failures look like other right answers: the text says so, or the outputs do."""
    # A case that takes too long says nothing of its answer; a crash says that the solution is wrong.
    failures = [
        (index, run[index]) for run in runs for index in failing if not run[index].passed and not run[index].timed_out
    ]
    if not failures or any(attempt.output is None or attempt.reason is not Reason.MISMATCH for _, attempt in failures):
        return False
    expected = _expected(tests)
    return statement.several_answers is not None or are_all_alike(
        [(expected[index], attempt.output) for index, attempt in failures], statement.constructs is not None
    )


def _ran_out_of_input(attempt: Attempt) -> bool:
    """Whether the program died while it read its input."""
    if attempt.passed or attempt.output is not None:
        return False
    errors = _ENDS.findall(attempt.stderr)
    return bool(errors) and (errors[-1] == "EOFError" or _READS.search(attempt.stderr) is not None)


def _fill_up(trial: Trial) -> Run:
    """Return an attempt at every case: a process that died leaves the later ones without a result."""
    missing = trial.total - len(trial.attempts)
    return [*trial.attempts, *[Attempt(False, Reason.MISMATCH, "the program ended before this case")] * missing]


def _expected(tests: Stdio | Calls) -> list[Any]:
    return [case.output if isinstance(tests, Stdio) else case.expected for case in tests.cases]  # type: ignore[union-attr]


def _solution_fails(evidence: dict[str, Any]) -> Finding:
    return Finding(VetReason.REFERENCE_FAILS, Severity.DROP, evidence, "correct the solution or the tests")


def _show_cases(runs: Sequence[Run], cases: Sequence[int], expected: Sequence[Any] | None = None) -> dict[str, Any]:
    """Return evidence on the first few cases."""
    entries = []
    for index in cases[:SHOWN_CASES]:
        attempt = next((run[index] for run in runs if not run[index].passed), runs[0][index])
        passes = sum(run[index].passed for run in runs)
        entry: dict[str, Any] = {"case": index, "passes": f"{passes} of {len(runs)} runs"}
        if attempt.why:
            entry["why"] = evidence_text(attempt.why)
        if expected is not None and attempt.output is not None:
            entry |= {"expected": evidence_text(expected[index]), "got": evidence_text(attempt.output)}
        entries.append(entry)
    return {"count": len(cases), "of": len(runs[0]), "cases": entries}
