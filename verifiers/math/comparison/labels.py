"""Pairs the labels of two lists of named values.

Labels of gold            Labels of the answer            Result
v_rel, E                  relative speed, total energy    paired: `rel` and E begin words of the labels
Ms. Wane, Ms. Watson      Watson, Susan Wane              paired by the words that differ within each list
nominal rate, real rate   part 1, part 2                  not paired by name, but by order
Tom, Bob                  Ann, Jim                        not paired: they may be different people
"""

from __future__ import annotations

from collections.abc import Sequence

from truegold.verifiers.math import tree
from truegold.verifiers.math.vocabulary import EXCLUSIVE, GREEK_NAMES

_MIN_WORD = 3
"""Minimum number of letters in a word. Shorter labels are symbols."""
_MIN_INDEX = 3
"""Minimum number of letters in a subscript that is read as the beginning of a word, as in v_rel."""


def contradict(gold: tree.Node, answer: tree.Node) -> bool:
    r"""Tell whether two labels must mean different things. Different names alone are not enough.

    F_x, F_y; v_{\text{in}}, v_{\text{out}}; k_+, k_-    subscripts that exclude each other
    [x, p], [p, x]                                       commutators in the other order
    \frac{dy}{dx}, y(x)                                   a function and its derivative
    """
    if isinstance(gold, tree.Pow) != isinstance(answer, tree.Pow):
        # A density and its amplitude: |\\psi|^2 and \\psi.
        return not tree.symbols(gold).isdisjoint(tree.symbols(answer))
    if isinstance(gold, tree.Group) and isinstance(answer, tree.Group):
        names, others = ([tree.show(part).rstrip(tree.HAT) for part in side.elements] for side in (gold, answer))
        return names == others[::-1] != others
    if (derivative := tree.derivative_of(gold)) is not None:
        return _is_other_than_derivative(derivative, answer)
    if (derivative := tree.derivative_of(answer)) is not None:
        return _is_other_than_derivative(derivative, gold)
    return _are_exclusive(_name_of(gold), _name_of(answer))


def _are_exclusive(name: str, other_name: str) -> bool:
    """Tell whether two names are different probabilities, such as P(A|B) and P(B|A), or have exclusive subscripts."""
    if name.startswith("P(") and other_name.startswith("P("):
        return name != other_name
    (stem, _, index), (other_stem, _, other_index) = name.partition("_"), other_name.partition("_")
    if not index or not other_index or stem.lower() != other_stem.lower():
        return False
    kinds, other_kinds = ([EXCLUSIVE.get(part) for part in (word, word.lower())] for word in (index, other_index))
    pairs = [(kind, other) for kind in kinds for other in other_kinds if kind is not None and other is not None]
    return any(kind[0] == other[0] and kind[1] != other[1] for kind, other in pairs)


def _is_other_than_derivative(derivative: tuple[str, str], other: tree.Node) -> bool:
    r"""Tell whether a label must mean something other than the given derivative.

    For \frac{dx}{dt}, such labels are x, x(t), \frac{dy}{dt} and \frac{d^2x}{dt^2}.
    """
    derived, variable = derivative
    if (second := tree.derivative_of(other)) is not None:
        return variable != second[1] if derived == second[0] else {derived, second[0]} <= tree.COORDINATES
    arguments = {tree.show(part) for part in other.args} if isinstance(other, tree.FunctionCall) else {variable}
    return _name_of(other) == derived and variable in arguments


def along_axis(label: tree.Node, value: tree.Node, other: tree.Node) -> tree.Node | None:
    r"""Return the component of a vector: mg for F = mg\hat z and the other label F_z.

    Return None if the other label is not the component along the unit vector.
    """
    stem, _, axis = _name_of(other).partition("_")
    units = {name for name in tree.symbols(value) if name.endswith(tree.HAT) or name.startswith("e_")}
    if not axis or stem != _name_of(label) or len(units) != 1 or not units <= {f"{axis}{tree.HAT}", f"e_{axis}"}:
        return None
    return tree.substituted(value, dict.fromkeys(units, tree.PLUS_ONE))


def _name_of(label: tree.Node) -> str:
    return label.name if isinstance(label, (tree.Sym, tree.FunctionCall)) else ""


def is_word(label: str | None) -> bool:
    """Tell whether a label consists of words rather than a symbol."""
    if label is None or len(label) < _MIN_WORD or label in GREEK_NAMES:
        return False
    return label.replace(" ", "").isalpha()


def numbers_parts(labels: Sequence[str | None]) -> bool:
    """Tell whether labels are only numbers of parts: `(a) 5 (b) 7`."""
    return all(str(label).startswith("part ") for label in labels)


def matched_labels(gold: Sequence[str | None], answer: Sequence[str | None]) -> list[int] | None:
    """Return the index of the answer's label for each label of gold, or None if the names do not show the pairs."""
    golds, answers = [str(label) for label in gold], [str(label) for label in answer]
    if sorted(golds) == sorted(answers):
        return [answers.index(label) for label in golds]
    if len(golds) != len(answers) or len(golds) < 2 or numbers_parts(gold) or numbers_parts(answer):
        return None
    gold_words, answer_words = _telling_words(golds), _telling_words(answers)
    matches = [[i for i, words in enumerate(answer_words) if _may_name_the_same(mine, words)] for mine in gold_words]
    order = [indices[0] if len(indices) == 1 else -1 for indices in matches]
    if any(len(indices) > 1 for indices in matches) or len(set(order)) < len(order):
        return None
    if order.count(-1) == 1:
        unnamed = order.index(-1)
        (left,) = set(range(len(order))) - set(order)
        if is_word(golds[unnamed]) and is_word(answers[left]):
            return None
        order[unnamed] = left
    return order


def _telling_words(labels: list[str]) -> list[list[str]]:
    """Return the words of each label that not all labels have: `initial` and `final`, or i and f of v_i and v_f."""
    words = [label.split("_") if label.count("_") == 1 and " " not in label else label.split() for label in labels]
    if len({each[0] for each in words}) > 1:
        words = [label.split() for label in labels]
    shared = set(words[0]).intersection(*words[1:])
    return [[word for word in each if word not in shared] for each in words]


def _may_name_the_same(words: list[str], others: list[str]) -> bool:
    """Tell whether two labels have a common word, or one label is a symbol for a word of the other."""
    if set(words) & set(others):
        return True
    return _is_symbol_of(words, others) or _is_symbol_of(others, words)


def _is_symbol_of(symbol: list[str], words: list[str]) -> bool:
    if len(symbol) != 1 or not words or not all(len(word) >= _MIN_WORD for word in words):
        return False
    letter, _, index = symbol[0].lower().partition("_")
    if len(letter) == 1 and any(word.startswith(letter) for word in words):
        return True
    return len(index) >= _MIN_INDEX and any(word.startswith(index) for word in words)
