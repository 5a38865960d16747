"""Finds witnesses, the inputs on which a faulty program differs from the worked solution, and makes cases from them.

    solution n % 4, mutant n % 5                  input 4: expected 0, got 4       case to add: assert f(4) == 0
    solution sorted(a), mutant sorted(a[0:])      no difference on any made input: the mutant is equivalent

Inputs are made from the inputs of the cases (`made_inputs`), so the problem should allow them. An input is left out if
the worked solution raises an error or takes long on it. It is also left out if the solution's result depends on the
order of a set, differs from another solution's result, or has another type than the expected results. A case is
accepted only after running it: the solutions pass it, and the faulty program fails.
"""

from __future__ import annotations

import ast
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from truegold.verifiers.audit.suites.known_cases import tested_names
from truegold.verifiers.audit.suites.made_inputs import Arguments, make_inputs, read_inputs
from truegold.verifiers.audit.suites.trials import Bench
from truegold.verifiers.audit.suites.vet_state import VetState, evidence_text
from truegold.verifiers.code.outcomes import Raised
from truegold.verifiers.code.protocols.python_tests import NotReturned
from truegold.verifiers.code.python_source import parse
from truegold.verifiers.code.suite.reading import Asserts, CallCase, Calls, Stdio, StdioCase, Suite, UnitTest
from truegold.verifiers.code.value_comparison import ValueChecker, call_checker_of
from truegold.verifiers.sandbox.execution import Limits
from truegold.verifiers.sandbox.inside.wire.encoding import encode

MAX_INPUTS, MAX_PRINTED = 200, 40
"""MAX_INPUTS inputs are made for a function, and MAX_PRINTED for a program that reads stdin."""
MIN_INPUTS, MIN_PRINTED = 20, 10
"""Equal results on fewer inputs do not show that two functions are equivalent (MIN_INPUTS), or two programs that read
stdin (MIN_PRINTED)."""
MAX_INPUT_CHARS = 2_000
"""Maximum length of an input that is read from tests, in characters."""
MAX_CONFIRMED = 5
"""Maximum number of inputs that are tried as cases for one fault."""
TOLERANCE, LOOSE_TOLERANCE = 1e-6, 1e-4
"""Results are compared with TOLERANCE if the test code uses `==`, and with LOOSE_TOLERANCE if it has a tolerance itself
(`_LOOSE`)."""
_LOOSE = re.compile(r"\babs\(|isclose|allclose|AlmostEqual|round\(")
"""A comparison with a tolerance: `abs(f(2) - 1.41) < 0.01`, `math.isclose(f(2), 1.41)`."""
_UNORDERED = re.compile(r"\b(?:set|sorted|Counter)\(\s*\w+\(")
"""A comparison that ignores the order of a result: `assert sorted(f(3)) == [1, 2, 3]`."""


@dataclass(frozen=True, slots=True)
class Witness:
    """An input on which a faulty program differs from the worked solution."""

    input: str
    """The arguments, as Python code (`[1, 2], 3`), or the input on stdin."""
    expected: str
    """The answer of the worked solution."""
    got: str
    """The result of the faulty program."""
    case: str
    """The case to add: a comparison in Python, or JSON for programs that read stdin."""


