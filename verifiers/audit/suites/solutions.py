"""The second step of a vetting: worked solutions on their own tests, and the repairs that make them pass.

    a case passes in one run and fails in another          flaky: taken out
    it ends at the end of its input                        the input is cut off: taken out
    it needs 3 s where 2 s are allowed                      the limit is raised
    0.333333 where 0.3333 is expected                       numbers are compared with a tolerance
    "2 1" where "1 2" is expected, "in any order"           the order is left free
    "YES 3 4" where "YES 4 3" is expected                   several answers are right: a checker program is needed
    anything else                                           the solution or the tests are wrong: a person has to tell

A run is the list of a program's attempts at all cases.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from truegold.verifiers.audit.suites.checker_choice import (
    AnswersSign,
    CheckerCandidate,
    are_all_alike,
    candidate_checkers,
    has_checker_program,
    needs_checker,
)
from truegold.verifiers.audit.suites.trials import CaseAttempt, Trial
from truegold.verifiers.audit.suites.vet_state import Severity, SuiteFinding, VetReason, VetState, evidence_text
from truegold.verifiers.code.outcomes import ONE_PROCESS
from truegold.verifiers.code.output_comparison import checker_of
from truegold.verifiers.code.suite.reading import Calls, Stdio
from truegold.verifiers.code.suite.statement import Statement
from truegold.verifiers.code.value_comparison import call_checker_of
from truegold.verifiers.sandbox.limits import CPU_S_BOUNDS, Limits
from truegold.verifiers.verdict import Reason

STRETCH = 10.0
"""A worked solution that overruns its limit is run once more with this many times as much."""

MAX_STRETCH_S = 60.0
"""The most CPU seconds of that run. Stops a solution that never ends from being waited for for minutes."""

ROOM = 4.0
"""A raised limit is this many times what the worked solution needs."""

MIN_RUNS = 2
"""The fewest runs, also of a slow solution, unless one takes all the time there is: one run alone cannot vary."""

SHUFFLES = 2
"""The most runs with the calls in another order."""
SHOWN_CASES = 20
"""The most case indexes that evidence shows."""
EXPLAINED_CASES = 5
"""The most cases whose evidence a finding shows."""

_NO_MODULE = re.compile(r"No module named '([\w.]{1,100})'")
_READS = re.compile(r"\binput\(|stdin|readline|\bread\(|\bnext\(|\.split\(|\bopen\(0")
_ENDS = re.compile(r"(?m)^(EOFError|ValueError|IndexError|StopIteration)\b")

Run = Sequence[CaseAttempt]


def run_solutions(state: VetState, programs: Sequence[str]) -> None:
    """Set `state.reference` where a solution passes, after a repair where one is needed."""
    if not programs:
        state.report(VetReason.NO_REFERENCE, Severity.NOTE, {})
        return
    if state.dropped:
        return
    trials = {program: _run_repeatedly(state, program) for program in dict.fromkeys(programs)}
    main = max(trials, key=lambda program: sum(each.passed for trial in trials[program] for each in trial.attempts))
    diagnosis = diagnose(state.suite.tests, trials[main], state.statement)
    state.findings += diagnosis.findings
    if any(finding.severity is Severity.DROP for finding in diagnosis.findings):
        return
    state.repair(diagnosis.without, diagnosis.checker)
    runs = _run_repeatedly(state, main) if diagnosis.without or diagnosis.checker else trials[main]
    state.reference, state.trial = main, max(runs, key=lambda trial: trial.cpu_s or 0.0)
    _check_agreement(state, [program for program in trials if program != main])
    _check_order(state, main)
    _check_headroom(state, state.trial)


def _run_repeatedly(state: VetState, program: str) -> list[Trial]:
    """Run a program under different hash seeds; raise the suite's limit where the program needs more time."""
    first = state.bench().run(program)
    if first.timed_out:
        if (longer := _stretch(state, program, first)) is None:
            return [first]
        first = longer
    options = state.options
    fewest = MIN_RUNS if first.spent_s <= options.max_repeat_s else 1
    runs = max(options.affordable(options.runs, first.spent_s), min(options.runs, fewest))
    bench = state.bench()
    return [first, *(bench.run(program, hash_seed=seed) for seed in range(1, runs))]


def _stretch(state: VetState, program: str, first: Trial) -> Trial | None:
    """Raise the limit to what the program needs for the cases that took too long; None where that is too much."""
    limit = state.suite.limits.cpu_s
    allowed = min(STRETCH * limit, MAX_STRETCH_S)
    if allowed <= limit:
        return None
    longer = _run_longer(state, program, first, replace(state.suite.limits, cpu_s=allowed))
    if longer is None or longer.timed_out or longer.cpu_s is None:
        return None
    _raise_limit(state, longer.cpu_s)
    return longer


