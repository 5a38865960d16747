"""Terms: expressions of test code, ready to be evaluated over the results of calls, and the checks made of them.

    term = apply(operator.add, [result(0), constant(1)])
    term.run(Frame([41]))            42
    term.needs                       {0}: the first call's result
    apply(operator.add, [constant(1), constant(2)]).value       3, at once

Evaluation never runs code of the tests or of a solution. Operators work as Python's do, within bounds:

    BINARY[ast.Add](1, 2)                        3
    BINARY[ast.Mult](10**9, "x")                 Undecidable: longer than a check may make
    COMPARE[ast.Eq](Iterated([1]), [1])          Undecidable: only the process that has the object can tell

The values come from a process that may want a check to hold, to stall or to crash; they are of exact builtin types, or
stand-ins for what has none. `Undecidable` means that what Python would do cannot be told from the data, or costs too
much; any other exception is the one that Python would raise.

Every step is charged with the size of what it looks at and makes (`Work`): `all(r.count(x) == 1 for x in r)` takes no
time for a list of ten and hours for one of a million, and the solution decides how long the list is. What is beyond the
budget raises `Undecidable`, too: the tests then run in a sandboxed process, which has limits.
"""

from __future__ import annotations

import array
import ast
import operator
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from truegold.verifiers.sandbox.inside.wire.foreign_values import Array, Instance, Iterated, Opaque, Value

MAX_BITS = 100_000
"""Bits of integers that are multiplied, divided or raised. Stops results of megabytes of digits."""

MAX_ITEMS = 1_000_000
"""Items that are walked through, and that repetition or `str.replace` may make. Stops `[0] * 10**9`, and a result of
megabytes that takes seconds to sort."""

MAX_WALKED = 1_000
"""Numbers of a range that are looked at for one that is no integer. A range costs nothing in the budget of work."""

MAX_COLLIDING = 1_000
"""Keys that share their hash with others. Stops integers chosen to make building a set quadratic."""

MAX_WORK = 10_000_000
"""Units of work that the checks of one program may take, about a second: one is 100 ns at most, mostly much less."""

MAX_CPU_S = 1.5
"""Stops what costs more than its size says, such as the digits of large integers. Apart from such values the sizes
decide, which are the same on every machine."""

STEP = 3
"""Units for an operation."""

ROUND = 30
"""Units for a round of a loop."""

PER_NODE = 10
"""Units for an object of a class."""

_CHARGES_BETWEEN_CLOCKS = 64
"""The clock is looked at after so many charges, and at each large one."""

_LARGE_CHARGE = 1000
"""A charge of this many units is large."""

_KEPT_FROM = 64
"""The weight of a value is kept from this many units on."""

NUMBERS = (bool, int, float, complex)
SCALARS = frozenset({type(None), bool, int, float, complex, str, bytes, range, type(...)})
"""Types whose values have no parts."""

OPEN = object()
"""Stands for the value of a term that is not known before the results are."""

_STANDINS = (Opaque, Iterated, Array, Instance)
_CONTAINERS = frozenset({list, tuple, dict, set, frozenset})
"""Builtin types of data with parts."""

_FIXED_SIZES = frozenset({bool, int, float, complex, type(None), type(...), range})
"""Types of which each value costs one step."""

_COLLECTIONS = frozenset({list, tuple, set, frozenset, deque, array.array})
_TEXTS = frozenset({str, bytes, bytearray})
_FOLLOWED = frozenset({Instance, list, tuple})
"""Types by which an object leads to others."""


class Undecidable(Exception):
    """Python itself has to decide, in the process that has the object."""


def truth(value: Value) -> bool:
    """Return the truth value. Raises `Undecidable` for a stand-in."""
    return bool(require_data(value))


def iterate(value: Value, ordered: bool = True) -> Iterator[Value]:
    """Return an iterator over a value. The order within a set, which differs between processes, is refused."""
    if type(value) is Iterated and len(value.elements) <= MAX_ITEMS:
        return iter(value.elements)
    if ordered and type(value) in (set, frozenset):
        raise Undecidable("the order of a set")
    if hasattr(value, "__len__") and len(value) > MAX_ITEMS:
        raise Undecidable("many items")
    return iter(require_data(value))


def check_keys(keys: list[Value]) -> list[Value]:
    """Return keys, which may become a set or a dict. Raises `Undecidable` where too many share a hash."""
    if len(keys) > MAX_COLLIDING:
        hashes = len(set(map(hash, keys)))
        # Equal keys share a hash as well, so only different ones count, which are told apart by their text.
        if len(keys) - hashes > MAX_COLLIDING and len(set(map(_key_text, keys))) - hashes > MAX_COLLIDING:
            raise Undecidable("keys with the same hash")
    return keys