class InputComparison(ABC):
    """Compares faulty programs with the worked solution on made inputs. Inputs are named by their index."""

    def __init__(self, state: VetState, limits: Limits, answers: Sequence[tuple[Arguments, Any]], least: int) -> None:
        self.answers = answers
        """The made inputs, each with the answer of the worked solution."""
        self.is_telling = len(answers) >= least
        """Whether there are enough inputs for equal results to show that two programs are equivalent."""
        self.likely: set[int] = set(range(len(answers)))
        """The inputs whose answers look like the expected answers of the tests (`_Shown.is_like`)."""
        self._state, self._limits = state, limits

    @abstractmethod
    def written(self, index: int) -> str:
        """Return an input as a case to add to the suite (`vet_state.add_cases`)."""

    @abstractmethod
    def differences(self, program: str) -> list[int]:
        """Return the inputs on which a program differs from the solution. Inputs that make better cases come first."""

    @abstractmethod
    def confirm(self, program: str, index: int) -> Witness | None:
        """Run an input as a case alone. Return the witness if solutions pass and the program fails, else None."""

    def witness(self, program: str, differing: Sequence[int]) -> Witness | None:
        """Return the first of the differing inputs that `confirm` accepts, or None."""
        tried = (self.confirm(program, index) for index in differing[:MAX_CONFIRMED])
        return next((witness for witness in tried if witness is not None), None)

    def _passes_alone(self, bench: Bench, program: str) -> bool:
        """Return whether a suite of one case accepts the passing solutions and refuses the program."""
        right = (self._state.reference or "", *self._state.agreeing)
        return all(bench.run(each).passed for each in right) and not bench.run(program, limits=self._limits).passed

    def _bench(self, suite: Suite) -> Bench:
        return Bench(suite, self._state.options.tier, self._state.options.python)


def compare(state: VetState, limits: Limits) -> InputComparison | None:
    """Return the comparison with the worked solution on made inputs, or None if no inputs can be made.

    limits: the limits of one run of a faulty program.
    """
    if state.reference is None:
        return None
    return _compare_printed(state, limits) if isinstance(state.suite.tests, Stdio) else _compare_called(state, limits)


def _compare_called(state: VetState, limits: Limits) -> InputComparison | None:
    seen, expected = _seen_cases(state)
    names = tested_names(state.suite.tests)
    if len(names) != 1 or state.reference is None or not seen:
        return None
    inputs = make_inputs(seen, MAX_INPUTS, state.options.seed)
    bench, checker = state.bench(), _checker(state)
    solution_limits = replace(limits, cpu_s=state.suite.limits.cpu_s)
    # Results that depend on the order of a set differ between two hash seeds.
    runs = [bench.call(state.reference, names[0], inputs, solution_limits, hash_seed).outcomes for hash_seed in (0, 1)]
    runs += [bench.call(other, names[0], inputs, solution_limits).outcomes for other in state.agreeing]
    kinds = {_kind(value) for value in expected}
    agreed = [
        (arguments, first)
        for arguments, first, *others in zip(inputs, *runs, strict=True)
        if not isinstance(first, Raised | NotReturned) and _kind(first) in kinds
        # A value that differs from itself, such as nan, would make every program differ.
        if all(checker(first, other) is None for other in (first, *others))
    ]
    # One process runs all inputs, so it gets more time.
    faulty = replace(limits, cpu_s=2 * limits.cpu_s)
    shown = _Shown(state.reference, expected)
    shortest = min(len(repr(arguments)) for arguments in seen)
    return _Called(state, faulty, agreed, name=names[0], differs=checker, shown=shown, shortest=shortest)


