r"""Which element of one list belongs to which of the other, where elements have names.

a=1, b=2        b=2, a=1           by their labels
(3, -4)         y=-4, x=3          a tuple names its elements in the order of the alphabet
1, 3            min: 1, max: 3     in the order that is written
"""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

from truegold.verifiers.math.labels import is_tuple_of_names, label_of
from truegold.verifiers.math.tree import Chain, Group, Measure, Node, Sym

_LABEL_STEM = re.compile(r"[^_(]*")
_MIN_WORD = 3
"""A label with so many letters is a word, and two different words are two different things."""


class Alignment(NamedTuple):
    """The elements of both sides in an order in which they can be compared."""

    gold: list[Node]
    answer: list[Node]
    ordered: bool = False
    """The order counts."""
    surely: bool = True
    """The order follows from the labels; else another one may be meant."""


def aligned(gold_elements: list[Node], answer_elements: list[Node]) -> Alignment:
    """Put b=2, a=1 in the order of gold's a=1, b=2, and y=-4, x=3 in that of the pair (3, -4)."""
    gold_labels, answer_labels = labels_of(gold_elements), labels_of(answer_elements)
    if _are_names(gold_labels) and _are_names(answer_labels):
        if sorted(map(str, gold_labels)) == sorted(map(str, answer_labels)):
            in_gold_order = [answer_elements[answer_labels.index(label)] for label in gold_labels]
            return Alignment(gold_elements, in_gold_order, len(gold_labels) > 1)
        if any(_is_word(label) for label in (*gold_labels, *answer_labels)) and len(gold_labels) == len(answer_labels):
            return Alignment(gold_elements, answer_elements, ordered=True, surely=False)
    elif _are_names(answer_labels) and None in gold_labels and _follow_the_alphabet(answer_labels):
        return Alignment(gold_elements, _sorted_by_label(answer_elements, answer_labels), len(answer_labels) > 1)
    elif _are_names(gold_labels) and None in answer_labels and _follow_the_alphabet(gold_labels):
        return Alignment(_sorted_by_label(gold_elements, gold_labels), answer_elements, len(gold_labels) > 1)
    return Alignment(gold_elements, answer_elements, _labels_differ(gold_labels, answer_labels))


def labels_of(elements: list[Node]) -> list[str | None]:
    """Return the label of each element: a name, or the noun of `3 apples` beside labels that are words."""
    return [_label_of(element) for element in elements]


def named_elements(node: Chain) -> list[Node] | None:
    """Return x=2 and y=5 for (x, y) = (2, 5), and x=1, y=1 for x = y = 1."""
    first, value = node.parts[0], node.parts[-1]
    names = node.parts[:-1]
    if set(node.operators) == {"="} and len(names) > 1 and all(isinstance(name, Sym) for name in names):
        return None if isinstance(value, (Sym, Chain)) else [Chain((name, value), ("=",)) for name in names]
    if node.operators != ("=",) or not is_tuple_of_names(first, value):
        return None
    assert isinstance(first, Group) and isinstance(value, Group)
    return [Chain((name, part), ("=",)) for name, part in zip(first.elements, value.elements, strict=True)]


def _label_of(element: Node) -> str | None:
    label = label_of(element)
    if label is None and isinstance(element, Measure) and element.unit.is_label:
        return element.unit.label or None
    return label


def _are_names(labels: list[str | None]) -> bool:
    return None not in labels and len(set(labels)) == len(labels) and bool(labels)


def _follow_the_alphabet(labels: list[str | None]) -> bool:
    """Tell whether the labels are neighbours in the alphabet, as x, y, z and p, q are."""
    letters = sorted(str(label) for label in labels)
    if any(len(letter) != 1 for letter in letters):
        return False
    return all(ord(b) - ord(a) == 1 for a, b in itertools.pairwise(letters))


def _sorted_by_label(elements: list[Node], labels: list[str | None]) -> list[Node]:
    return [element for _, element in sorted(zip(map(str, labels), elements, strict=True), key=lambda pair: pair[0])]


def _is_word(label: str | None) -> bool:
    return label is not None and len(label) >= _MIN_WORD and label.replace(" ", "").isalpha()


def _labels_differ(gold_labels: list[str | None], answer_labels: list[str | None]) -> bool:
    """Tell whether one side names its elements a and b, so that their order counts; x_1 and x_2 may swap."""
    if (None in gold_labels) == (None in answer_labels):
        return False
    labels = answer_labels if None in gold_labels else gold_labels
    return len({match.group() for label in labels if (match := _LABEL_STEM.match(str(label)))}) > 1
