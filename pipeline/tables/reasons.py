"""The reasons of drops and flags, and the files of findings, under the names by which several stages know them."""

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
"""Copies or rewordings of one problem have different golds."""
POSSIBLE_TRANSLATION = "possible_translation"
"""A row in another script has the same numbers and the same question."""
SUSPECT_GOLD = "suspect_gold"
"""The samples of a problem agree on another answer than the gold."""
UNPAYABLE_REASONS = ("gold_unmatchable", "gold_unparsed", "gold_fails_verifier", "gold_unverified")
"""No answer could earn the reward of such a gold."""
GOLD_REASONS = (*UNPAYABLE_REASONS, "solution_contradicts_gold", "same_gold")
"""The reasons of the flags of the stage `verify`."""

MATCHES_FILE = "matches.parquet"
AGAINST = "against"
"""The key in the metadata of a table of matches that has its origin: {set: items}."""
SUSPICION_FILE = "suspicion.parquet"
ANSWERS_FILE = "answers.parquet"
ASKED_FILE = "asked.parquet"
"""The table of an asked model's verdicts on all rows. Its metadata has under `ASKED_MODEL` what was known of the model
before."""
ASKED_MODEL = "model"
CHECKS_FILE = "label_checks.parquet"


class DropReason(StrEnum):
    """Why a profiled row is not selected."""

    HELD = "held_for_review"
    """A flag of the profile blocks it."""
    UNJUDGED = "unjudged"
    """None of its samples could be judged."""
    TOO_HARD = "too_hard"
    """Nearly all of its groups are expected to be all wrong."""
    TOO_EASY = "too_easy"
    """Nearly all of its groups are expected to be all right."""
    TOO_FEW_PASSES = "too_few_passes"
    """The row has fewer right samples than `min_passes`."""
    OUTSIDE_BAND = "outside_band"
    """The row's expected pass rate is one that is not to be selected."""
    ZERO_QUOTA = "zero_quota"
    """The row's source or domain has the quota 0."""
    OVER_ZERO_SHARE = "over_zero_share"
    """The row never passed, a rule advises against it, and enough rows that never passed are selected."""
    IN_RESERVE = "in_reserve"
    """The row is good, and `max_rows`, the target, a quota or `zero_share` has enough like it."""


class MatchRow(TypedDict):
    """A match of a row with an item of an evaluation set."""

    id: str
    row: int
    against: str
    against_id: str
    kind: str
    score: float
    evidence: str


class SuspicionRow(TypedDict):
    """The probability that a row is at fault; `row_id` is the row's `id`."""

    id: str
    row_id: str
    source: str
    source_row: int
    suspicion: float | None
    """The probability of either of the next two; null if nothing was looked at."""
    ill_posed: float | None
    """The probability that its problem has no answer, or several."""
    label_wrong: float | None
    """The probability that another answer than its label is right; null without samples."""
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
    """The likelihood ratio of the verdict, for an ill-posed row against a sound one; null if it was not measured."""


class AnswersRow(RowReference):
    """A class of equal answers to a row (`ballot.AnswerVotes`)."""

    kind: str
    spellings: TextList
    votes: Int32
    systems: TextList


class LabelCheck(TypedDict):
    """A decision about a row that was drawn at random and has no flag, with what its samples said of its label."""

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
    """The facts about an asked model before its verdicts on the rows."""

    prior: float
    """The share of ill-posed rows to expect."""
    ill_posed: Mapping[str, int]
    """How often it gave each outcome of known ill-posed problems; empty if it was not measured."""
    sound: Mapping[str, int]
    """How often it gave each outcome of known sound problems."""


def asked_schema(model: AskedModel) -> pa.Schema:
    """Return the columns of `asked.parquet`, and in its metadata what is known of the model."""
    return arrow_schema(AskedRecord).with_metadata({ASKED_MODEL: orjson.dumps(asdict(model))})


def read_asked_model(asked: Path) -> AskedModel:
    """Return what was known of the model that wrote a table `asked.parquet`."""
    return AskedModel(**orjson.loads(table_schema(asked).metadata[ASKED_MODEL.encode()]))


def items_by_set(matches: Path) -> dict[str, int]:
    """Return the numbers of items of the sets that a table of matches was made from, matches or not."""
    sizes = (pq.read_schema(matches).metadata or {})[AGAINST.encode()]
    return {str(name): int(size) for name, size in orjson.loads(sizes).items()}
