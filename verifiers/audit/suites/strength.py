"""The third step of a vetting: runs wrong programs on the tests, and counts those that the tests catch.

Null programs solve nothing (`null_programs`); tests that one of them passes test nothing.

Of the planted faults that survive, those that the tests should have caught are told from those that do what the worked
solution does by further inputs (`witnesses`): a fault that agrees with the solution on all of them is taken to do what
the solution does. What a program gives where there is no answer (`return -1`, the default of `next`) is the problem's
choice, which tests that never show it leave open: undecided. So is what survives of test code whose inputs cannot be
read; of programs that read stdin all survivors count then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from truegold.verifiers.audit.suites.known_cases import tested_names
from truegold.verifiers.audit.suites.mutants import Mutant, mutants_of
from truegold.verifiers.audit.suites.null_programs import NullProgram, null_programs
from truegold.verifiers.audit.suites.trials import PYTHON
from truegold.verifiers.audit.suites.vet_state import Severity, VetReason, VetState
from truegold.verifiers.audit.suites.witnesses import InputComparison, Witness, compare
from truegold.verifiers.code.outcomes import ONE_PROCESS
from truegold.verifiers.code.suite.reading import Stdio
from truegold.verifiers.rates import Rate
from truegold.verifiers.sandbox.limits import Limits

FAULTY_CPU_S = 0.25
FAULTY_CPU_FACTOR = 5.0
"""A faulty program may use `FAULTY_CPU_S` seconds, or this many times the time of the worked solution. Many planted
faults make endless loops. A program that is ended counts as caught."""

# Texts of the report.
MIN_MUTANTS = 4
"""The fewest mutants for which the share of survivors says something."""
SHOWN_SURVIVORS = 10
"""The most survivors that evidence shows."""
CREDITED = 0.5
"""The share of survivors that count when a suite is called weak. When all counted, six of 19 findings that people read
were wrong, because up to half of their survivors were harmless."""


def find_paid_nulls(state: VetState) -> list[NullProgram]:
    """Return the null programs that pass.

    Where only the answer to a single case does, the tests are flagged: no more is wrong with them than that. Where only
    attacks do, in the process that they share with the tests, nothing is: their judge is weak, which a note says.
    """
    bench, limits, order = state.bench(), faulty_limits(state), _cheapest_first(state)
    nulls = null_programs(state.suite, state.prompt)
    paid = [null for null in nulls if bench.first_failure(null.source, limits, order, PYTHON) is None]
    names = [null.name for null in paid]
    if paid and all(null.attacks_tests for null in paid) and bench.run(paid[0].source).isolation == ONE_PROCESS:
        state.findings = [each for each in state.findings if each.reason is not VetReason.ONE_PROCESS]
        state.report(
            VetReason.ONE_PROCESS, Severity.NOTE, {"programs": names}, "compare plain values: they are judged apart"
        )
        return []
    if paid:
        severity = Severity.FLAG if all(null.answers_single_case for null in paid) else Severity.DROP
        state.report(VetReason.PAID_NULL, severity, {"programs": names}, "add cases that they fail")
    return paid


def measure_kills(state: VetState) -> Kills:
    """Plant faults in the worked solution that passes, and see which of them the tests catch."""
    if state.reference is None or state.suite.language != PYTHON:
        return Kills()
    names = [name.partition(".")[0].removesuffix("()") for name in tested_names(state.suite.tests)]
    spent = state.trial.spent_s if state.trial is not None else 0.0
    count = state.options.affordable(state.options.mutants, spent)
    mutants = mutants_of(state.reference, count, state.options.seed, names)
    bench, limits, order = state.bench(), faulty_limits(state), _cheapest_first(state)
    survivors = []
    for mutant in mutants:
        if (caught_by := bench.first_failure(mutant.source, limits, order)) is None:
            survivors.append(mutant)
        elif caught_by in order:
            # The case that caught one fault is likely to catch the next.
            order.remove(caught_by)
            order.insert(0, caught_by)
    ordered = tuple(sorted(survivors, key=lambda mutant: (mutant.line, mutant.after)))
    kills = count_kills(state, len(mutants), ordered)
    _report_weakness(state, kills)
    return kills


def misjudged(state: VetState, programs: Sequence[str], are_right: bool) -> list[str]:
    """Return the programs known to be right that fail, or those known to be wrong that pass."""
    bench, order = state.bench(), _cheapest_first(state)
    limits = state.suite.limits if are_right else faulty_limits(state)
    passed = [bench.first_failure(program, limits, order) is None for program in programs]
    if wrongly := [index for index, passes in enumerate(passed) if passes is not are_right]:
        reason = VetReason.RIGHT_REJECTED if are_right else VetReason.WRONG_ACCEPTED
        suggestion = "look at the cases that they fail" if are_right else "add cases that they fail"
        state.report(reason, Severity.FLAG, {"programs": wrongly}, suggestion)
    return [programs[index] for index in wrongly]


def _report_weakness(state: VetState, kills: Kills) -> None:
    if kills.rate is None or kills.mutants < MIN_MUTANTS or kills.doubted_rate >= state.options.min_kill_rate:
        return
    survivors = [_shown(mutant, kills.witnesses.get(mutant)) for mutant in kills.survivors[:SHOWN_SURVIVORS]]
    rates = {"rate": round(kills.rate, 4), "interval": [round(bound, 4) for bound in kills.interval or ()]}
    left_out = {"equivalent": kills.equivalent, "undecided": kills.undecided}
    evidence = {**rates, "mutants": kills.mutants, **left_out, "survivors": survivors}
    suggestion = "add the cases that catch the survivors"
    if not kills.witnesses:
        suggestion = "add cases that catch the survivors, unless they do what the solution does"
    state.report(VetReason.WEAK, Severity.FLAG, evidence, suggestion)


def _shown(mutant: Mutant, witness: Witness | None) -> Any:
    return mutant.description if witness is None else {"fault": mutant.description, **asdict(witness)}


def faulty_limits(state: VetState) -> Limits:
    """Return the limits of one run of a faulty program."""
    limits = state.suite.limits
    needed = (state.trial.cpu_s if state.trial is not None else None) or 0.0
    return replace(limits, cpu_s=min(limits.cpu_s, max(FAULTY_CPU_S, FAULTY_CPU_FACTOR * needed)))


def _cheapest_first(state: VetState) -> list[int]:
    """Return the cases in the order to try them; none if programs do not print, and cases share a run."""
    if not isinstance(state.suite.tests, Stdio):
        return []
    order = list(range(state.cases))
    if (trial := state.trial) is not None and len(trial.attempts) == len(order):
        order.sort(key=lambda index: trial.attempts[index].cpu_s or 0.0)
    return order


@dataclass(frozen=True, slots=True)
class Kills:
    """The result of running mutants, which are worked solutions with a planted fault, on a suite."""

    tried: int = 0
    """The mutants that were tried."""
    survivors: Sequence[Mutant] = ()
    """The mutants that pass all cases and are not equivalent. For programs that read stdin, equivalent ones are
    included."""
    witnesses: Mapping[Mutant, Witness] = field(default_factory=dict)
    """An input for each survivor that it should have failed on."""
    equivalent: int = 0
    """Mutants that agree with the worked solution on all further inputs. They do not count."""
    undecided: int = 0
    """Mutants that pass, where it is not known whether they should. They do not count either."""
    comparison: InputComparison | None = None
    """The comparison of survivors with the solution, or None if it was not needed or not possible."""

    @property
    def mutants(self) -> int:
        """The mutants that count."""
        return self.tried - self.equivalent - self.undecided

    @property
    def killed(self) -> int:
        """The mutants that fail a case."""
        return self.mutants - len(self.survivors)

    @property
    def rate(self) -> float | None:
        """The share of the mutants that fail a case, or None if there are none."""
        return self.killed / self.mutants if self.mutants else None

    @property
    def doubted_rate(self) -> float:
        """The rate where only `CREDITED` of the survivors are faults: some differ only where the problem leaves the
        answer open, or where the worked solution is itself wrong, which only a reader can tell."""
        return self.killed / (self.killed + CREDITED * len(self.survivors)) if self.mutants else 1.0

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the rate by Wilson's formula."""
        return Rate(self.killed, self.mutants).interval if self.mutants else None


def count_kills(state: VetState, tried: int, survivors: Sequence[Mutant]) -> Kills:
    """Find out of each survivor whether the tests should have caught it."""
    comparison = compare(state, faulty_limits(state)) if survivors else None
    if comparison is None or not comparison.is_telling:
        counts = isinstance(state.suite.tests, Stdio)
        return Kills(tried, survivors) if counts else Kills(tried, undecided=len(survivors))
    missed: dict[Mutant, Witness] = {}
    equivalent = undecided = 0
    for mutant in survivors:
        differing = [] if mutant.is_fallback else comparison.differences(mutant.source)
        if (witness := comparison.witness(mutant.source, differing)) is not None:
            missed[mutant] = witness
        elif differing or mutant.is_fallback:
            undecided += 1
        else:
            equivalent += 1
    return Kills(tried, tuple(missed), missed, equivalent, undecided, comparison)
