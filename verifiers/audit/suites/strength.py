"""Runs wrong programs on the tests and counts those that the tests catch: the third step of a vetting.

Null programs solve nothing (`null_programs`). If one passes, the tests are worthless.

Mutants are the worked solution with a planted fault (`mutants`). A mutant that passes all tests is a survivor. Further
inputs (`witnesses`) decide whether the tests should have caught it:

    it differs from the solution on an input     it counts as missed
    it agrees on all of them                     equivalent: it does not count
    only the value for a missing answer differs  undecided, since the problem may allow any such value (`return -1`)
    no further inputs can be made                undecided for test code; missed for programs that read stdin
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from truegold.verifiers.audit.suites.known_cases import tested_names
from truegold.verifiers.audit.suites.mutants import Mutant, NullProgram, mutants_of, null_programs
from truegold.verifiers.audit.suites.trials import PYTHON
from truegold.verifiers.audit.suites.vet_state import Severity, VetReason, VetState
from truegold.verifiers.audit.suites.witnesses import InputComparison, Witness, compare
from truegold.verifiers.code.outcomes import ONE_PROCESS
from truegold.verifiers.code.suite.reading import Stdio
from truegold.verifiers.rates import Rate
from truegold.verifiers.sandbox.execution import Limits

FAULTY_CPU_S = 0.25
FAULTY_CPU_FACTOR = 5.0
"""The CPU limit of a faulty program is the larger of `FAULTY_CPU_S` seconds and `FAULTY_CPU_FACTOR` times the time of
the worked solution. Many planted faults make endless loops; a program that is stopped counts as caught."""

MIN_MUTANTS = 4
"""Minimum number of mutants for which the share of survivors is reported."""
SHOWN_SURVIVORS = 10
"""Maximum number of survivors in the evidence."""
CREDITED = 0.5
"""The share of survivors that count towards the finding that a suite is weak. When all counted, people found 6 of 19
such findings wrong, because up to half of the survivors were harmless."""


def find_paid_nulls(state: VetState) -> list[NullProgram]:
    """Return the null programs that pass, and report them.

    Usually the suite is dropped. If only programs with the answer to its single case pass, the suite is flagged. If
    only attacks pass, in a process that is shared with the tests, a note is reported and the result is empty.
    """
    bench, limits, order = state.bench(), faulty_limits(state), _cheapest_first(state)
    nulls = null_programs(state.suite, state.prompt)
    paid = [null for null in nulls if bench.first_failure(null.source, limits, order, PYTHON) is None]
    names = [null.name for null in paid]
    if paid and all(null.attacks_tests for null in paid) and bench.run(paid[0].source).isolation == ONE_PROCESS:
        state.findings = [each for each in state.findings if each.reason is not VetReason.ONE_PROCESS]
        suggestion = "compare plain values, which are judged in another process"
        state.report(VetReason.ONE_PROCESS, Severity.NOTE, {"programs": names}, suggestion)
        return []
    if paid:
        severity = Severity.FLAG if all(null.answers_single_case for null in paid) else Severity.DROP
        state.report(VetReason.PAID_NULL, severity, {"programs": names}, "add cases that these programs fail")
    return paid


def measure_kills(state: VetState) -> Kills:
    """Plant faults in the worked solution, run the mutants on the tests, and return the counts."""
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
            # A case that caught one fault is likely to catch the next, so that it is tried first.
            order.remove(caught_by)
            order.insert(0, caught_by)
    ordered = tuple(sorted(survivors, key=lambda mutant: (mutant.line, mutant.after)))
    kills = count_kills(state, len(mutants), ordered)
    _report_weakness(state, kills)
    return kills


def misjudged(state: VetState, programs: Sequence[str], are_right: bool) -> list[str]:
    """Return the known right programs that fail (are_right), or the known wrong programs that pass, and report them."""
    bench, order = state.bench(), _cheapest_first(state)
    limits = state.suite.limits if are_right else faulty_limits(state)
    passed = [bench.first_failure(program, limits, order) is None for program in programs]
    if wrongly := [index for index, passes in enumerate(passed) if passes is not are_right]:
        reason = VetReason.RIGHT_REJECTED if are_right else VetReason.WRONG_ACCEPTED
        suggestion = "check the cases that these programs fail" if are_right else "add cases that these programs fail"
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
        suggestion = "add cases that catch the survivors, unless these are equivalent to the solution"
    state.report(VetReason.WEAK, Severity.FLAG, evidence, suggestion)


def _shown(mutant: Mutant, witness: Witness | None) -> Any:
    return mutant.description if witness is None else {"fault": mutant.description, **asdict(witness)}


def faulty_limits(state: VetState) -> Limits:
    """Return the limits for running a faulty program."""
    limits = state.suite.limits
    needed = (state.trial.cpu_s if state.trial is not None else None) or 0.0
    return replace(limits, cpu_s=min(limits.cpu_s, max(FAULTY_CPU_S, FAULTY_CPU_FACTOR * needed)))


def _cheapest_first(state: VetState) -> list[int]:
    """Return the indexes of the cases, the fastest first; empty for tests whose cases share a process."""
    if not isinstance(state.suite.tests, Stdio):
        return []
    order = list(range(state.cases))
    if (trial := state.trial) is not None and len(trial.attempts) == len(order):
        order.sort(key=lambda index: trial.attempts[index].cpu_s or 0.0)
    return order


@dataclass(frozen=True, slots=True)
class Kills:
    """The results of running mutants (worked solutions with a planted fault) on a suite."""

    tried: int = 0
    """The number of mutants that ran."""
    survivors: Sequence[Mutant] = ()
    """The mutants that pass all cases although they should fail. Without further inputs, all survivors of programs that
    read stdin are included."""
    witnesses: Mapping[Mutant, Witness] = field(default_factory=dict)
    """For each survivor, an input on which it differs from the solution."""
    equivalent: int = 0
    """The number of survivors that agree with the worked solution on all further inputs; they do not count."""
    undecided: int = 0
    """The number of survivors for which it is unknown whether they should fail; they do not count."""
    comparison: InputComparison | None = None
    """The comparison of survivors with the solution, or None if it was not needed or not possible."""

    @property
    def mutants(self) -> int:
        """The number of mutants that count."""
        return self.tried - self.equivalent - self.undecided

    @property
    def killed(self) -> int:
        """The number of mutants that fail a case."""
        return self.mutants - len(self.survivors)

    @property
    def rate(self) -> float | None:
        """The kill rate: the share of mutants that fail a case, or None without mutants."""
        return self.killed / self.mutants if self.mutants else None

    @property
    def doubted_rate(self) -> float:
        """The kill rate if only `CREDITED` of the survivors were real faults. Some survivors differ only on inputs
        where the problem allows any answer or the worked solution is wrong, which only a person can see."""
        return self.killed / (self.killed + CREDITED * len(self.survivors)) if self.mutants else 1.0

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the rate by Wilson's formula."""
        return Rate(self.killed, self.mutants).interval if self.mutants else None


def count_kills(state: VetState, tried: int, survivors: Sequence[Mutant]) -> Kills:
    """Return the counts, with survivors divided into missed, equivalent and undecided ones by further inputs."""
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
