"""Counts the differences between two problem texts: in words, numbers, terms, questions, units and directions.

"Tom has 3 pens and buys 4. How many has he?"
"Ann has 3 pens and loses 4 caps. How many has she?"
words_exchanged 2 (tom, buy / ann, lose)    words_added 1 (cap)    directions_differ
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from truegold.pipeline.near.directions import directions_differ, read_directions
from truegold.pipeline.near.pieces import Clause, ReadKind, ReadToken, is_datum
from truegold.pipeline.near.problem_text import ReadText
from truegold.pipeline.near.terms import FAMILIES

Item = TypeVar("Item")

EXTREMES = frozenset(["least", "greatest", "最大", "最小"])
"""Terms for the least and the greatest."""
CHARACTERS_PER_WORD = 3
"""The number of Chinese characters that carry about as much meaning as a word."""
TEMPLATE_TOKENS = 20
"""The minimum length of a common run of words that shows two instances of one template. None of 426 rewordings has so
long a run in common with its original."""
SIBLING_WORDS = 3
"""The minimum number of words by which instances of one template differ."""
MOST_CLAUSES = 4
"""The clauses of a sentence with at most this number of clauses may change places. In longer sentences, their order
matters: "push 4, push 7, pop, push 2, pop"."""
_ASKABLE = (ReadKind.SYMBOL, ReadKind.TERM, ReadKind.WORD, ReadKind.HAN)
_NONE: set[str] = set()
_MEANINGFUL = (ReadKind.WORD, ReadKind.HAN)
_CHANGEABLE = (*_MEANINGFUL, ReadKind.SMALL, ReadKind.IDLE)
_STEPS = re.compile(
    r"(?:[.;!?]\s+|\band\s+)(?:then|next|finally|afterwards)\b|\b(?:step|round|move)\s*\d|先|再|然后|接着|먼저|다음",
    re.IGNORECASE,
)
"""Words that mark steps. In a text with steps, the order of sentences matters."""
_QUOTED = re.compile(r"[\"“「『`]([^\s\"“”「」『』`]+)[\"”」』`]")
"""A word in quotation marks. It is data."""
_TERMS = (ReadKind.TERM, ReadKind.EVERYDAY)
_COUNTED = (
    ReadKind.QUANTITY,
    ReadKind.SYMBOL,
    ReadKind.TERM,
    ReadKind.EVERYDAY,
    ReadKind.WORD,
    ReadKind.HAN,
    ReadKind.NAME,
)

Differences = Mapping[str, int]
"""Counts of the differences of a pair by name, as `compare_texts` returns them.

- `words_exchanged`: the number of words that were replaced by others. If 3 words are only in the left text and 1 word
  is only in the right text, 1 word was replaced
