"""The third step of a vetting: what the tests catch, of null programs, planted faults and programs of known worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from truegold.verifiers.code.limits import Limits
from truegold.verifiers.code.suite import Stdio
from truegold.verifiers.code.vet.findings import Severity, VetReason
from truegold.verifiers.code.vet.known_cases import tested_names
from truegold.verifiers.code.vet.mutants import Mutant, mutants_of
from truegold.verifiers.code.vet.null_programs import null_programs
from truegold.verifiers.code.vet.trials import PYTHON
from truegold.verifiers.code.vet.work import Work
from truegold.verifiers.rates import Rate

FAULTY_CPU_S = 0.25
FAULTY_CPU_FACTOR = 5.0
"""A faulty program may use this much, or so many times what the worked solution uses. Stops loops without end, which
planted faults often make, from taking the whole limit each; one that is ended counts as caught."""

MIN_MUTANTS = 4
"""Of fewer, the share that survives says nothing."""

SHOWN_SURVIVORS = 10


@dataclass(frozen=True, slots=True)
class Kills:
    """mutants: that were tried. survivors: those that pass all cases; some may do what the program does."""

    mutants: int = 0
    survivors: Sequence[Mutant] = field(default_factory=tuple)

    @property
    def rate(self) -> float | None:
        return (self.mutants - len(self.survivors)) / self.mutants if self.mutants else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's interval, 95 %."""
        return Rate(self.mutants - len(self.survivors), self.mutants).interval if self.mutants else None


def paid_nulls(work: Work) -> list[str]:
    """The names of the null programs that pass."""
    bench, limits, order = work.bench(), _faulty_limits(work), _cheapest_first(work)
    paid = [
        program.name
        for program in null_programs(work.suite, work.prompt)
        if bench.fails(program.source, limits, order, language=PYTHON) is None
    ]
    if paid:
        work.find(VetReason.PAID_NULL, Severity.DROP, {"programs": paid}, "add cases that they fail")
    return paid


def kills(work: Work) -> Kills:
    """Plant faults in the worked solution that passes."""
    if work.reference is None or work.suite.language != PYTHON:
        return Kills()
    names = [name.partition(".")[0].removesuffix("()") for name in tested_names(work.suite.tests)]
    spent = work.trial.spent_s if work.trial is not None else 0.0
    count = work.options.affordable(work.options.mutants, spent)
    mutants = mutants_of(work.reference, count, work.options.seed, names)
    bench, limits, order = work.bench(), _faulty_limits(work), _cheapest_first(work)
    survivors = []
    for mutant in mutants:
        caught_by = bench.fails(mutant.source, limits, order)
        if caught_by is None:
            survivors.append(mutant)
        elif caught_by in order:
            order.remove(caught_by)  # what caught one fault is likely to catch the next
            order.insert(0, caught_by)
    found = Kills(len(mutants), tuple(sorted(survivors, key=lambda mutant: (mutant.line, mutant.after))))
    _judge(work, found)
    return found


def caught(work: Work, wrong: Sequence[str]) -> float | None:
    """The share of programs known to be wrong that fail."""
    passed = _passing(work, wrong, _faulty_limits(work))
    if any(passed):
        numbers = [at for at, each in enumerate(passed) if each]
        work.find(VetReason.WRONG_ACCEPTED, Severity.FLAG, {"programs": numbers}, "add cases that they fail")
    return passed.count(False) / len(passed) if passed else None


def accepted(work: Work, right: Sequence[str]) -> float | None:
    """The share of programs known to be right that pass."""
    passed = _passing(work, right, work.suite.limits)
    if not all(passed):
        numbers = [at for at, each in enumerate(passed) if not each]
        work.find(VetReason.RIGHT_REJECTED, Severity.FLAG, {"programs": numbers}, "look at the cases that they fail")
    return passed.count(True) / len(passed) if passed else None


def _judge(work: Work, found: Kills) -> None:
    if found.rate is None or found.mutants < MIN_MUTANTS or found.rate >= work.options.min_kill_rate:
        return
    shown = [mutant.description for mutant in found.survivors[:SHOWN_SURVIVORS]]
    rates = {"rate": round(found.rate, 4), "interval": [round(bound, 4) for bound in found.interval or ()]}
    evidence = {**rates, "mutants": found.mutants, "survivors": shown}
    suggestion = "add cases that catch the survivors, unless they do what the solution does"
    work.find(VetReason.WEAK, Severity.FLAG, evidence, suggestion)


def _passing(work: Work, programs: Sequence[str], limits: Limits) -> list[bool]:
    bench, order = work.bench(), _cheapest_first(work)
    return [bench.fails(program, limits, order) is None for program in programs]


def _faulty_limits(work: Work) -> Limits:
    limits = work.suite.limits
    needed = (work.trial.cpu_s if work.trial is not None else None) or 0.0
    return replace(limits, cpu_s=min(limits.cpu_s, max(FAULTY_CPU_S, FAULTY_CPU_FACTOR * needed)))


def _cheapest_first(work: Work) -> list[int]:
    """The cases of programs that print."""
    if not isinstance(work.suite.tests, Stdio):
        return []
    order = list(range(work.cases))
    trial = work.trial
    if trial is not None and len(trial.attempts) == len(order):
        order.sort(key=lambda at: trial.attempts[at].cpu_s or 0.0)
    return order
