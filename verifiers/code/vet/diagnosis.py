"""Why a worked solution fails its own tests, and which repair makes it pass.

a case passes in one run and fails in another          flaky: taken out
it ends at the end of its input                        the input is cut off: taken out
it needs 3 s where 2 s are allowed                      the limit is raised
0.333333 where 0.3333 is expected                       numbers are compared with a tolerance
"2 1" where "1 2" is expected, "in any order"           the order is left free
"YES 3 4" where "YES 4 3" is expected                   several answers are right: a checker program is needed
anything else                                           the solution or the tests are wrong: nobody can tell which
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from truegold.verifiers.code.checkers import checker_of
from truegold.verifiers.code.suite import Calls, Stdio
from truegold.verifiers.code.values_equal import call_checker_of
from truegold.verifiers.code.vet.agreement import several_right
from truegold.verifiers.code.vet.findings import Finding, Severity, VetReason, shown
from truegold.verifiers.code.vet.repairs import Candidate, candidates, has_own_checker
from truegold.verifiers.code.vet.statement import Statement
from truegold.verifiers.code.vet.trials import Attempt, Trial
from truegold.verifiers.verdict import Reason

SHOWN_CASES = 5
"""Cases whose evidence a finding shows."""

_NO_MODULE = re.compile(r"No module named '([\w.]{1,100})'")
_READS = re.compile(r"\binput\(|stdin|readline|\bread\(|\bnext\(|\.split\(|\bopen\(0")
_ENDS = re.compile(r"(?m)^(EOFError|ValueError|IndexError|StopIteration)\b")


@dataclass(slots=True)
class Diagnosis:
    """without: cases to take out. checker: to set. Nothing of both and no finding that drops: the solution passes."""

    findings: list[Finding] = field(default_factory=list)
    without: set[int] = field(default_factory=set)
    checker: dict[str, Any] | None = None


def diagnose(tests: object, trials: Sequence[Trial], statement: Statement) -> Diagnosis:
    """trials: of one solution, all cases in each."""
    found = Diagnosis()
    error = next((trial.error for trial in trials if trial.error is not None), None)
    if error is not None:
        found.findings.append(missing_package(error) or _fails({"error": shown(error)}))
        return found
    runs = [_padded(trial) for trial in trials]
    failing = [at for at in range(len(runs[0])) if not all(run[at].passed for run in runs)]
    if not failing:
        return found
    if (missing := _missing(runs, failing)) is not None:
        found.findings.append(missing)
    elif isinstance(tests, Stdio | Calls):
        _cases(found, tests, runs, failing, statement)
    else:
        _whole(found, runs, failing)
    return found


def _whole(found: Diagnosis, runs: Sequence[Sequence[Attempt]], failing: Sequence[int]) -> None:
    """Test code: no case can be taken out of it."""
    flaky = [at for at in failing if any(run[at].passed for run in runs)]
    evidence = _shown(runs, failing)
    if len(flaky) == len(failing):
        found.findings.append(Finding(VetReason.FLAKY, Severity.DROP, evidence, "take the flaky assertions out"))
    else:
        found.findings.append(_fails(evidence))


def _cases(
    found: Diagnosis,
    tests: Stdio | Calls,
    runs: Sequence[Sequence[Attempt]],
    failing: list[int],
    statement: Statement,
) -> None:
    cut = [at for at in failing if all(_ran_dry(run[at]) for run in runs)]
    if cut and len(cut) <= len(runs[0]) // 2:
        found.without |= set(cut)
        found.findings.append(Finding(VetReason.TRUNCATED, Severity.REPAIR, _shown(runs, cut)))
        failing = [at for at in failing if at not in cut]
    if not failing:
        return
    if not has_own_checker(tests):
        if (helps := _helping(tests, runs, failing, statement)) is not None:
            found.checker = dict(helps.checker)
            evidence = {**_shown(runs, failing, _expected(tests)), "checker": found.checker}
            found.findings.append(Finding(helps.reason, Severity.REPAIR, evidence))
            return
        if _several(tests, runs, failing, statement):
            evidence = _shown(runs, failing, _expected(tests))
            found.findings.append(needs_checker(Sign.OUTPUTS, evidence, statement))
            return
    flaky = [at for at in failing if any(run[at].passed for run in runs)]
    if len(flaky) == len(failing):
        found.without |= set(flaky)
        found.findings.append(Finding(VetReason.FLAKY, Severity.REPAIR, _shown(runs, flaky, _expected(tests))))
        return
    found.findings.append(_fails(_shown(runs, failing, _expected(tests))))


class Sign(StrEnum):
    """By what several right answers were recognised, where the problem's text does not say it."""

    TEXT = "text"
    OUTPUTS = "outputs"
    """The worked solution answers otherwise, in the shape of an answer."""
    SAME_INPUT = "same_input"
    """Two cases with the same input have such outputs."""


