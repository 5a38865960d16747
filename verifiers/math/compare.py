"""Two trees, one question: is the answer the same as gold?

Values go to `identity`, sets of numbers to `realset`; this file knows the shapes: lists, tuples, labels, equations,
matrices, units, words. What either side leaves open (a bracket that may be a pair or an interval, a label, a unit) the
other side decides; gold's form decides where a policy says so.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gmpy2 import mpq

from truegold.verifiers.math import realset
from truegold.verifiers.math.answers import label_of
from truegold.verifiers.math.exact import base_value, rational
from truegold.verifiers.math.identity import Finding, proportional, same_value, sign_of_ratio
from truegold.verifiers.math.measures import DEGREE, PERCENT, RADIAN
from truegold.verifiers.math.names import NAMED_WORDS, STOP_WORDS
from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.quantities import as_measure
from truegold.verifiers.math.rounding import agrees_when_rounded
from truegold.verifiers.math.signs import has_signs, readings
from truegold.verifiers.math.substitute import renamed, substituted
from truegold.verifiers.math.tree import (
    VALUES,
    Add,
    BaseN,
    Call,
    Chain,
    Clock,
    Const,
    Family,
    Group,
    Items,
    Matrix,
    Measure,
    Mul,
    Named,
    Node,
    Num,
    Pow,
    Ratio,
    SetOf,
    SetOps,
    Sym,
    Text,
    symbols,
    walk,
)

COORDINATES = frozenset({"x", "y", "z"})
"""Labels that make an equation of a line out of a value: x=5 is not y=5."""

MAX_PHRASE_WORDS = 4
"""More words than this are a sentence, which may be said in other words: rules cannot tell."""

MINUS_ONE = Num(mpq(-1))


class Outcome(NamedTuple):
    """same: None where it cannot be said. rung: what decided. hedged: the answer holds gold among others."""

    same: bool | None
    rung: str
    hedged: bool = False


SAME_NUMBER = Outcome(True, "exact")
SAME_STRUCTURE = Outcome(True, "structure")
OTHER_STRUCTURE = Outcome(False, "structure")
UNDECIDED = Outcome(None, "structure")


def compare(gold: Node, answer: Node, policy: Policy) -> Outcome:
    """Raises TooLarge where a value is beyond the budgets."""
    if not _conditions_agree(gold, answer, policy):
        return OTHER_STRUCTURE
    gold, answer = _without_parameters(gold, answer, policy)
    gold = _settled(gold)
    if not (has_signs(gold) or has_signs(answer)):
        return Comparison(policy).same(gold, answer)
    found = OTHER_STRUCTURE
    for wanted in readings(gold):
        for offered in readings(answer):
            outcome = Comparison(policy).same(wanted, offered)
            if outcome.same:
                return outcome
            found = outcome if outcome.same is None else found
    return found


def _settled(gold: Node) -> Node:
    """Gold that says its value twice: the exact form of `\\frac{\\sqrt3}{3} \\approx 0.577`, the first of `{1, 2} = {2, 1}`."""
    if not isinstance(gold, Chain):
        return gold
    if "~" in gold.operators and set(gold.operators) <= {"=", "~"}:
        at = gold.operators.index("~")
        if at:
            return Chain(gold.parts[: at + 1], gold.operators[:at])
        return gold.parts[1] if isinstance(gold.parts[0], Sym) else gold.parts[0]
    return gold.parts[0] if _is_repeated_list(gold) else gold


def _conditions_agree(gold: Node, answer: Node, policy: Policy) -> bool:
    """What only one side says of its letters is understood."""
    wanted = gold.conditions if isinstance(gold, Family) else ()
    offered = answer.conditions if isinstance(answer, Family) else ()
    if not wanted or len(wanted) != len(offered):
        return True
    return Comparison(policy).same(Items(wanted), Items(offered)).same is not False


def _without_parameters(gold: Node, answer: Node, policy: Policy) -> tuple[Node, Node]:
    """Give the integer parameters of both sides the same names."""
    gold_names: frozenset[str] = frozenset()
    answer_names: frozenset[str] = frozenset()
    if isinstance(gold, Family):
        gold, gold_names = gold.body, gold.parameters
    if isinstance(answer, Family):
        answer, answer_names = answer.body, answer.parameters
    if policy.parameters == "rename" and gold_names | answer_names:
        wanted = sorted((gold_names or symbols(gold)) & symbols(gold))
        offered = sorted((answer_names or symbols(answer)) & symbols(answer))
        if wanted != offered and len(wanted) == len(offered) and not set(offered) & symbols(gold):
            answer = renamed(answer, dict(zip(offered, wanted, strict=True)))
    return gold, answer


class Comparison:
    """One policy's way through two trees."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def same(self, gold: Node, answer: Node) -> Outcome:  # noqa: PLR0911, PLR0912
        if type(gold) is Num and type(answer) is Num and gold.value == answer.value:
            return SAME_NUMBER
        gold, answer = as_measure(gold), as_measure(answer)
        if isinstance(gold, VALUES) and isinstance(answer, VALUES):
            return self.values(gold, answer)
        gold, answer = _plain(gold), _plain(answer)
        if isinstance(gold, VALUES) and isinstance(answer, VALUES):
            return self.values(gold, answer)
        if isinstance(gold, Text) or isinstance(answer, Text):
            return _same_text(gold, answer)
        if isinstance(gold, Measure) or isinstance(answer, Measure):
            if isinstance(gold, (Measure, *VALUES)) and isinstance(answer, (Measure, *VALUES)):
                return self.measures(gold, answer)
        if isinstance(answer, Chain) and not isinstance(gold, Chain) and _is_repeated_list(answer):
            return self._chain_of_values(gold, answer)
        if _is_list(gold) or _is_list(answer):
            lists = self.lists(gold, answer)
            if lists is not None:
                return lists
        if realset.looks_like_set(gold) or realset.looks_like_set(answer):
            return self.sets(gold, answer)
        if isinstance(gold, Chain) or isinstance(answer, Chain):
            return self.relations(gold, answer)
        if isinstance(gold, (Group, Matrix)) or isinstance(answer, (Group, Matrix)):
            return self.ordered(gold, answer)
        if isinstance(gold, Ratio) or isinstance(answer, Ratio):
            return self.ratios(gold, answer)
        if isinstance(gold, BaseN) or isinstance(answer, BaseN):
            return self.numerals(gold, answer)
        if isinstance(gold, Clock) or isinstance(answer, Clock):
            return _clocks(gold, answer)
        if isinstance(gold, Named) or isinstance(answer, Named):
            return Outcome(_name_of(gold) is not None and _name_of(gold) == _name_of(answer), "words")
        return OTHER_STRUCTURE

    # -- values

    def values(self, gold: Node, answer: Node) -> Outcome:
        found = same_value(gold, answer)
        if found.same:
            return Outcome(True, found.rung)
        if agrees_when_rounded(gold, answer, self.policy):
            return Outcome(True, "rounding")
        if found.same is False and self.policy.constant == "optional" and self._same_but_constant(gold, answer):
            return Outcome(True, found.rung)
        if found.same is False and (answer_constants := self._other_constant(gold, answer)) is not None:
            return self.values(gold, answer_constants)
        return Outcome(found.same, found.rung)

    def _other_constant(self, gold: Node, answer: Node) -> Node | None:
        """x^2+K for x^2+C: the answer with gold's name for the constant of integration."""
        wanted, offered = _added_constant(gold), _added_constant(answer)
        if wanted is None or offered is None or wanted == offered or offered in symbols(gold):
            return None
        return renamed(answer, {offered: wanted})

    def _same_but_constant(self, gold: Node, answer: Node) -> bool:
        name = _added_constant(gold)
        if name is None or _added_constant(answer) is not None:
            return False
        return same_value(substituted(gold, name, Num(mpq(0))), answer).same is True

    # -- units

    def measures(self, gold: Node, answer: Node) -> Outcome:
        value, unit = (gold.value, gold.unit) if isinstance(gold, Measure) else (gold, None)
        offered, other = (answer.value, answer.unit) if isinstance(answer, Measure) else (answer, None)
        policy = self.policy
        if policy.units == "strict" and unit is not None and not unit.is_label and other is None:
            return Outcome(False, "units")
        if PERCENT in (unit, other):
            return self._percentages(value, unit == PERCENT, offered, other == PERCENT)
        if DEGREE in (unit, other) and (unit, other) != (DEGREE, DEGREE):
            outcome = self._angles(value, unit == DEGREE, offered, other == DEGREE, unit or other == RADIAN)
            if outcome.same:
                return outcome
        if policy.units == "ignore" or unit is None or other is None or unit.is_label or other.is_label:
            return self.values(value, offered)
        if unit.dimension != other.dimension:
            return Outcome(False, "units")
        if unit.factor == other.factor:
            return self.values(value, offered)
        return self.values(value, Mul((Num(other.factor / unit.factor), offered)))

    def _percentages(self, gold: Node, gold_is: bool, answer: Node, answer_is: bool) -> Outcome:
        if gold_is == answer_is:
            return self.values(gold, answer)
        if gold_is:
            as_written = self.values(gold, answer)
            return as_written if as_written.same else self.values(_hundredth(gold), answer)
        as_value = self.values(gold, _hundredth(answer))
        if as_value.same or self.policy.percent == "value":
            return as_value
        return self.values(gold, answer)

    def _angles(self, gold: Node, gold_is: bool, answer: Node, answer_is: bool, other: object) -> Outcome:
        """30 degrees against a bare number: as many degrees, or as many radians."""
        if self.policy.degrees == "convert":
            wanted = Call("degree", (gold,)) if gold_is else gold
            offered = Call("degree", (answer,)) if answer_is else answer
            if same_value(wanted, offered).same:
                return Outcome(True, "units")
        return Outcome(False, "units")

    # -- shapes

    def lists(self, gold: Node, answer: Node) -> Outcome | None:
        """Lists and finite sets. None where sets of numbers are meant."""
        if _holds_conditions(gold) or _holds_conditions(answer):
            return None
        wanted, offered = _items(gold), _items(answer)
        if wanted is None or offered is None:
            return None
        if len(wanted) != len(offered):
            wanted, offered = _choices(gold) or wanted, _choices(answer) or offered
        wanted, offered, aligned = self._aligned(wanted, offered)
        if len(wanted) != len(offered) and (_is_set(gold) or _is_set(answer)):
            wanted, offered = self._distinct(wanted), self._distinct(offered)
        if len(wanted) != len(offered):
            among = len(wanted) < len(offered) and all(any(self.same(w, o).same for o in offered) for w in wanted)
            return Outcome(False, "structure", hedged=among)
        ordered = self.policy.order == "ordered" or (
            self.policy.order == "auto"
            and (aligned or _is_tuple(gold) or _is_tuple(answer) or _labels_differ(wanted, offered))
        )
        return self._elementwise(wanted, offered) if ordered else self._matched(wanted, offered)

    def _aligned(self, wanted: list[Node], offered: list[Node]) -> tuple[list[Node], list[Node], bool]:
        """a=1, b=2 against b=2, a=1: in gold's order."""
        labels, others = [label_of(item) for item in wanted], [label_of(item) for item in offered]
        if None in labels or len(set(labels)) < len(labels) or sorted(map(str, labels)) != sorted(map(str, others)):
            return wanted, offered, False
        return wanted, [offered[others.index(label)] for label in labels], len(labels) > 1

    def _distinct(self, items: list[Node]) -> list[Node]:
        kept: list[Node] = []
        for item in items:
            if not any(self.same(other, item).same for other in kept):
                kept.append(item)
        return kept

    def _elementwise(self, wanted: list[Node], offered: list[Node]) -> Outcome:
        rung = "structure"
        for one, other in zip(wanted, offered, strict=True):
            outcome = self.same(one, other)
            if not outcome.same:
                return Outcome(outcome.same, outcome.rung)
            rung = outcome.rung if outcome.rung != "exact" else rung
        return Outcome(True, rung)

    def _matched(self, wanted: list[Node], offered: list[Node]) -> Outcome:
        left = list(offered)
        undecided = False
        for one in wanted:
            for other in left:
                outcome = self.same(one, other)
                undecided |= outcome.same is None
                if outcome.same:
                    left.remove(other)
                    break
            else:
                return Outcome(None if undecided else False, "structure")
        return SAME_STRUCTURE

    def ordered(self, gold: Node, answer: Node) -> Outcome:
        """Tuples, vectors, matrices."""
        if isinstance(gold, Matrix) and isinstance(answer, Matrix):
            return self._matrices(gold, answer)
        if isinstance(gold, Group) and isinstance(answer, Group):
            if (gold.opening == "{") != (answer.opening == "{") or len(gold.items) != len(answer.items):
                return OTHER_STRUCTURE
            return self._elementwise(list(gold.items), list(answer.items))
        wanted, offered = _as_vector(gold), _as_vector(answer)
        if wanted is None or offered is None or len(wanted) != len(offered):
            return OTHER_STRUCTURE
        return self._elementwise(wanted, offered)

    def _matrices(self, gold: Matrix, answer: Matrix) -> Outcome:
        if [len(row) for row in gold.rows] != [len(row) for row in answer.rows]:
            wanted, offered = _as_vector(gold), _as_vector(answer)
            if wanted is None or offered is None or len(wanted) != len(offered):
                return OTHER_STRUCTURE
            return self._elementwise(wanted, offered)
        cells = [cell for row in gold.rows for cell in row], [cell for row in answer.rows for cell in row]
        return self._elementwise(*cells)

    def sets(self, gold: Node, answer: Node) -> Outcome:
        try:
            wanted, offered = realset.pieces_of(gold), realset.pieces_of(_as_set(answer))
        except realset.NoSet:
            return self.other_sets(gold, answer)
        if not _subjects_agree(gold, answer):
            return OTHER_STRUCTURE
        same = realset.same_set(wanted, offered, lambda a, b: self.values(a, b).same is True)
        return Outcome(same, "structure")

    def other_sets(self, gold: Node, answer: Node) -> Outcome:
        """Sets and conditions that are compared as they are written."""
        if isinstance(gold, SetOps) and isinstance(answer, SetOps) and gold.operator == answer.operator:
            if len(gold.parts) != len(answer.parts):
                return UNDECIDED
            pair = list(gold.parts), list(answer.parts)
            return self._elementwise(*pair) if gold.operator == "minus" else self._matched(*pair)
        if isinstance(gold, SetOf) and isinstance(answer, SetOf):
            return self._elementwise([gold.element, gold.condition], [answer.element, answer.condition])
        if isinstance(gold, Chain) and isinstance(answer, Chain):
            return self.relations(gold, answer)
        if isinstance(gold, Chain) and gold.operators == ("in",):
            return self.same(gold.parts[1], answer)
        if isinstance(answer, Chain) and answer.operators == ("in",):
            return self.same(gold, answer.parts[1])
        if isinstance(gold, Group) and isinstance(answer, Group):
            if (gold.opening, gold.closing) != (answer.opening, answer.closing):
                return OTHER_STRUCTURE
            return self.ordered(gold, answer)
        if isinstance(gold, Items) and isinstance(answer, Items) and len(gold.items) == len(answer.items):
            return self._matched(list(gold.items), list(answer.items))
        if isinstance(gold, Chain) or isinstance(answer, Chain):
            return self.relations(gold, answer)
        return OTHER_STRUCTURE

    def relations(self, gold: Node, answer: Node) -> Outcome:
        """Equations, labels in front of values, chains of equal values."""
        label, value = labelled(gold)
        other, offered = labelled(answer)
        if value is not None and offered is not None:
            if label is not None and other is not None and label != other and {label, other} & COORDINATES:
                return self.equations(gold, answer) if {label, other} <= COORDINATES else self.same(value, offered)
            outcome = self._renamed_argument(gold, answer, value, offered)
            if outcome.same or not (isinstance(gold, Chain) and isinstance(answer, Chain)):
                return outcome
            return outcome if label is not None and other is not None else self.equations(gold, answer)
        if isinstance(gold, Chain) and isinstance(answer, Chain):
            return self.equations(gold, answer)
        if isinstance(gold, Chain) and gold.operators[0] == "=" and isinstance(answer, VALUES):
            sides = [part for part in gold.parts if not isinstance(part, VALUES) or not symbols(part)]
            if len(gold.parts) == 2 and len(sides) == 1 and isinstance(gold.parts[0], (Mul, Ratio, Sym, Call, Pow)):
                named = gold.parts[1]
                return self.same(named, answer) if not symbols(named) else OTHER_STRUCTURE
        if isinstance(gold, Chain) and isinstance(gold.parts[0], Ratio) and gold.operators == ("=",):
            return self.same(gold.parts[1], answer)
        return self._chain_of_values(gold, answer)

    def _chain_of_values(self, gold: Node, answer: Node) -> Outcome:
        """6*7 = 42 is one answer said twice; 6 = 5 is two, whichever of them is right."""
        if not isinstance(answer, Chain) or isinstance(gold, Chain):
            return OTHER_STRUCTURE
        parts = list(answer.parts)
        if set(answer.operators) <= {"=", "~"} and "~" in answer.operators:
            parts = parts[: answer.operators.index("~") + 1]
            if len(parts) == 1 and isinstance(parts[0], Sym):
                parts = list(answer.parts[1:])
            return self.same(gold, parts[0] if len(parts) == 1 else Chain(tuple(parts), ("=",) * (len(parts) - 1)))
        if set(answer.operators) != {"="}:
            return OTHER_STRUCTURE
        outcomes = [self.same(gold, part) for part in parts]
        if all(outcome.same for outcome in outcomes):
            return outcomes[0]
        return Outcome(False, "structure", hedged=any(outcome.same for outcome in outcomes))

    def _renamed_argument(self, gold: Node, answer: Node, value: Node, offered: Node) -> Outcome:
        """f(n)=n^2 is f(x)=x^2."""
        if isinstance(gold, Chain) and isinstance(answer, Chain):
            wanted, given = _argument(gold.parts[0]), _argument(answer.parts[0])
            if wanted and given and wanted != given and wanted not in symbols(offered):
                offered = renamed(offered, {given: wanted})
        return self.same(value, offered)

    def equations(self, gold: Node, answer: Node) -> Outcome:
        assert isinstance(gold, Chain) and isinstance(answer, Chain)
        if len(gold.operators) != 1 or len(answer.operators) != 1:
            return self._chains(gold, answer)
        if not all(isinstance(part, VALUES) for part in (*gold.parts, *answer.parts)):
            return self._chains(gold, answer)
        left, right = _difference(gold), _difference(answer)
        first, second = gold.operators[0], answer.operators[0]
        if first == second == "=":
            found = proportional(left, right)
            if found.same is False and (self._solved(gold, right) or self._solved(answer, left)):
                return Outcome(True, "sampled")
            return Outcome(found.same, found.rung)
        return self._inequalities(left, first, right, second)

    def _inequalities(self, left: Node, first: str, right: Node, second: str) -> Outcome:
        if first in (">", ">="):
            left, first = Mul((MINUS_ONE, left)), {">": "<", ">=": "<="}[first]
        if second in (">", ">="):
            right, second = Mul((MINUS_ONE, right)), {">": "<", ">=": "<="}[second]
        if first != second:
            return OTHER_STRUCTURE
        found = proportional(left, right)
        if not found.same or first == "!=":
            return Outcome(found.same, found.rung)
        return Outcome(sign_of_ratio(left, right) == 1, "sampled")

    def _solved(self, solved: Chain, difference: Node) -> bool:
        """y = f(x) puts the other equation's sides equal, and that one is linear in y."""
        label, value = labelled(solved)
        if label is None or value is None or not isinstance(value, VALUES) or label in symbols(value):
            return False
        if (
            label not in symbols(difference)
            or same_value(substituted(difference, label, value), Num(mpq(0))).same is not True
        ):
            return False
        at = [substituted(difference, label, Num(mpq(n))) for n in (0, 1, 2)]
        curvature = Add((at[0], Mul((Num(mpq(-2)), at[1])), at[2]))
        return same_value(curvature, Num(mpq(0))).same is True

    def _chains(self, gold: Chain, answer: Chain) -> Outcome:
        if gold.operators != answer.operators:
            if [_REVERSED.get(op) for op in reversed(answer.operators)] == list(gold.operators):
                return self._elementwise(list(gold.parts), list(reversed(answer.parts)))
            return OTHER_STRUCTURE
        return self._elementwise(list(gold.parts), list(answer.parts))

    def ratios(self, gold: Node, answer: Node) -> Outcome:
        wanted, offered = _ratio_parts(gold), _ratio_parts(answer)
        if wanted is None or offered is None or len(wanted) != len(offered):
            return OTHER_STRUCTURE
        found = Finding(True, "exact")
        for one, other in zip(wanted[1:], offered[1:], strict=True):
            found = same_value(Mul((wanted[0], other)), Mul((one, offered[0])))
            if not found.same:
                return Outcome(found.same, found.rung)
        return Outcome(True, found.rung)

    def numerals(self, gold: Node, answer: Node) -> Outcome:
        """101_2: the digits and the base; what a bare number says is the policy's."""
        if isinstance(gold, BaseN) and isinstance(answer, BaseN):
            same = gold.base == answer.base and gold.digits.lstrip("0") == answer.digits.lstrip("0")
            return Outcome(same, "structure")
        numeral, other = (gold, answer) if isinstance(gold, BaseN) else (answer, gold)
        assert isinstance(numeral, BaseN)
        value = rational(other) if isinstance(other, VALUES) else None
        if value is None or value.denominator != 1:
            return OTHER_STRUCTURE
        if isinstance(answer, BaseN) or self.policy.base == "value":
            if value == base_value(numeral):
                return Outcome(True, "exact")
        if self.policy.base == "required" and isinstance(gold, BaseN):
            return OTHER_STRUCTURE
        return Outcome(isinstance(gold, BaseN) and str(value) == numeral.digits, "structure")


