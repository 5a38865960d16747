"""Turns test code in Python into data: calls of the solution, and checks of their results.

    def check(candidate):
        assert candidate([1, 2]) == 3          calls: f([1, 2]), f([])
        assert candidate([]) is None           checks: result 0 == 3, result 1 is None

    lowered = lower(code, entry_point="f")
    lowered.checks[0].holds(3)      True
    lowered.checks[0].holds(4)      False

All calls go to the solution's process in one batch. The expected values never go there. Nearly all tests of HumanEval,
MBPP and LeetCode consist of statements that `lower` understands:

    - assertions that compare a call with a constant, or that test whether its result is true or false
    - assignments of constants and of results of calls to names
    - `check(candidate)`, and calls of the tests' own functions as statements
    - unused imports, and `from solution import f`

For any other test code, `lower` returns the reason as a text, and the tests run in a separate process. Tests that pass
the same list to the solution twice run there too, and so do tests with a result that is not plain data (`holds` returns
None).

A name that the test code does not define is taken as a function of the solution. The exceptions are well-known library
functions, names defined in the prelude or the stub, and builtins. A builtin such as `sum` is taken as the solution's
function if it is the entry point, or if there is no entry point and the assertions call only builtins.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from truegold.verifiers.code.python_source import parse, stub_names, top_level
from truegold.verifiers.sandbox.inside.test_code.library_functions import (
    called_names,
    is_solution_module,
    library_names,
)
from truegold.verifiers.sandbox.inside.wire.value_types import Array, Instance, Iterated, Opaque, Value

MAX_CALLS, MAX_STATEMENTS, MAX_NESTED = 20_000, 100_000, 8
"""Test code may call the solution MAX_CALLS times, and run MAX_STATEMENTS statements. Calls of its own functions may be
nested MAX_NESTED deep."""

MAX_BITS, MAX_ITEMS = 100_000, 1_000_000
"""A computed constant may have MAX_BITS bits, and a repeated list MAX_ITEMS items. So `10 ** 10 ** 10` is refused."""

MAX_TEXT_CHARS = 200
"""Maximum number of characters of an assertion that the evidence shows."""

CACHED_SUITES = 256

_BUILTINS = frozenset(dir(builtins))
_NUMBERS = (bool, int, float, complex)
_STANDINS = (Opaque, Iterated, Array, Instance)
"""Classes that represent an object which stays in the solution's process."""
_HARMLESS = frozenset(
    "bisect collections copy datetime decimal fractions functools heapq itertools json math operator os random re "
    "statistics string sys time typing".split()
)
"""Modules whose import has no effect on a check."""

_Compare = Callable[[Value, Value], bool]
"""Takes a result and a constant, and says whether the assertion holds for them."""

_COMPARE: Mapping[type[ast.cmpop], _Compare] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda got, constant: got in constant,
    ast.NotIn: lambda got, constant: got not in constant,
}
_MIRRORED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    **{each: each for each in (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)},
    **{ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE},
}
"""The operators with their sides exchanged: `3 < f()` is `f() > 3`."""