- `words_added`: the number of further words that only one text has; 2 in this example
- `numbers_exchanged`, `numbers_added` and so on: the same for numbers, symbols, formulas, terms and names
- `terms_contrasted`: the number of families of terms (even, odd) of which each text has a term that the other lacks
- `extremes_differ`: 1 if only one text mentions the least, or only one text mentions the greatest
- `asked_given`: 1 if each text asks for something that the other text gives
- `drawing_differs`: 1 if the drawings of the texts differ
- `units_differ`: 1 if the texts have different numbers of distinct units of length
- `directions_differ`: 1 if an amount comes in according to one text, and goes out according to the other
- `words`: the number of words of the text with fewer words: large for stories, small for exercises
"""


def compare_texts(left: ReadText, right: ReadText) -> Differences:
    """Return the differences between two texts."""
    counts = {kind: _count_missing(left.forms, right.forms, kind) for kind in _COUNTED}
    asked = {
        kind: _count_missing(left.asked_forms, right.asked_forms, kind) for kind in (ReadKind.SYMBOL, ReadKind.TERM)
    }
    formulas = (
        sum(formula not in right.mathematics for formula in left.formulas),
        sum(formula not in left.mathematics for formula in right.formulas),
    )
    both_sides = {
        "numbers": counts[ReadKind.QUANTITY],
        "symbols": counts[ReadKind.SYMBOL],
        "formulas": formulas,
        "terms": counts[ReadKind.TERM],
        "everyday": counts[ReadKind.EVERYDAY],
        "words": tuple(map(sum, zip(counts[ReadKind.WORD], counts[ReadKind.HAN], strict=True))),
        "names": counts[ReadKind.NAME],
        "asked_symbols": asked[ReadKind.SYMBOL],
        "asked_terms": asked[ReadKind.TERM],
    }
    return {
        **{f"{name}_exchanged": min(sides) for name, sides in both_sides.items()},
        **{f"{name}_added": max(sides) - min(sides) for name, sides in both_sides.items()},
        "terms_contrasted": _count_contrasts(left, right),
        "extremes_differ": _extremes(left) != _extremes(right),
        "asked_given": _gives(left, right) and _gives(right, left),
        "drawing_differs": left.drawing != right.drawing,
        "units_differ": _count_units(left) != _count_units(right),
        "directions_differ": directions_differ(read_directions(left.text), read_directions(right.text)),
        "words": min(_count_words(left), _count_words(right)),
    }


def are_siblings(left: ReadText, right: ReadText, differences: Differences) -> bool:
    """Return whether two texts share a template word for word, and differ in the words that fill it."""
    if differences["words_exchanged"] < SIBLING_WORDS:
        return False
    words = [tuple(token for token in text.tokens if not is_datum(token)) for text in (left, right)]
    runs = [{text[end - TEMPLATE_TOKENS : end] for end in range(TEMPLATE_TOKENS, len(text) + 1)} for text in words]
    return not runs[0].isdisjoint(runs[1])


def _count_missing(left: dict[str, set[str]], right: dict[str, set[str]], kind: str) -> tuple[int, int]:
    """Return how many distinct forms of a kind only the left and only the right text has."""
    here, there = left.get(kind, _NONE), right.get(kind, _NONE)
    return len(here - there), len(there - here)


def count_changed_words(left: ReadText, right: ReadText) -> int:
    """Return the number of words that one text lacks or has less often; -1 if the texts differ in anything else.

    Copies have the same tokens in the same order, and give 0. Sentences, and clauses within a sentence, may change
    places unless a word marks steps ("then").
    """
    changed = _changes(left.tokens, right.tokens)
    if (
        any(token.kind not in _CHANGEABLE for token in changed)
        or sorted(left.formulas) != sorted(right.formulas)
        or left.drawing != right.drawing
        or _QUOTED.findall(left.text) != _QUOTED.findall(right.text)
    ):
        return -1
    words = sum(count for token, count in changed.items() if token.kind != ReadKind.IDLE)
    kept = [[token for token in text.tokens if token not in changed] for text in (left, right)]
    if kept[0] == kept[1]:
        return words
    if any(token.kind in _MEANINGFUL for token in changed) or _STEPS.search(left.text):
        return -1
    sentences = [_sentences(text, changed) for text in (left, right)]
    if len(sentences[0]) != len(sentences[1]):
        sentences = [[(clause,) for sentence in text for clause in sentence] for text in sentences]
    return words if sorted(sentences[0]) == sorted(sentences[1]) else -1


def _sentences(text: ReadText, changed: Counter[ReadToken]) -> list[tuple[Clause, ...]]:
    """Return the clauses of each sentence without the tokens in `changed`. Up to MOST_CLAUSES clauses are sorted."""
    sentences = [
        [kept for clause in sentence if (kept := tuple(token for token in clause if token not in changed))]
        for sentence in text.sentences
    ]
    return [tuple(sorted(kept) if len(kept) <= MOST_CLAUSES else kept) for kept in sentences if kept]


def _changes(left: Iterable[Item], right: Iterable[Item]) -> Counter[Item]:
    """Return the items whose counts differ between the two sides, each with the difference."""
    left_bag, right_bag = Counter(left), Counter(right)
    return (left_bag - right_bag) + (right_bag - left_bag)


def _gives(left: ReadText, right: ReadText) -> bool:
    for kind in _ASKABLE:
        only_asked = left.asked_forms.get(kind, _NONE) - right.asked_forms.get(kind, _NONE)
        if not only_asked.isdisjoint(right.forms.get(kind, _NONE)):
            return True
    return False


def _count_contrasts(left: ReadText, right: ReadText) -> int:
    families: tuple[set[int], set[int]] = (set(), set())
    for kind in _TERMS:
        here, there = left.forms.get(kind, _NONE), right.forms.get(kind, _NONE)
        families[0].update([FAMILIES[term] for term in here - there])
        families[1].update([FAMILIES[term] for term in there - here])
    return len(families[0] & families[1])


def _extremes(text: ReadText) -> set[str]:
    return text.forms.get(ReadKind.TERM, _NONE) & EXTREMES


def _count_words(text: ReadText) -> int:
    kinds = Counter(token.kind for token in text.tokens)
    return kinds[ReadKind.WORD] + kinds[ReadKind.EVERYDAY] + kinds[ReadKind.HAN] // CHARACTERS_PER_WORD


def _count_units(text: ReadText) -> int:
    return max(1, len(text.forms.get(ReadKind.UNIT, _NONE)))