_REVERSED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}


def labelled(node: Node) -> tuple[str | None, Node | None]:
    """The name and value of `x = 5`; a bare value has no name; an equation has neither."""
    if not isinstance(node, Chain):
        return None, node
    if node.operators[0] == "=":
        first, rest = node.parts[0], node.parts[1:]
        label = label_of(node)
        if label is None and (_is_label(first) or _is_tuple_of_names(first, rest[0])):
            label = "?"
        if label is not None and label not in symbols_of(rest):
            value = rest[0] if len(rest) == 1 else Chain(tuple(rest), node.operators[1:])
            return label, value
    return None, None


def symbols_of(nodes: tuple[Node, ...]) -> frozenset[str]:
    names: frozenset[str] = frozenset()
    for node in nodes:
        names |= symbols(node)
    return names


def _is_tuple_of_names(first: Node, value: Node) -> bool:
    """(x, y) = (8, -2)"""
    return (
        isinstance(first, Group)
        and isinstance(value, Group)
        and len(first.items) == len(value.items)
        and all(isinstance(item, Sym) for item in first.items)
        and not symbols(first) & symbols(value)
    )


def _is_label(node: Node) -> bool:
    """S(n), W(x), AB, |AB|, \\cos A, f^{-1}(x): what stands for one thing."""
    if isinstance(node, Call):
        return bool(symbols(node)) and all(isinstance(arg, (Sym, Mul)) for arg in node.args)
    if isinstance(node, Mul) and len(node.factors) == 2 and isinstance(node.factors[0], Pow):
        return (
            isinstance(node.factors[0].base, Sym)
            and node.factors[0].base.name in "fghFGH"
            and isinstance(node.factors[1], Sym)
        )
    if isinstance(node, (Mul, Ratio)):  # of segments: NO/BO, A:B
        return all(isinstance(part, (Mul, Pow, Ratio, Num)) or (isinstance(part, Sym) and part.name[0].isupper()) for part in walk(node)) and bool(symbols(node)) and not any(isinstance(part, Num) and part.value != -1 for part in walk(node))
    if isinstance(node, Pow):
        return isinstance(node.base, Sym) and isinstance(node.exponent, Sym) and node.exponent.name == "*"
    return isinstance(node, Sym)


