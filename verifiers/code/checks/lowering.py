"""Turns test code into data: the calls it makes, and checks of their results that need no running of code.

    def check(candidate):
        assert candidate([1, 2]) == 3                   calls: f([1, 2]), f([])
        assert abs(candidate([]) - 0.5) < 1e-6          checks: result 0 == 3, abs(result 1 - 0.5) < 1e-6

    lowered = lower(code, entry_point="f")
    lowered.checks[0].holds([3, Raised("IndexError", "...")])      True
    lowered.checks[1].holds([3, Raised("IndexError", "...")])      False

All calls go to the solution's process in one batch, and the expected values never do. The outcome is that of running
the test code: literals are fresh at every evaluation, calls are made in Python's order, equality is Python's, an
exception fails the assertion. Where that cannot be had, `lower` returns the reason, and the tests have to be run in a
sandbox; a check that only Python itself can decide, because of what was returned (the text of an object, say), gives
None too.

Understood are assertions, assignments to names, loops over values that are known, `check(candidate)` functions,
imports from the standard library that only `math` is used of, `from solution import f`, and calls of functions of the
test code as statements. Test code that uses names which the prelude or the stub define has to be run, so that a
solution cannot redefine what it is tested with; so has test code that uses methods of the solution's objects, or
classes.

Names that test code does not bind itself are looked up (`Names`):

    names = names_for(parse("assert add(1, 2) == len([1, 2, 3])"), None, "import math")
    names.solution_function("add")    "add"
    names.solution_function("len")    None: a builtin

A builtin's name is a function of the solution where it is the entry point, or where the tests call nothing else:
`assert sum(10, 15) == 6` tests a function called `sum`.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from truegold.verifiers.code.checks import expressions, terms
from truegold.verifiers.code.checks.expressions import Constant, Expressions, MathName, Returned, SolutionFunction
from truegold.verifiers.code.checks.functions import MATH
from truegold.verifiers.code.checks.terms import OPEN, CannotLower, Lowered, ResultCheck, ResultTerm, Undecidable
from truegold.verifiers.code.python_source import parse, stub_names, top_level
from truegold.verifiers.sandbox.inside.test_code.library_functions import called_names, library_names
from truegold.verifiers.sandbox.inside.wire.foreign_values import Value

MAX_CALLS = 20_000
"""Stops test code whose loops make calls without end."""

MAX_NESTED = 8
"""Functions of the test code that call one another."""

MAX_TEXT_CHARS = 200
"""Characters of an assertion that evidence shows."""

CACHED_SUITES = 256


@dataclass(slots=True)
class _Helper:
    """A function of the test code."""

    node: ast.FunctionDef
    called: bool = False
    """Whether the test code itself calls it."""


@lru_cache(maxsize=CACHED_SUITES)
def lower(code: str, entry_point: str | None, prelude: str = "", stub: str = "") -> Lowered | str:
    """Return test code as data, or the reason for which it has to be run."""
    tree = parse(code)
    preamble = f"{prelude}\n{stub_names(stub, entry_point or '')}" if stub else prelude
    names = names_for(tree, entry_point, preamble) if tree is not None else None
    if tree is None or names is None:
        return "the test code, or what it is given, does not parse"
    reader = _Statements(code, names)
    try:
        reader.read_module(tree)
    except CannotLower as error:
        return str(error)
    if not reader.checks:
        return "nothing is asserted"
    return Lowered(tuple(reader.expressions.calls), tuple(reader.checks))


class _Statements:
    """Reads statements in the order in which Python would run them."""

    def __init__(self, code: str, names: Names) -> None:
        self.expressions = Expressions(names.solution_function, names.is_shadowed)
        self.checks: list[ResultCheck] = []
        self._names = names
        self._lines = code.split("\n")
        self._depth = 0

    @property
    def scope(self) -> expressions.Scope:
        return self.expressions.scope

    def read_module(self, tree: ast.Module) -> None:
        self._body(tree.body)
        check = self.scope.get("check")
        if isinstance(check, _Helper) and not check.called and len(check.node.args.args) == 1:
            # The convention of HumanEval: the runner of the tests calls check(entry point).
            if self._names.entry_point is None:
                raise CannotLower("check(candidate) without an entry point")
            self._run(check, [SolutionFunction(self._names.entry_point)])
        for name, helper in self.scope.items():
            if isinstance(helper, _Helper) and name.startswith("test") and not helper.called:
                raise CannotLower(f"the function {name} is for a test runner")

    def _body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.expressions.step()
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assert(test=test):
                self._assert(node, test)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=value):
                self._expression(node, value)
            case ast.Assign(targets=[target], value=value):
                self._assign(target, value)
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                self._assign(target, value)
            case ast.For(orelse=[]):
                self._loop(node)
            case ast.FunctionDef(name=name):
                self.scope[name] = _Helper(node)
            case ast.Import(names=names):
                self._import(names)
            case ast.ImportFrom(level=0):
                self._import_from(node)
            case _:
                raise CannotLower(f"the statement {type(node).__name__}")

    def _assert(self, node: ast.stmt, test: ast.expr) -> None:
        before = len(self.expressions.calls)
        term = self.expressions.test(test)
        # An assertion such as `assert True` says nothing about a solution.
        if term.value is OPEN or not terms.truth(term.value):
            self._add(node, before, term)

    def _add(self, node: ast.stmt | ast.expr, before: int, term: ResultTerm | None) -> None:
        made = len(self.expressions.calls)
        if made > MAX_CALLS:
            raise CannotLower(f"more than {MAX_CALLS} calls")
        used = {need for need in term.needs if isinstance(need, int)} if term is not None else set()
        text = self._lines[node.lineno - 1].strip()[:MAX_TEXT_CHARS]
        self.checks.append(ResultCheck(text, node.lineno, tuple(sorted(used | set(range(before, made)))), term))

    def _expression(self, node: ast.Expr, value: ast.expr) -> None:
        if isinstance(value, ast.Name) and value.id not in self.scope and self._names.is_builtin(value.id):
            # A statement such as `print` without brackets does nothing.
            return
        if not isinstance(value, ast.Call) or isinstance(value.func, ast.Attribute):
            # `rows.append(1)` changes what was returned.
            raise CannotLower(f"the statement {ast.unparse(value)}")
        helper = self.scope.get(value.func.id) if isinstance(value.func, ast.Name) else None
        if isinstance(helper, _Helper):
            if value.keywords:
                raise CannotLower("keywords for a function of the tests")
            self._run(helper, [self._argument(arg) for arg in value.args])
            return
        if isinstance(value.func, ast.Name) and value.func.id == "print" and self._names.is_builtin("print"):
            for arg in value.args:
                self.expressions.constant(arg)
            return
        before = len(self.expressions.calls)
        self.expressions.term(value)
        self._add(node, before, None)

    def _argument(self, node: ast.expr) -> Value:
        target = self.expressions.target(node) or self._names.method(node)
        return Constant(self.expressions.constant(node)) if target is None else SolutionFunction(target)

    def _run(self, helper: _Helper, arguments: Sequence[Value]) -> None:
        """Read the body of a function of the tests, as a call of it would run it."""
        helper.called = True
        function = helper.node
        parameters = function.args
        names = [parameter.arg for parameter in parameters.args]
        special = parameters.posonlyargs or parameters.kwonlyargs or parameters.vararg or parameters.kwarg
        if len(names) != len(arguments) or special:
            raise CannotLower(f"the arguments of {function.name}")
        if function.decorator_list or self._depth >= MAX_NESTED:
            raise CannotLower(f"the function {function.name}")
        outer = self.expressions.scope
        self.expressions.scope = {**outer, **dict(zip(names, arguments, strict=True))}
        self._depth += 1
        body = function.body
        last = body[-1]
        returns = isinstance(last, ast.Return) and (last.value is None or isinstance(last.value, ast.Constant))
        self._body(body[:-1] if returns else body)
        self._depth -= 1
        self.expressions.scope = outer

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        before = len(self.expressions.calls)
        term = self.expressions.term(value)
        made = len(self.expressions.calls)
        if isinstance(target, ast.Name) and made == before + 1 and term.needs == {before}:
            # Where the call raises, so do the tests, whether or not the name is used.
            self._add(target, before, None)
            is_bare = self.expressions.target(value.func) is not None if isinstance(value, ast.Call) else False
            if not is_bare:
                raise CannotLower("a name for what depends on a result")
            self.scope[target.id] = Returned(before, made)
            return
        if term.value is OPEN:
            raise CannotLower("a name for what depends on a result")
        self._bind(target, term.value)

    def _bind(self, target: ast.expr, value: Value) -> None:
        bound: dict[str, Value] = {}
        if expressions.names_of(target) is None:
            raise CannotLower("an assignment to more than names")
        try:
            terms.bind(target, value, bound)
        except (Undecidable, TypeError, ValueError) as error:
            raise CannotLower("an unusual assignment") from error
        self.scope.update({name: Constant(part) for name, part in bound.items()})

    def _loop(self, node: ast.For) -> None:
        term = self.expressions.term(node.iter)
        if term.needs:
            raise CannotLower("a loop over what depends on a result")
        try:
            rounds = list(terms.iterate(term.run(terms.Frame(()))))
        except (Undecidable, TypeError, ValueError) as error:
            raise CannotLower("a loop over what is no list") from error
        if not terms.is_data(rounds):
            raise CannotLower("a loop over what is no data")
        for item in rounds:
            self._bind(node.target, item)
            self._body(node.body)

    def _import(self, names: Sequence[ast.alias]) -> None:
        for alias in names:
            module = alias.name.partition(".")[0]
            if alias.name in SOLUTION_MODULES or module not in HARMLESS:
                raise CannotLower(f"the import of {alias.name}")
            bound = alias.asname or module
            self.scope[bound] = MathName("") if alias.name == "math" else expressions.UNUSABLE

    def _import_from(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            bound = alias.asname or alias.name
            if node.module in SOLUTION_MODULES and alias.name != "*":
                self.scope[bound] = SolutionFunction(alias.name)
            elif node.module in HARMLESS:
                for each in star_names(node.module or "") if alias.name == "*" else [alias.name]:
                    known = node.module == "math" and each in MATH
                    self.scope[each if alias.name == "*" else bound] = MathName(each) if known else expressions.UNUSABLE
            else:
                raise CannotLower(f"the import of {node.module}")


HARMLESS = frozenset(
    "bisect collections copy datetime decimal fractions functools heapq itertools json math operator os random re "
    "statistics string sys time typing".split()
)
"""Modules whose import changes nothing that a check could see."""

SOLUTION_MODULES = frozenset({"solution", "main", "submission", "candidate", "your_module"})
"""What test code calls the module under test."""

CACHED_PRELUDES = 256

_SAME_AS_BUILTIN = frozenset({"abs"})
"""Builtins that a module brings under the same name."""

_BUILTINS = frozenset(dir(builtins))
_METHOD = re.compile(r"[^\W\d]\w*\(\)(?:\.[^\W\d]\w*(?:\(\))?)+")


@dataclass(frozen=True)
class Names:
    """What each name in the test code of one suite stands for."""

    entry_point: str | None
    provided: frozenset[str | None]
    """Names that prelude and stub bind, None among them where a foreign module may have brought any."""
    tested: frozenset[str]
    """Builtins' names that are functions of the solution."""
    library: frozenset[str] = frozenset()
    """Names that mean a function of a library though nothing imports it."""

    def solution_function(self, name: str) -> str | None:
        """Return the function of the solution that a name stands for."""
        if self.entry_point is not None and name in (self.entry_point, "candidate"):
            return self.entry_point
        if name in self.tested:
            return name
        known = name in _BUILTINS or name in self.library or name in self.provided
        return None if known or None in self.provided else name

    def is_shadowed(self, name: str) -> bool:
        """Return whether a builtin may be another function here."""
        return name in self.provided or None in self.provided

    def is_builtin(self, name: str) -> bool:
        """Return whether a name certainly means the builtin."""
        return name in _BUILTINS and name not in self.tested and not self.is_shadowed(name)

    def method(self, node: ast.expr) -> str | None:
        """Return the text of an expression such as `Solution().f`, where Solution is a class of the solution."""
        if not isinstance(node, ast.Attribute):
            return None
        text = ast.unparse(node)
        first = text.partition("(")[0].partition(".")[0]
        known = first not in self.provided and None not in self.provided and first not in _BUILTINS
        return text if _METHOD.fullmatch(text) and (known or text == self.entry_point) else None


