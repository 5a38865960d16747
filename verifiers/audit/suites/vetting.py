"""Vets the tests of a problem: decides whether a reward may be computed with them.

    vetting = vet({"tests": {"type": "stdio", "cases": [...]}}, prompt="You are given ...", references=["n = int(..."])
    vetting.outcome            keep, repair or drop
    vetting.findings           the reasons, each with its evidence
    vetting.repaired           the verifier's arguments after the repair
    vetting.kill_rate          0.93: the tests caught 93 % of the faults planted in the worked solution

There are three steps:

1. Check the texts of problem and tests (`text_checks`).
2. Run worked solutions on every case, several times, with other hash seeds and in another order (`solutions`).
3. Run programs known to be right, and three kinds of wrong programs, which the tests should catch:

    mutants           the worked solution with a planted fault (`mutants`)
    null programs     programs that do not solve anything, such as one that returns a constant
    wrong programs    programs that are known to be wrong

If a null program passes, the tests are worthless. A mutant that passes all tests is a survivor. Further inputs
(`witnesses`) decide whether the tests should have caught the survivor:

    survivor and solution on further inputs      count
    they differ on an input                      missed: the tests should have caught the survivor
    they agree on all inputs                     equivalent: the survivor is left out
    only the value for a missing answer differs  undecided, since the problem may allow any such value (`return -1`)
    no further inputs can be made                undecided for test code; missed for programs that read stdin

Tests are repaired only mechanically: a case is removed, or a checker or limit is changed. The third step measures the
repaired tests. If wrong programs pass, further cases are proposed or added. A worked solution gives the expected
results:

    cases of the suite              programs that pass                  cases to add
    assert larger(0, 0) == 0        min in place of max, or             assert larger(2, 1) == 2
    assert larger(1, 1) == 1        `return a`                          assert larger(0, 3) == 3

The inputs of new cases are those on which the wrong programs differ from the worked solution (`witnesses`). They are
chosen greedily, until each program fails `CATCHES` of them or there are `MAX_CASES` new cases. No case is proposed if
expected results are in doubt: solutions disagree, results vary or depend on the order of calls, the problem allows
several answers or any order, or the suite has its own checker or interactor.

Not covered: whether the tests agree with the problem's text, beyond the evidence of worked solutions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

from truegold.verifiers.audit.suites.known_cases import tested_names
from truegold.verifiers.audit.suites.mutants import Mutant, NullProgram, mutants_of, null_programs
from truegold.verifiers.audit.suites.solutions import has_own_checker, missing_package, run_solutions
from truegold.verifiers.audit.suites.text_checks import check_guessing, check_leaks, check_texts
from truegold.verifiers.audit.suites.trials import PYTHON, Bench
from truegold.verifiers.audit.suites.vet_state import (
    Severity,
    SuiteFinding,
    SuiteOutcome,
    VetOptions,
    VetReason,
    VetState,
    add_cases,
    evidence_text,
    outcome_of,
)
from truegold.verifiers.audit.suites.witnesses import InputComparison, Witness, compare
from truegold.verifiers.code.outcomes import ONE_PROCESS, BadSuite, CannotJudge
from truegold.verifiers.code.suite.reading import Stdio, read_suite
from truegold.verifiers.rates import Rate
from truegold.verifiers.sandbox.execution import Limits, SandboxError
from truegold.verifiers.verdict import Reason

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

    Usually the suite is dropped. The suite is flagged if it has a single case, and only programs that return the answer
    to this case pass. If only attacks pass, in a process that is shared with the tests, a note is reported and the
    result is empty.
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
            # A case that caught one fault is likely to catch the next, so it is tried first.
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
    """Return the indexes of the cases, the fastest first, or an empty list for tests whose cases share a process."""
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
    """The number of survivors that agree with the worked solution on all further inputs."""
    undecided: int = 0
    """The number of survivors for which it is unknown whether they should fail."""
    comparison: InputComparison | None = None
    """The comparison of survivors with the solution, or None if it was not needed or not possible."""

    @property
    def mutants(self) -> int:
        """The number of mutants, without equivalent and undecided ones."""
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


MAX_CASES = 8
"""Maximum number of cases that are proposed."""
CATCHES = 2
"""The number of new cases that each program should fail, if there are enough inputs."""

PROPOSED = "proposed_cases"
"""The key in a finding's evidence that holds the cases to add."""
MENDABLE = (VetReason.PAID_NULL, VetReason.WRONG_ACCEPTED, VetReason.WEAK, VetReason.GUESSABLE)
"""The findings that more cases may cure, the most serious first."""
_DOUBTS = frozenset(  # Findings that put expected results in doubt.
    (
        *(VetReason.REFERENCES_DISAGREE, VetReason.FLAKY, VetReason.ORDER_DEPENDENT, VetReason.NEEDS_CHECKER),
        *(VetReason.ANY_ORDER, VetReason.RIGHT_REJECTED, VetReason.CONTRADICTORY),
    )
)