def _argument(label: Node) -> str | None:
    """The variable of f(x)."""
    if isinstance(label, Call) and len(label.args) == 1 and isinstance(label.args[0], Sym):
        return label.args[0].name
    return None


def _difference(chain: Chain) -> Node:
    return Add((chain.parts[0], Mul((MINUS_ONE, chain.parts[1]))))


def _is_list(node: Node) -> bool:
    return isinstance(node, Items) or _is_set(node)


def _is_set(node: Node) -> bool:
    return isinstance(node, Group) and node.opening == "{"


def _is_repeated_list(node: Chain) -> bool:
    """{1, 2} = {2, 1}"""
    parts = node.parts
    lists = set(node.operators) == {"="} and all(isinstance(part, (Items, Group, Matrix)) for part in parts)
    return lists and not _is_tuple_of_names(parts[0], parts[1])


def _is_tuple(node: Node) -> bool:
    return (isinstance(node, Group) and node.opening in "(<[") or isinstance(node, Matrix)


def _choices(node: Node) -> list[Node] | None:
    """ABD as the letters of three choices."""
    if isinstance(node, Mul) and all(isinstance(f, Sym) and f.name in "ABCDEFGH" for f in node.factors):
        return list(node.factors)
    return None


def _plain(node: Node) -> Node:
    """A(2, 3) is the point (2, 3) with its name; [11] is 11, as programs print it."""
    if isinstance(node, Group) and node.opening == "[" and node.closing == "]" and len(node.items) == 1:
        return node.items[0]
    if isinstance(node, Mul) and len(node.factors) == 2:
        name, place = node.factors
        if isinstance(name, Sym) and isinstance(place, Group) and len(place.items) > 1 and place.opening == "(":
            return place
    if isinstance(node, Call) and node.applied and len(node.args) > 1:
        return Group("(", ")", node.args)
    return node


