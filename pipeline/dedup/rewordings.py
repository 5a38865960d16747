"""Finds rows that are the same problem in other words. This is the second half of the stage `dedup`.

    train.jsonl:3  "Tom has 3 red cars and buys 4 more. How many cars has he?"              stays
    train.jsonl:8  "Tom, who owned three red cars, buys 4 more. How many has he now?"  same problem as train.jsonl:3

`compare_rows` takes the outcome of the first half (exact copies) and returns an outcome for all rows. Dropped rows get
their relation to the kept row, with evidence. Two kinds of rows are skipped: code rows, which often differ only in a
few words of long boilerplate and in their tests, and choice questions with common options, such as "(A) True, True (B)
False, False ...".

Of several sources, one that is listed earlier in the configuration is better:

    maths.parquet:3   "What is 6*7?"  gold 42   kept      flag conflicting_labels, for advice
    scraped.jsonl:9   "What is 6*7?"  gold 48   dropped   drop conflict_with_better_source

The row of the better source is kept (`near.row_quality`), even if copies have different golds (`overrule`). A training
row that contradicts a held-out row is dropped as `leaked_heldout`. Contradictory copies within one source are held for
review. Rewordings with different golds are mostly different problems, so they are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from truegold.pipeline.config.stages import DedupConfig
from truegold.pipeline.dedup.copy_table import ExactCopies
from truegold.pipeline.engines.text_vectors import load_text_encoder
from truegold.pipeline.near.arrays import Ints, Marks, release_memory
from truegold.pipeline.near.confirmation import Cuts, add_copies, confirm_star_links
from truegold.pipeline.near.corpus import Corpus, CorpusBuilder
from truegold.pipeline.near.duplicates import Duplicates, find_duplicates
from truegold.pipeline.near.embedding import Translations, add_proposed_links, find_translations, propose
from truegold.pipeline.near.gold_keys import accepted_text
from truegold.pipeline.near.measures import Comparer, Relation, describe_pairs
from truegold.pipeline.near.related_pairs import find_links
from truegold.pipeline.near.squashed import SquashedKeys
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.tables.conversation import read_compared_rows
from truegold.pipeline.tables.rows import Row

COLUMNS = ["prompt", "gold", "solution", "split", "domain", "verifier_args"]
BATCH_ROWS = 10_000
"""The number of rows that are read at a time."""
SHARED_OPTIONS_ROWS = 4
"""Options are common if at least this many questions have them."""


class Translation(NamedTuple):
    """The positions of two rows in different scripts whose numbers and questions agree."""

    row: int
    other: int


@dataclass(frozen=True)
class DedupOutcome:
    """The outcome of deduplication, with an entry for each row in every array."""

    winner: Ints
    """The position of the kept row. A kept row has its own position."""
    conflict: Ints
    """The number of the row's conflict, or -1."""
    copies_conflict: Marks
    """True if the conflict is with a copy rather than a rewording."""
    relation: npt.NDArray[np.uint8]
    """The relation of a dropped row to the kept row."""
    capped: Marks
    """True for a row that is dropped because enough instances of its template are kept."""
    evidence: dict[int, str]
    """Position of a dropped row -> the evidence as JSON. Exact copies have no entry."""
    translations: Sequence[Translation] = ()
    """Pairs that an encoder proposed and a comparison confirmed. Both rows are kept."""
    overruled: Marks | None = None
    """True for a row that is dropped because a better source has another gold. None if all sources are equal."""
    settled: Marks | None = None
    """True for a row whose conflict a better source settles."""

    @property
    def has_duplicates(self) -> Marks:
        """True for each kept row for which other rows were dropped."""
        marks = np.zeros(len(self.winner), dtype=bool)
        marks[self.winner[self.winner != np.arange(len(self.winner))]] = True
        return marks

    @property
    def kept_translations(self) -> list[Translation]:
        """The translations among the kept rows. A dropped row is replaced by the row that is kept for it.

        Pairs with a row that is dropped as an instance of a template are left out.
        """
        kept: list[Translation] = []
        for pair in self.translations:
            row, other = sorted((int(self.winner[pair.row]), int(self.winner[pair.other])))
            if row == other or self.capped[pair.row] or self.capped[pair.other]:
                continue
            kept.append(Translation(row, other))
        return list(dict.fromkeys(kept))

    def drop_evidence(self, position: int) -> dict[str, object]:
        """Return the evidence of a dropped row, without the kept row's name."""
        evidence: dict[str, object] = orjson.loads(self.evidence.get(position, "{}"))
        return evidence


