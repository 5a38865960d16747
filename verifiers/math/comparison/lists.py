"""Lists, finite sets, tuples, vectors, matrices: how many parts, in which order, under which labels."""

from __future__ import annotations

import re

from truegold.verifiers.math.comparison.outcome import OTHER_STRUCTURE, SAME_STRUCTURE, Comparer, Outcome
from truegold.verifiers.math.comparison.real_sets import looks_like_set
from truegold.verifiers.math.labels import label_of, labelled
from truegold.verifiers.math.tree import BareList, Chain, Group, Matrix, Mul, Named, Node, SetOf, SetOps, Sym

_CHOICE_LETTERS = "ABCDEFGH"
_LABEL_STEM = re.compile(r"[^_(]*")


def same_lists(within: Comparer, gold: Node, answer: Node) -> Outcome | None:
    """Lists and finite sets. None where sets of numbers are meant."""
    if _holds_conditions(gold) or _holds_conditions(answer):
        return None
    wanted, offered = items_of(gold), items_of(answer)
    if wanted is None or offered is None:
        return None
    if len(wanted) != len(offered):
        wanted, offered = _choices(gold) or wanted, _choices(answer) or offered
    wanted, offered, aligned = _aligned(wanted, offered)
    if len(wanted) != len(offered) and (is_set(gold) or is_set(answer)):
        wanted, offered = _distinct(within, wanted), _distinct(within, offered)
    if len(wanted) != len(offered):
        among = len(wanted) < len(offered) and all(any(within.same(w, o).same for o in offered) for w in wanted)
        return Outcome(False, "structure", hedged=among)
    order = within.policy.order
    if order == "auto":
        fixed = aligned or _is_tuple(gold) or _is_tuple(answer) or _labels_differ(wanted, offered)
        order = "ordered" if fixed else "unordered"
    return elementwise(within, wanted, offered) if order == "ordered" else matched(within, wanted, offered)


def elementwise(within: Comparer, wanted: list[Node], offered: list[Node]) -> Outcome:
    """Part by part, as many on either side."""
    rung = "structure"
    for one, other in zip(wanted, offered, strict=True):
        outcome = within.same(one, other)
        if not outcome.same:
            return Outcome(outcome.same, outcome.rung)
        rung = outcome.rung if outcome.rung != "exact" else rung
    return Outcome(True, rung)


def matched(within: Comparer, wanted: list[Node], offered: list[Node]) -> Outcome:
    """In any order: each of `wanted` takes one of `offered` away."""
    left = list(offered)
    undecided = False
    for one in wanted:
        for other in left:
            outcome = within.same(one, other)
            undecided |= outcome.same is None
            if outcome.same:
                left.remove(other)
                break
        else:
            return Outcome(None if undecided else False, "structure")
    return SAME_STRUCTURE


def same_ordered(within: Comparer, gold: Node, answer: Node) -> Outcome:
    """Tuples, vectors, matrices."""
    if isinstance(gold, Matrix) and isinstance(answer, Matrix):
        if [len(row) for row in gold.rows] == [len(row) for row in answer.rows]:
            return elementwise(within, *([cell for row in matrix.rows for cell in row] for matrix in (gold, answer)))
    elif isinstance(gold, Group) and isinstance(answer, Group):
        if (gold.opening == "{") != (answer.opening == "{") or len(gold.elements) != len(answer.elements):
            return OTHER_STRUCTURE
        in_order = within.policy.order != "unordered"
        return (elementwise if in_order else matched)(within, list(gold.elements), list(answer.elements))
    wanted, offered = _as_vector(gold), _as_vector(answer)
    if wanted is None or offered is None or len(wanted) != len(offered):
        return OTHER_STRUCTURE
    return elementwise(within, wanted, offered)


def is_list(node: Node) -> bool:
    return isinstance(node, BareList) or is_set(node)


def is_set(node: Node) -> bool:
    return isinstance(node, Group) and node.opening == "{"


def _is_tuple(node: Node) -> bool:
    return (isinstance(node, Group) and node.opening in "(<[") or isinstance(node, Matrix)


def items_of(node: Node) -> list[Node] | None:
    """What is listed; a bare value is a list of one. None for a set that is not listed."""
    if isinstance(node, BareList):
        lone = node.elements[0] if len(node.elements) == 1 else None
        return list(lone.elements if isinstance(lone, BareList) and node.joined != ";" else node.elements)
    if isinstance(node, Group):
        return list(node.elements)
    if isinstance(node, Matrix):
        return _as_vector(node)
    if isinstance(node, Chain):
        return _items_of_chain(node)
    if isinstance(node, Named) and node.name == "empty":
        return []
    return None if isinstance(node, (SetOps, SetOf)) else [node]


def _items_of_chain(node: Chain) -> list[Node] | None:
    """S = {1, 2}, x \\in {1, 2}"""
    label, value = labelled(node)
    if label is not None and isinstance(value, (BareList, Group)):
        return items_of(value)
    if node.operators == ("in",) and isinstance(node.parts[1], Group):
        return list(node.parts[1].elements) if node.parts[1].opening == "{" else None
    return [node]


def _choices(node: Node) -> list[Node] | None:
    """ABD as the letters of three choices."""
    if isinstance(node, Mul) and all(isinstance(f, Sym) and f.name in _CHOICE_LETTERS for f in node.factors):
        return list(node.factors)
    return None


def _aligned(wanted: list[Node], offered: list[Node]) -> tuple[list[Node], list[Node], bool]:
    """a=1, b=2 against b=2, a=1: in gold's order, which then counts."""
    labels, others = [label_of(item) for item in wanted], [label_of(item) for item in offered]
    if None in labels or len(set(labels)) < len(labels) or sorted(map(str, labels)) != sorted(map(str, others)):
        return wanted, offered, False
    return wanted, [offered[others.index(label)] for label in labels], len(labels) > 1


def _labels_differ(wanted: list[Node], offered: list[Node]) -> bool:
    """One side names its items a and b, the other only lists them: then their order counts. x_1 and x_2 may swap."""
    labels, others = [label_of(item) for item in wanted], [label_of(item) for item in offered]
    if (None in labels) == (None in others):
        return False
    named = others if None in labels else labels
    return len({match.group() for label in named if (match := _LABEL_STEM.match(str(label)))}) > 1


def _distinct(within: Comparer, items: list[Node]) -> list[Node]:
    kept: list[Node] = []
    for item in items:
        if not any(within.same(other, item).same for other in kept):
            kept.append(item)
    return kept


def _holds_conditions(node: Node) -> bool:
    """BareList such as `x > 1 and x < 3`, which are one set rather than a list."""
    if isinstance(node, (BareList, Group)):
        if any(isinstance(item, (Chain, SetOps)) and looks_like_set(item) for item in node.elements):
            return True
        intervals = any(isinstance(item, Group) and looks_like_set(item) for item in node.elements)
        return isinstance(node, BareList) and node.joined != "," and intervals
    return isinstance(node, (SetOps, SetOf)) or (isinstance(node, Chain) and looks_like_set(node))


def _as_vector(node: Node) -> list[Node] | None:
    if isinstance(node, Group):
        return list(node.elements) if node.opening != "{" else None
    if isinstance(node, Matrix):
        if len(node.rows) == 1:
            return list(node.rows[0])
        return [row[0] for row in node.rows] if all(len(row) == 1 for row in node.rows) else None
    return None