def _items(node: Node) -> list[Node] | None:
    if isinstance(node, Items):
        flat: list[Node] = []
        for item in node.items:
            flat.extend(
                item.items if isinstance(item, Items) and node.joined != ";" and len(node.items) == 1 else (item,)
            )
        return flat
    if isinstance(node, Group):
        return list(node.items)
    if isinstance(node, Matrix):
        return _as_vector(node)
    if isinstance(node, Chain):
        label, value = labelled(node)
        if label is not None and isinstance(value, (Items, Group)):
            return _items(value)
        if node.operators == ("in",) and isinstance(node.parts[1], Group):
            return list(node.parts[1].items) if node.parts[1].opening == "{" else None
        return [node]
    if isinstance(node, Named) and node.name == "empty":
        return []
    if isinstance(node, (SetOps, SetOf)):
        return None
    return [node]


def _holds_conditions(node: Node) -> bool:
    """Items such as `x > 1 and x < 3`, which are one set rather than a list."""
    if isinstance(node, (Items, Group)):
        return any(isinstance(item, (Chain, SetOps)) and realset.looks_like_set(item) for item in node.items) or (
            isinstance(node, Items)
            and any(isinstance(item, Group) and realset.looks_like_set(item) for item in node.items)
            and node.joined != ","
        )
    return isinstance(node, (SetOps, SetOf)) or (isinstance(node, Chain) and realset.looks_like_set(node))