def _key_text(key: Value) -> str:
    try:
        return hex(key) if isinstance(key, int) else repr(key)
    except ValueError:
        # Python writes no integer of thousands of digits, which a tuple may hold.
        raise Undecidable("unusual keys") from None


def require_data(value: Value) -> Value:
    """Return a value that is the data itself. Raises `Undecidable` for a stand-in."""
    if isinstance(value, _STANDINS):
        raise Undecidable(f"what stands for an object: {type(value).__name__}")
    return value


def refuse_arrays(*values: Value) -> None:
    """Raise `Undecidable` where a value is an array, with which operators work item by item."""
    for value in values:
        if type(value) is Array:
            raise Undecidable("an array")


def refuse_large_integers(*values: Value) -> None:
    """Raise `Undecidable` where integers are too large for arithmetic that is not linear in their size."""
    if sum(value.bit_length() for value in values if isinstance(value, int)) > MAX_BITS:
        raise Undecidable("large integers")


def _are_equal(left: Value, right: Value) -> bool:
    if type(left) in (Iterated, Array) or type(right) in (Iterated, Array):
        raise Undecidable("an iterator or an array")
    return bool(left == right)


def _contains(item: Value, container: Value) -> bool:
    refuse_arrays(item)
    if type(container) is Iterated:
        return item in container.elements
    if type(container) is range and type(item) not in (int, bool) and len(container) > MAX_WALKED:
        raise Undecidable("a long range")
    return item in require_data(container)