def _run_longer(state: VetState, program: str, first: Trial, limits: Limits) -> Trial | None:
    """Run the cases again that took too long, or all where they share a process; None where they take too long again.

    The time of all of them together is limited too.
    """
    bench = state.bench()
    if not isinstance(state.suite.tests, Stdio):
        return bench.run(program, limits=limits)
    attempts, times, spent = list(first.attempts), [first.cpu_s or 0.0], 0.0
    for index in [index for index, attempt in enumerate(attempts) if attempt.timed_out]:
        if spent > state.options.max_repeat_s:
            return None
        longer = bench.run(program, limits=limits, order=[index])
        attempts[index] = longer.attempts[0]
        times.append(longer.cpu_s or 0.0)
        spent += longer.spent_s
        if attempts[index].timed_out:
            return None
    return replace(first, attempts=attempts, cpu_s=max(times), spent_s=first.spent_s + spent)


def _raise_limit(state: VetState, needed: float) -> None:
    limit = state.suite.limits.cpu_s
    raised = float(min(max(math.ceil(ROOM * needed), limit), CPU_S_BOUNDS[1]))
    evidence = {"needs_s": needed, "limit_s": limit, "raised_to_s": raised}
    state.report(VetReason.TIGHT_LIMIT, Severity.REPAIR, evidence)
    state.repair(cpu_s=raised)


def _check_agreement(state: VetState, programs: Sequence[str]) -> None:
    """Run the further worked solutions on the tests as they are now."""
    failing = {}
    for position, program in enumerate(programs, 1):
        findings = diagnose(state.suite.tests, _run_repeatedly(state, program), state.statement).findings
        checker = next((finding for finding in findings if finding.reason is VetReason.NEEDS_CHECKER), None)
        if checker is not None:
            state.findings.append(checker)
            return
        if findings:
            failing[str(position)] = dict(findings[0].evidence)
    if failing:
        suggestion = "find out which of them is right"
        state.report(VetReason.REFERENCES_DISAGREE, Severity.FLAG, {"failing": failing}, suggestion)


def _check_order(state: VetState, program: str) -> None:
    """Run the calls in other orders, and flag tests that lean on one."""
    spent = state.trial.spent_s if state.trial is not None else 0.0
    for seed in range(state.options.affordable(SHUFFLES, spent)):
        if (trial := state.bench().run_shuffled(program, seed)) is None:
            return
        failing = [index for index, attempt in enumerate(trial.attempts) if not attempt.passed]
        if failing:
            evidence = {"cases": failing[:SHOWN_CASES], "count": len(failing)}
            state.report(VetReason.ORDER_DEPENDENT, Severity.FLAG, evidence, "let each case stand on its own")
            return


def _check_headroom(state: VetState, trial: Trial) -> None:
    if trial.isolation == ONE_PROCESS:
        state.report(VetReason.ONE_PROCESS, Severity.NOTE, {})
    if trial.cpu_s is not None and trial.cpu_s > state.options.max_headroom * state.suite.limits.cpu_s:
        _raise_limit(state, trial.cpu_s)


@dataclass(slots=True)
class Diagnosis:
    """What is wrong and how to repair it; without findings the solution passes."""

    findings: list[SuiteFinding] = field(default_factory=list)
    without: set[int] = field(default_factory=set)
    """The indexes of the cases to take out."""
    checker: dict[str, Any] | None = None
    """The checker to set; None keeps it."""


def diagnose(tests: object, trials: Sequence[Trial], statement: Statement) -> Diagnosis:
    """Say why a solution fails. trials: of one solution, all cases in each."""
    if (error := next((trial.error for trial in trials if trial.error is not None), None)) is not None:
        return Diagnosis([missing_package(error) or _solution_fails({"error": evidence_text(error)})])
    runs = [_fill_up(trial) for trial in trials]
    failing = [index for index in range(len(runs[0])) if not all(run[index].passed for run in runs)]
    if not failing:
        return Diagnosis()
    messages = (f"{runs[0][index].why}\n{runs[0][index].stderr}" for index in failing)
    if missing := next(filter(None, map(missing_package, messages)), None):
        return Diagnosis([missing])
    if isinstance(tests, Stdio | Calls):
        return _diagnose_cases(tests, runs, failing, statement)
    evidence = _show_cases(runs, failing)
    if _are_flaky(runs, failing):  # No case can be taken out of test code.
        flaky = SuiteFinding(VetReason.FLAKY, Severity.DROP, evidence, "take the flaky assertions out")
        return Diagnosis([flaky])
    return Diagnosis([_solution_fails(evidence)])