_OPERATORS: Mapping[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


class CannotLower(Exception):
    """Raised for test code that cannot become data. Its text is the reason."""


class SolutionCall(NamedTuple):
    """One call of the solution."""

    function: str
    args: list[Value]
    kwargs: dict[str, Value]


@dataclass(frozen=True, slots=True)
class ResultCheck:
    """One assertion, or a call that only has to return without an error."""

    text: str
    """The first line of the assertion."""
    line: int
    """The number of this line in the test code."""
    call: int
    """The index of the call whose result is checked."""
    compare: _Compare | None = None
    """The comparison, or None for a call that only has to return."""
    constant: Value = None
    """The value that the result is compared with."""

    def holds(self, got: Value) -> bool | None:
        """Return whether the assertion holds for a result, or None if the test has to run to find out."""
        if self.compare is None:
            return True
        if isinstance(got, _STANDINS):
            return None
        try:
            return self.compare(got, self.constant)
        except (TypeError, ValueError, ArithmeticError, RecursionError):
            return False


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """Test code as data."""

    calls: tuple[SolutionCall, ...]
    checks: tuple[ResultCheck, ...]


@dataclass(frozen=True, slots=True)
class _Function:
    """A function of the solution."""

    name: str


@dataclass(slots=True)
class _Helper:
    """A function of the test code."""

    node: ast.FunctionDef
    called: bool = False
    """Whether the test code itself calls it."""


@dataclass(slots=True)
class _Constant:
    """A constant that a name of the test code stands for."""

    value: Value
    used: bool = False

    def read(self, name: str) -> Value:
        """Return the value. Raises `CannotLower` if a mutable value is read again: a call may have changed it."""
        if self.used and not _is_immutable(self.value):
            raise CannotLower(f"{name} is used again, and may have changed")
        self.used = True
        return self.value


@dataclass(frozen=True, slots=True)
class _Returned:
    """The result of the call of the solution with this index."""

    call: int


_UNUSABLE = object()
"""The value of names such as imported modules, whose use cannot be lowered."""


@lru_cache(maxsize=CACHED_SUITES)
def lower(code: str, entry_point: str | None, prelude: str = "", stub: str = "") -> Lowered | str:
    """Return test code as data, or the reason why it has to be run."""
    tree = parse(code)
    preamble = parse(f"{prelude}\n{stub_names(stub, entry_point or '')}" if stub else prelude)
    if tree is None or preamble is None:
        return "the test code, its prelude or its stub is not valid Python"
    reader = _Reader(code, tree, preamble, entry_point)
    try:
        reader.read_module(tree)
    except CannotLower as error:
        return str(error)
    return Lowered(tuple(reader.calls), tuple(reader.checks)) if reader.checks else "nothing is asserted"


class _Reader:
    """Reads statements in the order in which Python would run them."""

    def __init__(self, code: str, tree: ast.Module, preamble: ast.Module, entry_point: str | None) -> None:
        self.calls: list[SolutionCall] = []
        self.checks: list[ResultCheck] = []
        self._scope: dict[str, object] = {}
        self._lines = code.split("\n")
        self._entry_point = entry_point
        self._tested = frozenset(_tested_builtins(tree, entry_point))
        self._provided = _BUILTINS | library_names(tree, entry_point) | top_level(preamble)
        self._has_star = any(
            isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(preamble)
        )
        self._depth = 0
        self._statements_left = MAX_STATEMENTS

    def read_module(self, tree: ast.Module) -> None:
        self._body(tree.body)
        check = self._scope.get("check")
        if isinstance(check, _Helper) and not check.called and len(check.node.args.args) == 1:
            # In HumanEval the test runner calls check(entry_point).
            if self._entry_point is None:
                raise CannotLower("check(candidate) without an entry point")
            self._run(check, [_Function(self._entry_point)])
        for name, helper in self._scope.items():
            if isinstance(helper, _Helper) and name.startswith("test") and not helper.called:
                raise CannotLower(f"the function {name} needs a test runner")

    def _body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._statements_left -= 1
            if self._statements_left < 0:
                raise CannotLower(f"more than {MAX_STATEMENTS} statements")
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assert(test=test):
                self._assert(node, test)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=args, keywords=[])):
                helper = self._scope.get(name)
                if not isinstance(helper, _Helper):
                    raise CannotLower(f"a call of {name} as a statement")
                self._run(helper, [self._argument(arg) for arg in args])
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                call = self._record(value)
                if call is not None:
                    # If the call raises, the tests fail, even if the name is never used.
                    self._add(node, call)
                self._scope[name] = _Constant(self._constant(value)) if call is None else _Returned(call)
            case ast.FunctionDef(name=name):
                self._scope[name] = _Helper(node)
            case ast.Import(names=names) if all(_root(alias.name) in _HARMLESS for alias in names):
                self._scope |= {alias.asname or _root(alias.name): _UNUSABLE for alias in names}
            case ast.ImportFrom(module=str(module), names=names, level=0) if names[0].name != "*":
                known = is_solution_module(module)
                if not known and _root(module) not in _HARMLESS:
                    raise CannotLower(f"the import of {module}")
                for alias in names:
                    self._scope[alias.asname or alias.name] = _Function(alias.name) if known else _UNUSABLE
            case _:
                raise CannotLower(f"the statement {ast.unparse(node)}"[:MAX_TEXT_CHARS])

    def _run(self, helper: _Helper, arguments: Sequence[object]) -> None:
        """Read the body of a function of the tests where the tests call this function."""
        helper.called = True
        function = helper.node
        names = [parameter.arg for parameter in function.args.args]
        special = function.args.posonlyargs or function.args.kwonlyargs or function.args.vararg or function.args.kwarg
        unusual = len(names) != len(arguments) or special or function.decorator_list
        if unusual or self._depth >= MAX_NESTED:
            raise CannotLower(f"the function {function.name}")
        outer = self._scope
        self._scope = {**outer, **dict(zip(names, arguments, strict=True))}
        self._depth += 1
        last = function.body[-1]
        returns = isinstance(last, ast.Return) and isinstance(last.value, ast.Constant | None)
        self._body(function.body[:-1] if returns else function.body)
        self._depth -= 1
        self._scope = outer

    def _argument(self, node: ast.expr) -> object:
        target = self._target(node)
        return _Constant(self._constant(node)) if target is None else _Function(target)

    def _assert(self, node: ast.stmt, test: ast.expr) -> None:
        match test:
            case ast.Constant(value=value) if value:
                return  # `assert True` does not depend on the solution.
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                kind: type[ast.cmpop] | None = type(op)
                call = self._result(left)
                constant = self._constant(left if call is None else right)
                if call is None:
                    call, kind = self._result(right), _MIRRORED.get(type(op))
                by_identity = isinstance(op, ast.Is | ast.IsNot)
                is_known = not by_identity or any(constant is each for each in (None, True, False))
                compare = _COMPARE[kind] if kind is not None and is_known else None
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                call, compare, constant = self._result(operand), lambda got, _: not got, None
            case _:
                call, compare, constant = self._result(test), lambda got, _: bool(got), None
        if call is None or compare is None:
            raise CannotLower(f"what is asserted: {ast.unparse(test)}"[:MAX_TEXT_CHARS])
        self._add(node, call, compare, constant)

    def _add(self, node: ast.stmt, call: int, compare: _Compare | None = None, constant: Value = None) -> None:
        text = self._lines[node.lineno - 1].strip()[:MAX_TEXT_CHARS]
        self.checks.append(ResultCheck(text, node.lineno, call, compare, constant))

    def _result(self, node: ast.expr) -> int | None:
        """Return the index of the call if an expression is the result of a call, else None."""
        bound = self._scope.get(node.id) if isinstance(node, ast.Name) else None
        if not isinstance(bound, _Returned):
            return self._record(node)
        if bound.call != len(self.calls) - 1:
            raise CannotLower("a result is used after another call, which may have changed it")
        return bound.call

    def _record(self, node: ast.expr) -> int | None:
        """Add a call of the solution and return its index, or None for any other expression."""
        target = self._target(node.func) if isinstance(node, ast.Call) else None
        if target is None or not isinstance(node, ast.Call):
            return None
        args = list(map(self._constant, node.args))
        kwargs = {keyword.arg or "**": self._constant(keyword.value) for keyword in node.keywords}
        if "**" in kwargs or len(self.calls) >= MAX_CALLS:
            raise CannotLower("unpacked arguments" if "**" in kwargs else f"more than {MAX_CALLS} calls")
        self.calls.append(SolutionCall(target, args, kwargs))
        return len(self.calls) - 1

    def _target(self, node: ast.expr) -> str | None:
        """Return the function of the solution that an expression names, or None for any other expression."""
        if not isinstance(node, ast.Name):
            return self._entry_point if ast.unparse(node) == self._entry_point else None
        name = node.id
        if name in self._scope:
            bound = self._scope[name]
            return bound.name if isinstance(bound, _Function) else None
        if self._entry_point is not None and name in (self._entry_point, "candidate"):
            return self._entry_point
        is_known = name in self._provided or self._has_star
        return name if name in self._tested or not is_known else None

    def _constant(self, node: ast.expr) -> Value:
        """Return the value of a constant expression, as a new object each time. Raises `CannotLower` for others."""
        value: Value
        match node:
            case ast.Constant():
                value = node.value
            case ast.List(elts=parts):
                value = [*map(self._constant, parts)]
            case ast.Tuple(elts=parts):
                value = (*map(self._constant, parts),)
            case ast.Set(elts=parts):
                value = _checked(set, [*map(self._constant, parts)])
            case ast.Dict(keys=keys, values=parts) if None not in keys:
                names = [self._constant(key) for key in keys if key is not None]
                value = _checked(dict, zip(names, map(self._constant, parts), strict=True))
            case ast.UnaryOp(op=ast.USub(), operand=operand) if isinstance(value := self._constant(operand), _NUMBERS):
                value = -value
            case ast.BinOp(left=left, op=op, right=right):
                value = _checked(_combined, op, self._constant(left), self._constant(right))
            case ast.Name(id=name) if isinstance(bound := self._scope.get(name), _Constant):
                value = bound.read(name)
            case ast.Call(func=ast.Name(id="set"), args=[], keywords=[]) if "set" not in self._scope:
                value = set()
            case _:
                raise CannotLower(f"not a constant: {ast.unparse(node)}"[:MAX_TEXT_CHARS])
        return value


