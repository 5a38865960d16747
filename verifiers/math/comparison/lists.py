r"""Compares lists, finite sets, tuples, vectors and matrices. Elements are paired by their labels or their order:

    a=1, b=2        b=2, a=1           by label
    (3, -4)         y=-4, x=3          by label: a tuple has its labels in alphabetical order
    3, 1            min: 1, max: 3     by size: the larger value is the maximum

For lists without labels and brackets, the policy decides whether the order matters.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from truegold.verifiers.math import tree
from truegold.verifiers.math.comparison.labels import is_word, matched_labels, numbers_parts
from truegold.verifiers.math.comparison.measured import real_value
from truegold.verifiers.math.policy import OPEN, OTHER_STRUCTURE, SAME_STRUCTURE, Policy, Sameness

_LABEL_STEM = re.compile(r"[^_(]*")
"""The start of a label: the x of x_1, the P of P(A)."""
_EXTREMES = {"max", "min"}
"""Labels of two values that are paired by size."""
TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
"""Maps a relation of numbers to the relation read from right to left."""
MIRRORED = TURNED | {
    "subset": "supset", "supset": "subset", "subseteq": "supseteq", "supseteq": "subseteq", "in": "ni", "ni": "in",
    **{operator: operator for operator in ("~", "sim", "cong", "perp", "||", "==", "<=>")},
}  # fmt: skip
"""Maps a relation, also one of sets or of figures, to the relation read from right to left."""
_CONDITIONS = frozenset({"<", ">", "<=", ">=", "!=", "in"})
"""Relations of conditions, which describe sets."""
_SHOWN_TERMS = 3
"""Minimum number of terms before the dots of a sequence."""
_CHOICE_LETTERS = "ABCDEFGH"


class Comparison(Protocol):
    """Compares two trees under one policy. The modules of the shapes call `same` for the parts of a shape."""

    @property
    def policy(self) -> Policy:
        """The policy of the comparison."""

    def same(self, gold: tree.Node, answer: tree.Node) -> Sameness:
        """Compare two trees. Raises TooLarge if a value exceeds a limit."""


class Alignment(NamedTuple):
    """The elements of both sides in matching order."""

    gold: list[tree.Node]
    answer: list[tree.Node]
    ordered: bool = False
    """Whether the order matters."""
    surely: bool = True
    """Whether the labels determine the order. Otherwise another order may be meant."""


def aligned(gold_elements: list[tree.Node], answer_elements: list[tree.Node]) -> Alignment:
    """Return the elements in matching order: b=2, a=1 becomes a=1, b=2, and y=-4, x=3 gets the order of (3, -4)."""
    gold_labels, answer_labels = labels_of(gold_elements), labels_of(answer_elements)
    if _are_names(gold_labels) and _are_names(answer_labels):
        if (order := matched_labels(gold_labels, answer_labels)) is not None:
            return Alignment(gold_elements, [answer_elements[index] for index in order], len(order) > 1)
        only_one_side_numbers = numbers_parts(gold_labels) != numbers_parts(answer_labels)
        if only_one_side_numbers or any(map(is_word, (*gold_labels, *answer_labels))):
            return Alignment(gold_elements, answer_elements, ordered=True, surely=only_one_side_numbers)
    elif (
        _are_names(answer_labels) and set(answer_labels) == _EXTREMES and (pair := _by_size(gold_elements)) is not None
    ):
        # The larger value is the maximum, whether gold lists it first or last.
        return Alignment(pair, _sorted_by_label(answer_elements, answer_labels), ordered=True)
    elif _are_names(answer_labels) and None in gold_labels and _follow_the_alphabet(answer_labels):
        return Alignment(gold_elements, _sorted_by_label(answer_elements, answer_labels), len(answer_labels) > 1)
    elif _are_names(gold_labels) and None in answer_labels and _follow_the_alphabet(gold_labels):
        return Alignment(_sorted_by_label(gold_elements, gold_labels), answer_elements, len(gold_labels) > 1)
    return Alignment(gold_elements, answer_elements, _labels_differ(gold_labels, answer_labels))


def _by_size(elements: list[tree.Node]) -> list[tree.Node] | None:
    """Return two values with the larger one first, or None if there are not two real values."""
    parts = [element.value if isinstance(element, tree.Measure) else element for element in elements]
    known = [size for part in parts if isinstance(part, tree.VALUES) and (size := real_value(part)) is not None]
    if not len(known) == len(elements) == len(_EXTREMES):
        return None
    return elements if known[0] > known[1] else elements[::-1]


def labels_of(elements: list[tree.Node]) -> list[str | None]:
    """Return the label of each element: the x of `x = 3`, the noun of `3 apples`, or None."""
    labels = [_label_of(element) for element in elements]
    if len(set(labels)) < len(labels) and None not in labels:
        # P(A) and P(B) have the same name, so the whole left side is the label.
        labels = [tree.show(part.parts[0]) if isinstance(part, tree.Chain) else None for part in elements]
    return labels


def named_elements(node: tree.Chain) -> list[tree.Node] | None:
    """Return an equation for each name: x=2 and y=5 for (x, y) = (2, 5), and x=1 and y=1 for x = y = 1.

    Return None for other relations.
    """
    first, value = node.parts[0], node.parts[-1]
    names = node.parts[:-1]
    if set(node.operators) == {"="} and len(names) > 1 and all(isinstance(name, tree.Sym) for name in names):
        return (
            None if isinstance(value, (tree.Sym, tree.Chain)) else [tree.Chain((name, value), ("=",)) for name in names]
        )
    if node.operators != ("=",) or not tree.is_tuple_of_names(first, value):
        return None
    assert isinstance(first, tree.Group) and isinstance(value, tree.Group)
    return [tree.Chain((name, part), ("=",)) for name, part in zip(first.elements, value.elements, strict=True)]


def _label_of(element: tree.Node) -> str | None:
    if isinstance(element, tree.Measure):
        return (element.unit.label or None) if element.unit.is_label else None
    if (label := tree.label_of(element)) is None and isinstance(element, tree.Chain) and element.operators[0] == "=":
        # In AB = 3 the product AB is a label.
        return tree.show(element.parts[0]) if tree.labelled(element)[0] == tree.ANY_LABEL else None
    return label


def _are_names(labels: list[str | None]) -> bool:
    """Tell whether every element has a label, without repetition."""
    return None not in labels and len(set(labels)) == len(labels) and bool(labels)


def _follow_the_alphabet(labels: list[str | None]) -> bool:
    """Tell whether the labels are neighbours in the alphabet, such as x, y, z or p, q."""
    letters = sorted(str(label) for label in labels)
    if any(len(letter) != 1 for letter in letters):
        return False
    return all(ord(b) - ord(a) == 1 for a, b in itertools.pairwise(letters))


def _sorted_by_label(elements: list[tree.Node], labels: list[str | None]) -> list[tree.Node]:
    return [element for _, element in sorted(zip(map(str, labels), elements, strict=True), key=lambda pair: pair[0])]


def _labels_differ(gold_labels: list[str | None], answer_labels: list[str | None]) -> bool:
    """Tell whether labels are different names, such as a and b, whose order matters. x_1 and x_2 may be swapped."""
    sides = [labels for labels in (gold_labels, answer_labels) if None not in labels]
    return bool(sides) and all(
        len({match.group() for label in labels if (match := _LABEL_STEM.match(str(label)))}) > 1 for labels in sides
    )


def same_lists(comparer: Comparison, gold: tree.Node, answer: tree.Node) -> Sameness | None:  # noqa: PLR0911, one a kind
    """Compare lists and finite sets. Return None if a side is another set of numbers, such as an interval."""
    if _holds_conditions(gold) or _holds_conditions(answer):
        return None
    gold_elements, answer_elements = _elements_of(gold), _elements_of(answer)
    if gold_elements is None or answer_elements is None:
        return None
    if len(gold_elements) != len(answer_elements):
        gold_elements, answer_elements = _choices(gold) or gold_elements, _choices(answer) or answer_elements
    if len(gold_elements) == len(answer_elements) == 1 and _is_set(gold) != _is_set(answer):
        outcome = comparer.same(gold_elements[0], answer_elements[0])
        # \\{x\\} may be the fractional part of x. A set of one number equals the number.
        is_open = outcome.same and _is_letter(gold_elements[0]) and not isinstance(gold, tree.Chain)
        if is_open and not isinstance(answer, tree.Chain):
            return OPEN if _is_set(gold) else OTHER_STRUCTURE
    if all(len(part) > _SHOWN_TERMS and tree.is_dots(part[-1]) for part in (gold_elements, answer_elements)):
        return _same_beginnings(comparer, gold_elements[:-1], answer_elements[:-1])
    is_set_and_tuple = (_is_set(gold) and _is_tuple(answer)) or (_is_tuple(gold) and _is_set(answer))
    if is_set_and_tuple and None in labels_of(gold_elements) and None in labels_of(answer_elements):
        return _same_set_and_tuple(comparer, gold_elements, answer_elements)
    gold_elements, answer_elements, ordered, surely = aligned(gold_elements, answer_elements)
    if len(gold_elements) != len(answer_elements) and (_is_set(gold) or _is_set(answer)):
        gold_elements, answer_elements = _distinct(comparer, gold_elements), _distinct(comparer, answer_elements)
    if len(gold_elements) != len(answer_elements):
        holds = (any(comparer.same(part, other).same for other in answer_elements) for part in gold_elements)
        return Sameness(False, "structure", hedged=len(gold_elements) < len(answer_elements) and all(holds))
    if says_other_connective(gold, answer):
        return OTHER_STRUCTURE
    order = comparer.policy.order
    if order == "auto":
        order = "ordered" if ordered or _is_tuple(gold) or _is_tuple(answer) else "unordered"
    join = elementwise if order == "ordered" else matched
    outcome = join(comparer, gold_elements, answer_elements)
    # Tom: 4, Ann: 6 and Bob: 4, Eve: 6 may be about different people.
    return OPEN if outcome.same and not surely else outcome


def says_other_connective(gold: tree.Node, answer: tree.Node) -> bool:
    """Tell whether one side joins with `and`, as in `x = 1 and y = 2`, and the other with `or`.

    Values of a single unknown may be joined by either word.
    """
    if not (isinstance(gold, tree.BareList) and isinstance(answer, tree.BareList)):
        return False
    if {gold.joined, answer.joined} != {"and", "or"}:
        return False
    labels = labels_of(list(gold.elements))
    unlabelled = [element for element, label in zip(gold.elements, labels, strict=True) if label is None]
    return len({*labels} - {None}) > 1 or not all(map(_is_constant, unlabelled))


def _is_letter(node: tree.Node) -> bool:
    return isinstance(node, tree.VALUES) and bool(tree.symbols(node))


def _is_constant(node: tree.Node) -> bool:
    return isinstance(node, (*tree.VALUES, tree.Measure)) and not tree.symbols(node)


def _same_beginnings(comparer: Comparison, gold: list[tree.Node], answer: list[tree.Node]) -> Sameness:
    """Compare 1, 3, 5, ... with 1, 3, 5, 7, .... If a side has more terms, its steps or ratios must be equal."""
    shown = min(len(gold), len(answer))
    for a, b, c in zip(longer := max(gold, answer, key=len), longer[1:], longer[2:], strict=False):
        is_even = (
            comparer.same(tree.Add((a, c)), tree.Add((b, b))).same
            or comparer.same(tree.Mul((a, c)), tree.Mul((b, b))).same
        )
        if len(gold) != len(answer) and not is_even:
            return OTHER_STRUCTURE
    return elementwise(comparer, gold[:shown], answer[:shown])


def _same_set_and_tuple(
    comparer: Comparison, gold_elements: list[tree.Node], answer_elements: list[tree.Node]
) -> Sameness:
    """Compare a set with a tuple. If both have the same elements in the same order, the result is open."""
    if len(gold_elements) != len(answer_elements):
        return OTHER_STRUCTURE
    outcome = elementwise(comparer, gold_elements, answer_elements)
    return OPEN if outcome.same else outcome


def elementwise(comparer: Comparison, gold_parts: Sequence[tree.Node], answer_parts: Sequence[tree.Node]) -> Sameness:
    """Compare part by part. Both sides must have the same number of parts."""
    rung = "structure"
    for gold_part, answer_part in zip(gold_parts, answer_parts, strict=True):
        outcome = comparer.same(gold_part, answer_part)
        if not outcome.same:
            return Sameness(outcome.same, outcome.rung)
        rung = outcome.rung if outcome.rung != "exact" else rung
    return Sameness(True, rung)


def matched(comparer: Comparison, gold_parts: Sequence[tree.Node], answer_parts: Sequence[tree.Node]) -> Sameness:
    """Compare the parts in any order. Each part of the answer must match another part of gold."""
    unmatched = list(answer_parts)
    undecided = False
    for gold_part in gold_parts:
        for answer_part in unmatched:
            outcome = comparer.same(gold_part, answer_part)
            undecided |= outcome.same is None
            if outcome.same:
                unmatched.remove(answer_part)
                break
        else:
            return Sameness(None if undecided else False, "structure")
    if comparer.policy.rounding == "measured" and _says_twice(answer_parts) and not _says_twice(gold_parts):
        # The answer 2.51, 2.51 must not match 2.50, 2.51, although each value is close enough.
        return OTHER_STRUCTURE
    return SAME_STRUCTURE


def _says_twice(parts: Sequence[tree.Node]) -> bool:
    return len(set(map(tree.show, parts))) < len(parts)


def same_ordered(comparer: Comparison, gold: tree.Node, answer: tree.Node) -> Sameness:
    """Compare tuples, vectors and matrices."""
    if isinstance(gold, tree.Matrix) and isinstance(answer, tree.Matrix):
        if gold.bars == answer.bars and [len(row) for row in gold.rows] == [len(row) for row in answer.rows]:
            if _are_pieces(gold) and _are_pieces(answer):
                return matched(comparer, *([tree.Group("(", ")", row) for row in m.rows] for m in (gold, answer)))
            return elementwise(comparer, *([cell for row in matrix.rows for cell in row] for matrix in (gold, answer)))
    elif isinstance(gold, tree.Group) and isinstance(answer, tree.Group):
        if (gold.opening == "{") != (answer.opening == "{") or len(gold.elements) != len(answer.elements):
            return OTHER_STRUCTURE
        join = matched if comparer.policy.order == "unordered" else elementwise
        return join(comparer, gold.elements, answer.elements)
    gold_vector, answer_vector = _as_vector(gold), _as_vector(answer)
    if gold_vector is None or answer_vector is None or len(gold_vector) != len(answer_vector):
        return OTHER_STRUCTURE
    return elementwise(comparer, gold_vector, answer_vector)


def _are_pieces(node: tree.Matrix) -> bool:
    """Tell whether each row is a value with its condition, so that the order of the rows does not matter."""
    return all(len(row) == 2 and isinstance(row[1], (tree.Chain, tree.Text)) for row in node.rows)


def is_list(node: tree.Node) -> bool:
    """Tell whether a node is a bare list or a set in braces."""
    return isinstance(node, tree.BareList) or _is_set(node)


def _is_set(node: tree.Node) -> bool:
    """Tell whether a node is a set in braces."""
    return isinstance(node, tree.Group) and node.opening == "{"


def _elements_of(node: tree.Node) -> list[tree.Node] | None:
    """Return the elements of a list, or a bare value as the only element. Sets without a list of elements give None."""
    if isinstance(node, tree.BareList):
        lone = node.elements[0] if len(node.elements) == 1 else None
        return list(lone.elements if isinstance(lone, tree.BareList) and node.joined != ";" else node.elements)
    if isinstance(node, tree.Group):
        return list(node.elements)
    if isinstance(node, tree.Matrix):
        return _as_vector(node)
    if isinstance(node, tree.Chain):
        return _elements_of_chain(node)
    if isinstance(node, tree.Named) and node.name == "empty":
        return []
    return None if isinstance(node, (tree.SetOps, tree.SetOf)) else [node]


def _elements_of_chain(node: tree.Chain) -> list[tree.Node] | None:
    """Return the elements of `S = {1, 2}` and `x \\in {1, 2}`. Other relations are their only element."""
    if named := named_elements(node):
        return named
    label, value = tree.labelled(node)
    if label is not None and isinstance(value, (tree.BareList, tree.Group)):
        return _elements_of(value)
    if node.operators == ("in",) and isinstance(node.parts[1], tree.Group):
        return list(node.parts[1].elements) if node.parts[1].opening == "{" else None
    return [node]


def _is_tuple(node: tree.Node) -> bool:
    if isinstance(node, tree.Chain) and named_elements(node):
        return True
    return (isinstance(node, tree.Group) and node.opening in "(<[") or isinstance(node, tree.Matrix)


def _choices(node: tree.Node) -> list[tree.Node] | None:
    """Return the letters of ABD if they may be three options, or else None."""
    if isinstance(node, tree.Mul) and all(isinstance(f, tree.Sym) and f.name in _CHOICE_LETTERS for f in node.factors):
        return list(node.factors)
    return None


def _distinct(comparer: Comparison, elements: list[tree.Node]) -> list[tree.Node]:
    kept: list[tree.Node] = []
    for element in elements:
        if not any(comparer.same(other, element).same for other in kept):
            kept.append(element)
    return kept


def _holds_conditions(node: tree.Node) -> bool:
    """Tell whether a node describes one set by conditions or intervals, such as `x > 1 and x < 3`."""
    if isinstance(node, (tree.BareList, tree.Group)):
        if any(isinstance(element, (tree.Chain, tree.SetOps)) and looks_like_set(element) for element in node.elements):
            return True
        holds_intervals = any(isinstance(element, tree.Group) and looks_like_set(element) for element in node.elements)
        return isinstance(node, tree.BareList) and node.joined != "," and holds_intervals
    return isinstance(node, (tree.SetOps, tree.SetOf)) or (isinstance(node, tree.Chain) and looks_like_set(node))


def _as_vector(node: tree.Node) -> list[tree.Node] | None:
    if isinstance(node, tree.Group):
        return list(node.elements) if node.opening != "{" else None
    if isinstance(node, tree.Matrix):
        if len(node.rows) == 1:
            return list(node.rows[0])
        return [row[0] for row in node.rows] if all(len(row) == 1 for row in node.rows) else None
    return None


def is_repeated_list(node: tree.Chain) -> bool:
    """Tell whether a relation repeats a list, as in {1, 2} = {2, 1}."""
    parts = node.parts
    lists = set(node.operators) == {"="} and all(
        isinstance(part, (tree.BareList, tree.Group, tree.Matrix)) for part in parts
    )
    return lists and not tree.is_tuple_of_names(parts[0], parts[1])


def looks_like_set(node: tree.Node) -> bool:
    """Tell whether a node is a set or a condition rather than a value, a list or a tuple."""
    if isinstance(node, tree.Chain):
        return node.operators[0] in _CONDITIONS
    if isinstance(node, tree.Group):
        like_interval = node.opening == "[" or node.closing == "]" or any(map(is_infinite, node.elements))
        return like_interval and len(node.elements) == 2
    if isinstance(node, tree.BareList):
        return any(isinstance(element, tree.Chain) and looks_like_set(element) for element in node.elements)
    return isinstance(node, (tree.SetOps, tree.SetOf)) or (
        isinstance(node, tree.Named) and node.name in ("reals", "empty")
    )


def is_infinite(node: tree.Node) -> bool:
    """Tell whether a node is infinity or its opposite."""
    if isinstance(node, tree.Mul) and len(node.factors) == 2 and isinstance(node.factors[0], tree.Num):
        return is_infinite(node.factors[1])
    return isinstance(node, tree.Const) and node.name == "inf"
