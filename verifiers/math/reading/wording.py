r"""Words around a value, words that are a value, and words that are only words.

The area is 54; approximately 3; 5 (since it is odd); the width = 3       a value that words state
no solution; minus infinity; yes                                          a value
June 20                                                                   Text
"""

from __future__ import annotations

import re
from typing import NamedTuple

from truegold.verifiers.math.reading.names import NAMED_WORDS
from truegold.verifiers.math.reading.tokens import Token
from truegold.verifiers.math.reading.units import MEANING_WORDS
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import INFINITY, Named, Node, Text, negated

_VERBS = frozenset({
    "is", "are", "be", "equals", "equal", "was", "were", "being", "是", "为", "等于", "共有", "共", "一共",
    "一共有", "总共", "总共有",
})  # fmt: skip
_LEADING = frozenset({
    "approximately", "about", "around", "roughly", "exactly", "only", "the", "a", "an", "answer", "answers", "solution",
    "solutions", "final", "value", "values", "therefore", "so", "thus", "hence", "total", "result", "roots", "root",
    "set", "range", "domain", "we", "have", "get", "obtain", "option", "choice", "大约", "约", "约为", "答案", "所以",
    "因此", "解集", "最小值", "最大值", "为",
})  # fmt: skip
_UNSURE = frozenset({"sure", "maybe", "perhaps", "possibly", "or", "wrong", "incorrect", "guess"})
_NOTHING = re.compile(
    r"(?:(?:the|this) (?:equation|system|inequality|problem) has |there (?:is|are) |it has )?"
    r"no (?:real |valid |integer |possible |such )*(?:solutions?|roots?|values?)(?: (?:of|for) [a-z])?(?: exists?)?"
)
_WORDLIKE = frozenset({"word", "name", "func", "num", "const"})


class StatedValue(NamedTuple):
    """The value that words speak of."""

    tokens: list[Token]
    unless: tuple[type[Node], ...] = ()
    """Tokens that read as one of these are no value after all."""


def stated_value(tokens: list[Token]) -> StatedValue | None:
    """Return the value that a sentence speaks of, where none of its words changes what the value means."""
    remark = _before_remark(tokens)
    if remark is not None and _is_idle(tokens[len(remark.tokens) :]):
        return remark
    if any(token.kind == "word" and (token.text.lower() in MEANING_WORDS or "不" in token.text) for token in tokens):
        return None
    verbs = [i for i, token in enumerate(tokens) if token.kind == "word" and token.text.lower() in _VERBS]
    if verbs and verbs[-1] + 1 < len(tokens):
        # Of `Anna is taller`, both sides of the verb count.
        start = verbs[-1] + 1 + (tokens[verbs[-1] + 1].text == ":" and verbs[-1] + 2 < len(tokens))
        return StatedValue(tokens[start:], unless=(Text,))
    start = 0
    while start < len(tokens) and tokens[start].kind == "word" and tokens[start].text.lower() in _LEADING:
        start += 1
    if 0 < start < len(tokens):
        rest = tokens[start:]
        return StatedValue(rest[1:] if rest[0].text == ":" and len(rest) > 1 else rest)
    return _before_remark(tokens) or _behind_label(tokens)


def _is_idle(remark: list[Token]) -> bool:
    """Tell whether a remark takes nothing back: it names no other value and no doubt."""
    return not any(token.kind == "num" or token.text.lower() in _UNSURE for token in remark)


def _before_remark(tokens: list[Token]) -> StatedValue | None:
    """Return the 5 of `5 (since it is odd)`."""
    start = next((i for i, token in enumerate(tokens) if token.kind == "open" and token.text == "("), 0)
    is_word = [token.kind == "word" for token in tokens]
    if (
        start
        and tokens[start - 1].kind not in ("func", "op")
        and tokens[-1].kind == "close"
        and any(is_word[start:])
        and not any(is_word[:start])
    ):
        return StatedValue(tokens[:start])
    return None


def _behind_label(tokens: list[Token]) -> StatedValue | None:
    """Return the 3 of `the width = 3` and of `the width: 3`."""
    equals = next((i for i, token in enumerate(tokens) if token.text in ("=", ":")), 0)
    if equals and equals + 1 < len(tokens) and all(token.kind in ("word", "name") for token in tokens[:equals]):
        return StatedValue(tokens[equals + 1 :], unless=(Text, Named))
    return None


def named_value(tokens: list[Token]) -> Node | None:
    """Return the value of `no solution`, `all real numbers`, `minus infinity` or `yes`; None for other words."""
    if any(token.kind not in ("word", "name", "const") for token in tokens):
        return None
    spelled = "".join(f" {token.text}" if token.spaced or token.kind == "word" else token.text for token in tokens)
    phrase = spelled.strip().lower()
    name = NAMED_WORDS.get(phrase) or ("empty" if _NOTHING.fullmatch(phrase) else None)
    if name == "inf":
        return INFINITY
    if name == "-inf":
        return negated(INFINITY)
    return Named(name) if name else None


def words_of(tokens: list[Token]) -> Text:
    """Return the words. Raises Unreadable where mathematics stands among them."""
    words: list[str] = []
    for index, token in enumerate(tokens):
        if token.kind in _WORDLIKE:
            if words and not token.spaced and token.kind == "name" and tokens[index - 1].kind == "name":
                words[-1] += token.text.lower()
            else:
                words.append(token.text.lower())
        elif token.kind in ("cmd", "big", "rel") or (token.kind == "op" and token.text in "^_/*+"):
            raise Unreadable("words and mathematics mixed")
    if not words:
        raise Unreadable("no words")
    return Text(tuple(words))