def _labels_differ(wanted: list[Node], offered: list[Node]) -> bool:
    """One side names its items a and b, the other only lists them: then their order counts. x_1 and x_2 may swap."""
    labels, others = [label_of(item) for item in wanted], [label_of(item) for item in offered]
    named = labels if None not in labels else others if None not in others else None
    if named is None or (None not in labels and None not in others):
        return False
    return len({re.split(r"[_(]", str(label))[0] for label in named}) > 1


def _as_vector(node: Node) -> list[Node] | None:
    if isinstance(node, Group):
        return list(node.items) if node.opening != "{" else None
    if isinstance(node, Matrix):
        if len(node.rows) == 1:
            return list(node.rows[0])
        return [row[0] for row in node.rows] if all(len(row) == 1 for row in node.rows) else None
    return None


def _as_set(node: Node) -> Node:
    return Group("{", "}", (node,)) if isinstance(node, VALUES) else node


def _subjects_agree(gold: Node, answer: Node) -> bool:
    """x > 3 is not y > 3."""
    wanted, offered = _coordinate(gold), _coordinate(answer)
    return wanted is None or offered is None or wanted == offered


def _coordinate(node: Node) -> str | None:
    if isinstance(node, Chain):
        names = [part.name for part in node.parts if isinstance(part, Sym)]
        return names[0] if len(names) == 1 and names[0] in COORDINATES else None
    return None


