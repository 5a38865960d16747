"""The golds that reviewers stand for, by which stored rollouts are judged beside the set's own golds.

    decide = decided_rows(Path("runs/gsm8k"))
    decide(row)     DecidedRow("fix", the row with the reviewer's gold); None where nothing stands

Of a run, a decision counts about the row as it is (`weigh_review`): stale ones and contradictions do not. An exported
set has rows that a fix has already changed, so that there the identity of the row is enough.
"""

from __future__ import annotations

from pathlib import Path

from truegold.pipeline.rescore.truths import Decide, DecidedRow
from truegold.pipeline.review.decisions import DECISIONS, DecisionKind, load_decisions
from truegold.pipeline.review.reading import with_gold
from truegold.pipeline.review.run import ReviewedRun
from truegold.pipeline.review.words import Word, weigh_decisions
from truegold.pipeline.tables.rows import Row
from truegold.verifiers import InputError


def decided_rows(data: Path, folder: Path | None = None) -> Decide | None:
    """Return what tells of a row of `data` what was decided; None where nobody has decided anything.

    The decisions are those of the run, or in `folder`. Raises InputError where the folder has none, or a file is
    damaged.
    """
    run = ReviewedRun.open(data, folder) if (data / "manifest.json").is_file() else None
    decisions = load_decisions(folder or (run.folder if run else data / DECISIONS))
    if not decisions:
        if folder is not None:
            raise InputError(f"{folder} holds no decisions.", "Name the folder of decisions/REVIEWER.jsonl.")
        return None
    if run is not None:
        words = {key[0]: standing.word for key, standing in run.weigh().standings.items()}
        return lambda row: _decided(row, words.get(row["id"]))

    def by_id(row: Row) -> DecidedRow | None:
        about = [decision.model_copy(update={"seen": None}) for decision in decisions.get(row["id"], ())]
        return _decided(row, weigh_decisions(row, about).word)

    return by_id


def _decided(row: Row, word: Word | None) -> DecidedRow | None:
    if word is None:
        return None
    if word.kind is DecisionKind.DROP:
        return DecidedRow("drop", None)
    if word.kind is DecisionKind.FIX:
        return DecidedRow("fix", with_gold(row, word.gold))
    return DecidedRow("keep", row)
