"""Answers in a form of their own: ratios (2:3), numerals of another base (101_2), names and phrases.

`odd` answers `the function is odd`, and `NO`, which is read as a product of N and O, is no.
"""

from __future__ import annotations

from truegold.verifiers.math.comparison.calendar import clock_of, may_be_ratio, same_clocks
from truegold.verifiers.math.evaluation.exact import base_value, rational
from truegold.verifiers.math.evaluation.identity import same_value
from truegold.verifiers.math.labels import labelled
from truegold.verifiers.math.outcome import OPEN, OTHER_STRUCTURE, Outcome
from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.reading.names import NAMED_WORDS, STOP_WORDS
from truegold.verifiers.math.tree import PLUS_ONE, VALUES, BaseN, Chain, Mul, Named, Node, Ratio, Sym, Text

_ALL = frozenset({"all", "any", "every", "each", "for", "must"})
_LAST_HOUR = 24
_VERBS = frozenset({"converges", "diverges", "exists", "oscillates", "increases", "decreases", "vanishes"})
_SUBJECTS = frozenset({"series", "sequence", "integral", "limit", "function", "sum", "product", "it", "this", "that"})
_COPULAS = ("is", "are", "was", "were")

MAX_INVERTED_WORDS = 2
"""Of more words, their order says who does what."""

MAX_PHRASE_WORDS = 4
"""More words are a sentence, which can be put otherwise: rules cannot tell."""


def same_ratios(gold: Node, answer: Node, policy: Policy) -> Outcome:
    """Compare two sides of which at least one is a Ratio; a value is its ratio to 1, and 4:30 may be a time."""
    if policy.colon != "ratio" and clock_of(gold) is not None and clock_of(answer) is not None:
        outcome = same_clocks(gold, answer)
        if outcome.same or policy.colon == "time" or not (may_be_ratio(gold) and may_be_ratio(answer)):
            return outcome
        return OPEN if _same_proportions(gold, answer).same else outcome
    outcome = _same_proportions(gold, answer)
    is_misspelled_time = policy.colon == "auto" and (_is_misspelled(gold, answer) or _is_misspelled(answer, gold))
    return OPEN if outcome.same and is_misspelled_time else outcome


def _is_misspelled(clock: Node, other: Node) -> bool:
    """Tell whether 8:60 beside the time 4:30 may be a time with an impossible minute rather than a ratio."""
    if clock_of(clock) is None or not isinstance(other, Ratio) or len(other.parts) != 2:
        return False
    hour, minute = map(rational, other.parts)
    return hour is not None and minute is not None and hour <= _LAST_HOUR and 60 <= minute < 100


def _same_proportions(gold: Node, answer: Node) -> Outcome:
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


def same_texts(gold: Node, answer: Node) -> Outcome:
    """Compare two sides of which at least one is words; nothing is concluded where gold is a sentence."""
    gold_words, answer_words = _words(gold), _words(answer)
    if gold_words is not None and answer_words is not None:
        same = gold_words == answer_words or "".join(gold_words) == "".join(answer_words)
        same = same or _is_letter_with_word(gold_words, answer_words)
        same = same or _say_the_same(gold, answer, set(gold_words), set(answer_words))
        if same or _predicate(gold) == answer_words or _predicate(answer) == gold_words:
            return Outcome(True, "words")
    is_sentence = isinstance(gold, Text) and len(gold.words) > MAX_PHRASE_WORDS
    return Outcome(None if is_sentence else False, "words")


def same_names(gold: Node, answer: Node) -> Outcome:
    """Compare two sides of which at least one is Named."""
    name = _name_of(gold)
    return Outcome(name is not None and name == _name_of(answer), "words")


def _say_the_same(gold: Node, answer: Node, gold_words: set[str], answer_words: set[str]) -> bool:
    """Tell whether a copula or a subject is all that differs: `the triangle is isosceles`, `the series diverges`."""
    if not isinstance(gold, Text) or not isinstance(answer, Text):
        return False
    if gold_words == answer_words and len(gold_words) == MAX_INVERTED_WORDS:
        return ("is" in gold.words) != ("is" in answer.words)
    (verb, *others) = gold.words
    subject = {word for word in answer.words[:-1] if word not in STOP_WORDS}
    return not others and verb in _VERBS and answer.words[-1] == verb and subject <= _SUBJECTS


def _is_letter_with_word(gold_words: tuple[str, ...], answer_words: tuple[str, ...]) -> bool:
    """Tell whether both say one word of one letter: `odd n`, `n odd`, `n is odd`, `all odd n`."""
    gold_set, answer_set = set(gold_words) - _ALL, set(answer_words) - _ALL
    return gold_set == answer_set and len(gold_set) == 2 and any(len(word) == 1 for word in gold_set)


def _predicate(node: Node) -> tuple[str, ...] | None:
    """Return `odd` for `the function is odd`, which it answers as well as the sentence."""
    if not isinstance(node, Text):
        return None
    verb = next((word for word in _COPULAS if word in node.words), None)
    if verb is not None:
        rest = node.words[len(node.words) - node.words[::-1].index(verb) :]
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