def _root(module: str) -> str:
    return module.partition(".")[0]


def _checked(make: Callable[..., Value], *parts: Value) -> Value:
    """Return `make(*parts)`. Raises `CannotLower` if that raises."""
    try:
        return make(*parts)
    except (TypeError, ValueError, ArithmeticError, MemoryError) as error:
        raise CannotLower(f"a constant raises {type(error).__name__}") from None


def _combined(op: ast.operator, left: Value, right: Value) -> Value:
    """Return the value of `left op right` for numbers or sequences. Raises `CannotLower` for values beyond limits."""
    apply = _OPERATORS.get(type(op))
    if apply is None:
        raise CannotLower(f"the operator {type(op).__name__}")
    if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
        bits = sum(value.bit_length() for value in (left, right) if isinstance(value, int))
        if isinstance(op, ast.Pow) and isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * abs(right)
        value = apply(left, right) if bits <= MAX_BITS else None
        if value is None or value != value:  # noqa: PLR0124  (Only nan differs from itself.)
            raise CannotLower("a large number, or nan")
        return value
    if isinstance(op, ast.Add):
        return left + right
    if isinstance(left, int):
        left, right = right, left
    # `[[]] * 2` would contain the same list twice.
    fits = isinstance(op, ast.Mult) and isinstance(left, str | list | tuple) and isinstance(right, int)
    if not fits or len(left) * right > MAX_ITEMS or not _is_immutable((*left,)):
        raise CannotLower("a long sequence, or one list in several places")
    return left * right


def _is_immutable(value: Value) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


@lru_cache(maxsize=CACHED_SUITES)
def functions_under_test(code: str) -> tuple[str, ...]:
    """Return the undefined functions that assertions call, for suites without an entry point."""
    tree = parse(code)
    if tree is None:
        return ()
    known = top_level(tree) | library_names(tree, None) | _BUILTINS
    called = [name for name in _called_in_assertions(tree) if name not in known]
    return tuple(dict.fromkeys(called)) or tuple(sorted(_tested_builtins(tree, None)))


def _tested_builtins(tree: ast.Module, entry_point: str | None) -> Iterator[str]:
    """Yield the builtins that assertions call, if they call nothing else. The solution then defines these names."""
    if entry_point is not None or set(_called_in_assertions(tree)) - _BUILTINS:
        return
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=ast.Compare(left=ast.Call(func=ast.Name(id=name)))):
                yield name
            case ast.Assert(test=ast.Call(func=ast.Name(id=name))):
                yield name


def _called_in_assertions(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield from called_names(node.test)
