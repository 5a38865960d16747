"""The second step of a vetting: worked solutions on their own tests, and the repairs that make them pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from truegold.verifiers.audit.suites.diagnosis import diagnose
from truegold.verifiers.audit.suites.findings import Severity, VetReason
from truegold.verifiers.audit.suites.repairs import Repair
from truegold.verifiers.audit.suites.trials import Trial
from truegold.verifiers.audit.suites.work import Work
from truegold.verifiers.code.outcomes import ONE_PROCESS
from truegold.verifiers.code.suite import Stdio
from truegold.verifiers.sandbox.limits import CPU_S_BOUNDS, Limits

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


def run_solutions(work: Work, programs: Sequence[str]) -> None:
    """Set `work.reference` where a solution passes, after a repair where one is needed."""
    if not programs:
        work.report(VetReason.NO_REFERENCE, Severity.NOTE, {})
        return
    if work.dropped:
        return
    trials = {program: _run_repeatedly(work, program) for program in dict.fromkeys(programs)}
    main = max(trials, key=lambda program: _count_passes(trials[program]))
    diagnosis = diagnose(work.suite.tests, trials[main], work.statement)
    work.findings += diagnosis.findings
    if any(finding.severity is Severity.DROP for finding in diagnosis.findings):
        return
    work.repair(Repair(frozenset(diagnosis.without), diagnosis.checker))
    runs = _run_repeatedly(work, main) if diagnosis.without or diagnosis.checker else trials[main]
    work.reference, work.trial = main, max(runs, key=lambda trial: trial.cpu_s or 0.0)
    _check_agreement(work, [program for program in trials if program != main])
    _check_order(work, main)
    _check_headroom(work, work.trial)


def _count_passes(trials: Sequence[Trial]) -> int:
    return sum(attempt.passed for trial in trials for attempt in trial.attempts)


def _run_repeatedly(work: Work, program: str) -> list[Trial]:
    """Run a program under different hash seeds; raise the suite's limit where the program needs more time."""
    first = work.bench().run(program)
    if first.timed_out:
        longer = _stretch(work, program, first)
        if longer is None:
            return [first]
        first = longer
    options = work.options
    fewest = MIN_RUNS if first.spent_s <= options.max_repeat_s else 1
    runs = max(options.affordable(options.runs, first.spent_s), min(options.runs, fewest))
    bench = work.bench()
    return [first, *(bench.run(program, hash_seed=seed) for seed in range(1, runs))]


def _stretch(work: Work, program: str, first: Trial) -> Trial | None:
    """Raise the limit to what the program needs for the cases that took too long; None where that is too much."""
    limit = work.suite.limits.cpu_s
    allowed = min(STRETCH * limit, MAX_STRETCH_S)
    if allowed <= limit:
        return None
    longer = _run_longer(work, program, first, replace(work.suite.limits, cpu_s=allowed))
    if longer is None or longer.timed_out or longer.cpu_s is None:
        return None
    _raise_limit(work, longer.cpu_s)
    return longer


def _run_longer(work: Work, program: str, first: Trial, limits: Limits) -> Trial | None:
    """Run the cases again that took too long, or all where they share a process; None where they take too long again.

    The time of all of them together is limited too.
    """
    bench = work.bench()
    if not isinstance(work.suite.tests, Stdio):
        return bench.run(program, limits=limits)
    attempts, times, spent = list(first.attempts), [first.cpu_s or 0.0], 0.0
    for index in [index for index, attempt in enumerate(attempts) if attempt.timed_out]:
        if spent > work.options.max_repeat_s:
            return None
        longer = bench.run_some(program, [index], limits)
        attempts[index] = longer.attempts[0]
        times.append(longer.cpu_s or 0.0)
        spent += longer.spent_s
        if attempts[index].timed_out:
            return None
    return replace(first, attempts=attempts, cpu_s=max(times), spent_s=first.spent_s + spent)


def _raise_limit(work: Work, needed: float) -> None:
    limit = work.suite.limits.cpu_s
    raised = float(min(max(math.ceil(ROOM * needed), limit), CPU_S_BOUNDS[1]))
    evidence = {"needs_s": needed, "limit_s": limit, "raised_to_s": raised}
    work.report(VetReason.TIGHT_LIMIT, Severity.REPAIR, evidence)
    work.repair(Repair(cpu_s=raised))


def _check_agreement(work: Work, programs: Sequence[str]) -> None:
    """Run the further worked solutions on the tests as they are now."""
    failing = {}
    for position, program in enumerate(programs, 1):
        findings = diagnose(work.suite.tests, _run_repeatedly(work, program), work.statement).findings
        checker = next((finding for finding in findings if finding.reason is VetReason.NEEDS_CHECKER), None)
        if checker is not None:
            work.findings.append(checker)
            return
        if findings:
            failing[str(position)] = dict(findings[0].evidence)
    if failing:
        suggestion = "find out which of them is right"
        work.report(VetReason.REFERENCES_DISAGREE, Severity.FLAG, {"failing": failing}, suggestion)


def _check_order(work: Work, program: str) -> None:
    """Run the calls in other orders, and flag tests that lean on one."""
    spent = work.trial.spent_s if work.trial is not None else 0.0
    for seed in range(work.options.affordable(SHUFFLES, spent)):
        trial = work.bench().run_shuffled(program, seed)
        if trial is None:
            return
        failing = [index for index, attempt in enumerate(trial.attempts) if not attempt.passed]
        if failing:
            evidence = {"cases": failing[:SHOWN_CASES], "count": len(failing)}
            work.report(VetReason.ORDER_DEPENDENT, Severity.FLAG, evidence, "let each case stand on its own")
            return


def _check_headroom(work: Work, trial: Trial) -> None:
    if trial.isolation == ONE_PROCESS:
        work.report(VetReason.ONE_PROCESS, Severity.NOTE, {})
    if trial.cpu_s is not None and trial.cpu_s > work.options.max_headroom * work.suite.limits.cpu_s:
        _raise_limit(work, trial.cpu_s)