def _ratio_parts(node: Node) -> tuple[Node, ...] | None:
    if isinstance(node, Ratio):
        return node.parts
    if isinstance(node, Chain):
        value = labelled(node)[1]
        return _ratio_parts(value) if value is not None and not isinstance(value, Chain) else None
    return (node, Num(mpq(1))) if isinstance(node, VALUES) else None


def _hundredth(node: Node) -> Node:
    if isinstance(node, Num):
        return Num(node.value / 100, None if node.decimals is None else node.decimals + 2)
    return Mul((Num(mpq(1, 100)), node))


def _added_constant(node: Node) -> str | None:
    """The C of x^2 + C."""
    if isinstance(node, Add):
        names = [term.name for term in node.terms if isinstance(term, Sym) and term.name[0] in "CcKk"]
        if len(names) == 1:
            others = symbols_of(tuple(t for t in node.terms if not (isinstance(t, Sym) and t.name == names[0])))
            return names[0] if names[0] not in others else None
    return None


def _same_text(gold: Node, answer: Node) -> Outcome:
    wanted, offered = _words(gold), _words(answer)
    if wanted is not None and offered is not None:
        same = wanted == offered or "".join(wanted) == "".join(offered)
        if same or _predicate(gold) == offered or _predicate(answer) == wanted:
            return Outcome(True, "words")
    sentence = isinstance(gold, Text) and len(gold.words) > MAX_PHRASE_WORDS
    return Outcome(None if sentence else False, "words")