class _Called(InputComparison):
    """The comparison for functions: one process calls the function with all inputs."""

    def __init__(
        self,
        state: VetState,
        limits: Limits,
        answers: Sequence[tuple[Arguments, Any]],
        *,
        name: str,
        differs: ValueChecker,
        shown: _Shown,
        shortest: int,
    ) -> None:
        super().__init__(state, limits, answers, MIN_INPUTS)
        self._name, self._differs, self._bench_of_all = name, differs, state.bench()
        # Inputs shorter than those of the tests may not be allowed; among the others, short ones are easiest to read.
        lengths = [len(repr(arguments)) for arguments, _ in answers]
        self._ranks = [(max(shortest - length, 0), length) for length in lengths]
        self.likely = {index for index, (_, expected) in enumerate(answers) if shown.is_like(expected)}

    def written(self, index: int) -> str:
        arguments, expected = self.answers[index]
        if not isinstance(self._state.suite.tests, Calls):
            return self._case(arguments, f"{self._name}({', '.join(map(repr, arguments))})", expected)[0]
        return json.dumps({"args": [encode(each, {}) for each in arguments], "expected": encode(expected, {})})

    def differences(self, program: str) -> list[int]:
        arguments = [arguments for arguments, _ in self.answers]
        outcomes = self._bench_of_all.call(program, self._name, arguments, self._limits).outcomes
        differing = []
        for index, ((_, expected), outcome) in enumerate(zip(self.answers, outcomes, strict=True)):
            if isinstance(outcome, Raised | NotReturned) or self._differs(expected, outcome) is not None:
                differing.append(index)
            if isinstance(outcome, NotReturned):
                break  # The process ended, so later inputs did not run.
        return sorted(differing, key=lambda index: (index not in self.likely, self._ranks[index]))

    def confirm(self, program: str, index: int) -> Witness | None:
        arguments, expected = self.answers[index]
        written = ", ".join(map(repr, arguments))
        case, suite = self._case(arguments, f"{self._name}({written})", expected)
        bench = self._bench(suite)
        if not self._passes_alone(bench, program):
            return None
        made = bench.call(program, self._name, [arguments], self._limits)
        return Witness(evidence_text(written), evidence_text(expected), _describe(made.outcomes[0]), case)

    def _case(self, arguments: Arguments, call: str, expected: Any) -> tuple[str, Suite]:
        """Return the case as code, and a suite with this case alone."""
        suite, tests = self._state.suite, self._state.suite.tests
        if isinstance(tests, Calls):
            alone = CallCase(arguments, {}, expected)
            cases = replace(tests, cases=(alone,), plain_args=False, plain_expected=False)
            return f"{call} == {expected!r}", replace(suite, tests=cases)
        assert isinstance(tests, Asserts | UnitTest)
        assertion = f"assert {call} == {expected!r}"
        if isinstance(expected, float):
            assertion = f"assert abs({call} - {expected!r}) < {TOLERANCE}"
        elif self._differs.unordered:
            assertion = f"assert sorted({call}) == {sorted(expected)!r}"
        code = Asserts(assertion, tests.entry_point, tests.prelude, tests.stub, tests.codecs)
        return assertion, replace(suite, tests=code)


def _compare_printed(state: VetState, limits: Limits) -> InputComparison | None:
    tests = state.suite.tests
    assert isinstance(tests, Stdio)
    seen = [case for case in tests.cases if len(case.input) <= MAX_INPUT_CHARS]
    read = read_inputs([case.input for case in seen]) if seen else None
    if read is None or tests.interactor is not None or state.reference is None:
        return None
    spent = state.trial.cpu_s if state.trial is not None and state.trial.cpu_s is not None else 0.0
    texts = [read[1](values) for values in make_inputs(read[0], MAX_PRINTED, state.options.seed)]
    texts = texts[: state.options.affordable(len(texts), spent)]
    if not texts:
        return None
    asked = replace(state.suite, tests=Stdio(tuple(StdioCase(text, "") for text in texts)))
    bench = Bench(asked, state.options.tier, state.options.python)
    runs = [bench.run(state.reference, hash_seed).attempts for hash_seed in (0, 1)]
    runs += [bench.run(other).attempts for other in state.agreeing]
    shown = _Shown(state.reference, [word for case in seen for word in _words(case.output)])
    answers = [
        ((text,), first.output)
        for text, first, *others in zip(texts, *runs, strict=False)
        if first.output is not None and all(other.output == first.output for other in others)
        if first.output.strip() and all(map(shown.is_like, _words(first.output)))
    ]
    return _Printed(state, limits, answers, MIN_PRINTED)


