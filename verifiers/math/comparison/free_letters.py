r"""Renames arbitrary letters of an answer to the letters of gold, such as `n\pi` to `k\pi`.

    Gold                          Answer                Letters
    k\pi, k \in \mathbb{Z}        n\pi                  integers: declared, or factors of pi
    (1, 2) + t(3, 4)              (1+3s, 2+4s)          the parameter of a line
    C_1 e^x + C_2 e^{-x}          Ae^x + Be^{-x}        arbitrary constants
    f(x) = ax + b                 f(x) = mx + c         the parameters of a family of functions

2x + 1 and 2y + 1 are different, because the problem chose the name x. Only names are changed: -C is not renamed to C,
nor k+1 to k. The module also reads e and i as variables if a side gives them a value (`e = 5`), and compares the
conditions on letters.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from truegold.verifiers.math.comparison.constants import UNMISTAKABLE, arbitrary_names, may_be_arbitrary
from truegold.verifiers.math.comparison.lines import LINE_LETTERS
from truegold.verifiers.math.comparison.lists import Comparison
from truegold.verifiers.math.comparison.progressions import INTEGER_LETTERS
from truegold.verifiers.math.tree import (
    LETTER_CONSTANTS,
    BareList,
    Chain,
    Const,
    Family,
    FunctionCall,
    Group,
    Node,
    Sym,
    argument_of,
    facts,
    label_of,
    mapped,
    renamed,
    symbols,
    walk,
)

MAX_RENAMED = 3
"""Maximum number of letters that are renamed. Stops trying the permutations of many letters."""


def with_constants_as_variables(gold: Node, answer: Node) -> tuple[Node, Node]:
    """Return both trees with e or i as a variable if a side gives it a value: `e = 5`."""
    if not (names := _valued_constants(gold) | _valued_constants(answer)):
        return gold, answer

    def as_variable(part: Node) -> Node:
        return Sym(part.name) if isinstance(part, Const) and part.name in names else part

    return mapped(gold, as_variable), mapped(answer, as_variable)


def _valued_constants(node: Node) -> set[str]:
    """Return the letter constants that a node gives a value: e for `e = 5` and for `(d, e) = (4, 5)`."""
    elements = node.elements if isinstance(node, (BareList, Group)) else (node,)
    names: set[str] = set()
    for element in elements:
        if isinstance(element, Chain) and element.operators[0] == "=":
            first = element.parts[0]
            letters = first.elements if isinstance(first, (BareList, Group)) else (first,)
            names |= {
                letter.name for letter in letters if isinstance(letter, Const) and letter.name in LETTER_CONSTANTS
            }
    return names


def conditions_agree(comparer: Comparison, gold: Node, answer: Node) -> bool:
    """Tell whether the conditions of both sides agree. A condition that only one side has is ignored."""
    if not isinstance(gold, Family) or not isinstance(answer, Family):
        return True
    return all(_is_agreed(comparer, condition, answer.conditions) for condition in gold.conditions)


def _is_agreed(comparer: Comparison, condition: Node, others: tuple[Node, ...]) -> bool:
    """Tell whether the other side has the same condition, or has no condition on the same letters."""
    rivals = [other for other in others if symbols(other) == symbols(condition)]
    return not rivals or any(comparer.same(condition, rival).same is not False for rival in rivals)


def without_parameters(gold: Node, answer: Node, *, rename: bool) -> tuple[Node, Node]:
    """Return both sides without conditions: `k\\pi` for `k\\pi, k \\in \\mathbb{Z}`.

    rename: whether the integer parameters of the answer get gold's names.
    """
    gold_names: frozenset[str] = frozenset()
    answer_names: frozenset[str] = frozenset()
    if isinstance(gold, Family):
        gold_names, gold = gold.parameters, gold.body
    if isinstance(answer, Family):
        answer_names, answer = answer.parameters, answer.body
    if rename and (gold_names or answer_names):
        gold_letters = sorted((gold_names or symbols(gold) - symbols(answer)) & symbols(gold))
        answer_letters = sorted((answer_names or symbols(answer) - symbols(gold)) & symbols(answer))
        different = gold_letters != answer_letters and len(gold_letters) == len(answer_letters)
        if different and not set(answer_letters) & symbols(gold):
            answer = renamed(answer, dict(zip(answer_letters, gold_letters, strict=True)))
    return gold, answer


def renamings(gold: Node, answer: Node) -> Iterator[Node]:
    """Yield the answer with its free letters renamed to gold's. Each order of gold's letters gives one renaming."""
    if symbols(gold) == symbols(answer):
        return
    gold_symbols, answer_symbols = symbols(gold) - _labels(gold), symbols(answer) - _labels(answer)
    gold_letters, answer_letters = gold_symbols - answer_symbols, answer_symbols - gold_symbols
    if not gold_letters or len(gold_letters) != len(answer_letters) or len(gold_letters) > MAX_RENAMED:
        return
    if not _may_be_renamed(gold, answer, gold_letters | answer_letters):
        return
    ordered = sorted(answer_letters)
    for names in itertools.permutations(sorted(gold_letters)):
        yield renamed(answer, dict(zip(ordered, names, strict=True)))


def _labels(node: Node) -> set[str]:
    """Return the labels of a node, such as the x of `x = k\\pi`."""
    elements = node.elements if isinstance(node, BareList) else (node,)
    names = {label_of(element) for element in elements}
    return {name for name in names if name is not None}


def _may_be_renamed(gold: Node, answer: Node, letters: frozenset[str]) -> bool:
    """Tell whether letters are arbitrary constants, integers, or parameters of a line or a family of functions."""
    if letters <= arbitrary_names(symbols(gold)) | arbitrary_names(symbols(answer)):
        sides = (letters & symbols(gold), letters & symbols(answer))
        if any(all(map(UNMISTAKABLE.fullmatch, side)) for side in sides) and may_be_arbitrary(gold, *sides):
            return True
    if letters <= INTEGER_LETTERS and _has_pi(gold) and _has_pi(answer):
        return True
    if letters <= LINE_LETTERS and facts(gold).has_array and facts(answer).has_array:
        return True
    return _is_function(gold) and _is_function(answer)


def _has_pi(node: Node) -> bool:
    return any(isinstance(part, Const) and part.name == "pi" for part in walk(node))


def _is_function(node: Node) -> bool:
    """Tell whether a node defines a function, as in f(x) = ax + b. Its letters other than x are then parameters."""
    if not isinstance(node, Chain) or label_of(node) is None or argument_of(node) is None:
        return False
    return isinstance(node.parts[0], FunctionCall) and node.parts[0].applied
