"""The third step of a vetting: runs wrong programs on the tests, and counts those that the tests catch.

Null programs solve nothing (`null_programs`); tests should reject all of them. A planted fault that passes all tests (a
survivor) may be harmless, because the changed program does the same as the worked solution. So both are run on further
inputs:

    f(n) returns n % 4 and has a mutant n % 5     input 4: expected 0, got 4       a case to add: assert f(4) == 0
    sorted(a) has a mutant sorted(a[0:])          they agree on all further inputs: harmless

The further inputs are made from those of the cases (`made_inputs`), so that the problem probably allows them. Inputs
are left out if the worked solution raises, takes long, or returns another type than the tests expect. A case is
proposed only after a run: the solution passes it, and the fault does not. Some survivors are undecided: they differ
only in the result for "no answer" (`return -1`, the default of `next`), they are programs that read stdin, or the
inputs of the test code cannot be read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from truegold.verifiers.audit.suites.known_cases import tested_names
from truegold.verifiers.audit.suites.made_inputs import Arguments, make_inputs
from truegold.verifiers.audit.suites.mutants import Mutant, mutants_of
from truegold.verifiers.audit.suites.null_programs import null_programs
from truegold.verifiers.audit.suites.trials import PYTHON, Bench
from truegold.verifiers.audit.suites.vet_state import Severity, VetReason, VetState, evidence_text
from truegold.verifiers.code.outcomes import ONE_PROCESS, Raised
from truegold.verifiers.code.protocols.python_tests import NotReturned
from truegold.verifiers.code.suite.reading import Asserts, CallCase, Calls, Stdio, Suite, UnitTest
from truegold.verifiers.code.value_comparison import ValueChecker, call_checker_of
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

# How a surviving fault is held against the solution.
MAX_INPUTS = 200
"""The most further inputs."""
MIN_INPUTS = 20
"""The fewest inputs that can show that two programs agree."""
MAX_INPUT_CHARS = 2_000
"""Longer inputs are not read out of tests: in a report they would not be read either."""
MAX_CONFIRMED = 5
"""Differences of one fault that are tried as cases, the shortest first."""
TOLERANCE, LOOSE_TOLERANCE = 1e-6, 1e-4
"""Tolerances of numbers in test code: if it compares with `==`, and if it has its own tolerance (`_LOOSE`)."""
_LOOSE = re.compile(r"\babs\(|isclose|allclose|AlmostEqual|round\(")
"""abs(f(2) - 1.41) < 0.01, math.isclose(f(2), 1.41)."""
_UNORDERED = re.compile(r"\b(?:set|sorted|Counter)\(\s*\w+\(")
"""assert sorted(f(3)) == [1, 2, 3]: the order of a result does not matter."""


def find_paid_nulls(state: VetState) -> list[str]:
    """Return the names of the null programs that pass.

    Where only the answer to a single case does, the tests are flagged: no more is wrong with them than that. Where only
    attacks do, in the process that they share with the tests, nothing is: their judge is weak, which a note says.
    """
    bench, limits, order = state.bench(), _faulty_limits(state), _cheapest_first(state)
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
    return names


def measure_kills(state: VetState) -> Kills:
    """Plant faults in the worked solution that passes, and see which of them the tests catch."""
    if state.reference is None or state.suite.language != PYTHON:
        return Kills()
    names = [name.partition(".")[0].removesuffix("()") for name in tested_names(state.suite.tests)]
    spent = state.trial.spent_s if state.trial is not None else 0.0
    count = state.options.affordable(state.options.mutants, spent)
    mutants = mutants_of(state.reference, count, state.options.seed, names)
    bench, limits, order = state.bench(), _faulty_limits(state), _cheapest_first(state)
    survivors = []
    for mutant in mutants:
        if (caught_by := bench.first_failure(mutant.source, limits, order)) is None:
            survivors.append(mutant)
        elif caught_by in order:
            # The case that caught one fault is likely to catch the next.
            order.remove(caught_by)
            order.insert(0, caught_by)
    ordered = tuple(sorted(survivors, key=lambda mutant: (mutant.line, mutant.after)))
    kills = count_kills(state, len(mutants), ordered, limits)
    _report_weakness(state, kills)
    return kills


def share_as_known(state: VetState, programs: Sequence[str], are_right: bool) -> float | None:
    """Return the share of programs known to be right that pass, or of programs known to be wrong that fail."""
    bench, order = state.bench(), _cheapest_first(state)
    limits = state.suite.limits if are_right else _faulty_limits(state)
    passed = [bench.first_failure(program, limits, order) is None for program in programs]
    if misjudged := [index for index, passes in enumerate(passed) if passes is not are_right]:
        reason = VetReason.RIGHT_REJECTED if are_right else VetReason.WRONG_ACCEPTED
        suggestion = "look at the cases that they fail" if are_right else "add cases that they fail"
        state.report(reason, Severity.FLAG, {"programs": misjudged}, suggestion)
    return passed.count(are_right) / len(passed) if passed else None


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


def _faulty_limits(state: VetState) -> Limits:
    limits = state.suite.limits
    needed = (state.trial.cpu_s if state.trial is not None else None) or 0.0
    return replace(limits, cpu_s=min(limits.cpu_s, max(FAULTY_CPU_S, FAULTY_CPU_FACTOR * needed)))


def _cheapest_first(state: VetState) -> list[int]:
    """Return the cases in the order to try them; none where programs do not print, and cases share a run."""
    if not isinstance(state.suite.tests, Stdio):
        return []
    order = list(range(state.cases))
    if (trial := state.trial) is not None and len(trial.attempts) == len(order):
        order.sort(key=lambda index: trial.attempts[index].cpu_s or 0.0)
    return order


@dataclass(frozen=True, slots=True)
class Witness:
    """An input on which a faulty program gives another result."""

    input: str
    """The arguments, as they are written in a call."""
    expected: str
    """The result of the worked solution."""
    got: str
    """The result of the program with the fault."""
    case: str
    """The case to add, as an assertion."""


@dataclass(frozen=True, slots=True)
class Kills:
    """The mutants (programs with a planted fault) that were run, those that pass all cases, and the number that
    counts."""

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
    """Mutants that pass, if it is not known whether they should. They do not count either."""

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


def count_kills(state: VetState, tried: int, survivors: Sequence[Mutant], limits: Limits) -> Kills:
    """Find out of each survivor whether the tests should have caught it. limits: of one run of the faulty programs."""
    if isinstance(state.suite.tests, Stdio):
        return Kills(tried, survivors)
    comparison = _compare(state, limits) if survivors else None
    if comparison is None or len(comparison.inputs) < MIN_INPUTS:
        return Kills(tried, undecided=len(survivors))
    missed: dict[Mutant, Witness] = {}
    equivalent = undecided = 0
    for mutant in survivors:
        differing = [] if mutant.is_fallback else comparison.differences(mutant.source)
        if (witness := _first_witness(comparison, mutant, differing)) is not None:
            missed[mutant] = witness
        elif differing or mutant.is_fallback:
            undecided += 1
        else:
            equivalent += 1
    return Kills(tried, tuple(missed), missed, equivalent, undecided)


def _first_witness(comparison: _Comparison, mutant: Mutant, differing: Sequence[int]) -> Witness | None:
    """Return the first of the differing inputs that works as a test case."""
    for index in differing:
        if (witness := comparison.confirm(mutant.source, index)) is not None:
            return witness
    return None


def _compare(state: VetState, limits: Limits) -> _Comparison | None:
    """Run the worked solution on further inputs. None if this is not possible."""
    seen, expected = _seen_cases(state)
    names = tested_names(state.suite.tests)
    if len(names) != 1 or state.reference is None or not seen:
        return None
    inputs = make_inputs(seen, MAX_INPUTS, state.options.seed)
    bench, checker = state.bench(), _checker(state)
    solution_limits = replace(limits, cpu_s=state.suite.limits.cpu_s)
    # Two hash seeds show results that depend on the order of a set.
    runs = [bench.call(state.reference, names[0], inputs, solution_limits, hash_seed).outcomes for hash_seed in (0, 1)]
    kinds = {_kind(value) for value in expected}
    agreed = [
        (arguments, first)
        for arguments, first, second in zip(inputs, *runs, strict=True)
        if not isinstance(first, Raised | NotReturned) and _kind(first) in kinds
        # A value that does not equal itself, as nan, would set every program apart.
        if checker(first, second) is None and checker(first, first) is None
    ]
    shortest = min(len(repr(arguments)) for arguments in seen)
    # One process works on all inputs.
    faulty = replace(limits, cpu_s=2 * limits.cpu_s)
    return _Comparison(
        state,
        state.reference,
        name=names[0],
        inputs=agreed,
        shortest=shortest,
        limits=faulty,
        bench=bench,
        differs=checker,
    )


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The results of the worked solution on further inputs, for the comparison with faulty programs."""

    state: VetState
    reference: str
    name: str
    inputs: Sequence[tuple[Arguments, Any]]
    """Each input with the result of the worked solution."""
    shortest: int
    """The length of the shortest input seen."""
    limits: Limits
    bench: Bench
    differs: ValueChecker

    def differences(self, program: str) -> list[int]:
        """Return the inputs on which a program gives another result, the shortest first, up to the number that is
        tried."""
        arguments = [arguments for arguments, _ in self.inputs]
        outcomes = self.bench.call(program, self.name, arguments, self.limits).outcomes
        differing = []
        for index, ((_, expected), outcome) in enumerate(zip(self.inputs, outcomes, strict=True)):
            if isinstance(outcome, Raised | NotReturned) or self.differs(expected, outcome) is not None:
                differing.append(index)
            if isinstance(outcome, NotReturned):
                break  # This call ended the process, so later calls did not run.
        # Short inputs are easier to read, and lengths that the tests have are probably allowed.
        lengths = [len(repr(each)) for each in arguments]
        return sorted(differing, key=lambda n: (max(self.shortest - lengths[n], 0), lengths[n]))[:MAX_CONFIRMED]

    def confirm(self, program: str, index: int) -> Witness | None:
        """Run one input as a test case. Return a witness if the solution passes and the program does not."""
        arguments, expected = self.inputs[index]
        written = ", ".join(map(repr, arguments))
        case, suite = self._case(arguments, f"{self.name}({written})", expected)
        bench = Bench(suite, self.state.options.tier, self.state.options.python)
        if not bench.run(self.reference).passed or bench.run(program, limits=self.limits).passed:
            return None
        made = bench.call(program, self.name, [arguments], self.limits)
        return Witness(evidence_text(written), evidence_text(expected), _describe(made.outcomes[0]), case)

    def _case(self, arguments: Arguments, call: str, expected: Any) -> tuple[str, Suite]:
        """Return an input as a case of the suite, and a suite that has only this case."""
        suite, tests = self.state.suite, self.state.suite.tests
        if isinstance(tests, Calls):
            alone = CallCase(arguments, {}, expected)
            cases = replace(tests, cases=(alone,), plain_args=False, plain_expected=False)
            return f"{call} == {expected!r}", replace(suite, tests=cases)
        assert isinstance(tests, Asserts | UnitTest)
        assertion = f"assert {call} == {expected!r}"
        if isinstance(expected, float):
            assertion = f"assert abs({call} - {expected!r}) < {TOLERANCE}"
        elif self.differs.unordered:
            assertion = f"assert sorted({call}) == {sorted(expected)!r}"
        code = Asserts(assertion, tests.entry_point, tests.prelude, tests.stub, tests.codecs)
        return assertion, replace(suite, tests=code)


