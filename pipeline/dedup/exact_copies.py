"""Which rows are exact copies (`near.copies`): hashes in flat arrays, one sort, no Python object per row.

    position  prompt                gold   split          winner  conflict
    0         What is 6*7?          42     train          0       -1
    1         what is  6*7?         42.0   train          0       -1         the same problem and answer as row 0
    2         How many legs?        4      train          2        0         two answers to one prompt
    3         How many legs?        8      train          3        0

A row costs 18 bytes here and some 60 while it is sorted: 0.6 GB for ten million rows.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import polars as pl

from truegold.pipeline.dedup.near.arrays import Growing, Hashes, Ints, Marks, repeat_over_runs, run_starts
from truegold.pipeline.dedup.near.copies import gold_keys, tidy_prompts
from truegold.pipeline.rows import Row

KEY_COLUMNS = ["prompt", "gold", "domain", "verifier_args", "split"]
BATCH_ROWS = 1_000
"""Rows that are hashed at a time."""


@dataclass(frozen=True, slots=True)
class ExactCopies:
    """What exact copies alone make of each row."""

    winner: Ints
    """The position of the row that is kept for it, its own where it stays."""
    conflict: Ints
    """The number of its conflict (one prompt with several golds), -1 for none."""


class CopyTable:
    """Takes rows in order (`add`) and finds the copies among them (`resolve`, once, which empties it)."""

    def __init__(self, case_sensitive: bool) -> None:
        self._case_sensitive = case_sensitive
        self._prompts: list[str] = []
        self._tests: list[str | None] = []
        self._golds: list[str | None] = []
        self._clear()

    def _clear(self) -> None:
        self._prompt = Growing(np.uint64)
        self._gold = Growing(np.int64)
        self._is_empty = Growing(np.bool_)
        self._is_train = Growing(np.bool_)

    def add(self, row: Row) -> None:
        """Take in one more row, which has KEY_COLUMNS."""
        self._prompts.append(row["prompt"])
        # Tests may be megabytes long, so that only a hash of them waits for the batch to be full.
        self._tests.append(_digest(row["verifier_args"]) if row["domain"] == "code" else None)
        self._golds.append(row["gold"])
        self._is_train.append(row["split"] != "heldout")
        if len(self._prompts) == BATCH_ROWS:
            self._hash_batch()

    def _hash_batch(self) -> None:
        prompts = tidy_prompts(pl.Series(self._prompts, dtype=pl.String))
        tests = pl.Series(self._tests, dtype=pl.String)
        self._prompt.extend(prompts.keys(tests, case_sensitive=self._case_sensitive))
        self._is_empty.extend(~prompts.filled)
        self._gold.extend(gold_keys(self._golds))
        self._prompts, self._tests, self._golds = [], [], []

    def resolve(self) -> ExactCopies:
        """Keep of copies a held-out row before a train row, then the earlier before the later."""
        self._hash_batch()
        prompt: Hashes = self._prompt.array
        gold: Ints = self._gold.array
        order = np.lexsort((self._is_train.array, gold, prompt))
        new_prompt = run_starts(prompt[order]) | self._is_empty.array[order]
        new_gold = run_starts(gold[order]) | new_prompt
        self._clear()
        heads = np.flatnonzero(new_gold)
        winner = np.empty(len(order), dtype=np.int64)
        winner[order] = repeat_over_runs(order[heads], heads, len(order))
        return ExactCopies(winner, _number_conflicts(order, new_prompt, new_gold))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _number_conflicts(order: Ints, new_prompt: Marks, new_gold: Marks) -> Ints:
    """Number the prompts that have more than one gold; -1 for the rows of other prompts."""
    conflict = np.full(len(order), -1, dtype=np.int64)
    heads = np.flatnonzero(new_prompt)
    if len(heads):
        several = np.add.reduceat(new_gold.astype(np.int64), heads) > 1
        numbers = np.where(several, np.cumsum(several) - 1, -1)
        conflict[order] = repeat_over_runs(numbers, heads, len(order))
    return conflict
