"""Corrects misspelt words of a text by the words of the texts that it is compared with.

    known    triangle, apples, marbles, from
    text     "A trinagle has ...", "Tom buys 3 aplpes ..."   ->  "A triangle has ...", "Tom buys 3 apples ..."

A word that no known text contains is replaced by a known word that differs from it by two neighbouring letters in
exchanged places, or by a doubled letter. So even a real word, such as "trail", is replaced by "trial" if only "trial"
is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

LEAST_LETTERS = 4
"""The minimum number of letters of a word that is corrected. A slip of a shorter word is often another word."""
MOST_LETTERS = 24
"""The maximum number of letters of a word that is corrected."""
MOST_SEEN = 2**18
"""The number of checked words that are remembered. When it is exceeded, all are forgotten and checked again."""
_WORDS = rf"[A-Za-z]{{{LEAST_LETTERS},}}"
_WORD = re.compile(_WORDS)
_DOUBLED = re.compile(r"(.)\1")


class SlipMender:
    """Learns words (`learn`), and corrects texts by them (`mend`)."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._by_letters: dict[str, list[str]] = {}
        """Known words by their letters in alphabetical order."""
        self._mended: dict[str, str] = {}
        """The known word for each misspelt word."""
        self._seen: set[str] = set()
        """Words that were checked for slips."""

    def learn(self, texts: Iterable[str]) -> None:
        """Learn the words of some texts."""
        words = _words(pl.Series(texts, dtype=pl.String)).unique(maintain_order=True).to_list()
        for word in words:
            if word not in self._known:
                self._known.add(word)
                self._by_letters.setdefault("".join(sorted(word)), []).append(word)

    def mend(self, texts: Sequence[str]) -> list[str]:
        """Return the texts with misspelt words replaced.

        A text without misspelt words is returned as the same object.
        """
        series = pl.Series(texts, dtype=pl.String)
        words = series.str.to_lowercase().str.extract_all(_WORDS)
        distinct = words.explode().drop_nulls().unique(maintain_order=True).to_list()
        if len(self._seen) > MOST_SEEN:
            self._seen, self._mended = set(), {}
        new = [word for word in distinct if word not in self._seen and word not in self._known]
        self._seen.update(new)
        self._mended |= {word: known for word in new if (known := self._intended(word)) is not None}
        slips = [word for word in distinct if word in self._mended]
        if not slips:
            return list(texts)
        has_slip = words.list.eval(pl.element().is_in(slips).any()).list.first().fill_null(value=False).to_numpy()
        mended = list(texts)
        for row in np.flatnonzero(has_slip).tolist():
            mended[row] = _WORD.sub(self._mend_word, texts[row])
        return mended

    def _intended(self, word: str) -> str | None:
        if len(word) > MOST_LETTERS:
            return None
        for known in self._by_letters.get("".join(sorted(word)), ()):
            if _are_exchanged(word, known):
                return known
        if not _DOUBLED.search(word):
            return None
        shorter = (word[:index] + word[index + 1 :] for index in range(1, len(word)) if word[index] == word[index - 1])
        return next((known for known in shorter if known in self._known), None)

    def _mend_word(self, match: re.Match[str]) -> str:
        known = self._mended.get(match[0].lower(), match[0])
        return known.capitalize() if match[0][0].isupper() else known


def _words(texts: pl.Series) -> pl.Series:
    return texts.str.to_lowercase().str.extract_all(_WORDS).explode().drop_nulls()


def _are_exchanged(left: str, right: str) -> bool:
    """Return whether two words of the same letters differ only by an exchange of two neighbouring letters."""
    differing = [index for index, letters in enumerate(zip(left, right, strict=True)) if letters[0] != letters[1]]
    return len(differing) == 2 and differing[1] == differing[0] + 1
