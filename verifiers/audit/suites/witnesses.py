"""What tells a planted fault from the worked solution: an input that the tests lack, or that there seems to be none.

    f(n) returns n % 4 and has a mutant n % 5     input 4: expected 0, got 4       a case to add: assert f(4) == 0
    sorted(a) has a mutant sorted(a[0:])          they agree on all inputs that were made: they do the same

Inputs are made of those that the cases have (`generated_inputs`), so that the problem allows them as far as its tests
show; those on which the worked solution raises, takes long, or gives another sort of value than the tests expect are
left out. A fault that agrees with the solution on all of them is taken to do what the solution does. A case is proposed
only after it was run: the solution passes it, and the fault does not. What a program gives where there is no answer
(`return -1`, the default of `next`) is the problem's choice, which tests that never show it leave open: undecided.

Not covered: programs that read stdin, and test code whose inputs cannot be read. What survives there is undecided.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from truegold.verifiers.audit.suites.findings import evidence_text
from truegold.verifiers.audit.suites.generated_inputs import generate_inputs
from truegold.verifiers.audit.suites.known_cases import tested_names
from truegold.verifiers.audit.suites.mutants import Mutant
from truegold.verifiers.audit.suites.shapes_seen import Arguments
from truegold.verifiers.audit.suites.trials import Bench
from truegold.verifiers.audit.suites.work import Work
from truegold.verifiers.code.checks.terms import Raised
from truegold.verifiers.code.protocols.python_tests import NotReturned
from truegold.verifiers.code.suite import Asserts, CallCase, Calls, Suite, UnitTest
from truegold.verifiers.code.value_comparison import ValueChecker, call_checker_of
from truegold.verifiers.sandbox.limits import Limits

MAX_INPUTS = 200
"""Inputs on which a fault is held against the solution."""

MIN_INPUTS = 20
"""With fewer of them, that two programs agree says nothing."""

MAX_INPUT_CHARS = 2_000
"""Longer inputs are not read out of tests: nobody would read them in a report either."""

_UNORDERED = re.compile(r"\b(?:set|sorted|Counter)\(\s*\w+\(")
_CLOSE = re.compile(r"\babs\(|isclose|allclose|AlmostEqual|round\(")


@dataclass(frozen=True, slots=True)
class Witness:
    """An input on which a fault shows."""

    input: str
    """The arguments, as they are written in a call."""
    expected: str
    """What the worked solution returns."""
    got: str
    """What the program with the fault does."""
    case: str
    """The case to add, as an assertion."""


@dataclass(frozen=True, slots=True)
class Split:
    """Survivors by what is known of them."""

    missed: Mapping[Mutant, Witness]
    """Faults that the tests should catch."""
    equivalent: Sequence[Mutant] = ()
    """They do what the solution does, on all inputs that were made."""
    undecided: Sequence[Mutant] = ()


def split_survivors(work: Work, survivors: Sequence[Mutant], limits: Limits) -> Split:
    """Find out of each survivor whether the tests should have caught it. limits: of one run of the faulty programs."""
    comparison = _Comparison.build(work, limits) if survivors else None
    if comparison is None or len(comparison.inputs) < MIN_INPUTS:
        return Split({}, undecided=tuple(survivors))
    missed: dict[Mutant, Witness] = {}
    equivalent: list[Mutant] = []
    undecided: list[Mutant] = []
    for mutant in survivors:
        if mutant.is_fallback:
            undecided.append(mutant)
            continue
        differing = comparison.differences(mutant.source)
        witness = next((witness for each in differing if (witness := comparison.confirm(mutant.source, each))), None)
        if witness is not None:
            missed[mutant] = witness
        else:
            (undecided if differing else equivalent).append(mutant)
    return Split(missed, equivalent, undecided)


class _Comparison:
    """The worked solution's agreed on inputs that were made, to hold faulty programs against."""

    MAX_CONFIRMED = 5
    """Differences of one fault that are tried as cases, the shortest first."""

    def __init__(
        self, work: Work, name: str, agreed: Sequence[tuple[Arguments, Any]], shortest: int, limits: Limits
    ) -> None:
        self._work, self._name, self._limits = work, name, limits
        self._bench: Bench = work.bench()
        self.inputs = [arguments for arguments, _ in agreed]
        self._expected = [expected for _, expected in agreed]
        self._shortest = shortest
        self._differs = _checker(work)

    @classmethod
    def build(cls, work: Work, limits: Limits) -> _Comparison | None:
        """Run the worked solution on inputs that are like those of the cases; None where that cannot be done."""
        seen, expected = seen_cases(work)
        names = tested_names(work.suite.tests)
        if len(names) != 1 or work.reference is None or not seen:
            return None
        inputs = generate_inputs(seen, MAX_INPUTS, work.options.seed)
        bench, checker = work.bench(), _checker(work)
        wide = replace(limits, cpu_s=work.suite.limits.cpu_s)
        runs = [bench.call(work.reference, names[0], inputs, wide, hash_seed) for hash_seed in (0, 1)]
        kinds = {_kind(value) for value in expected}
        agreed = [
            (arguments, first)
            for arguments, first, second in zip(inputs, *(run.outcomes for run in runs), strict=True)
            if not isinstance(first, Raised | NotReturned) and _kind(first) in kinds
            if checker(first, second) is None and checker(first, first) is None
        ]
        shortest = min(len(repr(arguments)) for arguments in seen)
        return cls(work, names[0], agreed, shortest, replace(limits, cpu_s=2 * limits.cpu_s))

    def differences(self, program: str) -> list[int]:
        """Return the inputs on which a program does something else, the shortest first, and no more than are tried."""
        outcomes = self._bench.call(program, self._name, self.inputs, self._limits).outcomes
        differing = [
            index
            for index, (expected, outcome) in enumerate(zip(self._expected, outcomes, strict=True))
            if isinstance(outcome, Raised | NotReturned) or self._differs(expected, outcome) is not None
        ]
        # What stands behind the input that ended the process was not run.
        returned = [not isinstance(outcome, NotReturned) for outcome in outcomes]
        ended = returned.index(False) if False in returned else len(returned)
        differing = [index for index in differing if index <= ended]
        return sorted(differing, key=lambda index: self._oddity(self.inputs[index]))[: self.MAX_CONFIRMED]

    def _oddity(self, arguments: Arguments) -> tuple[int, int]:
        """Return how much shorter than all those seen an input is, and its length: what a problem allows is likelier to
        be as long as its tests have it, and a reader likes it short."""
        length = len(repr(arguments))
        return max(self._shortest - length, 0), length

    def confirm(self, program: str, index: int) -> Witness | None:
        """Run one input as a case of its own: a witness where the solution passes and the program does not."""
        arguments, expected = self.inputs[index], self._expected[index]
        case, suite = self._case(arguments, expected)
        bench = Bench(suite, self._work.options.tier, self._work.options.python)
        if self._work.reference is None or not bench.run(self._work.reference).passed:
            return None
        if bench.run(program, limits=self._limits).passed:
            return None
        made = bench.call(program, self._name, [arguments], self._limits)
        return Witness(
            evidence_text(", ".join(map(repr, arguments))), evidence_text(expected), _describe(made.outcomes[0]), case
        )

    def _case(self, arguments: Arguments, expected: Any) -> tuple[str, Suite]:
        """Return a case in the form of the suite, and a suite of it alone."""
        suite, tests = self._work.suite, self._work.suite.tests
        if isinstance(tests, Calls):
            alone = CallCase(arguments, {}, expected)
            cases = replace(tests, cases=(alone,), plain_args=False, plain_expected=False)
            return f"{self._name}({', '.join(map(repr, arguments))}) == {expected!r}", replace(suite, tests=cases)
        assert isinstance(tests, Asserts | UnitTest)
        call = f"{self._name}({', '.join(map(repr, arguments))})"
        assertion = f"assert {call} == {expected!r}"
        if isinstance(expected, float):
            assertion = f"assert abs({call} - {expected!r}) < 1e-6"
        elif self._differs.unordered:
            assertion = f"assert sorted({call}) == {sorted(expected)!r}"
        code = Asserts(assertion, tests.entry_point, tests.prelude, tests.stub, tests.codecs)
        return assertion, replace(suite, tests=code)


def seen_cases(work: Work) -> tuple[list[Arguments], list[Any]]:
    """Return the arguments of the suite's cases that can be read, and what is expected of each."""
    tests = work.suite.tests
    if isinstance(tests, Calls):
        cases = [case for case in tests.cases if not case.kwargs]
        return [case.args for case in cases], [case.expected for case in cases]
    if not isinstance(tests, Asserts | UnitTest):
        return [], []
    seen, expected = [], []
    for case in work.known:
        arguments = _read_arguments(case.input)
        if arguments is not None:
            seen.append(arguments)
            expected.append(case.value)
    return seen, expected


def _read_arguments(text: str) -> Arguments | None:
    """Return the positional arguments of a call as values; None where they are none, or are named."""
    if len(text) > MAX_INPUT_CHARS:
        return None
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not isinstance(call, ast.Call) or call.keywords:
            return None
        return tuple(ast.literal_eval(argument) for argument in call.args)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, SystemError):
        return None


def _checker(work: Work) -> ValueChecker:
    tests = work.suite.tests
    if isinstance(tests, Calls):
        return call_checker_of(tests.checker)
    code = getattr(tests, "code", "")
    tolerance = 1e-4 if _CLOSE.search(code) else 1e-6
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