def _diagnose_cases(tests: Stdio | Calls, runs: Sequence[Run], failing: list[int], statement: Statement) -> Diagnosis:
    diagnosis = Diagnosis()
    cut_off = [index for index in failing if all(_ran_out_of_input(run[index]) for run in runs)]
    if cut_off and len(cut_off) <= len(runs[0]) // 2:
        diagnosis.without |= set(cut_off)
        diagnosis.findings.append(SuiteFinding(VetReason.TRUNCATED, Severity.REPAIR, _show_cases(runs, cut_off)))
        failing = [index for index in failing if index not in cut_off]
    if not failing:
        return diagnosis
    evidence = _show_cases(runs, failing, _expected(tests))
    has_program = has_checker_program(tests)
    if not has_program and (better := _better_checker(tests, runs, failing, statement)) is not None:
        diagnosis.checker = dict(better.checker)
        evidence["checker"] = diagnosis.checker
        diagnosis.findings.append(SuiteFinding(better.reason, Severity.REPAIR, evidence))
    elif not has_program and _look_right(tests, runs, failing, statement):
        diagnosis.findings.append(needs_checker(AnswersSign.OUTPUTS, evidence, statement))
    elif _are_flaky(runs, failing):
        diagnosis.without |= set(failing)
        diagnosis.findings.append(SuiteFinding(VetReason.FLAKY, Severity.REPAIR, evidence))
    else:
        diagnosis.findings.append(_solution_fails(evidence))
    return diagnosis


def _are_flaky(runs: Sequence[Run], failing: Sequence[int]) -> bool:
    return all(any(run[index].passed for run in runs) for index in failing)


def missing_package(message: str) -> SuiteFinding | None:
    """Return the finding that a package is missing, where a message of Python says that."""
    if (module := _NO_MODULE.search(message)) is None:
        return None
    suggestion = "install it, or name an interpreter that has it"
    return SuiteFinding(VetReason.MISSING_PACKAGE, Severity.DROP, {"module": module[1]}, suggestion)


def _better_checker(
    tests: Stdio | Calls, runs: Sequence[Run], failing: Sequence[int], statement: Statement
) -> CheckerCandidate | None:
    """Return the first checker that accepts every output of every run, where that checker can be right."""
    if statement.several_answers is not None or any(run[index].output is None for run in runs for index in failing):
        return None
    varies = any(repr(run[index].output) != repr(runs[0][index].output) for run in runs for index in failing)
    for candidate in candidate_checkers(tests, statement):
        # An order that changes from run to run cannot be what a right solution is asked for.
        if (candidate.sure or varies) and _accepts(tests, candidate, runs, failing):
            return candidate
    return None


def _accepts(tests: Stdio | Calls, candidate: CheckerCandidate, runs: Sequence[Run], failing: Sequence[int]) -> bool:
    differs: Any = checker_of(candidate.checker) if isinstance(tests, Stdio) else call_checker_of(candidate.checker)
    expected = _expected(tests)
    return all(differs(expected[index], run[index].output) is None for run in runs for index in failing)


def _look_right(tests: Stdio | Calls, runs: Sequence[Run], failing: Sequence[int], statement: Statement) -> bool:
    """Whether the failures look like other right answers: the text says so, or the outputs do."""
    # A case that takes too long says nothing of its answer; a crash says that the solution is wrong.
    attempts = [(index, run[index]) for run in runs for index in failing]
    failures = [(index, attempt) for index, attempt in attempts if not (attempt.passed or attempt.timed_out)]
    if not failures or any(attempt.output is None or attempt.reason is not Reason.MISMATCH for _, attempt in failures):
        return False
    expected = _expected(tests)
    return statement.several_answers is not None or are_all_alike(
        [(expected[index], attempt.output) for index, attempt in failures], statement.constructs is not None
    )


def _ran_out_of_input(attempt: CaseAttempt) -> bool:
    """Whether the program died while it read its input."""
    if attempt.passed or attempt.output is not None:
        return False
    errors = _ENDS.findall(attempt.stderr)
    return bool(errors) and (errors[-1] == "EOFError" or _READS.search(attempt.stderr) is not None)


def _fill_up(trial: Trial) -> Run:
    """Return an attempt at every case: a process that died leaves the later ones without a result."""
    missing = trial.total - len(trial.attempts)
    return [*trial.attempts, *[CaseAttempt(False, Reason.MISMATCH, "the program ended before this case")] * missing]


def _expected(tests: Stdio | Calls) -> list[Any]:
    return [case.output if isinstance(tests, Stdio) else case.expected for case in tests.cases]  # type: ignore[union-attr]


def _solution_fails(evidence: dict[str, Any]) -> SuiteFinding:
    return SuiteFinding(VetReason.REFERENCE_FAILS, Severity.DROP, evidence, "correct the solution or the tests")


def _show_cases(runs: Sequence[Run], cases: Sequence[int], expected: Sequence[Any] | None = None) -> dict[str, Any]:
    """Return evidence on the first few cases."""
    entries = []
    for index in cases[:EXPLAINED_CASES]:
        attempt = next((run[index] for run in runs if not run[index].passed), runs[0][index])
        passes = sum(run[index].passed for run in runs)
        entry: dict[str, Any] = {"case": index, "passes": f"{passes} of {len(runs)} runs"}
        if attempt.why:
            entry["why"] = evidence_text(attempt.why)
        if expected is not None and attempt.output is not None:
            entry |= {"expected": evidence_text(expected[index]), "got": evidence_text(attempt.output)}
        entries.append(entry)
    return {"count": len(cases), "of": len(runs[0]), "cases": entries}