def _on_data(operation: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """Return the operator with arrays refused."""

    def apply(left: Value, right: Value) -> Value:
        refuse_arrays(left, right)
        return operation(left, right)

    return apply


COMPARE: Mapping[type[ast.cmpop], Callable[[Value, Value], bool]] = {
    ast.Eq: _are_equal,
    ast.NotEq: lambda left, right: not _are_equal(left, right),
    ast.Lt: _on_data(operator.lt),
    ast.LtE: _on_data(operator.le),
    ast.Gt: _on_data(operator.gt),
    ast.GtE: _on_data(operator.ge),
    ast.In: _contains,
    ast.NotIn: lambda item, container: not _contains(item, container),
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def _multiply(left: Value, right: Value) -> Value:
    refuse_arrays(left, right)
    for sequence, count in ((left, right), (right, left)):
        if isinstance(count, int) and hasattr(sequence, "__len__") and len(sequence) * max(count, 0) > MAX_ITEMS:
            raise Undecidable("a long sequence")
    refuse_large_integers(left, right)
    return left * right


def _power(base: Value, exponent: Value) -> Value:
    if not isinstance(base, NUMBERS) or not isinstance(exponent, NUMBERS):
        raise Undecidable("powers of unusual numbers")
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > MAX_BITS:
        raise Undecidable("a large power")
    return base**exponent


def _division(divide: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """Return the operator with arrays, formatting (`"%d" % 3`) and large integers refused."""

    def apply(left: Value, right: Value) -> Value:
        refuse_arrays(left, right)
        if isinstance(left, str | bytes):
            raise Undecidable("formatting")
        refuse_large_integers(left, right)
        return divide(left, right)

    return apply


BINARY: Mapping[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: _on_data(operator.add),
    ast.Sub: _on_data(operator.sub),
    ast.Mult: _multiply,
    ast.Div: _division(operator.truediv),
    ast.FloorDiv: _division(operator.floordiv),
    ast.Mod: _division(operator.mod),
    ast.Pow: _power,
    ast.BitAnd: _on_data(operator.and_),
    ast.BitOr: _on_data(operator.or_),
    ast.BitXor: _on_data(operator.xor),
}
UNARY: Mapping[type[ast.unaryop], Callable[[Value], Value]] = {
    ast.USub: lambda value: -require_data(value),
    ast.UAdd: lambda value: +require_data(value),
    ast.Not: lambda value: not truth(value),
    ast.Invert: lambda value: ~require_data(value),
}


def item_of(value: Value, index: Value) -> Value:
    """Return `value[index]`."""
    return require_data(value)[index]


class Work:
    """The budget of all checks of one program."""

    __slots__ = ("_charges", "_deadline", "_known", "_units_left")

    def __init__(self, max_units: int = MAX_WORK) -> None:
        self._units_left = max_units
        self._charges = 0
        self._deadline: float | None = None
        self._known: dict[int, tuple[Value, int]] = {}

    def spend_round(self) -> None:
        """Pay for one round of a loop."""
        self._take(ROUND)

    def spend(self, value: Value) -> None:
        """Pay for an operation that looks at all of a value."""
        value_type = type(value)
        if value_type is int:
            self._take(STEP + (value.bit_length() >> 10))
        elif value_type in _FIXED_SIZES:
            self._take(STEP)
        elif value_type in _TEXTS:
            self._take(STEP + (len(value) >> 4))
        else:
            self._take(STEP + self._weight(value))

    def spend_step(self) -> None:
        """Pay for an operation that takes as long for any value."""
        self._take(STEP)

    def spend_new(self, value: Value) -> None:
        """Pay for a value that was made; its parts existed before."""
        value_type = type(value)
        if value_type in _TEXTS:
            self._take(len(value) >> 4)
        elif value_type in _COLLECTIONS or value_type is dict:
            self._take(len(value))

    def _take(self, units: int) -> None:
        self._units_left -= units
        self._charges += 1
        if self._units_left < 0:
            raise Undecidable("a long evaluation")
        if units >= _LARGE_CHARGE or self._charges % _CHARGES_BETWEEN_CLOCKS == 0:
            now = time.thread_time()
            if self._deadline is None:
                self._deadline = now + MAX_CPU_S
            elif now > self._deadline:
                raise Undecidable("a long evaluation")

    def _weight(self, value: Value) -> int:
        """Return the units that looking at all of a value takes."""
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        total = 0
        pending = [value]
        while pending:
            part = pending.pop()
            part_type = type(part)
            if part_type in _COLLECTIONS:
                total += len(part) + _add_parts(part, pending)
            elif part_type is dict:
                total += 2 * len(part) + _add_parts(part, pending) + _add_parts(part.values(), pending)
            elif part_type in _TEXTS:
                total += 1 + (len(part) >> 4)
            elif part_type is Iterated or part_type is Array:
                pending.append(part.elements)
            elif part_type is Instance:
                # An object counts each time that it stands somewhere, since comparing follows it to its end each time.
                total += _instance_units(part, self._units_left - total)
            else:
                total += 1
            if total > self._units_left:
                raise Undecidable("a large value")
        if total >= _KEPT_FROM:
            # Keeping the value alive keeps its id from being given to another one.
            self._known[id(value)] = (value, total)
        return total


Charge = Callable[[Work, Sequence[Value]], None]
"""Pays for an operation on these values."""


def charge_all(work: Work, values: Sequence[Value]) -> None:
    """Pay for an operation that may look at all of each value."""
    for value in values:
        work.spend(value)


def _add_parts(parts: Iterable[Value], pending: list[Value]) -> int:
    """Leave parts that have a size for later and return their number; the others count with their container."""
    if not set(map(type, parts)) <= _FIXED_SIZES:
        before = len(pending)
        pending += [part for part in parts if type(part) not in _FIXED_SIZES]
        return len(pending) - before
    return 0


def _instance_units(start: Instance, max_units: int) -> int:
    """Return the units for all that an object leads to, each object once."""
    visited_ids = {id(start)}
    pending: list[Value] = [start]
    total = 0
    while pending and total <= max_units:
        value = pending.pop()
        parts = value.fields.values() if type(value) is Instance else value
        total += PER_NODE + len(parts)
        for part in parts:
            if type(part) in _FOLLOWED and id(part) not in visited_ids:
                visited_ids.add(id(part))
                pending.append(part)
    return total


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

    outcomes: Sequence[Value]
    """What came of each call: its value or `Raised`."""
    variables: dict[str, Value] = field(default_factory=dict)
    """The loop variables of comprehensions."""
    work: Work = field(default_factory=Work)


@dataclass(frozen=True, slots=True)
class ResultTerm:
    """An expression that can be evaluated."""

    run: Callable[[Frame], Value]
    needs: Needs = frozenset()
    value: Value = OPEN
    """OPEN where the term needs something, or has to be evaluated anew each time, as iterators have."""
    fresh: bool = False
    """Whether nothing else can refer to a part of the value."""


@dataclass(frozen=True, slots=True)
class ForClause:
    """`for target in source if conditions` of a comprehension."""

    source: ResultTerm
    target: ast.expr
    conditions: Sequence[ResultTerm]


def constant(value: Value, fresh: bool = False) -> ResultTerm:
    """Return the term of a value that is known."""
    return ResultTerm(lambda frame: value, value=value, fresh=fresh)


def result(index: int) -> ResultTerm:
    """Return the term of what a call returns."""

    def run(frame: Frame) -> Value:
        value = frame.outcomes[index]
        if type(value) is Raised:
            raise CallRaised(value.type)
        return value

    return ResultTerm(run, frozenset({index}))


def variable(name: str) -> ResultTerm:
    """Return the term of a loop variable."""
    return ResultTerm(lambda frame: frame.variables[name], frozenset({name}))


def apply(function: Callable[..., Value], terms: Sequence[ResultTerm], charge: Charge = charge_all) -> ResultTerm:
    """Return the term of a function that is called with the values of terms."""
    runs = [term.run for term in terms]

    def run(frame: Frame) -> Value:
        values = [run(frame) for run in runs]
        charge(frame.work, values)
        value = function(*values)
        frame.work.spend_new(value)
        return value

    return fold(run, _needs_of(terms))


def _needs_of(terms: Sequence[ResultTerm]) -> Needs:
    return frozenset().union(*(term.needs for term in terms))


def fold(run: Callable[[Frame], Value], needs: Needs) -> ResultTerm:
    """Return a term, evaluated at once where it needs nothing."""
    if needs:
        return ResultTerm(run, needs)
    try:
        value = run(Frame(()))
    except Undecidable as error:
        raise CannotLower(str(error)) from None
    except Exception as error:
        raise CannotLower(f"it raises {type(error).__name__}") from None
    return constant(value) if is_data(value) else ResultTerm(run)


def is_data(value: Value) -> bool:
    """Return whether a value is builtin data through and through, and equal to itself."""
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


def join_by_and_or(op: ast.boolop, terms: Sequence[ResultTerm]) -> ResultTerm:
    """Return the term of `a and b and c`, or of the same with `or`."""
    truth_to_go_on = isinstance(op, ast.And)
    *before, last = terms

    def run(frame: Frame) -> Value:
        for term in before:
            value = term.run(frame)
            if truth(value) is not truth_to_go_on:
                return value
        return last.run(frame)

    return fold(run, _needs_of(terms))


def chain_comparisons(compares: Sequence[Callable[[Value, Value], bool]], terms: Sequence[ResultTerm]) -> ResultTerm:
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


def comprehension(
    kind: type[ast.expr], clauses: Sequence[ForClause], parts: Sequence[ResultTerm], needs: Needs
) -> ResultTerm:
    """Return the term of a comprehension. parts: its element, or its key and value."""
    collect = _COLLECT[kind]
    return fold(lambda frame: collect(_elements(clauses, parts, frame)), needs)


def _elements(clauses: Sequence[ForClause], parts: Sequence[ResultTerm], frame: Frame) -> Iterator[list[Value]]:
    inner = Frame(frame.outcomes, dict(frame.variables), frame.work)

    def loop(depth: int) -> Iterator[list[Value]]:
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


_COLLECT: Mapping[type[ast.expr], Callable[[Iterator[list[Value]]], Value]] = {
    ast.ListComp: lambda elements: [each[0] for each in elements],
    ast.SetComp: lambda elements: set(check_keys([each[0] for each in elements])),
    ast.GeneratorExp: lambda elements: (each[0] for each in elements),
    ast.DictComp: lambda elements: {key: value for key, value in _check_pairs(list(elements))},  # noqa: C416
}


def _check_pairs(pairs: list[list[Value]]) -> list[list[Value]]:
    check_keys([pair[0] for pair in pairs])
    return pairs


def bind(target: ast.expr, value: Value, variables: dict[str, Value]) -> None:
    """Bind what a target names, which is as `names_of` allows it, to a value or its parts."""
    if isinstance(target, ast.Name):
        variables[target.id] = value
        return
    targets = target.elts  # type: ignore[attr-defined]
    for each, part in zip(targets, list(iterate(value)), strict=True):
        bind(each, part, variables)


@dataclass(frozen=True, slots=True)
class SolutionCall:
    """One call of the solution."""

    function: str
    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class ResultCheck:
    """One assertion."""

    text: str
    """Its first line."""
    line: int
    calls: tuple[int, ...]
    """The indices of the calls that it makes or looks at."""
    term: ResultTerm | None
    """None for a call that only has to return."""

    def holds(self, outcomes: Sequence[Value], work: Work | None = None) -> bool | None:
        """Return whether the assertion holds, None where only running the test can tell.

        outcomes: what the calls returned, `Raised` for those that did not. work: the budget for this check and others.
        """
        if any(type(outcomes[index]) is Raised for index in self.calls):
            return False
        if self.term is None:
            return True
        try:
            return truth(self.term.run(Frame(outcomes, work=work or Work())))
        except Undecidable:
            return None
        except Exception:
            return False


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """Test code as data."""

    calls: tuple[SolutionCall, ...]
    checks: tuple[ResultCheck, ...]
