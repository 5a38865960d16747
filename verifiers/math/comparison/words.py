"""Phrases, and names of values: `odd` answers `the function is odd`, `NO` (a product of N and O) is no."""

from __future__ import annotations

from truegold.verifiers.math.comparison.outcome import Outcome
from truegold.verifiers.math.reading.names import NAMED_WORDS, STOP_WORDS
from truegold.verifiers.math.tree import Mul, Named, Node, Sym, Text

MAX_PHRASE_WORDS = 4
"""More words than this are a sentence, which may be said in other words: rules cannot tell."""


def same_text(gold: Node, answer: Node) -> Outcome:
    """At least one side is words. Undecided where gold is a sentence."""
    wanted, offered = _words(gold), _words(answer)
    if wanted is not None and offered is not None:
        same = wanted == offered or "".join(wanted) == "".join(offered)
        if same or _predicate(gold) == offered or _predicate(answer) == wanted:
            return Outcome(True, "words")
    sentence = isinstance(gold, Text) and len(gold.words) > MAX_PHRASE_WORDS
    return Outcome(None if sentence else False, "words")


def same_name(gold: Node, answer: Node) -> Outcome:
    """At least one side is Named."""
    name = _name_of(gold)
    return Outcome(name is not None and name == _name_of(answer), "words")


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
    letters = node.factors if isinstance(node, Mul) else (node,)
    if all(isinstance(letter, Sym) for letter in letters):
        return ("".join(letter.name for letter in letters if isinstance(letter, Sym)).lower(),)
    return None


def _name_of(node: Node) -> str | None:
    """The value that a name stands for."""
    if isinstance(node, Named):
        return node.name
    words = _words(node)
    return NAMED_WORDS.get("".join(words)) if words is not None else None