class _Printed(InputComparison):
    """The comparison for programs that read stdin. An input takes a process, so only the first difference is found."""

    def __init__(self, state: VetState, limits: Limits, answers: Sequence[tuple[Arguments, Any]], least: int) -> None:
        super().__init__(state, limits, answers, least)
        self._suites = [self._with([case]) for case in answers]
        self._order = sorted(range(len(answers)), key=lambda index: len(answers[index][0][0]))

    def _with(self, answers: Sequence[tuple[Arguments, Any]]) -> Suite:
        tests = self._state.suite.tests
        assert isinstance(tests, Stdio)
        cases = tuple(StdioCase(arguments[0], output) for arguments, output in answers)
        return replace(self._state.suite, tests=replace(tests, cases=cases))

    def written(self, index: int) -> str:
        (text,), output = self.answers[index]
        return json.dumps({"input": text, "output": output}, ensure_ascii=False)

    def differences(self, program: str) -> list[int]:
        """Return the first input on which a program differs. The input that the last program failed is tried first."""
        if not self.answers:
            return []
        first = self._bench(self._with(self.answers)).first_failure(program, self._limits, self._order)
        if first is None:
            return []
        self._order.remove(first)
        self._order.insert(0, first)
        return [first]

    def confirm(self, program: str, index: int) -> Witness | None:
        (text,), expected = self.answers[index]
        bench = self._bench(self._suites[index])
        if not self._passes_alone(bench, program):
            return None
        attempt = bench.run(program, limits=self._limits).attempts[0]
        got = evidence_text(attempt.output if attempt.output is not None else attempt.why)
        return Witness(evidence_text(text), evidence_text(expected), got, evidence_text(self.written(index)))


class _Shown:
    """Compares answers with those that the tests expect.

    tests expect 3 and 7      5 is like them; -5 is not; -1 is not, though the solution has `return -1`
    tests expect 3 and -1     -1 is like them
    """

    def __init__(self, reference: str, expected: Sequence[Any]) -> None:
        self._seen = {repr(value) for value in expected}
        self._sides = {_side(value) for value in expected}
        tree = parse(reference)
        nodes = ast.walk(tree) if tree is not None else ()
        constants = (node.value for node in nodes if isinstance(node, ast.Constant))
        self._constants = {repr(value) for value in constants if not isinstance(value, bool)}

    def is_like(self, value: Any) -> bool:
        """Return whether a value is expected, or has the `_side` of an expected value.

        Only an expected value may be a constant of the solution: `return -1` often stands for a missing answer, and the
        problem may not say so.
        """
        return repr(value) in self._seen or (repr(value) not in self._constants and _side(value) in self._sides)


def _side(value: Any) -> Any:
    """Return False for a negative number and an empty value, else True."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value >= 0
    return isinstance(value, bool) or bool(value)


def _words(output: str) -> list[Any]:
    """Return the words of an output, with integers as numbers."""
    return [int(word) if re.fullmatch(r"-?\d{1,18}", word) else word for word in output.split()]


def _seen_cases(state: VetState) -> tuple[list[Arguments], list[Any]]:
    """Return the arguments and the expected values of the suite's cases that can be read."""
    tests = state.suite.tests
    if isinstance(tests, Calls):
        cases = [case for case in tests.cases if not case.kwargs]
        return [case.args for case in cases], [case.expected for case in cases]
    known = state.known if isinstance(tests, Asserts | UnitTest) else []
    read = [(arguments, case.value) for case in known if (arguments := _read_arguments(case.input)) is not None]
    return [arguments for arguments, _ in read], [value for _, value in read]


def _read_arguments(text: str) -> Arguments | None:
    """Return the positional arguments of a written call, or None if one is named or not a literal."""
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
    """Return the kind of a value: "number", "list", or the name of its type."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return "list" if isinstance(value, list | tuple) else type(value).__name__


def _describe(outcome: Any) -> str:
    if isinstance(outcome, Raised):
        return evidence_text(f"it raises {outcome.type}: {outcome.message}".removesuffix(": "))
    if isinstance(outcome, NotReturned):
        return "it does not return within the limit"
    return evidence_text(outcome)
