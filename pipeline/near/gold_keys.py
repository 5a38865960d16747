r"""Gives each gold (reference answer) a key, which is the same for different spellings of one gold.

    42 and 42.0 and \boxed{42}    one key: plain numbers are compared by value
    1,000 and 1000                 one key
    2x + 1 and 2X+1                one key: other golds are compared in NFC, without case and spaces
    1 2 and 12                     two keys: spaces between digits count
    (empty)                        NO_GOLD

Other forms, such as numbers with a unit, are compared by the math verifier (`golds`).
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
"""The key of a row without gold. All other keys are at least 0."""
BETWEEN_GOLDS = "\x1e"
"""The separator between the accepted golds of a row: the control character RS, which no gold contains."""
_COMMAND = re.compile(r"\\[a-z]+|per ?cent")
r"""Letters that do not spell a unit: `\frac` and "per cent"."""
_UNIT = re.compile(r"[a-z\u4e00-\u9fff£€¥￥]")
"""A letter or sign of a unit."""
_IDLE_SPACE = re.compile(r"(?<!\d) | (?!\d)")
"""A space that does not separate two digits."""


def accepted_text(gold: str | None, verifier_args: str) -> str | None:
    """Return all accepted golds of a row, joined by `join_golds`; None for a row without gold."""
    # Arguments may be megabytes of tests, and hardly any row has several golds. So JSON is parsed only if needed.
    if gold is None or f'"{OTHER_GOLDS}"' not in verifier_args:
        return gold
    arguments = orjson.loads(verifier_args)
    if mistake_in_golds(arguments.get(OTHER_GOLDS, ())) is not None:
        return gold
    return join_golds(all_golds(gold, arguments))


def join_golds(golds: Sequence[str]) -> str | None:
    """Return golds as one text. `gold_key` and `golds.compare_golds` split it again. None for an empty list."""
    return BETWEEN_GOLDS.join(text.replace(BETWEEN_GOLDS, " ") for text in golds) if golds else None


def shown_gold(golds: str | None) -> str | None:
    """Return the first of joined golds (`join_golds`). It is the gold of the row."""
    return None if golds is None else golds.partition(BETWEEN_GOLDS)[0]


def gold_form(gold: str | None) -> str | None:
    """Return the form by which golds are compared, or None for no gold: "1000" for "1,000.0" and "$1000$"."""
    form = "" if gold is None else normalise_for_id(gold).casefold()
    if not form:
        return None
    if form.isascii() and form.isdigit():
        return form.lstrip("0") or "0"
    # Importing this module takes a tenth of a second. Most files of whole numbers do not need it.
    from truegold.pipeline.text.quantities import read_number

    written = read_number(form)
    if written is None or _UNIT.search(_COMMAND.sub(" ", form)):
        return _IDLE_SPACE.sub("", form)
    return str(written.value)


@lru_cache(2**16)
def gold_key(gold: str | None) -> int:
    """Return a 63-bit key of the gold. Golds of one form have equal keys. NO_GOLD for None."""
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
    """Return golds as a column. A lone surrogate, which UTF-8 cannot encode, becomes "?"."""
    return pl.Series(list(map(_writable, golds)), dtype=pl.String)


def _writable(text: str | None) -> str | None:
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