class ProposedCases(NamedTuple):
    """Cases to add to a suite, and their effect."""

    cases: Sequence[str]
    """The cases in the form that `add_cases` takes."""
    info: Mapping[str, Any]
    """The arguments of the verifier with the cases added."""
    missed: Sequence[str]
    """The wrong programs that still pass."""


def propose_cases(state: VetState, kills: Kills, wrong: Sequence[str]) -> ProposedCases | None:
    """Return cases that wrong programs fail, or None if the suite needs no more cases or none can be made.

    kills: the mutants that were run on the suite, and those that pass it.
    wrong: other programs that pass the suite and should not.
    """
    reasons = {finding.reason for finding in state.findings}
    is_asked = state.options.mutants > 0 and not reasons.isdisjoint(MENDABLE)
    if state.reference is None or not is_asked or _is_doubtful(state, reasons):
        return None
    comparison = kills.comparison or compare(state, faulty_limits(state))
    if comparison is None or not comparison.is_telling:
        return None
    programs = [*(mutant.source for mutant in kills.survivors), *wrong]
    chosen = _choose(comparison, {program: comparison.differences(program) for program in programs})
    cases = [comparison.written(index) for index in chosen]
    return _tried(state, cases, programs) if cases else None


def _is_doubtful(state: VetState, reasons: set[VetReason]) -> bool:
    statement = state.statement
    is_open = statement.several_answers or statement.any_order or statement.interactive
    other_language = state.suite.language != PYTHON
    return bool(reasons & _DOUBTS or is_open or other_language or has_own_checker(state.suite.tests))


def _choose(comparison: InputComparison, differing: Mapping[str, Sequence[int]]) -> list[int]:
    """Return inputs to use as cases, chosen greedily so that each program fails on `CATCHES` of them, if possible."""
    shows = {program: [index for index in each if index in comparison.likely] for program, each in differing.items()}
    ranks = {index: rank for rank, index in enumerate(dict.fromkeys(chain.from_iterable(shows.values())))}
    chosen: list[int] = []
    for times in range(1, CATCHES + 1):
        while len(chosen) < MAX_CASES:
            few = {program: each for program, each in shows.items() if len({*each} & {*chosen}) < times}
            counts = Counter(index for each in few.values() for index in each if index not in chosen)
            if not counts:
                break
            best = max(counts, key=lambda index: (counts[index], -ranks[index]))
            if comparison.confirm(next(program for program, each in few.items() if best in each), best) is None:
                shows = {program: [index for index in each if index != best] for program, each in shows.items()}
            else:
                chosen.append(best)
    return chosen


def _tried(state: VetState, cases: Sequence[str], programs: Sequence[str]) -> ProposedCases | None:
    """Return the proposed cases after running solutions and wrong programs on the suite with these cases.

    Returns None if a solution fails, or if every wrong program still passes.
    """
    try:
        info = add_cases(state.info, cases)
    except BadSuite:
        return None
    bench = Bench(read_suite(info), state.options.tier, state.options.python)
    if not all(bench.run(solution).passed for solution in (state.reference or "", *state.agreeing)):
        return None
    limits = faulty_limits(state)
    missed = [program for program in programs if bench.run(program, limits=limits).passed]
    return ProposedCases(cases, info, missed) if len(missed) < len(programs) else None


@dataclass(frozen=True, slots=True)
class Vetting:
    """The result of vetting a suite. A measure is None if it is unknown, for example without a worked solution."""

    outcome: SuiteOutcome
    findings: Sequence[SuiteFinding]
    """The findings, the most serious first."""
    repaired: Mapping[str, Any] | None = None
    """The verifier's arguments after the repair, or None without a repair."""
    cases: int = 0
    """The number of cases before the repair."""
    kept: int = 0
    """The number of cases after the repair."""
    references: int = 0
    """The number of worked solutions that ran."""
    kills: Kills = field(default_factory=Kills)
    """The results of running planted faults."""
    paid: Sequence[str] = ()
    """The names of the null programs that pass."""
    headroom: float | None = None
    """The CPU time that the worked solution needs, as a share of the limit after the repair."""
    guess_chance: float | None = None
    """The chance that a guess passes all cases."""
    leaked: float | None = None
    """The share of cases that the problem's text shows."""
    caught: float | None = None
    """The share of known wrong programs that fail (true negative rate)."""
    accepted: float | None = None
    """The share of known right programs that pass (true positive rate)."""

    @property
    def kill_rate(self) -> float | None:
        """The share of planted faults that the tests catch, or None without any."""
        return self.kills.rate

    @property
    def reasons(self) -> list[str]:
        """The reasons of the findings, each once, the most serious first."""
        return list(dict.fromkeys(str(finding.reason) for finding in self.findings))


