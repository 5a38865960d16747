r"""Finds texts that hold another one letter for letter, despite other layout and letters that look alike.

    an item     "A triangle has sides of 3 cm, 4 cm and 5 cm. What is its two-digit area?"
    squashed    atrianglehassidesof#3#cm#4#cmand#5#cmwhatisitstwodigitarea
    a text      "A tri-\nangle  has **sides** of 3 cm, 4 cm and 5&nbsp;cm. Whаt is its two digit area?"
    squashed    the same; one а is Cyrillic

What goes: spaces, line ends, punctuation, markup, hyphens between words, accents, case, and the difference between a
letter and its look-alike in Cyrillic or Greek. What stays: letters, numbers (1 2 is not 12) and mathematical signs.
Both sides are squashed alike, so that texts in Cyrillic or Greek are compared as well.

An item is known by the window of WINDOW bytes in its middle: texts that have the same window are searched for the whole
item. Of texts nothing is kept but the pairs.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from html import unescape

import numpy as np
import polars as pl

from truegold.pipeline.near.arrays import Growing, Hashes, Ints
from truegold.pipeline.near.exact_copies import change_marked
from truegold.pipeline.text.look_alikes import CYRILLIC, GREEK

WINDOW = 32
"""Bytes of a window, a power of two."""
LEAST_BYTES = 40
"""Squashed items of fewer bytes are not looked for: a longer problem may hold such a question by chance."""
CHUNK_TEXTS = 1_000
"""Texts that are squashed and hashed at a time."""
FILTER_BITS = 18
"""The first filter has 2**FILTER_BITS slots: a window that no item has passes it by chance."""

_TO_ASCII = str.maketrans(CYRILLIC | GREEK | dict.fromkeys("‐‑‒–—―−", "-") | {"≠": "<>", "≤": "<=", "≥": ">="})
_MARKED_UP = r"&#?\w+;|</?[A-Za-z]"
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9]{0,10}(?:\s[^<>]{0,200})?/?>")
_HYPHEN = r"(\p{L}{2}|#)\s*-+\s*(\p{L}{2})"
_PARTED = (
    (r"(\d),(\d{3})\b", "${1}${2}"),
    (r"(\d)\.(\d)", "${1}\1${2}"),
    (r"[\d\x01]+", "#${0}#"),
    (_HYPHEN, "${1}${2}"),
    (_HYPHEN, "${1}${2}"),
)
"""Changes to a text in lower case, in this order: grouping commas, decimal points, numbers, and hyphens;
twice, for those of "dd-mm-yyyy"."""
_END = "\0"
"""What stands between squashed texts."""
_IDLE = bytes(code for code in range(2, 128) if not chr(code).isalnum() and chr(code) not in "#+-/<=>^%|")
"""The characters of ASCII that go. Of the others NUL ends a text, and 1 is a decimal point."""
_LAST_WORD = re.compile(r"[^\W\d_]+(?=[\W\d_]*\Z)")


def squash(texts: pl.Series) -> bytes:
    """Return the letters, numbers and mathematical signs of all texts, and NUL behind each text."""
    unlike = (texts.str.len_bytes() != texts.str.len_chars()) | texts.str.contains(_MARKED_UP)
    texts = change_marked(texts, unlike.to_numpy(), lambda some: pl.Series(list(map(_plain, some)), dtype=pl.String))
    texts = texts.str.to_lowercase()
    for pattern, replacement in _PARTED:
        texts = texts.str.replace_all(pattern, replacement)
    texts = texts.str.replace_all(_END, "", literal=True)
    return "".join(texts + _END).encode().translate(None, _IDLE)


def _plain(text: str) -> str:
    """Return the text without markup, accents, look-alike letters, and signs beyond ASCII but mathematical ones."""
    text = _TAG.sub("", unescape(text)).translate(_TO_ASCII)
    if text.isascii():
        return text
    return "".join(char for char in unicodedata.normalize("NFKD", text) if char.isascii() or _tells(char))


def _tells(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char) == "Sm"


class SquashedItems:
    """Learns all items (`learn`), then looks texts up in order (`look_up`); both are called by their numbers."""

    def __init__(self) -> None:
        self._eval_items: list[tuple[bytes, str]] = []
        """Each item squashed, and its last word."""
        self._windows: Hashes = np.zeros(0, np.uint64)
        self._window_item: Ints = np.zeros(0, np.int64)
        self._passes = np.zeros(0, dtype=bool)
        self._texts = 0
        self._text, self._item = Growing(np.int64), Growing(np.int64)

    def learn(self, texts: pl.Series) -> None:
        """Learn more items."""
        last_words = (_LAST_WORD.search(text) for text in texts.to_list())
        squashed = squash(texts).split(_END.encode())[:-1]
        self._eval_items += zip(squashed, (word[0] if word else "" for word in last_words), strict=True)
        self._texts = len(self._eval_items)

    def look_up(self, texts: pl.Series) -> None:
        """Look up more texts."""
        first, self._texts = self._texts, self._texts + len(texts)
        self.look_up_again(texts, np.arange(first, self._texts))

    def look_up_again(self, texts: pl.Series, numbers: Ints) -> None:
        """Look up other wordings of texts with these numbers."""
        if not len(self._passes):
            self._index_windows()
        for start in range(0, len(texts), CHUNK_TEXTS):
            self._look_up_chunk(texts.slice(start, CHUNK_TEXTS), numbers[start : start + CHUNK_TEXTS])

    def _index_windows(self) -> None:
        long = [item for item, (squashed, _) in enumerate(self._eval_items) if len(squashed) >= LEAST_BYTES]
        middles = [
            self._eval_items[item][0][(len(self._eval_items[item][0]) - WINDOW) // 2 :][:WINDOW] for item in long
        ]
        windows = _hash_windows(b"".join(middles))[::WINDOW]
        order = np.argsort(windows, kind="stable")
        self._windows, self._window_item = windows[order], np.array(long, dtype=np.int64)[order]
        self._passes = np.zeros(1 << FILTER_BITS, dtype=bool)
        self._passes[self._windows >> np.uint64(64 - FILTER_BITS)] = True

    def _look_up_chunk(self, texts: pl.Series, numbers: Ints) -> None:
        if not len(self._windows):
            return
        squashed = squash(texts)
        # NUL is in no item, so that no window of one goes over the end of a text.
        hashes = _hash_windows(squashed)
        maybe = np.flatnonzero(self._passes[hashes >> np.uint64(64 - FILTER_BITS)])
        left = np.searchsorted(self._windows, hashes[maybe], side="left")
        right = np.searchsorted(self._windows, hashes[maybe], side="right")
        held = np.flatnonzero(right > left)
        if not len(held):
            return
        ends = np.flatnonzero(np.frombuffer(squashed, dtype=np.uint8) == 0)
        text = np.searchsorted(ends, maybe[held])
        candidates = {
            (index, int(item))
            for index, start, stop in zip(text.tolist(), left[held].tolist(), right[held].tolist(), strict=True)
            for item in self._window_item[start:stop]
        }
        parts = squashed.split(_END.encode())
        pairs = [
            (numbers[index], item)
            for index, item in sorted(candidates)
            if _holds(parts[index], texts[index], *self._eval_items[item])
        ]
        self._text.extend(np.array([text_number for text_number, _ in pairs], dtype=np.int64))
        self._item.extend(np.array([item for _, item in pairs], dtype=np.int64))

    def pairs(self) -> tuple[Ints, Ints]:
        """Return the texts that hold an item, and the item of each."""
        return self._text.array, self._item.array


def _holds(squashed: bytes, text: str, item: bytes, last_word: str) -> bool:
    """Whether a text holds an item whose last word does not go on there, as "the value of x" does in "... of xy"."""
    start = squashed.find(item)
    if start < 0:
        return False
    end = start + len(item)
    if not (item[-1:].isalpha() and squashed[end : end + 1].isalpha()):
        return True
    return re.search(rf"\b{last_word}\b", text, re.IGNORECASE) is not None or _is_gap(text, end)


def _is_gap(text: str, length: int) -> bool:
    """Whether a word ends where the first `length` bytes of a squashed text do: of a broken word each half is one."""
    gaps = [match.start() for match in re.finditer(r"[\W_]+", text)]
    index = bisect_left(gaps, length, key=lambda gap: len(squash(pl.Series([text[:gap]]))) - len(_END))
    return index < len(gaps) and len(squash(pl.Series([text[: gaps[index]]]))) - len(_END) == length


def _hash_windows(data: bytes) -> Hashes:
    """Return a hash of the WINDOW bytes from each position on."""
    hashes = np.frombuffer(data, dtype=np.uint8).astype(np.uint64)
    width = 1
    while width < WINDOW and len(hashes) > width:
        hashes = hashes[:-width] * np.uint64(0x9E3779B97F4A7C15 + 2 * width) + hashes[width:]
        hashes ^= hashes >> np.uint64(29)
        width *= 2
    return (hashes if width == WINDOW else hashes[:0]) * np.uint64(0xFF51AFD7ED558CCD)
