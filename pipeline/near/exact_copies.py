r"""Tells exact copies: the same prompt with the same gold. This is the one place that decides it.

    prompt                      gold           is a copy of the first row?
    What is 6*7?                42
    what is  6*7?               42.0           yes: case, spaces and how a number is written make no difference
    What is 6*7?                \boxed{42}     yes
    What is 6*7?                43             no: the same prompt, another gold
    (none)                      42             no: a row without a prompt is a copy of nothing

- Prompts are compared in NFC, with runs of whitespace as one space, without regard to case (as `str.casefold` has it).
  Most are tidy as they come, which costs a tenth of tidying them to find out.
- The tests of a program are part of its problem: the same prompt with other tests is another one. Names in code tell
  cases apart, so that case counts there.
- Golds are compared by value where they are plain numbers, also in LaTeX or with a percent sign; else in NFC, without
  regard to case and to spaces, except for spaces between digits. An empty gold is none. Golds of other forms, among
  them numbers with a unit, the math verifier compares (`golds`).

Keys are hashes of 64 bits: among ten million different prompts two fall together with a probability of 3e-6.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import orjson
import polars as pl

from truegold.pipeline.config.sources import MAX_SOURCES
from truegold.pipeline.near.arrays import Floats, Hashes, Ints, Marks
from truegold.pipeline.tables.rows import normalise_for_id
from truegold.verifiers.gold import OTHER_GOLDS, all_golds, mistake_in_golds

MAX_SOLUTION_CHARS = 10_000
"""A worked solution that is longer still is no better."""
NO_GOLD = -1
"""The key of a row without gold; other keys are not negative."""
BETWEEN_GOLDS = "\x1e"
"""What stands between several accepted golds of one row (a record separator, which no gold has)."""

_COMMAND = re.compile(r"\\[a-z]+|per ?cent")
_UNIT = re.compile(r"[a-z\u4e00-\u9fff£€¥￥]")
_IDLE_SPACE = re.compile(r"(?<!\d) | (?!\d)")
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


@dataclass(frozen=True)
class TidyPrompts:
    """Prompts in NFC, with runs of whitespace as one space and trimmed ends."""

    texts: pl.Series
    untidy: Marks
    """Which of the prompts were not tidy as they came."""

    @cached_property
    def lower(self) -> pl.Series:
        """The prompts in lower case."""
        return self.texts.str.to_lowercase()

    @cached_property
    def filled(self) -> Marks:
        """Which prompts are not empty. Empty ones have keys too, but are copies of nothing."""
        return (self.texts.str.len_bytes() > 0).to_numpy()

    @cached_property
    def complete(self) -> Marks:
        """Which prompts end as a sentence or a formula does."""
        return self.texts.str.contains(r"[.?!。？！$)}\]]$").to_numpy()

    def keys(self, tests: pl.Series | None = None, *, case_sensitive: bool = False) -> Hashes:
        """Return a key for each prompt, the same for prompts of one problem.

        `tests` are those of programs, null for other problems.
        """
        compared = self.texts if case_sensitive else fold_case(self.lower)
        if tests is not None and tests.null_count() < len(tests):
            with_tests = self.texts + "\0" + tests
            compared = compared.zip_with(tests.is_null(), with_tests)
        return compared.hash(seed=7).to_numpy()


def tidy_prompts(prompts: pl.Series) -> TidyPrompts:
    """Make prompts ready to be compared."""
    return TidyPrompts(*tidy(prompts))


def accepted_text(gold: str | None, verifier_args: str) -> str | None:
    """Return every accepted gold of a row as one text, which `gold_key` and `golds.compare_golds` take apart."""
    # Arguments may be megabytes of tests; hardly any row has several golds.
    if gold is None or f'"{OTHER_GOLDS}"' not in verifier_args:
        return gold
    arguments = orjson.loads(verifier_args)
    if mistake_in_golds(arguments.get(OTHER_GOLDS, ())) is not None:
        return gold
    return join_golds(all_golds(gold, arguments))


def join_golds(golds: Sequence[str]) -> str | None:
    """Return accepted golds as one text, which `gold_key` and `golds.compare_golds` take apart; None for none."""
    return BETWEEN_GOLDS.join(text.replace(BETWEEN_GOLDS, " ") for text in golds) if golds else None


def shown_gold(golds: str | None) -> str | None:
    """Return the first of the golds that `join_golds` has joined: a row's own."""
    return None if golds is None else golds.partition(BETWEEN_GOLDS)[0]


def gold_form(gold: str | None) -> str | None:
    """Return the form in which golds are compared, None where there is none: "1,000.0" and "$1000$" are "1000"."""
    form = "" if gold is None else normalise_for_id(gold).casefold()
    if not form:
        return None
    if form.isascii() and form.isdigit():
        return form.lstrip("0") or "0"
    # The module comes with all rules, which cost a tenth of a second that most files of whole numbers can do without.
    from truegold.pipeline.text.quantities import read_number

    written = read_number(form)
    if written is None or _UNIT.search(_COMMAND.sub(" ", form)):
        return _IDLE_SPACE.sub("", form)
    return str(written.value)


@lru_cache(2**16)
def gold_key(gold: str | None) -> int:
    """Return a number of 63 bits for the gold, the same for golds of one form, NO_GOLD for none."""
    if gold is not None and BETWEEN_GOLDS in gold:
        form = BETWEEN_GOLDS.join(sorted({part for part in map(gold_form, gold.split(BETWEEN_GOLDS)) if part}))
    else:
        form = gold_form(gold) or ""
    if not form:
        return NO_GOLD
    digest = hashlib.blake2b(form.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def gold_keys(golds: Iterable[str | None]) -> Ints:
    """Return the key of each gold."""
    return np.fromiter(map(gold_key, golds), dtype=np.int64)


def row_quality(
    gold: Ints,
    solutions: Sequence[int],
    complete: Marks,
    preferred: Sequence[bool] | None,
    ranks: Sequence[int] | None = None,
) -> Floats:
    """Rank preferred rows first, then rows with gold, then complete texts, then longer worked solutions.

    `solutions` has the characters of each worked solution. Of copies and of rewordings the best row stays. `ranks` are
    those of the rows' sources, 0 for the best: of rows with gold that of the better source is the better one.
    """
    length = np.minimum(np.asarray(solutions, dtype=np.float32), MAX_SOLUTION_CHARS) / (MAX_SOLUTION_CHARS + 1)
    first = np.zeros(len(gold)) if preferred is None else np.asarray(preferred, dtype=np.float32)
    text = complete + length
    if ranks is not None:
        # The step between two sources is as large as all that texts and solutions can make of a row.
        text = (MAX_SOURCES - 1 - np.asarray(ranks, dtype=np.float64) + text / 2) / MAX_SOURCES
    quality: Floats = (4 * first + 2 * (gold != NO_GOLD) + text).astype(np.float32)
    return quality


def writable(text: str | None) -> str | None:
    """Return the text without lone surrogates, which no table can hold."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


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
    return (texts.str.len_bytes() != texts.str.len_chars()).to_numpy().copy()


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
