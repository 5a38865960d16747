"""The reasons of flags and drops that several stages use, and the names and columns of their tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypedDict

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from truegold.pipeline.tables.rows import Int32, RowReference, TextList, arrow_schema, table_schema

CONFLICTING_LABELS = "conflicting_labels"
"""The flag on a row if a copy or rewording of it has another gold."""
POSSIBLE_TRANSLATION = "possible_translation"
"""The flag on a row that seems to be a translation: a row in another script has the same numbers and question."""
SUSPECT_GOLD = "suspect_gold"
"""The flag on a row whose samples agree on another answer than the gold."""
UNPAYABLE_REASONS = ("gold_unmatchable", "gold_unparsed", "gold_fails_verifier", "gold_unverified")
"""The flags on a row whose gold no answer can match."""
GOLD_REASONS = (*UNPAYABLE_REASONS, "solution_contradicts_gold", "same_gold")
"""All flags of the stage `verify_gold`."""

MATCHES_FILE = "matches.parquet"
AGAINST = "against"
"""The key in the metadata of `matches.parquet` with the number of items of each evaluation set: {set: items}."""
SUSPICION_FILE = "suspicion.parquet"
ANSWERS_FILE = "answers.parquet"
ASKED_FILE = "asked.parquet"
"""The table with the verdicts of a model that was asked about each row."""
ASKED_MODEL = "model"
"""The key in the metadata of this table with the facts about the model (`AskedModel`)."""
CHECKS_FILE = "label_checks.parquet"


class DropReason(StrEnum):
    """The reason why a profiled row is not selected."""

    HELD = "held_for_review"
    """A flag of the profile holds the row back."""
    UNJUDGED = "unjudged"
    """No sample of the row could be judged."""
    TOO_HARD = "too_hard"
    """Nearly all groups of the row are expected to have only wrong samples."""
    TOO_EASY = "too_easy"
    """Nearly all groups of the row are expected to have only right samples."""
    TOO_FEW_PASSES = "too_few_passes"
    """The row has fewer right samples than `min_passes`."""
    OUTSIDE_BAND = "outside_band"
    """The row's expected pass rate is outside of the selected bands."""
    ZERO_QUOTA = "zero_quota"
    """The row's source or domain has the quota 0."""
    OVER_ZERO_SHARE = "over_zero_share"
    """The row never passed and has an advising flag, and enough other rows that never passed are selected."""
    IN_RESERVE = "in_reserve"
    """The row is good, but other rows already meet `max_rows`, the target, a quota or `zero_share`."""


class MatchRow(TypedDict):
    """A match of a row with an item of an evaluation set."""

    id: str
    row: int
    against: str
    """The evaluation set."""
    against_id: str
    """The id of the item in the evaluation set."""
    kind: str
    """How the row matches the item: `exact`, `overlap` or `reworded` (`MatchKind`)."""
    score: float
    """1 for `exact`, the overlapping share of the item for `overlap`, and a probability for `reworded`."""
    evidence: str


class SuspicionRow(TypedDict):
    """A row of `suspicion.parquet`: the probability that a row is at fault."""

    id: str
    row_id: str
    """The `id` of the row."""
    source: str
    source_row: int
    suspicion: float | None
    """The probability that the problem is ill-posed or its gold is wrong. Null if there is no evidence."""
    ill_posed: float | None
    """The probability that the problem has no answer or several."""
    label_wrong: float | None
    """The probability that another answer than the gold is right. Null if there are no samples."""
    tier: str
    evidence: str
    suggestion: str | None


class AskedRecord(RowReference):
    """A row of `asked.parquet`."""

    outcome: str
    verdict: str
    answer: str | None
    """The model's own answer."""
    ratio: float | None
    """P(verdict | ill-posed) / P(verdict | sound), or null if the model was not measured."""


class AnswersRow(RowReference):
    """A row of `answers.parquet`: one of the different answers to a row, with its votes (`votes.AnswerVotes`)."""

    kind: str
    spellings: TextList
    votes: Int32
    systems: TextList


class LabelCheck(TypedDict):
    """A reviewer's decision about a randomly drawn row without flags, with the row's passes and suspicion."""

    id: str
    passes: int
    suspicion: float
    at_fault: bool


MATCH_SCHEMA = arrow_schema(MatchRow)
SUSPICION_SCHEMA = arrow_schema(SuspicionRow)
ANSWERS_SCHEMA = arrow_schema(AnswersRow)
CHECK_SCHEMA = arrow_schema(LabelCheck)


@dataclass(frozen=True, slots=True)
class AskedModel:
    """The facts about a model that were known before it was asked about the rows."""

    prior: float
    """The expected share of ill-posed rows."""
    ill_posed: Mapping[str, int]
    """The number of each outcome on known ill-posed problems. Empty if the model was not measured."""
    sound: Mapping[str, int]
    """The number of each outcome on known sound problems."""


def asked_schema(model: AskedModel) -> pa.Schema:
    """Return the columns of `asked.parquet`, with the facts about the model as metadata."""
    return arrow_schema(AskedRecord).with_metadata({ASKED_MODEL: orjson.dumps(asdict(model))})


def read_asked_model(asked: Path) -> AskedModel:
    """Return the facts about the model from the metadata of a table `asked.parquet`."""
    return AskedModel(**orjson.loads(table_schema(asked).metadata[ASKED_MODEL.encode()]))


def items_by_set(matches: Path) -> dict[str, int]:
    """Return the number of items of each evaluation set with which the rows were compared."""
    sizes = (pq.read_schema(matches).metadata or {})[AGAINST.encode()]
    return {str(name): int(size) for name, size in orjson.loads(sizes).items()}
