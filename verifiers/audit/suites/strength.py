"""The third step of a vetting: which null programs, planted faults and programs of known worth the tests catch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from truegold.verifiers.audit.suites.findings import Severity, VetReason
from truegold.verifiers.audit.suites.known_cases import tested_names
from truegold.verifiers.audit.suites.mutants import Mutant, mutants_of
from truegold.verifiers.audit.suites.null_programs import null_programs
from truegold.verifiers.audit.suites.trials import PYTHON
from truegold.verifiers.audit.suites.witnesses import Witness, split_survivors
from truegold.verifiers.audit.suites.work import Work
from truegold.verifiers.code.suite import Stdio
from truegold.verifiers.rates import Rate
from truegold.verifiers.sandbox.limits import Limits

FAULTY_CPU_S = 0.25
FAULTY_CPU_FACTOR = 5.0
"""A faulty program may use `FAULTY_CPU_S` seconds, or this many times what the worked solution uses. Stops loops
without end, which planted faults often make, from taking the whole limit each; one that is ended counts as caught."""

MIN_MUTANTS = 4
"""With fewer mutants the share that survives says nothing."""

CREDITED = 0.5
"""The share of survivors that have to be faults for a suite to be called weak. Of 19 findings that were read where all
counted, six would not have stood: up to half of their survivors were none."""

SHOWN_SURVIVORS = 10
"""The most survivors that evidence shows."""


@dataclass(frozen=True, slots=True)
class Kills:
    """What became of the mutants."""

    tried: int = 0
    """The mutants that were tried."""
    survivors: Sequence[Mutant] = field(default_factory=tuple)
    """The mutants that pass all cases and should not. Of programs that read stdin some may do what the program does."""
    witnesses: Mapping[Mutant, Witness] = field(default_factory=dict)
    """For survivors an input that they should have failed on."""
    equivalent: int = 0
    """Mutants that do what the program does on all inputs that were made. They do not count."""
    undecided: int = 0
    """Mutants that pass, and of which it is not known whether they should. They do not count either."""

    @property
    def mutants(self) -> int:
        """The mutants that count."""
        return self.tried - self.equivalent - self.undecided

    @property
    def rate(self) -> float | None:
        """The share of the mutants that fail a case; None where there are none."""
        return (self.mutants - len(self.survivors)) / self.mutants if self.mutants else None

    @property
    def doubted_rate(self) -> float:
        """The rate where only `CREDITED` of the survivors are faults: some differ only where the problem leaves the
        answer open, or where the worked solution is itself wrong, which nobody can tell without reading."""
        killed = self.mutants - len(self.survivors)
        return killed / (killed + CREDITED * len(self.survivors)) if self.mutants else 1.0

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the rate by Wilson's formula."""
        return Rate(self.mutants - len(self.survivors), self.mutants).interval if self.mutants else None


def find_paid_nulls(work: Work) -> list[str]:
    """Return the names of the null programs that pass."""
    bench, limits, order = work.bench(), _faulty_limits(work), _cheapest_first(work)
    paid = [
        program.name
        for program in null_programs(work.suite, work.prompt)
        if bench.first_failure(program.source, limits, order, language=PYTHON) is None
    ]
    if paid:
        work.report(VetReason.PAID_NULL, Severity.DROP, {"programs": paid}, "add cases that they fail")
    return paid


def measure_kills(work: Work) -> Kills:
    """Plant faults in the worked solution that passes, and see which of them the tests catch."""
    if work.reference is None or work.suite.language != PYTHON:
        return Kills()
    names = [name.partition(".")[0].removesuffix("()") for name in tested_names(work.suite.tests)]
    spent = work.trial.spent_s if work.trial is not None else 0.0
    count = work.options.affordable(work.options.mutants, spent)
    mutants = mutants_of(work.reference, count, work.options.seed, names)
    bench, limits, order = work.bench(), _faulty_limits(work), _cheapest_first(work)
    survivors = []
    for mutant in mutants:
        caught_by = bench.first_failure(mutant.source, limits, order)
        if caught_by is None:
            survivors.append(mutant)
        elif caught_by in order:
            # The case that caught one fault is likely to catch the next.
            order.remove(caught_by)
            order.insert(0, caught_by)
    kills = _count(work, len(mutants), survivors, limits)
    _report_weakness(work, kills)
    return kills


