r"""Texts without the differences that never make another problem: NFC, runs of whitespace as one space, ends trimmed.

    "  Tom has\n3  cars. "  ->  "Tom has 3 cars."

Most texts are tidy as they come, which costs a tenth of tidying them to find out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from truegold.pipeline.near.arrays import Marks

SPACED = r"[\t-\r\x1c-\x1f]|  "
"""This matches in an ASCII text with whitespace other than single spaces."""
UNTIDY = rf"{SPACED}|[^\x00-\x84\u00a1-\u02ff\u2010-\u2027\u2030-\u205e\u3001-\u3029\u4e00-\u9fff\uff01-\uffef]"
"""This matches in any text that has other whitespace or may not be NFC: only characters are left out that no
normalisation touches, and that touch no other."""
SPACE = r"[\s\x1c-\x1f]+"
"""Whitespace as Python's `\\s` sees it, which counts four separators that Unicode does not."""
CHANGED_BY_FOLDING = (
    r"[µßŉſǰ\u0345ΐΰςϐϑϕϖϰϱϵ\u0587\u13f8-\u13fd\u1c80-\u1c88\u1e96-\u1e9b\u1f50-\u1ff7\uab70-\uabbf\ufb00-\ufb17]"
)
"""This matches in every text in lower case that folding its case changes, and in few others."""


def tidy(texts: pl.Series) -> tuple[pl.Series, Marks]:
    """Return the texts as `rows.normalise_for_id` has them, and which of them were not tidy."""
    wide = _is_wide(texts)
    untidy = (texts.str.starts_with(" ") | texts.str.ends_with(" ")).to_numpy().copy()
    for which, pattern in ((wide, UNTIDY), (~wide, SPACED)):
        untidy[which] |= texts.filter(pl.Series(which)).str.contains(pattern).to_numpy()
    return change_marked(texts, untidy, _tidy_all), untidy


def _tidy_all(texts: pl.Series) -> pl.Series:
    composed = change_marked(texts, _is_wide(texts), lambda wide: wide.str.normalize("NFC"))
    return composed.str.replace_all(SPACE, " ").str.strip_chars(" ")


def fold_case(lower: pl.Series) -> pl.Series:
    """Return what `str.casefold` makes of texts that are in lower case: "straße" becomes "strasse"."""
    which = _is_wide(lower)
    which[which] = lower.filter(pl.Series(which)).str.contains(CHANGED_BY_FOLDING).to_numpy()
    return change_marked(lower, which, lambda texts: pl.Series([text.casefold() for text in texts], dtype=pl.String))


def _is_wide(texts: pl.Series) -> Marks:
    """Mark the texts that have characters beyond ASCII."""
    marks: Marks = (texts.str.len_bytes() != texts.str.len_chars()).to_numpy().copy()
    return marks


def change_marked(
    texts: pl.Series,
    which: Marks,
    change: Callable[[pl.Series], pl.Series],
    otherwise: Callable[[pl.Series], pl.Series] = lambda texts: texts,
) -> pl.Series:
    """Put the texts that are marked through `change` and the rest through `otherwise`; both keep their lengths."""
    if not which.any():
        return otherwise(texts)
    back = np.empty(len(which), dtype=np.int64)
    back[np.argsort(which, kind="stable")] = np.arange(len(which))
    marked = pl.Series(which)
    return pl.concat([otherwise(texts.filter(~marked)), change(texts.filter(marked))]).gather(back)
