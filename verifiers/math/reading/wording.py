r"""Words around a value, words that are a value, and words that are only words.

The area is 54; approximately 3; 5 (since it is odd); the width = 3       a value, said with words
no solution; minus infinity; yes                                          a value
June 20                                                                   Text
"""

from __future__ import annotations

from typing import NamedTuple

from truegold.verifiers.math.reading.names import NAMED_WORDS
from truegold.verifiers.math.reading.tokens import Token
from truegold.verifiers.math.reading.units import MEANING_WORDS
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import INFINITY, Named, Node, Text, negated

_SAYING = frozenset({"is", "are", "be", "equals", "equal", "was", "were", "being", "是", "为", "等于", "共有", "共"})
_LEADING = frozenset({
    "approximately", "about", "around", "roughly", "exactly", "only", "the", "a", "an", "answer", "answers", "solution",
    "solutions", "final", "value", "values", "therefore", "so", "thus", "hence", "total", "result", "roots", "root",
    "set", "range", "domain", "we", "have", "get", "obtain", "option", "choice", "大约", "约", "约为", "答案", "所以",
    "因此", "解集", "最小值", "最大值", "为",
})  # fmt: skip
_WORDLIKE = frozenset({"word", "name", "func", "num", "const"})


class Said(NamedTuple):
    """The tokens of a value that words speak of. It is no value after all if it reads as one of `unless`."""

    tokens: list[Token]
    unless: tuple[type[Node], ...] = ()


def value_said(tokens: list[Token]) -> Said | None:
    """The value that a sentence speaks of, where it is one that changes nothing about it."""
    if any(token.kind == "word" and token.text.lower() in MEANING_WORDS for token in tokens):
        return None
    says = [i for i, token in enumerate(tokens) if token.kind == "word" and token.text.lower() in _SAYING]
    if says and says[-1] + 1 < len(tokens):
        return Said(tokens[says[-1] + 1 :], unless=(Text,))  # of words, who is larger counts as well
    start = 0
    while start < len(tokens) and tokens[start].kind == "word" and tokens[start].text.lower() in _LEADING:
        start += 1
    if 0 < start < len(tokens):
        rest = tokens[start:]
        return Said(rest[1:] if rest[0].text == ":" and len(rest) > 1 else rest)
    return _before_remark(tokens) or _behind_label(tokens)


def _before_remark(tokens: list[Token]) -> Said | None:
    """`5 (since it is odd)`"""
    start = next((i for i, token in enumerate(tokens) if token.kind == "open" and token.text == "("), 0)
    worded = [token.kind == "word" for token in tokens]
    if start and tokens[-1].kind == "close" and any(worded[start:]) and not any(worded[:start]):
        return Said(tokens[:start])
    return None


def _behind_label(tokens: list[Token]) -> Said | None:
    """`the width = 3`"""
    equals = next((i for i, token in enumerate(tokens) if token.kind == "rel" and token.text == "="), 0)
    if equals and equals + 1 < len(tokens) and all(token.kind in ("word", "name") for token in tokens[:equals]):
        return Said(tokens[equals + 1 :], unless=(Text, Named))
    return None


def value_named(tokens: list[Token]) -> Node | None:
    """`no solution`, `all real numbers`, `minus infinity`, `yes`."""
    if any(token.kind not in ("word", "name", "const") for token in tokens):
        return None
    spelled = "".join(f" {token.text}" if token.spaced or token.kind == "word" else token.text for token in tokens)
    name = NAMED_WORDS.get(spelled.strip().lower())
    if name == "inf":
        return INFINITY
    if name == "-inf":
        return negated(INFINITY)
    return Named(name) if name else None


def text_of(tokens: list[Token]) -> Text:
    """What is left. Raises Unreadable where it holds mathematics."""
    words: list[str] = []
    for token in tokens:
        if token.kind in _WORDLIKE:
            if words and not token.spaced and token.kind == "name" and tokens[tokens.index(token) - 1].kind == "name":
                words[-1] += token.text.lower()
            else:
                words.append(token.text.lower())
        elif token.kind in ("cmd", "big", "rel") or (token.kind == "op" and token.text in "^_/*+"):
            raise Unreadable("words and mathematics mixed")
    if not words:
        raise Unreadable("no words")
    return Text(tuple(words))
