"""Lists, finite sets, tuples, vectors, matrices: how many parts, in which order, under which labels."""

from __future__ import annotations

from collections.abc import Sequence

from truegold.verifiers.math.comparison.alignment import aligned, labels_of, named_elements
from truegold.verifiers.math.comparison.comparer import Comparer
from truegold.verifiers.math.comparison.real_sets import looks_like_set
from truegold.verifiers.math.labels import labelled
from truegold.verifiers.math.outcome import OPEN, OTHER_STRUCTURE, SAME_STRUCTURE, Outcome
from truegold.verifiers.math.tree import BareList, Chain, Group, Matrix, Mul, Named, Node, SetOf, SetOps, Sym

_CHOICE_LETTERS = "ABCDEFGH"


def same_lists(comparer: Comparer, gold: Node, answer: Node) -> Outcome | None:
    """Compare lists and finite sets; None where a side is a set of numbers rather than a list."""
    if _holds_conditions(gold) or _holds_conditions(answer):
        return None
    gold_elements, answer_elements = _elements_of(gold), _elements_of(answer)
    if gold_elements is None or answer_elements is None:
        return None
    if len(gold_elements) != len(answer_elements):
        gold_elements, answer_elements = _choices(gold) or gold_elements, _choices(answer) or answer_elements
    is_set_and_tuple = (_is_set(gold) and _is_tuple(answer)) or (_is_tuple(gold) and _is_set(answer))
    if is_set_and_tuple and None in labels_of(gold_elements) and None in labels_of(answer_elements):
        return _same_set_and_tuple(comparer, gold_elements, answer_elements)
    gold_elements, answer_elements, ordered, surely = aligned(gold_elements, answer_elements)
    if len(gold_elements) != len(answer_elements) and (_is_set(gold) or _is_set(answer)):
        gold_elements, answer_elements = _distinct(comparer, gold_elements), _distinct(comparer, answer_elements)
    if len(gold_elements) != len(answer_elements):
        hedged = len(gold_elements) < len(answer_elements) and all(
            any(comparer.same(gold_element, answer_element).same for answer_element in answer_elements)
            for gold_element in gold_elements
        )
        return Outcome(False, "structure", hedged=hedged)
    order = comparer.policy.order
    if order == "auto":
        order = "ordered" if ordered or _is_tuple(gold) or _is_tuple(answer) else "unordered"
    join = elementwise if order == "ordered" else matched
    outcome = join(comparer, gold_elements, answer_elements)
    # Tom: 4, Ann: 6 may be the values of other people.
    return OPEN if outcome.same and not surely else outcome


def _same_set_and_tuple(comparer: Comparer, gold_elements: list[Node], answer_elements: list[Node]) -> Outcome:
    """Compare a set with a tuple: nothing is concluded where they list the same in the same order."""
    if len(gold_elements) != len(answer_elements):
        return OTHER_STRUCTURE
    outcome = elementwise(comparer, gold_elements, answer_elements)
    return OPEN if outcome.same else outcome


def elementwise(comparer: Comparer, gold_parts: Sequence[Node], answer_parts: Sequence[Node]) -> Outcome:
    """Compare part by part; there are as many on either side."""
    rung = "structure"
    for gold_part, answer_part in zip(gold_parts, answer_parts, strict=True):
        outcome = comparer.same(gold_part, answer_part)
        if not outcome.same:
            return Outcome(outcome.same, outcome.rung)
        rung = outcome.rung if outcome.rung != "exact" else rung
    return Outcome(True, rung)


def matched(comparer: Comparer, gold_parts: Sequence[Node], answer_parts: Sequence[Node]) -> Outcome:
    """Compare in any order; each part of gold takes one of the answer's away."""
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
            return Outcome(None if undecided else False, "structure")
    return SAME_STRUCTURE


