"""The second half of stage `dedup`: of the rows that are no exact copies, which are the same problem in other words?

    train.jsonl:3  "Tom has 3 red cars and buys 4 more. How many cars has he?"              stays
    train.jsonl:8  "Tom, who owned three red cars, buys 4 more. How many has he now?"  same problem as train.jsonl:3

`compare_rows` takes what the exact half found and gives the same kind of answer for all rows, with the relation and the
evidence for those that go. Rows of code are left as they are: a few words among long boilerplate tell them apart, and
their tests are part of the problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from truegold.pipeline.config.stages import DedupConfig
from truegold.pipeline.dedup.exact_copies import Positions, Sameness
from truegold.pipeline.dedup.near import Comparer, CorpusBuilder, Relation, Witness, find_duplicates, find_links
from truegold.pipeline.dedup.near.duplicates import Duplicates
from truegold.pipeline.rows import Row, read_rows
from truegold.pipeline.running.progress import Progress

COLUMNS = ["prompt", "gold", "solution", "split", "domain"]
BATCH_ROWS = 10_000
PREFERRED = "heldout"


@dataclass(frozen=True)
class Outcome:
    """For each row: the row kept for it (its own position where it stays), its conflict or -1, and why it goes.

    relation: of a row that goes to the one kept for it. capped: it goes because its template has enough instances.
    evidence: JSON for rows that go and are no copies, by position.
    """

    winner: Positions
    conflict: Positions
    relation: npt.NDArray[np.uint8]
    capped: npt.NDArray[np.bool_]
    evidence: dict[int, str]

    @property
    def has_duplicates(self) -> npt.NDArray[np.bool_]:
        """For each row: whether others were dropped in its favour."""
        own = np.arange(len(self.winner))
        marks = np.zeros(len(self.winner), dtype=bool)
        marks[self.winner[self.winner != own]] = True
        return marks

    def details(self, position: int) -> dict[str, object]:
        """What the ledger tells of a row that goes, besides which row is kept."""
        found: dict[str, object] = orjson.loads(self.evidence.get(position, "{}"))
        return found


def exact_only(same: Sameness) -> Outcome:
    """What exact copies alone make of the rows."""
    rows = len(same.winner)
    relation = np.full(rows, Relation.EXACT, dtype=np.uint8)
    return Outcome(same.winner, same.conflict, relation, np.zeros(rows, dtype=bool), {})


def compare_rows(path: Path, same: Sameness, config: DedupConfig, scratch: Path, progress: Progress) -> Outcome:
    """Compare the rows that the exact half keeps. scratch: a folder for temporary files, some 300 bytes a row."""
    builder = CorpusBuilder()
    looked_at = []
    stays = same.winner == np.arange(len(same.winner))
    progress.start("reading for rewordings", int(stays.sum()))
    rows = (
        (position, row)
        for position, row in enumerate(read_rows(path, COLUMNS))
        if stays[position] and row["domain"] != "code"
    )
    while batch := list(islice(rows, BATCH_ROWS)):
        looked_at.append(np.array([position for position, _ in batch], dtype=np.int64))
        _add(builder, [row for _, row in batch])
        progress.advance(len(batch))
    corpus = builder.finish()
    positions = np.concatenate([np.zeros(0, np.int64), *looked_at])
    comparer = Comparer(corpus.features)
    links = find_links(corpus.features, comparer, corpus.text_gold, scratch=scratch, progress=progress)
    found = find_duplicates(corpus, links.confident(config.confidence), config.template_cap)
    gone = np.flatnonzero(~found.keep & (found.relation != Relation.EXACT) & (found.other == found.kept_for))
    told = Witness(corpus.features, comparer).tell(
        corpus.text[gone], corpus.text[found.kept_for[gone]], found.score[gone]
    )
    evidence = dict(zip(positions[gone].tolist(), told.to_list(), strict=True))
    return _outcome(same, positions, found, evidence)


def _add(builder: CorpusBuilder, batch: list[Row]) -> None:
    builder.add(
        [row["prompt"] for row in batch],
        [row["gold"] for row in batch],
        [len(row["solution"] or "") for row in batch],
        [row["split"] == PREFERRED for row in batch],
    )


def _outcome(same: Sameness, positions: Positions, found: Duplicates, evidence: dict[int, str]) -> Outcome:
    rows = len(same.winner)
    winner = np.arange(rows)
    winner[positions] = positions[found.kept_for]
    relation = np.full(rows, Relation.EXACT, dtype=np.uint8)
    relation[positions] = found.relation
    capped = np.zeros(rows, dtype=bool)
    capped[positions] = found.capped
    conflict = same.conflict.copy()
    conflict[positions] = -1
    several = np.flatnonzero(found.conflict)
    _, number = np.unique(found.cluster[several], return_inverse=True)
    conflict[positions[several]] = number + conflict.max(initial=-1) + 1
    # A copy goes with the row that it is a copy of.
    copy = np.flatnonzero(same.winner != np.arange(rows))
    first = same.winner[copy]
    conflict[copy] = conflict[first]
    onwards = winner[first] != first
    relation[copy[onwards]] = relation[first[onwards]]
    capped[copy] = capped[first]
    for one, other in zip(copy[onwards].tolist(), first[onwards].tolist(), strict=True):
        if other in evidence:
            evidence[one] = evidence[other]
    winner[copy] = winner[first]
    return Outcome(winner, conflict, relation, capped, evidence)
