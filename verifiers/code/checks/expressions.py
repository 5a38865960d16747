"""Reads expressions of test code into terms, and keeps the calls of the solution that they make.

    abs(candidate([1.0, 2.0]) - 1.5) < 1e-6
        records the call candidate([1.0, 2.0]), and gives a term that needs its result

What needs no result is evaluated at once. What is more than a check, or could come out otherwise here than where the
tests are run, raises `CannotLower`:

    - arguments that depend on a result, and calls that may not be made (`a or f(1)`)
    - a list that was handed to the solution and is used again: the solution may have changed it
    - one list twice in the arguments of a call
    - nan, which is equal to itself or not by identity
    - names, functions and methods that are not known here

    values = [3, 1, 2]
    assert candidate(values) == [1, 2, 3]      the solution has had values in its hands
    assert values == [3, 1, 2]                 CannotLower: nobody here knows what it holds now
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from truegold.verifiers.code.checks import functions
from truegold.verifiers.code.checks import terms as algebra
from truegold.verifiers.code.checks.functions import FUNCTIONS, MATH
from truegold.verifiers.code.checks.terms import OPEN, SCALARS, CannotLower, Needs, ResultTerm, SolutionCall
from truegold.verifiers.sandbox.inside.wire.foreign_values import Value

MAX_STEPS = 300_000
"""Expressions, and parts of values handed over, that are read for one suite. Stops loops over loops."""

_HASHED = frozenset({set, frozenset, dict, range})
_SINGLETONS = (None, True, False, ...)


Scope = dict[str, Value]
"""A name stands for a `Constant`, `Returned`, `SolutionFunction`, `MathName`, or for what expressions cannot use."""

UNUSABLE = object()
"""What a name stands for that is bound to something not understood."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is known."""

    value: Value


@dataclass(frozen=True, slots=True)
class Returned:
    """What a call returned."""

    index: int
    calls: int
    """The number of calls that had been made by then."""


@dataclass(frozen=True, slots=True)
class SolutionFunction:
    """A function of the solution."""

    name: str


@dataclass(frozen=True, slots=True)
class MathName:
    """A name of the module `math`; with "" the module itself."""

    name: str


