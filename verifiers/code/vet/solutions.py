"""The second step of a vetting: worked solutions on their own tests, and the repairs that make them pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from truegold.verifiers.code.judging import ONE_PROCESS
from truegold.verifiers.code.limits import CPU_S_BOUNDS, Limits
from truegold.verifiers.code.suite import Stdio
from truegold.verifiers.code.vet.diagnosis import diagnose
from truegold.verifiers.code.vet.findings import Severity, VetReason
from truegold.verifiers.code.vet.repairs import Repair
from truegold.verifiers.code.vet.trials import Trial
from truegold.verifiers.code.vet.work import Work

STRETCH = 10.0
"""A worked solution that overruns its limit is given so many times as much, once."""

MAX_STRETCH_S = 60.0
"""Stops a solution that never ends from being waited for for minutes."""

ROOM = 4.0
"""A raised limit is so many times what the worked solution needs."""

MIN_RUNS = 2
"""Also of a slow solution, unless one run takes all the time there is: with one run, nothing can be seen to vary."""

SHUFFLES = 2
SHOWN_CASES = 20


def run_solutions(work: Work, programs: Sequence[str]) -> None:
    """Sets `work.reference` where a solution passes, after a repair where one is needed."""
    if not programs:
        work.find(VetReason.NO_REFERENCE, Severity.NOTE, {})
        return
    if work.dropped:
        return
    trials = {program: _runs(work, program) for program in dict.fromkeys(programs)}
    main = max(trials, key=lambda program: _passes(trials[program]))
    found = diagnose(work.suite.tests, trials[main], work.statement)
    work.findings += found.findings
    if any(finding.severity is Severity.DROP for finding in found.findings):
        return
    work.repair(Repair(frozenset(found.without), found.checker))
    again = _runs(work, main) if found.without or found.checker else trials[main]
    work.reference, work.trial = main, max(again, key=lambda trial: trial.cpu_s or 0.0)
    _others(work, [program for program in trials if program != main])
    _order(work, main)
    _headroom(work, work.trial)


def _passes(trials: Sequence[Trial]) -> int:
    return sum(attempt.passed for trial in trials for attempt in trial.attempts)


def _runs(work: Work, program: str) -> list[Trial]:
    """Several runs under different hash seeds."""
    first = work.bench().run(program)
    if first.timed_out:
        longer = _stretch(work, program, first)
        if longer is None:
            return [first]
        first = longer
    options = work.options
    least = MIN_RUNS if first.spent_s <= options.max_repeat_s else 1
    runs = max(options.affordable(options.runs, first.spent_s), min(options.runs, least))
    bench = work.bench()
    return [first, *(bench.run(program, hash_seed=seed) for seed in range(1, runs))]


def _stretch(work: Work, program: str, first: Trial) -> Trial | None:
    """Raise the limit to what the program needs for the cases that took too long; None where that is too much."""
    limit = work.suite.limits.cpu_s
    allowed = min(STRETCH * limit, MAX_STRETCH_S)
    if allowed <= limit:
        return None
    longer = _with_more_time(work, program, first, replace(work.suite.limits, cpu_s=allowed))
    if longer is None or longer.timed_out or longer.cpu_s is None:
        return None
    _raise_limit(work, longer.cpu_s)
    return longer


def _with_more_time(work: Work, program: str, first: Trial, limits: Limits) -> Trial | None:
    """Only the cases that took too long, where each is a run of its own; None where they take too long together."""
    bench = work.bench()
    if not isinstance(work.suite.tests, Stdio):
        return bench.run(program, limits=limits)
    attempts, times, spent = list(first.attempts), [first.cpu_s or 0.0], 0.0
    for at in [at for at, attempt in enumerate(attempts) if attempt.timed_out]:
        if spent > work.options.max_repeat_s:
            return None
        again = bench.run_some(program, [at], limits)
        attempts[at] = again.attempts[0]
        times.append(again.cpu_s or 0.0)
        spent += again.spent_s
        if attempts[at].timed_out:
            return None
    return replace(first, attempts=attempts, cpu_s=max(times), spent_s=first.spent_s + spent)


def _raise_limit(work: Work, needed: float) -> None:
    limit = work.suite.limits.cpu_s
    raised = float(min(max(math.ceil(ROOM * needed), limit), CPU_S_BOUNDS[1]))
    evidence = {"needs_s": needed, "limit_s": limit, "raised_to_s": raised}
    work.find(VetReason.TIGHT_LIMIT, Severity.REPAIR, evidence)
    work.repair(Repair(cpu_s=raised))


def _others(work: Work, programs: Sequence[str]) -> None:
    """Further worked solutions, on the tests as they are now."""
    failing = {}
    for number, program in enumerate(programs, 1):
        found = diagnose(work.suite.tests, _runs(work, program), work.statement)
        checker = next((each for each in found.findings if each.reason is VetReason.NEEDS_CHECKER), None)
        if checker is not None:
            work.findings.append(checker)
            return
        if found.findings:
            failing[str(number)] = dict(found.findings[0].evidence)
    if failing:
        suggestion = "find out which of them is right"
        work.find(VetReason.REFERENCES_DISAGREE, Severity.FLAG, {"failing": failing}, suggestion)


def _order(work: Work, program: str) -> None:
    spent = work.trial.spent_s if work.trial is not None else 0.0
    for seed in range(work.options.affordable(SHUFFLES, spent)):
        trial = work.bench().shuffled(program, seed)
        if trial is None:
            return
        failing = [at for at, attempt in enumerate(trial.attempts) if not attempt.passed]
        if failing:
            evidence = {"cases": failing[:SHOWN_CASES], "count": len(failing)}
            work.find(VetReason.ORDER_DEPENDENT, Severity.FLAG, evidence, "let each case stand on its own")
            return


def _headroom(work: Work, trial: Trial) -> None:
    if trial.isolation == ONE_PROCESS:
        work.find(VetReason.ONE_PROCESS, Severity.NOTE, {})
    if trial.cpu_s is not None and trial.cpu_s > work.options.max_headroom * work.suite.limits.cpu_s:
        _raise_limit(work, trial.cpu_s)