def needs_checker(sign: Sign, evidence: dict[str, Any], statement: Statement) -> Finding:
    if statement.several_answers is not None:
        sign = Sign.TEXT
    said = statement.several_answers or statement.any_order or statement.constructs
    suggestion = "write a checker program and set tests.checker to it"
    return Finding(VetReason.NEEDS_CHECKER, Severity.DROP, {"sign": str(sign), "said": said, **evidence}, suggestion)


def missing_package(message: str) -> Finding | None:
    """What a message of Python says of a module that is not there."""
    module = _NO_MODULE.search(message)
    if module is None:
        return None
    suggestion = "install it, or name an interpreter that has it"
    return Finding(VetReason.MISSING_PACKAGE, Severity.DROP, {"module": module[1]}, suggestion)


def _missing(runs: Sequence[Sequence[Attempt]], failing: Sequence[int]) -> Finding | None:
    texts = (f"{runs[0][at].why}\n{runs[0][at].stderr}" for at in failing)
    return next((found for text in texts if (found := missing_package(text)) is not None), None)


def _helping(
    tests: Stdio | Calls, runs: Sequence[Sequence[Attempt]], failing: Sequence[int], statement: Statement
) -> Candidate | None:
    """The first checker that accepts every output of every run, where that checker can be right."""
    if statement.several_answers is not None or any(run[at].output is None for run in runs for at in failing):
        return None
    varies = any(repr(run[at].output) != repr(runs[0][at].output) for run in runs for at in failing)
    for candidate in candidates(tests, statement):
        # An order that changes from run to run cannot be what a right solution is asked for.
        if (candidate.sure or varies) and _accepts(tests, candidate, runs, failing):
            return candidate
    return None


def _accepts(
    tests: Stdio | Calls, candidate: Candidate, runs: Sequence[Sequence[Attempt]], failing: Sequence[int]
) -> bool:
    differs: Any = checker_of(candidate.checker) if isinstance(tests, Stdio) else call_checker_of(candidate.checker)
    expected = _expected(tests)
    return all(differs(expected[at], run[at].output) is None for run in runs for at in failing)


def _several(
    tests: Stdio | Calls, runs: Sequence[Sequence[Attempt]], failing: Sequence[int], statement: Statement
) -> bool:
    """Whether the failures look like other right answers: the text says so, or the outputs do."""
    wrong = [(at, run[at]) for run in runs for at in failing if not run[at].passed]
    # A case that takes too long says nothing of its answer; a crash says that the solution is wrong.
    wrong = [(at, attempt) for at, attempt in wrong if not attempt.timed_out]
    if not wrong or any(attempt.output is None or attempt.reason is not Reason.MISMATCH for _, attempt in wrong):
        return False
    expected = _expected(tests)
    return statement.several_answers is not None or several_right(
        [(expected[at], attempt.output) for at, attempt in wrong], statement.constructs is not None
    )


def _ran_dry(attempt: Attempt) -> bool:
    """Whether it died while it read its input."""
    if attempt.passed or attempt.output is not None:
        return False
    died = _ENDS.findall(attempt.stderr)
    return bool(died) and (died[-1] == "EOFError" or _READS.search(attempt.stderr) is not None)


def _padded(trial: Trial) -> list[Attempt]:
    """A process that died leaves the later cases without a result."""
    missing = trial.total - len(trial.attempts)
    return [*trial.attempts, *[Attempt(False, Reason.MISMATCH, "the program ended before this case")] * missing]


def _expected(tests: Stdio | Calls) -> list[Any]:
    return [case.output if isinstance(tests, Stdio) else case.expected for case in tests.cases]  # type: ignore[union-attr]


def _fails(evidence: dict[str, Any]) -> Finding:
    return Finding(VetReason.REFERENCE_FAILS, Severity.DROP, evidence, "correct the solution or the tests")


def _shown(
    runs: Sequence[Sequence[Attempt]], cases: Sequence[int], expected: Sequence[Any] | None = None
) -> dict[str, Any]:
    """The first few cases of a finding."""
    listed = []
    for at in cases[:SHOWN_CASES]:
        attempt = next((run[at] for run in runs if not run[at].passed), runs[0][at])
        entry: dict[str, Any] = {"case": at, "passes": f"{sum(run[at].passed for run in runs)} of {len(runs)} runs"}
        if attempt.why:
            entry["why"] = shown(attempt.why)
        if expected is not None and attempt.output is not None:
            entry |= {"expected": shown(expected[at]), "got": shown(attempt.output)}
        listed.append(entry)
    return {"count": len(cases), "of": len(runs[0]), "cases": listed}