def _predicate(node: Node) -> tuple[str, ...] | None:
    """`odd` of `the function is odd`, which answers as well as the sentence."""
    if isinstance(node, Text) and "is" in node.words:
        after = node.words[len(node.words) - node.words[::-1].index("is") :]
        return tuple(word for word in after if word not in STOP_WORDS) or None
    return None


def _words(node: Node) -> tuple[str, ...] | None:
    if isinstance(node, Text):
        return tuple(word for word in node.words if word not in STOP_WORDS) or node.words
    if isinstance(node, Named):
        return tuple(node.name.split())
    if isinstance(node, Sym):
        return (node.name.lower(),)
    if isinstance(node, Mul) and all(isinstance(factor, Sym) for factor in node.factors):
        return ("".join(factor.name for factor in node.factors if isinstance(factor, Sym)).lower(),)
    return None


def _name_of(node: Node) -> str | None:
    """The value that a name stands for; NO reads as a product of N and O."""
    if isinstance(node, Named):
        return node.name
    words = _words(node)
    return NAMED_WORDS.get("".join(words)) if words is not None else None


def _clocks(gold: Node, answer: Node) -> Outcome:
    if isinstance(gold, Clock) and isinstance(answer, Clock):
        return Outcome(gold.minutes == answer.minutes, "structure")
    clock, other = (gold, answer) if isinstance(gold, Clock) else (answer, gold)
    assert isinstance(clock, Clock)
    minutes = clock.minutes % 720
    if isinstance(other, Ratio) and len(other.parts) == 2:
        hour, minute = rational(other.parts[0]), rational(other.parts[1])
        if hour is not None and minute is not None:
            return Outcome(hour * 60 + minute in (clock.minutes, minutes, minutes + 720), "structure")
    if isinstance(other, Num) and clock.minutes % 60 == 0:
        return Outcome(other.value * 60 in (minutes, minutes + 720), "structure")
    return OTHER_STRUCTURE
