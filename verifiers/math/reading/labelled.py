r"""Lists whose items say in words what each value is: `Minimum: 1, Maximum: 3`, `mean = 5, median = 4`.

Each item becomes the equation of its label, so that the comparison pairs them by their labels. Spellings of the same
label (`min`, `Minimum`, 最小值) are one. A single label says nothing and is left to `wording`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from truegold.verifiers.math.measures import label_unit
from truegold.verifiers.math.reading.tokens import Token
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import Chain, Node, Sym, Text

ReadItem: TypeAlias = Callable[[list[Token]], Node]

MAX_LABEL_TOKENS = 8
MAX_WORD_LETTERS = 20

_LABEL_FUNCTIONS = frozenset({"max", "min"})
"""Of functions only these label a value: `\\ln 3, \\ln 5` are two values."""
_LABEL_KINDS = frozenset({"word", "name", "func", "const", "num"})
_VERBS = frozenset({"has", "have", "is", "are", "gets", "was", "were", "=", "为", "是"})
_IDLE = frozenset({"the", "of", "value", "values", "a", "an"})
_SAME_LABELS = {
    **dict.fromkeys(("minimum", "min", "smallest", "least", "最小值", "最小"), "min"),
    **dict.fromkeys(("maximum", "max", "largest", "greatest", "最大值", "最大"), "max"),
    **dict.fromkeys(("average", "mean", "平均数", "平均值"), "mean"),
    **dict.fromkeys(("median", "中位数"), "median"),
    **dict.fromkeys(("mode", "众数"), "mode"),
    **dict.fromkeys(("centre", "center"), "center"),
}


def read_labelled(slices: list[list[Token]], read_item: ReadItem) -> list[Node] | None:
    """Return the items as equations of their labels; None where an item has no label in words."""
    if len(slices) < 2 or not any(map(_begins_label, slices[0])):
        return None
    slices = [_with_words_whole(tokens) for tokens in slices]
    cuts = [_label_end(tokens) for tokens in slices]
    if any(cut is None for cut in cuts):
        return None
    nodes: list[Node] = []
    for tokens, cut in zip(slices, cuts, strict=True):
        assert cut is not None
        end, start = cut
        try:
            value = read_item(tokens[start:])
        except Unreadable:
            return None
        if isinstance(value, Text) and start == end:
            return None
        nodes.append(Chain((Sym(_label_name(tokens[:end])), value), ("=",)))
    return nodes


def _begins_label(token: Token) -> bool:
    return token[0] == "word" or token[1] == ":" or (token[0] == "func" and token[1] in _LABEL_FUNCTIONS)


def _with_words_whole(tokens: list[Token]) -> list[Token]:
    """Return the tokens with `Tom` as one word where a colon or a verb follows, rather than as a product of letters."""
    whole: list[Token] = []
    for index, token in enumerate(tokens):
        if token.kind not in ("name", "word") or len(token.text) > MAX_WORD_LETTERS:
            return [*whole, *tokens[index:]]
        if whole and token.kind == "name" == whole[-1].kind and not token.spaced:
            whole[-1] = Token("name", whole[-1].text + token.text, whole[-1].spaced)
        else:
            whole.append(token)
    return whole


def _label_end(tokens: list[Token]) -> tuple[int, int] | None:
    """Return where the label of an item ends and where its value begins."""
    index, words, has_word = 0, 0, False
    while index < len(tokens) and index < MAX_LABEL_TOKENS:
        token = tokens[index]
        is_verb = token.text.lower() in _VERBS and token.kind in ("word", "rel", "name")
        if words and (is_verb or (token.kind == "op" and token.text == ":")) and index + 1 < len(tokens):
            is_plain = token.text == "=" and not has_word
            return None if is_plain else (index, index + 1)
        if (
            token.kind == "num"
            and words
            and has_word
            and not (index + 1 < len(tokens) and tokens[index + 1].text == ":")
        ):
            return index, index
        if token.kind == "open" and token.text == "(" and words and has_word:
            return index, index
        if token.kind == "op" and token.text == "-" and words:
            index += 1
            continue
        if token.kind not in _LABEL_KINDS or (token.kind == "num" and not words):
            return None
        has_word |= token.kind in ("word", "func")
        words += 1
        index += 1
    return None


def _label_name(tokens: list[Token]) -> str:
    words = [token.text.lower() for token in tokens if token.kind in _LABEL_KINDS]
    words = [word for word in words if word not in _IDLE] or words
    return " ".join(_SAME_LABELS.get(word) or label_unit(word).label or word for word in words)
