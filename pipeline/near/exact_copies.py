r"""Tidies prompts and gives each a key, the same for prompts of one problem. Copies have the same key, and one gold.

    prompt              tests        has the key of the first row?
    What is 6*7?        -
    what is  6*7?       -            yes: case and spaces make no difference
    What is 6 * 7?      -            no: a space more
    What is 6*7?        assert ...   no: tests are part of a problem
    (none)              -            no; and a row without a prompt is a copy of nothing

- Prompts are compared in NFC, with runs of whitespace as one space, and without regard to case (as `str.casefold` has
  it). Most come tidy, and it takes a tenth of the time of tidying to find out which do.
- Case tells two units apart: 5 mW are not 5 MW.
- The tests of a program are part of its problem: the same prompt with other tests is another one. Names in code tell
  cases apart, so that case counts there.
- Golds have keys of their own (`gold_keys`). What follows from both, `dedup.copy_table` and `duplicates` decide.

Keys are hashes of 64 bits: among ten million different prompts two fall together with a probability of 3e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from truegold.pipeline.near.arrays import Hashes, Marks, places_in

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
MEGA = r"(\d\s?)M((?:[WVJNACFHbB]|Hz|Pa|eV|Ω|bps)(?-u:\b))"
"""An amount of millions: the same letters in lower case are thousandths."""
SENTENCE_CASE = "[a-z]{4}"
"""This matches in a text whose letters are not all capitals."""


@dataclass(frozen=True)
class TidyPrompts:
    """Prompts in NFC, with runs of whitespace as one space and trimmed ends."""

    texts: pl.Series
    untidy: Marks
    """The prompts that were not tidy as they came."""

    @cached_property
    def lower(self) -> pl.Series:
        """The prompts in lower case."""
        return self.texts.str.to_lowercase()

    @cached_property
    def filled(self) -> Marks:
        """The prompts that are not empty. Empty ones have keys too, but are copies of nothing."""
        return (self.texts.str.len_bytes() > 0).to_numpy()

    @cached_property
    def complete(self) -> Marks:
        """The prompts that end as a sentence or a formula does."""
        return self.texts.str.contains(r"[.?!。？！$)}\]]$").to_numpy()

    def keys(self, tests: pl.Series | None = None, *, case_sensitive: bool = False) -> Hashes:
        """Return a key for each prompt, the same for prompts of one problem.

        `tests` are those of programs, null for other problems.
        """
        compared = self.texts
        if not case_sensitive:
            with_mega = self.texts.str.contains(MEGA).to_numpy()
            lower = change_marked(
                self.lower, with_mega, lambda _: mark_mega(self.texts.filter(pl.Series(with_mega))).str.to_lowercase()
            )
            compared = fold_case(lower)
        if tests is not None and tests.null_count() < len(tests):
            with_tests = self.texts + "\0" + tests
            compared = compared.zip_with(tests.is_null(), with_tests)
        return compared.hash(seed=7).to_numpy()


def tidy_prompts(prompts: pl.Series) -> TidyPrompts:
    """Return the prompts as `rows.normalise_for_id` has them, and which of them were not tidy."""
    wide = _is_wide(prompts)
    untidy = (prompts.str.starts_with(" ") | prompts.str.ends_with(" ")).to_numpy().copy()
    for marked, pattern in ((wide, UNTIDY), (~wide, SPACED)):
        untidy[marked] |= prompts.filter(pl.Series(marked)).str.contains(pattern).to_numpy()
    return TidyPrompts(change_marked(prompts, untidy, _tidy_all), untidy)


def _tidy_all(texts: pl.Series) -> pl.Series:
    composed = change_marked(texts, _is_wide(texts), lambda wide: wide.str.normalize("NFC"))
    return composed.str.replace_all(SPACE, " ").str.strip_chars(" ")


def mark_mega(texts: pl.Series) -> pl.Series:
    """Return the texts with another sign for the M of units such as MW, capitals aside, which have no case."""
    with_mega = texts.str.contains(MEGA).to_numpy().copy()
    with_mega[with_mega] = texts.filter(pl.Series(with_mega)).str.contains(SENTENCE_CASE).to_numpy()
    return change_marked(texts, with_mega, lambda some: some.str.replace_all(MEGA, "${1}\x08${2}"))


def fold_case(lower: pl.Series) -> pl.Series:
    """Return what `str.casefold` makes of texts that are in lower case: "straße" becomes "strasse"."""
    wide = _is_wide(lower)
    changed = wide.copy()
    changed[wide] = lower.filter(pl.Series(wide)).str.contains(CHANGED_BY_FOLDING).to_numpy()
    return change_marked(lower, changed, lambda texts: pl.Series([text.casefold() for text in texts], dtype=pl.String))


def _is_wide(texts: pl.Series) -> Marks:
    """Mark the texts that have characters beyond ASCII."""
    return (texts.str.len_bytes() != texts.str.len_chars()).to_numpy().copy()


def change_marked(
    texts: pl.Series,
    marked: Marks,
    change: Callable[[pl.Series], pl.Series],
    otherwise: Callable[[pl.Series], pl.Series] = lambda texts: texts,
) -> pl.Series:
    """Put the texts that are marked through `change` and the rest through `otherwise`; both keep their lengths."""
    if not marked.any():
        return otherwise(texts)
    mask = pl.Series(marked)
    unmarked_first = pl.concat([otherwise(texts.filter(~mask)), change(texts.filter(mask))])
    return unmarked_first.gather(places_in(np.argsort(marked, kind="stable")))
