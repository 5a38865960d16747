r"""Texts without the differences that never make another problem: NFC, runs of whitespace as one space, ends trimmed.

    "  Tom has\n3  cars. "  ->  "Tom has 3 cars."

Most texts are tidy as they come, which costs a tenth of tidying them to find out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import polars as pl

Marks = npt.NDArray[np.bool_]

SPACED = r"[^\S ]|  |^ | $"
"""In a text with whitespace other than single spaces between words."""
UNSURE = r"[^\x00-\u02ff\u2010-\u2027\u2030-\u205e\u3000-\u3029\u4e00-\u9fff\uff00-\uffef]"
"""In a text that may not be NFC. The others are characters that no normalisation touches, and that touch no other."""


def tidy(texts: pl.Series) -> tuple[pl.Series, Marks]:
    """The texts, and which of them were not tidy."""
    wide = (texts.str.len_bytes() != texts.str.len_chars()).to_numpy().copy()
    wide[wide] = texts.filter(pl.Series(wide)).str.contains(UNSURE).to_numpy()
    texts = changed(texts, wide, lambda some: some.str.normalize("NFC"))
    spaced = texts.str.contains(SPACED).to_numpy()
    texts = changed(texts, spaced, lambda some: some.str.replace_all(r"\s+", " ").str.strip_chars())
    return texts, wide | spaced


def changed(
    texts: pl.Series,
    which: Marks,
    change: Callable[[pl.Series], pl.Series],
    otherwise: Callable[[pl.Series], pl.Series] = lambda texts: texts,
) -> pl.Series:
    """The texts with those marked put through `change`, the rest through `otherwise`; both give one for each."""
    if not which.any():
        return otherwise(texts)
    back = np.empty(len(which), dtype=np.int64)
    back[np.argsort(which, kind="stable")] = np.arange(len(which))
    chosen = pl.Series(which)
    return pl.concat([otherwise(texts.filter(~chosen)), change(texts.filter(chosen))]).gather(back)
