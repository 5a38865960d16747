r"""Gives each gold a key, the same for golds that are written otherwise but are the same.

    42 and 42.0 and \boxed{42}    one key: plain numbers are compared by value
    1,000 and 1000                 one key
    2x + 1 and 2X+1                one key: other golds in NFC, without regard to case and to spaces
    1 2 and 12                     two keys: spaces between digits count
    (empty)                        NO_GOLD

Golds of other forms, among them numbers with a unit, the math verifier compares (`golds`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import orjson
import polars as pl

from truegold.pipeline.near.arrays import Ints
from truegold.pipeline.tables.rows import normalise_for_id
from truegold.verifiers.gold import OTHER_GOLDS, all_golds, mistake_in_golds

NO_GOLD = -1
"""The key of a row without gold; other keys are not negative."""
BETWEEN_GOLDS = "\x1e"
"""The separator between several accepted golds of one row (a record separator, which no gold has)."""
_COMMAND = re.compile(r"\\[a-z]+|per ?cent")
r"""Letters that do not spell a unit: `\frac` and "per cent"."""
_UNIT = re.compile(r"[a-z\u4e00-\u9fff£€¥￥]")
_IDLE_SPACE = re.compile(r"(?<!\d) | (?!\d)")


def accepted_text(gold: str | None, verifier_args: str) -> str | None:
    """Return all accepted golds of a row as one text, which `gold_key` and `golds.compare_golds` take apart."""
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
    """Return the form in which golds are compared, or None if there is none: "1,000.0" and "$1000$" are "1000"."""
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


def gold_column(golds: Iterable[str | None]) -> pl.Series:
    """Return golds as a column, with "?" for lone surrogates, which no table can hold."""
    return pl.Series(list(map(_writable, golds)), dtype=pl.String)


def _writable(text: str | None) -> str | None:
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