def _count(work: Work, tried: int, survivors: Sequence[Mutant], limits: Limits) -> Kills:
    """Tell survivors that the tests should have caught from those that do what the solution does."""
    ordered = tuple(sorted(survivors, key=lambda mutant: (mutant.line, mutant.after)))
    if isinstance(work.suite.tests, Stdio):
        return Kills(tried, ordered)
    split = split_survivors(work, ordered, limits)
    return Kills(tried, tuple(split.missed), split.missed, len(split.equivalent), len(split.undecided))


def caught_share(work: Work, wrong: Sequence[str]) -> float | None:
    """Return the share of programs known to be wrong that fail."""
    passed = _try_programs(work, wrong, _faulty_limits(work))
    if any(passed):
        accepted = [index for index, passes in enumerate(passed) if passes]
        work.report(VetReason.WRONG_ACCEPTED, Severity.FLAG, {"programs": accepted}, "add cases that they fail")
    return passed.count(False) / len(passed) if passed else None


def accepted_share(work: Work, right: Sequence[str]) -> float | None:
    """Return the share of programs known to be right that pass."""
    passed = _try_programs(work, right, work.suite.limits)
    if not all(passed):
        rejected = [index for index, passes in enumerate(passed) if not passes]
        work.report(VetReason.RIGHT_REJECTED, Severity.FLAG, {"programs": rejected}, "look at the cases that they fail")
    return passed.count(True) / len(passed) if passed else None


def _report_weakness(work: Work, kills: Kills) -> None:
    if kills.rate is None or kills.mutants < MIN_MUTANTS or kills.doubted_rate >= work.options.min_kill_rate:
        return
    survivors = [_show_survivor(mutant, kills.witnesses.get(mutant)) for mutant in kills.survivors[:SHOWN_SURVIVORS]]
    rates = {"rate": round(kills.rate, 4), "interval": [round(bound, 4) for bound in kills.interval or ()]}
    left_out = {"equivalent": kills.equivalent, "undecided": kills.undecided}
    evidence = {**rates, "mutants": kills.mutants, **left_out, "survivors": survivors}
    suggestion = "add the cases that catch the survivors"
    if not kills.witnesses:
        suggestion = "add cases that catch the survivors, unless they do what the solution does"
    work.report(VetReason.WEAK, Severity.FLAG, evidence, suggestion)


def _show_survivor(mutant: Mutant, witness: Witness | None) -> Any:
    """Return what evidence says of a survivor: its change, and what shows that it is wrong."""
    if witness is None:
        return mutant.description
    shown = {"input": witness.input, "expected": witness.expected, "got": witness.got, "case": witness.case}
    return {"fault": mutant.description, **shown}


def _try_programs(work: Work, programs: Sequence[str], limits: Limits) -> list[bool]:
    """Return for each program whether it passes."""
    bench, order = work.bench(), _cheapest_first(work)
    return [bench.first_failure(program, limits, order) is None for program in programs]


def _faulty_limits(work: Work) -> Limits:
    limits = work.suite.limits
    needed = (work.trial.cpu_s if work.trial is not None else None) or 0.0
    return replace(limits, cpu_s=min(limits.cpu_s, max(FAULTY_CPU_S, FAULTY_CPU_FACTOR * needed)))


def _cheapest_first(work: Work) -> list[int]:
    """Return the cases in the order to try them; none where programs do not print, and cases share a run."""
    if not isinstance(work.suite.tests, Stdio):
        return []
    order = list(range(work.cases))
    trial = work.trial
    if trial is not None and len(trial.attempts) == len(order):
        order.sort(key=lambda index: trial.attempts[index].cpu_s or 0.0)
    return order
