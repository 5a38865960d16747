"""Which source is the better one, where a run has several: the order in which the configuration lists them.

    maths.parquet:3   "What is 6*7?"  gold 42   stays     flag conflicting_labels, for advice
    scraped.jsonl:9   "What is 6*7?"  gold 48   goes      drop conflict_with_better_source

Of duplicates the better source's row stays (`near.exact_copies.row_quality`). Of copies with golds that differ it does
too: whoever lists a source first trusts it more; a training row that contradicts a held-out one leaves as
`leaked_heldout`. Where the better source contradicts itself, its rows are held for review as ever. Rewordings with
other golds are mostly siblings that read alike, so that both stay.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import polars as pl

from truegold.pipeline.dedup.rewordings import Outcome
from truegold.pipeline.near.arrays import Ints, Marks


def read_ranks(rows: Path, sources: Path) -> Ints:
    """Return the rank of each row's source, 0 for the best; `sources` is a JSON list of them in their order."""
    order = {name: rank for rank, name in enumerate(orjson.loads(sources.read_bytes()))}
    column = pl.read_parquet(rows, columns=["source"])["source"]
    return column.replace_strict(order, return_dtype=pl.Int64).to_numpy()


def read_heldout(rows: Path) -> Marks:
    """Return which rows are held out."""
    return (pl.read_parquet(rows, columns=["split"])["split"] == "heldout").to_numpy()


def overrule(outcome: Outcome, ranks: Ints, heldout: Marks) -> Outcome:
    """Let the row of the better source stand for the rows of worse ones that contradict it in a copy.

    A held-out row is better than any training row: what is measured must not change with what is trained on.
    """
    ranks = np.where(heldout, ranks - ranks.max(initial=0) - 1, ranks)
    rows = np.arange(len(ranks))
    disputed = np.flatnonzero((outcome.winner == rows) & outcome.copies_conflict & (outcome.conflict >= 0))
    if not len(disputed):
        return outcome
    conflict = outcome.conflict[disputed]
    best_rank = np.full(int(conflict.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(best_rank, conflict, ranks[disputed])
    is_worse = ranks[disputed] > best_rank[conflict]
    trusted = disputed[~is_worse][::-1]
    best_row = np.full(len(best_rank), -1, dtype=np.int64)
    # Of several rows the last assignment counts, so they are reversed: the first row of the best source stays.
    best_row[outcome.conflict[trusted]] = trusted
    successor = rows.copy()
    successor[disputed[is_worse]] = best_row[conflict[is_worse]]
    left = np.bincount(outcome.conflict[trusted], minlength=len(best_rank))
    is_settled = np.zeros(len(ranks), dtype=bool)
    # A conflict inside of the better source alone was none between sources.
    between = np.isin(outcome.conflict[trusted], conflict[is_worse])
    is_settled[trusted] = between & (left[outcome.conflict[trusted]] == 1)
    winner = successor[outcome.winner]
    return replace(outcome, winner=winner, overruled=winner != outcome.winner, settled=is_settled)