def vet(
    info: Mapping[str, Any],
    *,
    prompt: str | None = None,
    references: Sequence[str] = (),
    wrong: Sequence[str] = (),
    right: Sequence[str] = (),
    options: VetOptions | None = None,
) -> Vetting:
    """Vet the tests of one problem. Raises SandboxError if the sandbox fails.

    info: the verifier's arguments. prompt: the problem's text. references: worked solutions. wrong, right: programs
    known to be wrong or right.
    """
    try:
        return _run_steps(VetState(info, prompt, options or VetOptions()), references, wrong, right)
    except BadSuite as error:
        return _unreadable(str(error))
    except CannotJudge as error:
        if error.reason is Reason.SANDBOX_ERROR:
            raise SandboxError(str(error)) from error
        return _unreadable(str(error))


class _Measures(NamedTuple):
    """The measured strength of the tests."""

    chance: float | None
    """The chance that a guess passes."""
    paid: Sequence[NullProgram] = ()
    """The null programs that pass."""
    kills: Kills = Kills()
    accepted_wrong: Sequence[str] = ()
    """The known wrong programs that pass."""
    rejected_right: Sequence[str] = ()
    """The known right programs that fail."""


def _run_steps(state: VetState, references: Sequence[str], wrong: Sequence[str], right: Sequence[str]) -> Vetting:
    leaked = check_leaks(state)
    check_texts(state)
    programs = state.programs(references)
    run_solutions(state, programs)
    is_measured = not state.dropped
    known = (state.programs(wrong), state.programs(right)) if is_measured else ([], [])
    measured = _measure(state, *known) if is_measured else _Measures(check_guessing(state))
    if (proposal := _propose(state, measured)) is not None:
        if state.options.mend:
            reasons = _take(state, proposal)
            measured = _measure(state, *known)
            state.report(VetReason.CASES_ADDED, Severity.REPAIR, {"for": reasons, PROPOSED: list(proposal.cases)})
        else:
            _suggest(state, proposal, [null.source for null in measured.paid if not null.attacks_tests])
    outcome, order = outcome_of(state.findings), list(Severity)
    needed_s = state.trial.cpu_s if state.trial is not None else None
    return Vetting(
        outcome=outcome,
        findings=sorted(state.findings, key=lambda finding: order.index(finding.severity)),
        repaired=state.info if state.changed and outcome is SuiteOutcome.REPAIR else None,
        cases=state.total or state.cases,
        kept=state.cases,
        references=len(programs),
        kills=measured.kills,
        paid=[null.name for null in measured.paid],
        headroom=None if needed_s is None else needed_s / state.suite.limits.cpu_s,
        guess_chance=measured.chance,
        leaked=leaked,
        caught=1 - len(measured.accepted_wrong) / len(known[0]) if known[0] else None,
        accepted=1 - len(measured.rejected_right) / len(known[1]) if known[1] else None,
    )


def _measure(state: VetState, wrong: Sequence[str], right: Sequence[str]) -> _Measures:
    chance, paid = check_guessing(state), find_paid_nulls(state)
    kills = measure_kills(state)
    accepted = misjudged(state, wrong, are_right=False)
    return _Measures(chance, paid, kills, accepted, misjudged(state, right, are_right=True))


def _propose(state: VetState, measured: _Measures) -> ProposedCases | None:
    nulls = [null.source for null in measured.paid if not null.attacks_tests]
    return propose_cases(state, measured.kills, [*nulls, *measured.accepted_wrong])


def _take(state: VetState, proposal: ProposedCases) -> list[str]:
    """Add the proposed cases, remove the findings that they may cure, and return the reasons of these findings."""
    reasons = [str(finding.reason) for finding in state.findings if finding.reason in MENDABLE]
    state.findings = [finding for finding in state.findings if finding.reason not in MENDABLE]
    state.change(proposal.info)
    state.trial = state.bench().run(state.reference or "")
    return reasons


def _suggest(state: VetState, proposal: ProposedCases, nulls: Sequence[str]) -> None:
    """Add the proposed cases to the most serious finding that they may cure.

    If the cases catch all null programs, the finding becomes a flag, since a person can add the cases.
    """
    reasons = [finding.reason for finding in state.findings]
    index = reasons.index(next(reason for reason in MENDABLE if reason in reasons))
    finding = state.findings[index]
    severity = finding.severity if set(nulls) & set(proposal.missed) else Severity.FLAG
    evidence = {**finding.evidence, PROPOSED: list(proposal.cases)}
    state.findings[index] = SuiteFinding(finding.reason, severity, evidence, "add the proposed cases")


def _unreadable(message: str) -> Vetting:
    evidence = {"error": evidence_text(message)}
    unreadable = SuiteFinding(VetReason.UNREADABLE, Severity.DROP, evidence, "correct the tests")
    return Vetting(SuiteOutcome.DROP, [missing_package(message) or unreadable])