class Expressions:
    """Reads expressions and keeps the calls they make, in the order in which Python would make them.

    solution_function: tells which function of the solution a name without a binding stands for, if any. is_shadowed:
    tells whether a builtin may mean something else to these tests.
    """

    def __init__(self, solution_function: Callable[[str], str | None], is_shadowed: Callable[[str], bool]) -> None:
        self.calls: list[SolutionCall] = []
        self.scope: Scope = {}
        self._solution_function = solution_function
        self._is_shadowed = is_shadowed
        self._variables: list[str] = []
        self._uncertain = 0
        self._handed = HandedOver()
        self._steps = MAX_STEPS

    def test(self, node: ast.expr) -> ResultTerm:
        """Read what an assertion asserts. Where it is a conjunction, every part is needed for it to hold."""
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            return algebra.join_by_and_or(node.op, [self.test(value) for value in node.values])
        if isinstance(node, ast.Compare):
            return self._compare(node, certain=True)
        return self.term(node)

    def term(self, node: ast.expr) -> ResultTerm:
        """Read an expression."""
        self.step()
        value = literal(node)
        if value is not OPEN:
            return algebra.constant(value, fresh=True)
        reader = _READERS.get(type(node))
        if reader is None:
            raise CannotLower(f"{type(node).__name__} in an expression")
        return reader(self, node)

    def constant(self, node: ast.expr) -> Value:
        """Return the value of an expression that depends on no result."""
        term = self.term(node)
        if term.value is OPEN:
            raise CannotLower("a value that depends on a result")
        return term.value

    def step(self, count: int = 1) -> None:
        """Count steps of reading. Raises `CannotLower` beyond MAX_STEPS."""
        self._steps -= count
        if self._steps < 0:
            raise CannotLower("too long to read")

    def target(self, node: ast.expr) -> str | None:
        """Return the function of the solution that an expression names."""
        if not isinstance(node, ast.Name) or node.id in self._variables:
            return None
        bound = self.scope.get(node.id)
        if bound is not None:
            return bound.name if isinstance(bound, SolutionFunction) else None
        return self._solution_function(node.id)

    def _name(self, node: ast.Name) -> ResultTerm:
        name = node.id
        if name in self._variables:
            return algebra.variable(name)
        match self.scope.get(name):
            case Constant(value=value):
                if self._handed.touch(value, self.step):
                    raise CannotLower(f"{name} was handed to the solution, which may have changed it")
                return algebra.constant(value)
            case Returned(index=index, calls=calls):
                if calls != len(self.calls):
                    raise CannotLower(f"{name} is used after another call, which may have changed it")
                return algebra.result(index)
            case MathName(name=inner) if isinstance(MATH.get(inner), float):
                return algebra.constant(MATH[inner])
        raise CannotLower(f"the name {name}")

    def _call(self, node: ast.Call) -> ResultTerm:
        target = self.target(node.func)
        if target is not None:
            return self._record(target, node)
        if isinstance(node.func, ast.Attribute):
            return self._attribute_call(node, node.func)
        if not isinstance(node.func, ast.Name) or node.func.id in self._variables:
            raise CannotLower("a call of what is no name")
        name = node.func.id
        match self.scope.get(name):
            case None:
                return self._builtin(name, node)
            case MathName(name=inner) if callable(MATH.get(inner)):
                return self._apply(inner, MATH[inner], node)
        raise CannotLower(f"a call of {name}")

    def _builtin(self, name: str, node: ast.Call) -> ResultTerm:
        if self._is_shadowed(name):
            raise CannotLower(f"{name}, which the prelude may define")
        if name == "isinstance" and len(node.args) == 2:
            kinds = self._types(node.args[1])
            return algebra.apply(lambda value: isinstance(value, kinds), [self.term(node.args[0])], _charge_step)
        if name == "map" and len(node.args) == 2 and isinstance(node.args[0], ast.Name):
            inner = node.args[0].id
            if inner in FUNCTIONS and inner not in self.scope and not self._is_shadowed(inner):
                return algebra.apply(
                    lambda value: map(FUNCTIONS[inner], algebra.iterate(value)), [self.term(node.args[1])]
                )
        if name not in FUNCTIONS:
            raise CannotLower(f"a call of {name}")
        return self._apply(name, FUNCTIONS[name], node)

    def _attribute_call(self, node: ast.Call, func: ast.Attribute) -> ResultTerm:
        if self._is_math(func.value):
            if not callable(MATH.get(func.attr)):
                raise CannotLower(f"math.{func.attr}")
            return self._apply(func.attr, MATH[func.attr], node)
        if node.keywords:
            raise CannotLower("a method with keywords")
        if isinstance(func.value, ast.Call) and (self.target(func.value.func) or "")[:1].isupper():
            raise CannotLower("a method of an object of the solution")
        name = func.attr
        terms = [self.term(func.value), *map(self.term, node.args)]
        return algebra.apply(lambda *values: functions.call_method(name, *values), terms, _charge_of(name))

    def _apply(self, name: str, function: Callable[..., Value], node: ast.Call) -> ResultTerm:
        keywords = [keyword.arg for keyword in node.keywords]
        if not set(keywords) <= functions.KEYWORDS.get(name, frozenset()):
            raise CannotLower(f"{name} with these keywords")
        count = len(node.args)
        terms = [*map(self.term, node.args), *(self.term(keyword.value) for keyword in node.keywords)]
        if not keywords:
            return algebra.apply(function, terms, _charge_of(name))
        names = [str(keyword) for keyword in keywords]
        return algebra.apply(
            lambda *values: function(*values[:count], **dict(zip(names, values[count:], strict=True))), terms
        )

    def _types(self, node: ast.expr) -> tuple[type, ...]:
        names = node.elts if isinstance(node, ast.Tuple) else [node]
        kinds = [
            functions.TYPES.get(each.id) for each in names if isinstance(each, ast.Name) and each.id not in self.scope
        ]
        if len(kinds) != len(names) or None in kinds:
            raise CannotLower("isinstance of an unknown type")
        return tuple(kind for kind in kinds if kind is not None)

    def _record(self, target: str, node: ast.Call) -> ResultTerm:
        if self._uncertain or self._variables:
            raise CannotLower("a call that may not be made, or be made many times")
        args: list[Value] = []
        shared: list[Value] = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                unpacked = self._argument(arg.value, shared)
                if not isinstance(unpacked, list | tuple | range):
                    raise CannotLower("unpacking of what is no list")
                args += unpacked
            else:
                args.append(self._argument(arg, shared))
        kwargs: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self._argument(keyword.value, shared)
            named = {keyword.arg: value} if keyword.arg is not None else value
            if not isinstance(named, dict) or not all(isinstance(key, str) and key not in kwargs for key in named):
                raise CannotLower("unusual keyword arguments")
            kwargs.update(named)
        self._handed.hand_over(shared, self.step)
        self.calls.append(SolutionCall(target, tuple(args), kwargs))
        return algebra.result(len(self.calls) - 1)

    def _argument(self, node: ast.expr, shared: list[Value]) -> Value:
        term = self.term(node)
        if term.value is OPEN or not algebra.is_data(term.value):
            raise CannotLower("an argument that depends on a result")
        if not term.fresh:
            shared.append(term.value)
        return term.value

    def _is_math(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and self.scope.get(node.id) == MathName("")

    def _attribute(self, node: ast.Attribute) -> ResultTerm:
        if self._is_math(node.value) and isinstance(MATH.get(node.attr), float):
            return algebra.constant(MATH[node.attr])
        raise CannotLower(f"the attribute {node.attr}")

    def _compare(self, node: ast.Compare, certain: bool = False) -> ResultTerm:
        terms = [self.term(node.left), self.term(node.comparators[0])]
        with self._maybe_skipped(not certain):
            terms += map(self.term, node.comparators[1:])
        for left, op, right in zip(terms, node.ops, terms[1:], strict=False):
            by_identity = isinstance(op, ast.Is | ast.IsNot)
            if by_identity and not any(side.value is each for side in (left, right) for each in _SINGLETONS):
                raise CannotLower("identity of what has no identity here")
        compares = [algebra.COMPARE[type(op)] for op in node.ops]
        if len(compares) == 1:
            is_search = isinstance(node.ops[0], ast.In | ast.NotIn)
            return algebra.apply(compares[0], terms, _charge_search if is_search else algebra.charge_all)
        return algebra.chain_comparisons(compares, terms)

    def _bool(self, node: ast.BoolOp) -> ResultTerm:
        first = self.term(node.values[0])
        with self._maybe_skipped():
            return algebra.join_by_and_or(node.op, [first, *map(self.term, node.values[1:])])

    def _choice(self, node: ast.IfExp) -> ResultTerm:
        test = self.term(node.test)
        with self._maybe_skipped():
            body, other = self.term(node.body), self.term(node.orelse)
        return algebra.fold(
            lambda frame: body.run(frame) if algebra.truth(test.run(frame)) else other.run(frame),
            test.needs | body.needs | other.needs,
        )

    def _subscript(self, node: ast.Subscript) -> ResultTerm:
        if not isinstance(node.slice, ast.Slice):
            return algebra.apply(algebra.item_of, [self.term(node.value), self.term(node.slice)], _charge_index)
        bounds = (node.slice.lower, node.slice.upper, node.slice.step)
        terms = [algebra.constant(None) if bound is None else self.term(bound) for bound in bounds]
        terms = [self.term(node.value), *terms]
        return algebra.apply(lambda value, *limits: algebra.item_of(value, slice(*limits)), terms, _charge_step)

    def _display(self, node: ast.List | ast.Tuple | ast.Set) -> ResultTerm:
        build = _DISPLAYS[type(node)]
        return algebra.apply(lambda *values: build(values), [self.term(element) for element in node.elts])

    def _dict(self, node: ast.Dict) -> ResultTerm:
        if None in node.keys:
            raise CannotLower("unpacking in a dict")
        pairs = zip(node.keys, node.values, strict=True)
        terms = [self.term(part) for pair in pairs for part in pair if part is not None]
        return algebra.apply(lambda *parts: dict(zip(parts[::2], parts[1::2], strict=True)), terms)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> ResultTerm:
        before = len(self._variables)
        clauses: list[algebra.ForClause] = []
        needs: Needs = frozenset()
        for generator in node.generators:
            source = self.term(generator.iter)
            names = names_of(generator.target)
            if generator.is_async or names is None:
                raise CannotLower("an unusual comprehension")
            needs |= source.needs - set(self._variables[before:])
            self._variables += names
            conditions = [self.term(condition) for condition in generator.ifs]
            clauses.append(algebra.ForClause(source, generator.target, conditions))
        nodes = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        parts = [self.term(part) for part in nodes]
        inside = set(self._variables[before:])
        del self._variables[before:]
        for term in (*parts, *(condition for clause in clauses for condition in clause.conditions)):
            needs |= term.needs - inside
        return algebra.comprehension(type(node), clauses, parts, needs)

    def _operation(self, node: ast.BinOp | ast.UnaryOp) -> ResultTerm:
        if isinstance(node, ast.UnaryOp):
            return algebra.apply(algebra.UNARY[type(node.op)], [self.term(node.operand)])
        if type(node.op) not in algebra.BINARY:
            raise CannotLower(f"the operator {type(node.op).__name__}")
        return algebra.apply(algebra.BINARY[type(node.op)], [self.term(node.left), self.term(node.right)])

    @contextmanager
    def _maybe_skipped(self, uncertain: bool = True) -> Iterator[None]:
        """Refuse calls within it, since Python may not make them."""
        self._uncertain += uncertain
        yield
        self._uncertain -= uncertain


def _charge_step(work: algebra.Work, values: Sequence[Value]) -> None:
    """Pay for `len`, `isinstance` and such."""
    work.spend_step()


def _charge_index(work: algebra.Work, values: Sequence[Value]) -> None:
    """Pay for `container[key]`."""
    key = values[1]
    work.spend(key) if type(key) is not slice else work.spend_step()


def _charge_search(work: algebra.Work, values: Sequence[Value]) -> None:
    """Pay for `item in container`."""
    item, container = values
    work.spend(item)
    work.spend_step() if type(container) in _HASHED else work.spend(container)


def _charge_of(name: str) -> algebra.Charge:
    return _charge_step if name in functions.CONSTANT_TIME else algebra.charge_all


_DISPLAYS: Mapping[type[ast.expr], Callable[[tuple[Value, ...]], Value]] = {
    ast.List: list,
    ast.Tuple: tuple,
    ast.Set: lambda values: set(algebra.check_keys([*values])),
}
_READERS: Mapping[type[ast.expr], Callable[[Expressions, Value], ResultTerm]] = {
    ast.Name: Expressions._name,
    ast.Call: Expressions._call,
    ast.Attribute: Expressions._attribute,
    ast.Compare: Expressions._compare,
    ast.BoolOp: Expressions._bool,
    ast.IfExp: Expressions._choice,
    ast.Subscript: Expressions._subscript,
    ast.Dict: Expressions._dict,
    **dict.fromkeys((ast.List, ast.Tuple, ast.Set), Expressions._display),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), Expressions._comprehension),
    **dict.fromkeys((ast.BinOp, ast.UnaryOp), Expressions._operation),
}


