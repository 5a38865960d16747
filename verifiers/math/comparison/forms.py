"""Answers in a form of their own: ratios (2:3), numerals of another base (101_2), times of day, names and phrases.

`odd` answers `the function is odd`, and `NO`, which is read as a product of N and O, is no.
"""

from __future__ import annotations

from truegold.verifiers.math.evaluation.exact import base_value, rational
from truegold.verifiers.math.evaluation.identity import same_value
from truegold.verifiers.math.labels import labelled
from truegold.verifiers.math.outcome import OTHER_STRUCTURE, Outcome
from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.reading.names import NAMED_WORDS, STOP_WORDS
from truegold.verifiers.math.tree import PLUS_ONE, VALUES, BaseN, Chain, Clock, Mul, Named, Node, Num, Ratio, Sym, Text

MAX_PHRASE_WORDS = 4
"""More words are a sentence, which can be put otherwise: rules cannot tell."""

_HALF_DAY = 12 * 60


def same_ratios(gold: Node, answer: Node) -> Outcome:
    """Compare two sides of which at least one is a Ratio; a value is its ratio to 1."""
    gold_parts, answer_parts = _ratio_parts(gold), _ratio_parts(answer)
    if gold_parts is None or answer_parts is None or len(gold_parts) != len(answer_parts):
        return OTHER_STRUCTURE
    outcome = Outcome(True, "exact")
    for gold_part, answer_part in zip(gold_parts[1:], answer_parts[1:], strict=True):
        outcome = same_value(Mul((gold_parts[0], answer_part)), Mul((gold_part, answer_parts[0])))
        if not outcome.same:
            return outcome
    return outcome


def _ratio_parts(node: Node) -> tuple[Node, ...] | None:
    if isinstance(node, Ratio):
        return node.parts
    if isinstance(node, Chain):
        value = labelled(node)[1]
        return _ratio_parts(value) if value is not None and not isinstance(value, Chain) else None
    return (node, PLUS_ONE) if isinstance(node, VALUES) else None


def same_numerals(gold: Node, answer: Node, policy: Policy) -> Outcome:
    """Compare two sides of which at least one is a BaseN; the policy says what a bare number means."""
    if isinstance(gold, BaseN):
        if isinstance(answer, BaseN):
            same = gold.base == answer.base and gold.digits.lstrip("0") == answer.digits.lstrip("0")
            return Outcome(same, "structure")
        answer_value = _whole_value(answer)
        if answer_value is None:
            return OTHER_STRUCTURE
        if policy.base == "value" and answer_value == base_value(gold):
            return Outcome(True, "exact")
        return Outcome(policy.base != "required" and str(answer_value) == gold.digits, "structure")
    assert isinstance(answer, BaseN)
    gold_value = _whole_value(gold)
    same = gold_value is not None and gold_value == base_value(answer)
    return Outcome(same, "exact" if same else "structure")


def _whole_value(node: Node) -> int | None:
    value = rational(node) if isinstance(node, VALUES) else None
    return int(value) if value is not None and value.denominator == 1 else None


def same_clocks(gold: Node, answer: Node) -> Outcome:
    """Compare two sides of which at least one is a Clock; 4:30, or 4 for 4:00, may be in either half of the day."""
    if isinstance(gold, Clock) and isinstance(answer, Clock):
        return Outcome(gold.minutes == answer.minutes, "structure")
    clock, other = (gold, answer) if isinstance(gold, Clock) else (answer, gold)
    assert isinstance(clock, Clock)
    minutes = clock.minutes % _HALF_DAY
    if isinstance(other, Ratio) and len(other.parts) == 2:
        hour, minute = rational(other.parts[0]), rational(other.parts[1])
        if hour is not None and minute is not None:
            return Outcome(hour * 60 + minute in (clock.minutes, minutes, minutes + _HALF_DAY), "structure")
    if isinstance(other, Num) and clock.minutes % 60 == 0:
        return Outcome(other.value * 60 in (minutes, minutes + _HALF_DAY), "structure")
    return OTHER_STRUCTURE


def same_texts(gold: Node, answer: Node) -> Outcome:
    """Compare two sides of which at least one is words; nothing is concluded where gold is a sentence."""
    gold_words, answer_words = _words(gold), _words(answer)
    if gold_words is not None and answer_words is not None:
        same = gold_words == answer_words or "".join(gold_words) == "".join(answer_words)
        if same or _predicate(gold) == answer_words or _predicate(answer) == gold_words:
            return Outcome(True, "words")
    is_sentence = isinstance(gold, Text) and len(gold.words) > MAX_PHRASE_WORDS
    return Outcome(None if is_sentence else False, "words")


def same_names(gold: Node, answer: Node) -> Outcome:
    """Compare two sides of which at least one is Named."""
    name = _name_of(gold)
    return Outcome(name is not None and name == _name_of(answer), "words")


def _predicate(node: Node) -> tuple[str, ...] | None:
    """Return `odd` for `the function is odd`, which it answers as well as the sentence."""
    if isinstance(node, Text) and "is" in node.words:
        rest = node.words[len(node.words) - node.words[::-1].index("is") :]
        return tuple(word for word in rest if word not in STOP_WORDS) or None
    return None


def _words(node: Node) -> tuple[str, ...] | None:
    if isinstance(node, Text):
        return tuple(word for word in node.words if word not in STOP_WORDS) or node.words
    if isinstance(node, Named):
        return tuple(node.name.split())
    letters = node.factors if isinstance(node, Mul) else (node,)
    if all(isinstance(letter, Sym) for letter in letters):
        return ("".join(letter.name for letter in letters if isinstance(letter, Sym)).lower(),)
    return None


def _name_of(node: Node) -> str | None:
    """Return the name of the value that a node stands for."""
    if isinstance(node, Named):
        return node.name
    words = _words(node)
    return NAMED_WORDS.get("".join(words)) if words is not None else None
