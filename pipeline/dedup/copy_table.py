"""Finds exact copies among rows (`near.exact_copies`) with hashes in flat arrays and one sort.

    position  prompt                gold   split          winner  conflict
    0         What is 6*7?          42     train          0       -1
    1         what is  6*7?         42.0   train          0       -1         the same problem and answer as row 0
    2         How many legs?        4      train          2        0         two answers to one prompt
    3         How many legs?        8      train          3        0

A row takes 21 bytes plus its gold, and about 80 bytes during the sort. Ten million rows take 1 GB.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from truegold.pipeline.near.arrays import Growing, Hashes, Ints, places_in, repeat_over_runs, run_starts
from truegold.pipeline.near.exact_copies import tidy_prompts
from truegold.pipeline.near.gold_keys import accepted_text, gold_column, gold_keys
from truegold.pipeline.near.golds import best_of_each_gold, fill_missing_golds, unify_golds
from truegold.pipeline.near.row_quality import row_quality
from truegold.pipeline.tables.rows import Row

KEY_COLUMNS = ["prompt", "gold", "solution", "domain", "verifier_args", "split"]
BATCH_ROWS = 1_000
"""The number of rows that are hashed at a time."""


class _Waiting(NamedTuple):
    """A row that has not been hashed yet."""

    prompt: str
    tests: str | None
    """A digest of the program's tests; None for other problems."""
    gold: str | None
    solution_chars: int
    is_heldout: bool
    source_rank: int


@dataclass(frozen=True, slots=True)
class ExactCopies:
    """The outcome of exact deduplication for each row."""

    winner: Ints
    """The position of the kept row. A kept row has its own position."""
    conflict: Ints
    """The number of the row's conflict (one prompt with different golds), or -1."""


class CopyTable:
    """A table of row hashes: `add` takes rows in order, then `resolve` finds the copies and empties the table."""

    def __init__(self, case_sensitive: bool, *, has_ranks: bool = False) -> None:
        """Create an empty table. With `has_ranks`, rows come from several sources, and better ones have lower ranks."""
        self._case_sensitive, self._has_ranks = case_sensitive, has_ranks
        self._waiting: list[_Waiting] = []
        self._clear()

    def _clear(self) -> None:
        self._prompt = Growing(np.uint64)
        self._gold = Growing(np.int64)
        self._quality = Growing(np.float32)
        self._is_empty = Growing(np.bool_)
        self._golds = [pl.Series([], dtype=pl.String)]

    def add(self, row: Row, source_rank: int = 0) -> None:
        """Add a row with the columns KEY_COLUMNS; the best source has rank 0."""
        # Tests may be megabytes long, so only their hash waits for a full batch.
        tests = _digest(row["verifier_args"]) if row["domain"] == "code" else None
        gold = accepted_text(row["gold"], row["verifier_args"])
        solution_chars, is_heldout = len(row["solution"] or ""), row["split"] == "heldout"
        self._waiting.append(_Waiting(row["prompt"], tests, gold, solution_chars, is_heldout, source_rank))
        if len(self._waiting) == BATCH_ROWS:
            self._hash_batch()

    def _hash_batch(self) -> None:
        if not self._waiting:
            return
        texts, all_tests, golds, solutions, heldout, source_ranks = zip(*self._waiting, strict=True)
        prompts = tidy_prompts(pl.Series(texts, dtype=pl.String))
        tests = pl.Series(all_tests, dtype=pl.String)
        gold = gold_keys(golds)
        self._prompt.extend(prompts.keys(tests, case_sensitive=self._case_sensitive))
        self._is_empty.extend(~prompts.filled)
        self._gold.extend(gold)
        self._golds.append(gold_column(golds))
        known_ranks = source_ranks if self._has_ranks else None
        self._quality.extend(row_quality(gold, solutions, prompts.complete, heldout, known_ranks))
        self._waiting = []

    def resolve(self) -> ExactCopies:
        """Return the outcome. Of several copies, the best row is kept (`row_quality`). Of equally good rows, it is the
        first."""
        self._hash_batch()
        # The sort is stable, so the first of equally good rows comes first.
        best_first = np.argsort(-self._quality.array, kind="stable")
        quality_order = places_in(best_first)
        cluster = self._cluster_by_prompt(quality_order)
        unified = unify_golds(self._gold.array, pl.concat(self._golds, rechunk=True), cluster)
        gold = fill_missing_golds(unified.gold, cluster, best_first)
        self._clear()
        winner = best_of_each_gold(cluster, gold, quality_order)
        return ExactCopies(winner, _number_conflicts(cluster, unified.contradicted))

    def _cluster_by_prompt(self, quality_order: Ints) -> Ints:
        """Return for each row the best row with the same prompt. For a row without a prompt, this is the row itself.

        `quality_order` has each row's place in the order of quality, 0 for the best.
        """
        prompt: Hashes = self._prompt.array
        by_prompt = np.lexsort((quality_order, prompt))
        heads = np.flatnonzero(run_starts(prompt[by_prompt]) | self._is_empty.array[by_prompt])
        cluster = np.empty(len(prompt), dtype=np.int64)
        cluster[by_prompt] = repeat_over_runs(by_prompt[heads], heads, len(prompt))
        return cluster


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _number_conflicts(cluster: Ints, contradicted: Ints) -> Ints:
    """Number the clusters with different golds; rows of other clusters get -1.

    Rows of the clusters 0 0 2 2 5, where `contradicted` is [2], get -1 -1 0 0 -1.
    """
    marked = np.sort(contradicted)
    # A cluster above the last contradicted one, like 5, would get a number past the end of `marked`.
    conflict = np.minimum(np.searchsorted(marked, cluster), max(len(marked) - 1, 0))
    return np.where(np.isin(cluster, marked), conflict, -1)
