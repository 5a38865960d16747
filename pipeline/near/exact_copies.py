r"""Computes a key for each prompt. Exact copies of a problem have the same key.

    prompt              tests        has the key of the first row?
    What is 6*7?        -
    what is  6*7?       -            yes: case and spaces make no difference
    What is 6 * 7?      -            no: it has an additional space
    What is 6*7?        assert ...   no: tests are part of a problem
    (none)              -            no; a row without a prompt is never a copy

- Prompts are compared after tidying: in NFC, with runs of whitespace as one space, and case-folded (`str.casefold`).
  Only untidy prompts are changed. Finding these takes a tenth of the time of tidying all prompts.
- The case of the prefixes milli and mega is kept: 5 mW is not 5 MW.
- The tests of a program are part of its problem: the same prompt with different tests is a different problem. Names in
  code are case-sensitive, so case matters there.
- Golds have separate keys (`gold_keys`). `dedup.copy_table` and `duplicates` combine both keys.

Keys are hashes of 64 bits: among ten million different prompts, two have the same key with a probability of 3e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from truegold.pipeline.near.arrays import Hashes, Marks, places_in

SPACED = r"[\t-\r\x1c-\x1f]|  "
"""Matches an ASCII text with whitespace other than single spaces."""
UNTIDY = rf"{SPACED}|[^\x00-\x84\u00a1-\u02ff\u2010-\u2027\u2030-\u205e\u3001-\u3029\u4e00-\u9fff\uff01-\uffef]"
"""Matches a text with whitespace other than single spaces, or with a character that NFC normalisation may change."""
SPACE = r"[\s\x1c-\x1f]+"
"""Whitespace as in Python's `\\s`, which includes the four separators U+001C to U+001F."""
CHANGED_BY_FOLDING = (
    r"[µßŉſǰ\u0345ΐΰςϐϑϕϖϰϱϵ\u0587\u13f8-\u13fd\u1c80-\u1c88\u1e96-\u1e9b\u1f50-\u1ff7\uab70-\uabbf\ufb00-\ufb17]"
)
"""Matches every lower-case text that `str.casefold` changes, and few other texts."""
MEGA = r"(\d\s?)M((?:[WVJNACFHbB]|Hz|Pa|eV|Ω|bps)(?-u:\b))"
"""An amount with the prefix mega: 5 MW. In lower case it would read as milli: 5 mW."""
SENTENCE_CASE = "[a-z]{4}"
"""Matches a text that is not written in capitals throughout."""


@dataclass(frozen=True)
class TidyPrompts:
    """Prompts in NFC, with runs of whitespace as one space and trimmed ends."""

    texts: pl.Series
    untidy: Marks
    """The prompts that had to be tidied."""

    @cached_property
    def lower(self) -> pl.Series:
        """The prompts in lower case."""
        return self.texts.str.to_lowercase()

    @cached_property
    def filled(self) -> Marks:
        """The prompts that are not empty. Empty prompts have keys too, but are never copies."""
        return (self.texts.str.len_bytes() > 0).to_numpy()

    @cached_property
    def complete(self) -> Marks:
        """The prompts that end like a sentence or a formula."""
        return self.texts.str.contains(r"[.?!。？！$)}\]]$").to_numpy()

    def keys(self, tests: pl.Series | None = None, *, case_sensitive: bool = False) -> Hashes:
        """Return a key for each prompt, the same for prompts of one problem.

        `tests` has the tests of programming problems, and null for other problems.
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
    """Return the prompts normalised as by `rows.normalise_for_id`, and mark those that were changed."""
    wide = _is_wide(prompts)
    untidy = (prompts.str.starts_with(" ") | prompts.str.ends_with(" ")).to_numpy().copy()
    for marked, pattern in ((wide, UNTIDY), (~wide, SPACED)):
        untidy[marked] |= prompts.filter(pl.Series(marked)).str.contains(pattern).to_numpy()
    return TidyPrompts(change_marked(prompts, untidy, _tidy_all), untidy)


def _tidy_all(texts: pl.Series) -> pl.Series:
    composed = change_marked(texts, _is_wide(texts), lambda wide: wide.str.normalize("NFC"))
    return composed.str.replace_all(SPACE, " ").str.strip_chars(" ")


def mark_mega(texts: pl.Series) -> pl.Series:
    """Return the texts with a mark in place of the M of units such as MW. So lower-casing does not change the unit.

    Texts in capitals throughout stay unchanged, because their M may be either prefix.
    """
    with_mega = texts.str.contains(MEGA).to_numpy().copy()
    with_mega[with_mega] = texts.filter(pl.Series(with_mega)).str.contains(SENTENCE_CASE).to_numpy()
    return change_marked(texts, with_mega, lambda some: some.str.replace_all(MEGA, "${1}\x08${2}"))


def fold_case(lower: pl.Series) -> pl.Series:
    """Return lower-case texts as `str.casefold` folds them: "straße" becomes "strasse"."""
    wide = _is_wide(lower)
    changed = wide.copy()
    changed[wide] = lower.filter(pl.Series(wide)).str.contains(CHANGED_BY_FOLDING).to_numpy()
    return change_marked(lower, changed, lambda texts: pl.Series([text.casefold() for text in texts], dtype=pl.String))


def _is_wide(texts: pl.Series) -> Marks:
    return (texts.str.len_bytes() != texts.str.len_chars()).to_numpy().copy()


def change_marked(
    texts: pl.Series,
    marked: Marks,
    change: Callable[[pl.Series], pl.Series],
    otherwise: Callable[[pl.Series], pl.Series] = lambda texts: texts,
) -> pl.Series:
    """Apply `change` to the marked texts and `otherwise` to the rest. Both functions keep the number of texts."""
    if not marked.any():
        return otherwise(texts)
    mask = pl.Series(marked)
    unmarked_first = pl.concat([otherwise(texts.filter(~mask)), change(texts.filter(mask))])
    return unmarked_first.gather(places_in(np.argsort(marked, kind="stable")))
