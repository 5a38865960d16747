"""The second step of a vetting: worked solutions on their own tests, and the repairs that make them pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from truegold.verifiers.code.judging import TOGETHER
from truegold.verifiers.code.limits import CPU_S
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
"""Also of a slow solution: with one run, nothing can be seen to vary."""

SHUFFLES = 2
SHOWN_CASES = 20


def run_solutions(work: Work, programs: Sequence[str]) -> None:
    """Sets `work.reference` where a solution passes, after a repair where one is needed."""
    if not programs:
        work.find(VetReason.NO_REFERENCE, Severity.NOTE, {})
        return
    if work.has(VetReason.INTERACTIVE):
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
    bench = work.bench()
    first = bench.run(program)
    if first.timed_out:
        longer = _stretch(work, program, first)
        if longer is None:
            return [first]
        bench = work.bench()
        first = longer if longer.complete else bench.run(program)
    runs = max(work.options.affordable(work.options.runs, first.spent_s), min(work.options.runs, MIN_RUNS))
    return [first, *(bench.run(program, hash_seed=seed) for seed in range(1, runs))]


def _stretch(work: Work, program: str, first: Trial) -> Trial | None:
    """Raise the limit to what the program needs for the cases that took too long; None where that is too much."""
    limit = work.suite.limits.cpu_s
    allowed = min(STRETCH * limit, MAX_STRETCH_S)
    if allowed <= limit:
        return None
    slow = [at for at, attempt in enumerate(first.attempts) if attempt.timed_out]
    trial = work.bench().run_some(program, slow, replace(work.suite.limits, cpu_s=allowed))
    if trial.timed_out or trial.cpu_s is None:
        return None
    _raise_limit(work, trial.cpu_s)
    return trial


def _raise_limit(work: Work, needed: float) -> None:
    limit = work.suite.limits.cpu_s
    raised = float(min(max(math.ceil(ROOM * needed), limit), CPU_S[1]))
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
    if trial.isolation == TOGETHER:
        work.find(VetReason.ONE_PROCESS, Severity.NOTE, {})
    if trial.cpu_s is not None and trial.cpu_s > work.options.max_headroom * work.suite.limits.cpu_s:
        _raise_limit(work, trial.cpu_s)