def names_for(tree: ast.Module, entry_point: str | None, preamble: str) -> Names | None:
    """Return the names of test code. preamble: prelude and stub; where it does not parse, None comes back."""
    provided = _bound_names(preamble)
    if provided is None:
        return None
    return Names(
        entry_point, provided, frozenset(_tested_builtins(tree, entry_point)), library_names(tree, entry_point)
    )


@lru_cache(maxsize=CACHED_SUITES)
def functions_under_test(code: str) -> tuple[str, ...]:
    """Return the functions that assertions call and the code does not define, for suites without an entry point."""
    tree = parse(code)
    if tree is None:
        return ()
    known = top_level(tree) | library_names(tree, None) | _BUILTINS
    called = [name for name in _called_in_assertions(tree) if name not in known]
    return tuple(dict.fromkeys(called)) or tuple(sorted(_tested_builtins(tree, None)))


def _tested_builtins(tree: ast.Module, entry_point: str | None) -> Iterator[str]:
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


@lru_cache(maxsize=CACHED_PRELUDES)
def _bound_names(preamble: str) -> frozenset[str | None] | None:
    tree = parse(preamble)
    if tree is None:
        return None
    names: set[str | None] = {name for name in top_level(tree) if name != "*"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            names.update(star_names(node.module) if node.module in HARMLESS else {None})
    return frozenset(names)


@lru_cache(maxsize=len(HARMLESS))
def star_names(module_name: str) -> frozenset[str]:
    """Return the names that `from module import *` brings."""
    module = importlib.import_module(module_name)
    public = [name for name in dir(module) if not name.startswith("_")]
    return frozenset(getattr(module, "__all__", public)) - _SAME_AS_BUILTIN
