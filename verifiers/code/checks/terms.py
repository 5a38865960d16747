"""Terms: expressions of test code, ready to be evaluated over the results of calls.

    term = apply(operator.add, [result(0), constant(1)])
    term.run(Frame([41]))            42
    term.needs                       {0}: the first call's result
    apply(operator.add, [constant(1), constant(2)]).value       3, at once

Evaluation never runs code of the tests or of a solution; `operations` bounds each step, `work` all of them together.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from truegold.verifiers.code.checks.operations import Refused, check_keys, iterate, truth
from truegold.verifiers.code.checks.work import Charge, Work, charge_all

OPEN = object()
"""Stands for the value of a term that is not known before the results are."""

SCALARS = frozenset({type(None), bool, int, float, complex, str, bytes, range, type(...)})
_CONTAINERS = frozenset({list, tuple, dict, set, frozenset})

Needs = frozenset[int | str]
"""The indices of calls whose results are used, and the names of loop variables."""


class CannotLower(Exception):
    """Test code cannot become data; the text says why."""


class CallRaised(Exception):
    """A check needs the result of a call that has none."""


@dataclass(frozen=True, slots=True)
class Raised:
    """Stands in the results for a call that raised."""

    type: str = "Exception"
    message: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """One evaluation of a check."""

    outcomes: Sequence[Any]
    """What came of each call: its value or `Raised`."""
    variables: dict[str, Any] = field(default_factory=dict)
    """The loop variables of comprehensions."""
    work: Work = field(default_factory=Work)


@dataclass(frozen=True, slots=True)
class Term:
    """An expression that can be evaluated."""

    run: Callable[[Frame], Any]
    needs: Needs = frozenset()
    value: Any = OPEN
    """OPEN where the term needs something, or has to be evaluated anew each time, as iterators have."""
    fresh: bool = False
    """Whether nothing else can refer to a part of the value."""


@dataclass(frozen=True, slots=True)
class ForClause:
    """`for target in source if conditions` of a comprehension."""

    source: Term
    target: ast.expr
    conditions: Sequence[Term]


def constant(value: Any, fresh: bool = False) -> Term:
    """Return the term of a value that is known."""
    return Term(lambda frame: value, value=value, fresh=fresh)


def result(index: int) -> Term:
    """Return the term of what a call returns."""

    def run(frame: Frame) -> Any:
        value = frame.outcomes[index]
        if type(value) is Raised:
            raise CallRaised(value.type)
        return value

    return Term(run, frozenset({index}))


def variable(name: str) -> Term:
    """Return the term of a loop variable."""
    return Term(lambda frame: frame.variables[name], frozenset({name}))


def apply(function: Callable[..., Any], terms: Sequence[Term], charge: Charge = charge_all) -> Term:
    """Return the term of a function that is called with the values of terms."""
    runs = [term.run for term in terms]

    def run(frame: Frame) -> Any:
        values = [run(frame) for run in runs]
        charge(frame.work, values)
        value = function(*values)
        frame.work.spend_new(value)
        return value

    return fold(run, _needs_of(terms))


def _needs_of(terms: Sequence[Term]) -> Needs:
    return frozenset().union(*(term.needs for term in terms))


def fold(run: Callable[[Frame], Any], needs: Needs) -> Term:
    """Return a term, evaluated at once where it needs nothing."""
    if needs:
        return Term(run, needs)
    try:
        value = run(Frame(()))
    except Refused as error:
        raise CannotLower(str(error)) from None
    except Exception as error:
        raise CannotLower(f"it raises {type(error).__name__}") from None
    return constant(value) if is_data(value) else Term(run)


def is_data(value: Any) -> bool:
    """Whether a value is builtin data through and through, and equal to itself."""
    pending = [value]
    while pending:
        each = pending.pop()
        if type(each) in SCALARS:
            # Python tells nan by identity.
            if each != each:  # noqa: PLR0124
                raise CannotLower("nan")
        elif type(each) in _CONTAINERS:
            pending += [*each.keys(), *each.values()] if type(each) is dict else each
        else:
            return False
    return True


def join_by_and_or(op: ast.boolop, terms: Sequence[Term]) -> Term:
    """Return the term of `a and b and c`, or of the same with `or`."""
    truth_to_go_on = isinstance(op, ast.And)
    *before, last = terms

    def run(frame: Frame) -> Any:
        for term in before:
            value = term.run(frame)
            if truth(value) is not truth_to_go_on:
                return value
        return last.run(frame)

    return fold(run, _needs_of(terms))


def chain_comparisons(compares: Sequence[Callable[[Any, Any], bool]], terms: Sequence[Term]) -> Term:
    """Return the term of `a < b <= c`."""

    def run(frame: Frame) -> bool:
        left = terms[0].run(frame)
        for compare, term in zip(compares, terms[1:], strict=True):
            right = term.run(frame)
            charge_all(frame.work, (left, right))
            if not compare(left, right):
                return False
            left = right
        return True

    return fold(run, _needs_of(terms))


def comprehension(kind: type[ast.expr], clauses: Sequence[ForClause], parts: Sequence[Term], needs: Needs) -> Term:
    """Return the term of a comprehension. parts: its element, or its key and value."""
    collect = _COLLECT[kind]
    return fold(lambda frame: collect(_elements(clauses, parts, frame)), needs)


def _elements(clauses: Sequence[ForClause], parts: Sequence[Term], frame: Frame) -> Iterator[list[Any]]:
    inner = Frame(frame.outcomes, dict(frame.variables), frame.work)

    def loop(depth: int) -> Iterator[list[Any]]:
        if depth == len(clauses):
            yield [part.run(inner) for part in parts]
            return
        clause = clauses[depth]
        for item in iterate(clause.source.run(inner)):
            inner.work.spend_round()
            bind(clause.target, item, inner.variables)
            if all(truth(condition.run(inner)) for condition in clause.conditions):
                yield from loop(depth + 1)

    return loop(0)


_COLLECT: Mapping[type[ast.expr], Callable[[Iterator[list[Any]]], Any]] = {
    ast.ListComp: lambda elements: [each[0] for each in elements],
    ast.SetComp: lambda elements: set(check_keys([each[0] for each in elements])),
    ast.GeneratorExp: lambda elements: (each[0] for each in elements),
    ast.DictComp: lambda elements: {key: value for key, value in _check_pairs(list(elements))},  # noqa: C416
}


def _check_pairs(pairs: list[list[Any]]) -> list[list[Any]]:
    check_keys([pair[0] for pair in pairs])
    return pairs


def bind(target: ast.expr, value: Any, variables: dict[str, Any]) -> None:
    """Bind what a target names, which is as `names_of` allows it, to a value or its parts."""
    if isinstance(target, ast.Name):
        variables[target.id] = value
        return
    targets = target.elts  # type: ignore[attr-defined]
    for each, part in zip(targets, list(iterate(value)), strict=True):
        bind(each, part, variables)


def names_of(target: ast.expr) -> list[str] | None:
    """Return the names that a target binds, None where it is more than names."""
    if isinstance(target, ast.Name):
        return [target.id]
    if not isinstance(target, ast.Tuple | ast.List):
        return None
    names = [names_of(each) for each in target.elts]
    return None if None in names else [name for each in names if each is not None for name in each]


def literal(node: ast.expr) -> Any:
    """Return the value of a literal, new at every call; OPEN for any other expression."""
    read = _LITERALS.get(type(node))
    return OPEN if read is None else read(node)


def _literals(nodes: Sequence[Any]) -> Any:
    """Return a list of their values, or OPEN."""
    kinds = set(map(type, nodes))
    if kinds == _ONLY_CONSTANTS:
        return [node.value for node in nodes]
    if not kinds <= _LITERALS.keys():
        return OPEN
    values = [_LITERALS[type(node)](node) for node in nodes]
    return OPEN if any(value is OPEN for value in values) else values


def _tuple(node: ast.Tuple) -> Any:
    values = _literals(node.elts)
    return OPEN if values is OPEN else tuple(values)


def _set(node: ast.Set) -> Any:
    values = _literals(node.elts)
    return OPEN if values is OPEN or not set(map(type, values)) <= SCALARS else set(values)


def _negative(node: ast.UnaryOp) -> Any:
    operand = node.operand
    is_number = type(operand) is ast.Constant and isinstance(operand.value, int | float)
    return -operand.value if is_number and type(node.op) is ast.USub else OPEN  # type: ignore[attr-defined]


def _dict(node: ast.Dict) -> Any:
    if None in node.keys:
        return OPEN
    keys, values = _literals(node.keys), _literals(node.values)
    if keys is OPEN or values is OPEN or not set(map(type, keys)) <= SCALARS:
        return OPEN
    return dict(zip(keys, values, strict=True))


_ONLY_CONSTANTS = {ast.Constant}
_LITERALS: Mapping[type[ast.expr], Callable[[Any], Any]] = {
    ast.Constant: lambda node: node.value,
    ast.List: lambda node: _literals(node.elts),
    ast.Tuple: _tuple,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.UnaryOp: _negative,
}