_MUTABLE = (list, dict, set, bytearray)


class HandedOver:
    """The identities of lists, dicts and sets that the solution has had in its hands; the reader keeps them alive."""

    def __init__(self) -> None:
        self._ids: set[int] = set()

    def hand_over(self, values: list[Value], step: Callable[[int], None]) -> None:
        """Remember values that are handed over.

        Raises `CannotLower` where the solution would get one object in several places: a copy is not the same.
        """
        identities = [identity for value in values for identity in _mutables(value, step)]
        if len(identities) != len(set(identities)) or not self._ids.isdisjoint(identities):
            raise CannotLower("one list in several places")
        self._ids.update(identities)

    def touch(self, value: Value, step: Callable[[int], None]) -> bool:
        """Return whether any part of a value was handed over."""
        return bool(self._ids) and not self._ids.isdisjoint(_mutables(value, step))


def _mutables(value: Value, step: Callable[[int], None]) -> Iterator[int]:
    """Yield the identities of the mutable parts of a value."""
    pending = [value]
    while pending:
        each = pending.pop()
        if type(each) in SCALARS:
            continue
        step(len(each))
        if isinstance(each, _MUTABLE):
            yield id(each)
        parts = [*each.keys(), *each.values()] if isinstance(each, dict) else list(each)
        if not set(map(type, parts)) <= SCALARS:
            pending += parts