def _seen_cases(state: VetState) -> tuple[list[Arguments], list[Any]]:
    """Return the readable arguments of the suite's cases, with their expected results."""
    tests = state.suite.tests
    if isinstance(tests, Calls):
        cases = [case for case in tests.cases if not case.kwargs]
        return [case.args for case in cases], [case.expected for case in cases]
    known = state.known if isinstance(tests, Asserts | UnitTest) else []
    read = [(arguments, case.value) for case in known if (arguments := _read_arguments(case.input)) is not None]
    return [arguments for arguments, _ in read], [value for _, value in read]


def _read_arguments(text: str) -> Arguments | None:
    """Return the positional arguments of a call as values, or None if they are none, or are named."""
    if len(text) > MAX_INPUT_CHARS:
        return None
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not isinstance(call, ast.Call) or call.keywords:
            return None
        return tuple(ast.literal_eval(argument) for argument in call.args)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, SystemError):
        return None


def _checker(state: VetState) -> ValueChecker:
    tests = state.suite.tests
    if isinstance(tests, Calls):
        return call_checker_of(tests.checker)
    code = getattr(tests, "code", "")
    tolerance = LOOSE_TOLERANCE if _LOOSE.search(code) else TOLERANCE
    return ValueChecker(abs_tol=tolerance, unordered=_UNORDERED.search(code) is not None)


def _kind(value: Any) -> str:
    """Return the sort of a value; numbers are one sort."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return "list" if isinstance(value, list | tuple) else type(value).__name__


def _describe(outcome: Any) -> str:
    if isinstance(outcome, Raised):
        return evidence_text(f"it raises {outcome.type}: {outcome.message}".removesuffix(": "))
    if isinstance(outcome, NotReturned):
        return "it does not return within the limit"
    return evidence_text(outcome)