def same_ordered(comparer: Comparer, gold: Node, answer: Node) -> Outcome:
    """Compare tuples, vectors and matrices."""
    if isinstance(gold, Matrix) and isinstance(answer, Matrix):
        if gold.bars == answer.bars and [len(row) for row in gold.rows] == [len(row) for row in answer.rows]:
            return elementwise(comparer, *([cell for row in matrix.rows for cell in row] for matrix in (gold, answer)))
    elif isinstance(gold, Group) and isinstance(answer, Group):
        if (gold.opening == "{") != (answer.opening == "{") or len(gold.elements) != len(answer.elements):
            return OTHER_STRUCTURE
        join = matched if comparer.policy.order == "unordered" else elementwise
        return join(comparer, gold.elements, answer.elements)
    gold_vector, answer_vector = _as_vector(gold), _as_vector(answer)
    if gold_vector is None or answer_vector is None or len(gold_vector) != len(answer_vector):
        return OTHER_STRUCTURE
    return elementwise(comparer, gold_vector, answer_vector)


def is_list(node: Node) -> bool:
    """Tell whether a node is a bare list or a set in braces."""
    return isinstance(node, BareList) or _is_set(node)


def _is_set(node: Node) -> bool:
    """Tell whether a node is a set in braces."""
    return isinstance(node, Group) and node.opening == "{"


def _elements_of(node: Node) -> list[Node] | None:
    """Return what is listed; a bare value is a list of one. None for a set that is not listed."""
    if isinstance(node, BareList):
        lone = node.elements[0] if len(node.elements) == 1 else None
        return list(lone.elements if isinstance(lone, BareList) and node.joined != ";" else node.elements)
    if isinstance(node, Group):
        return list(node.elements)
    if isinstance(node, Matrix):
        return _as_vector(node)
    if isinstance(node, Chain):
        return _elements_of_chain(node)
    if isinstance(node, Named) and node.name == "empty":
        return []
    return None if isinstance(node, (SetOps, SetOf)) else [node]


def _elements_of_chain(node: Chain) -> list[Node] | None:
    """Return what is listed in `S = {1, 2}` and `x \\in {1, 2}`."""
    if named := named_elements(node):
        return named
    label, value = labelled(node)
    if label is not None and isinstance(value, (BareList, Group)):
        return _elements_of(value)
    if node.operators == ("in",) and isinstance(node.parts[1], Group):
        return list(node.parts[1].elements) if node.parts[1].opening == "{" else None
    return [node]


def _is_tuple(node: Node) -> bool:
    if isinstance(node, Chain) and named_elements(node):
        return True
    return (isinstance(node, Group) and node.opening in "(<[") or isinstance(node, Matrix)


def _choices(node: Node) -> list[Node] | None:
    """Return ABD as the letters of three choices."""
    if isinstance(node, Mul) and all(isinstance(f, Sym) and f.name in _CHOICE_LETTERS for f in node.factors):
        return list(node.factors)
    return None


def _distinct(comparer: Comparer, elements: list[Node]) -> list[Node]:
    kept: list[Node] = []
    for element in elements:
        if not any(comparer.same(other, element).same for other in kept):
            kept.append(element)
    return kept


def _holds_conditions(node: Node) -> bool:
    """Tell whether elements such as `x > 1 and x < 3` are one set rather than a list."""
    if isinstance(node, (BareList, Group)):
        if any(isinstance(element, (Chain, SetOps)) and looks_like_set(element) for element in node.elements):
            return True
        holds_intervals = any(isinstance(element, Group) and looks_like_set(element) for element in node.elements)
        return isinstance(node, BareList) and node.joined != "," and holds_intervals
    return isinstance(node, (SetOps, SetOf)) or (isinstance(node, Chain) and looks_like_set(node))


def _as_vector(node: Node) -> list[Node] | None:
    if isinstance(node, Group):
        return list(node.elements) if node.opening != "{" else None
    if isinstance(node, Matrix):
        if len(node.rows) == 1:
            return list(node.rows[0])
        return [row[0] for row in node.rows] if all(len(row) == 1 for row in node.rows) else None
    return None