def names_of(target: ast.expr) -> list[str] | None:
    """Return the names that a target binds, None where it is more than names."""
    if isinstance(target, ast.Name):
        return [target.id]
    if not isinstance(target, ast.Tuple | ast.List):
        return None
    names = [names_of(each) for each in target.elts]
    return None if None in names else [name for each in names if each is not None for name in each]


def literal(node: ast.expr) -> Value:
    """Return the value of a literal, new at every call; OPEN for any other expression."""
    read = _LITERALS.get(type(node))
    return OPEN if read is None else read(node)


def _literals(nodes: Sequence[Value]) -> Value:
    """Return a list of their values, or OPEN."""
    kinds = set(map(type, nodes))
    if kinds == _ONLY_CONSTANTS:
        return [node.value for node in nodes]
    if not kinds <= _LITERALS.keys():
        return OPEN
    values = [_LITERALS[type(node)](node) for node in nodes]
    return OPEN if any(value is OPEN for value in values) else values


def _tuple(node: ast.Tuple) -> Value:
    values = _literals(node.elts)
    return OPEN if values is OPEN else tuple(values)


def _set(node: ast.Set) -> Value:
    values = _literals(node.elts)
    return OPEN if values is OPEN or not set(map(type, values)) <= SCALARS else set(values)


def _negative(node: ast.UnaryOp) -> Value:
    operand = node.operand
    is_number = type(operand) is ast.Constant and isinstance(operand.value, int | float)
    return -operand.value if is_number and type(node.op) is ast.USub else OPEN  # type: ignore[attr-defined]


def _dict(node: ast.Dict) -> Value:
    if None in node.keys:
        return OPEN
    keys, values = _literals(node.keys), _literals(node.values)
    if keys is OPEN or values is OPEN or not set(map(type, keys)) <= SCALARS:
        return OPEN
    return dict(zip(keys, values, strict=True))


_ONLY_CONSTANTS = {ast.Constant}
_LITERALS: Mapping[type[ast.expr], Callable[[Value], Value]] = {
    ast.Constant: lambda node: node.value,
    ast.List: lambda node: _literals(node.elts),
    ast.Tuple: _tuple,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.UnaryOp: _negative,
}