def keep_all_but_copies(copies: ExactCopies) -> DedupOutcome:
    """Return the outcome of exact deduplication alone."""
    rows = len(copies.winner)
    relation = np.full(rows, Relation.EXACT, dtype=np.uint8)
    return DedupOutcome(
        winner=copies.winner,
        conflict=copies.conflict,
        copies_conflict=copies.conflict >= 0,
        relation=relation,
        capped=np.zeros(rows, dtype=bool),
        evidence={},
    )


def compare_rows(
    path: Path, copies: ExactCopies, config: DedupConfig, scratch: Path, progress: Progress, ranks: Ints | None = None
) -> DedupOutcome:
    """Compare the rows that exact deduplication keeps, and return the outcome for all rows.

    `scratch` is a folder for temporary files, about 1,000 bytes a row. `ranks` has the rank of each row's source.
    """
    builder, keys = CorpusBuilder(scratch), SquashedKeys(scratch)
    builder.listen_to_texts(keys.add)
    compared = [np.zeros(0, np.int64)]
    stays = copies.winner == np.arange(len(copies.winner))
    shared = _shared_options(path)
    progress.start("reading for rewordings", int(stays.sum()))
    rows = (
        (position, row)
        for position, row in enumerate(read_compared_rows(path, COLUMNS))
        if stays[position] and row["domain"] != "code" and row["verifier_args"] not in shared
    )
    while batch := list(islice(rows, BATCH_ROWS)):
        compared.append(np.array([position for position, _ in batch], dtype=np.int64))
        _add_rows(builder, [row for _, row in batch], None if ranks is None else ranks[compared[-1]].tolist())
        progress.advance(len(batch))
    corpus = builder.finish()
    del builder
    positions = np.concatenate(compared)
    comparer = Comparer(corpus.features)
    release_memory()
    links = find_links(corpus.features, comparer, progress=progress, scratch=scratch)
    release_memory()
    translations: list[Translation] = []
    if config.embedder is not None:
        progress.start("encoding")
        proposals = propose(corpus, load_text_encoder(config.embedder))
        links = add_proposed_links(links, comparer, proposals, len(corpus.features))
        translations = _translations(find_translations(corpus, proposals), corpus, positions)
    links = confirm_star_links(links, corpus, comparer, Cuts(config.confidence, config.conflict_confidence))
    links = add_copies(links, keys.copies(corpus.texts.read), corpus)
    duplicates = find_duplicates(corpus, links, config.template_cap)
    reworded = (duplicates.relation != Relation.EXACT) & (duplicates.other == duplicates.kept_for)
    gone = np.flatnonzero(~duplicates.keep & reworded)
    here, there = corpus.text[gone], corpus.text[duplicates.kept_for[gone]]
    described = describe_pairs(corpus.features, comparer, here, there, duplicates.score[gone])
    evidence = dict(zip(positions[gone].tolist(), described.to_list(), strict=True))
    return replace(_merge(copies, positions, duplicates, evidence), translations=translations)


def _shared_options(path: Path) -> frozenset[str]:
    """Return the verifier arguments with common options: options that at least SHARED_OPTIONS_ROWS questions have."""
    choices = pl.scan_parquet(path).filter(pl.col("verifier_args").str.contains('"options"', literal=True))
    counts = choices.group_by("verifier_args").agg(pl.col("prompt").n_unique()).collect()
    return frozenset(counts.filter(pl.col("prompt") >= SHARED_OPTIONS_ROWS)["verifier_args"].to_list())


