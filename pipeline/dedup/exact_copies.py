"""Which rows are the same problem: hashes in flat arrays, one sort, no Python object per row.

    position  prompt                gold   split          winner  conflict
    0         What is 6*7?          42     train          0       -1
    1         what is  6*7?         42.0   train          0       -1         the same problem and answer as row 0
    2         How many legs?        4      train          2        0         two answers to one prompt
    3         How many legs?        8      train          3        0

A row costs 25 bytes here (128 bits of prompt, 64 of gold, the split) and some 60 while it is sorted: 0.6 GB for ten
million rows. Two different prompts fall together among ten million with a probability below 1e-24.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from truegold.pipeline.rows import Row, normalise_for_id

Positions = npt.NDArray[np.int64]

KEY_COLUMNS = ["prompt", "gold", "domain", "verifier_args", "split"]

_NUMBER = re.compile(r"([-+]?)(\d+|\d{1,3}(?:,\d{3})+)(?:\.(\d*))?", re.ASCII)


def canonical_gold(gold: str | None) -> str | None:
    """A gold's form for comparison: whitespace, case and the spelling of a plain number (1,000 = 1000.0) are gone."""
    if gold is None:
        return None
    text = normalise_for_id(gold)
    number = _NUMBER.fullmatch(text)
    if number is None:
        return text.casefold()
    whole = number[2].replace(",", "").lstrip("0") or "0"
    fraction = (number[3] or "").rstrip("0")
    plain = f"{whole}.{fraction}" if fraction else whole
    return f"-{plain}" if number[1] == "-" and plain != "0" else plain


@dataclass(frozen=True, slots=True)
class Sameness:
    """For each row: the position of the row that is kept for it (its own where it stays), and its conflict or -1."""

    winner: Positions
    conflict: Positions


class DedupTable:
    """`add` every row in order, then `resolve` once, which empties it."""

    def __init__(self, case_sensitive: bool) -> None:
        self._case_sensitive = case_sensitive
        self._high = array("Q")
        self._low = array("Q")
        self._gold = array("Q")
        self._train = array("B")

    def add(self, row: Row) -> None:
        prompt = normalise_for_id(row["prompt"])
        if row["domain"] == "code":  # names in code tell cases apart, and its tests are part of the problem
            prompt = f"{prompt}\0{row['verifier_args']}"
        elif not self._case_sensitive:
            prompt = prompt.casefold()
        key = hashlib.blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        self._high.append(int.from_bytes(key[:8], "big"))
        self._low.append(int.from_bytes(key[8:], "big"))
        self._gold.append(_hash64(canonical_gold(row["gold"])))
        self._train.append(row["split"] != "heldout")

    def resolve(self) -> Sameness:
        """Of equal prompt and gold a held-out row is kept before a train row, then the earlier before the later."""
        high, low, gold = (np.frombuffer(column, dtype=np.uint64) for column in (self._high, self._low, self._gold))
        train = np.frombuffer(self._train, dtype=np.uint8)
        self._high, self._low, self._gold, self._train = array("Q"), array("Q"), array("Q"), array("B")
        order = np.lexsort((train, gold, low, high))
        new_prompt = _changes(high, order) | _changes(low, order)
        del high, low
        new_gold = _changes(gold, order) | new_prompt
        del gold
        winner = np.empty(len(order), dtype=np.int64)
        winner[order] = _first_of_run(order, new_gold)
        return Sameness(winner, _conflicts(order, new_prompt, new_gold))


def _hash64(text: str | None) -> int:
    data = b"\0" if text is None else b"\1" + text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def _changes(column: npt.NDArray[np.uint64], order: Positions) -> npt.NDArray[np.bool_]:
    """Where, going through the column in this order, the value differs from the one before; the first always does."""
    changes = np.ones(len(order), dtype=bool)
    ordered = column[order]
    np.not_equal(ordered[1:], ordered[:-1], out=changes[1:])
    return changes


def _first_of_run(order: Positions, starts: npt.NDArray[np.bool_]) -> Positions:
    heads = np.flatnonzero(starts)
    return np.repeat(order[heads], np.diff(heads, append=len(order)))


def _conflicts(order: Positions, new_prompt: npt.NDArray[np.bool_], new_gold: npt.NDArray[np.bool_]) -> Positions:
    """Numbers the prompts that have more than one gold."""
    conflict = np.full(len(order), -1, dtype=np.int64)
    heads = np.flatnonzero(new_prompt)
    if len(heads):
        golds = np.add.reduceat(new_gold.astype(np.int64), heads)
        several = golds > 1
        numbers = np.where(several, np.cumsum(several) - 1, -1)
        conflict[order] = np.repeat(numbers, np.diff(heads, append=len(order)))
    return conflict