def _translations(pairs_of_texts: Translations, corpus: Corpus, positions: Ints) -> list[Translation]:
    """Return pairs of texts as pairs of rows. A text stands for the first row that has it."""
    first_row: dict[int, int] = {}
    for index, text in enumerate(corpus.text.tolist()):
        first_row.setdefault(text, int(positions[index]))
    sides = (side[pairs_of_texts.is_sure].tolist() for side in (pairs_of_texts.left, pairs_of_texts.right))
    return [Translation(first_row[left], first_row[right]) for left, right in zip(*sides, strict=True)]


def _add_rows(builder: CorpusBuilder, rows: list[Row], ranks: list[int] | None) -> None:
    builder.add(
        [row["prompt"] for row in rows],
        [accepted_text(row["gold"], row["verifier_args"]) for row in rows],
        [len(row["solution"] or "") for row in rows],
        [row["split"] == "heldout" for row in rows],
        ranks,
    )


def _merge(copies: ExactCopies, positions: Ints, duplicates: Duplicates, evidence: dict[int, str]) -> DedupOutcome:
    """Return the outcome for all rows, from the outcome for the compared rows at `positions`."""
    rows = len(copies.winner)
    winner = np.arange(rows)
    winner[positions] = positions[duplicates.kept_for]
    relation = np.full(rows, Relation.EXACT, dtype=np.uint8)
    relation[positions] = duplicates.relation
    capped = np.zeros(rows, dtype=bool)
    capped[positions] = duplicates.capped
    conflict = copies.conflict.copy()
    conflict[positions] = -1
    in_conflict = np.flatnonzero(duplicates.conflict)
    _, conflict_number = np.unique(duplicates.cluster[in_conflict], return_inverse=True)
    conflict[positions[in_conflict]] = conflict_number + conflict.max(initial=-1) + 1
    copies_conflict = copies.conflict >= 0
    copies_conflict[positions] = duplicates.copies_conflict
    # A copy follows the row that it repeats.
    copy = np.flatnonzero(copies.winner != np.arange(rows))
    original = copies.winner[copy]
    conflict[copy] = conflict[original]
    copies_conflict[copy] = copies_conflict[original]
    original_goes = winner[original] != original
    relation[copy[original_goes]] = relation[original[original_goes]]
    capped[copy] = capped[original]
    for position, original_position in zip(copy.tolist(), original.tolist(), strict=True):
        if original_position in evidence:
            evidence[position] = evidence[original_position]
    winner[copy] = winner[original]
    return DedupOutcome(
        winner=winner,
        conflict=conflict,
        copies_conflict=copies_conflict,
        relation=relation,
        capped=capped,
        evidence=evidence,
    )


def read_ranks(rows: Path, sources: Path) -> Ints:
    """Return the rank of each row's source, 0 for the best. The file `sources` is a JSON list, the best source
    first."""
    order = {name: rank for rank, name in enumerate(orjson.loads(sources.read_bytes()))}
    column = pl.read_parquet(rows, columns=["source"])["source"]
    return column.replace_strict(order, return_dtype=pl.Int64).to_numpy()


def read_heldout(rows: Path) -> Marks:
    """Return a mask of the held-out rows."""
    return (pl.read_parquet(rows, columns=["split"])["split"] == "heldout").to_numpy()


def overrule(outcome: DedupOutcome, ranks: Ints, heldout: Marks) -> DedupOutcome:
    """Drop rows that a copy from a better source contradicts.

    A held-out row is better than any training row, so that evaluation does not depend on the training data.
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
    # The last assignment to an element counts. The rows are reversed, so the first row of the best source is kept.
    best_row[outcome.conflict[trusted]] = trusted
    successor = rows.copy()
    successor[disputed[is_worse]] = best_row[conflict[is_worse]]
    left = np.bincount(outcome.conflict[trusted], minlength=len(best_rank))
    is_settled = np.zeros(len(ranks), dtype=bool)
    # A conflict only within the better source is not a conflict between sources.
    between = np.isin(outcome.conflict[trusted], conflict[is_worse])
    is_settled[trusted] = between & (left[outcome.conflict[trusted]] == 1)
    winner = successor[outcome.winner]
    return replace(outcome, winner=winner, overruled=winner != outcome.winner, settled=is_settled)
