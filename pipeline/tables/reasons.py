"""The names of reasons and files that several stages share, and the columns of their tables."""

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
"""The reason of a row with a copy or rewording that has another gold."""
POSSIBLE_TRANSLATION = "possible_translation"
"""The reason of a row with the same numbers and the same question as a row in another script."""
SUSPECT_GOLD = "suspect_gold"
"""The reason of a row whose samples agree on another answer than gold."""
UNPAYABLE_REASONS = ("gold_unmatchable", "gold_unparsed", "gold_fails_verifier", "gold_unverified")
"""The reasons of rows with a gold for which no answer can be scored 1."""
GOLD_REASONS = (*UNPAYABLE_REASONS, "solution_contradicts_gold", "same_gold")
"""The reasons of the flags of the stage `verify`."""

MATCHES_FILE = "matches.parquet"
AGAINST = "against"
"""The key, in the metadata of a table of matches, of the numbers of items by evaluation set: {set: items}."""
SUSPICION_FILE = "suspicion.parquet"
ANSWERS_FILE = "answers.parquet"
ASKED_FILE = "asked.parquet"
"""The table of an asked model's verdicts on all rows. Its metadata has the facts of `AskedModel` under
`ASKED_MODEL`."""
ASKED_MODEL = "model"
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
    """The row never passed, a rule advises against it, and enough other rows that never passed are selected."""
    IN_RESERVE = "in_reserve"
    """The row is good, but `max_rows`, the target, a quota or `zero_share` is already met by other rows."""


class MatchRow(TypedDict):
    """A match of a row with an item of an evaluation set."""

    id: str
    row: int
    against: str
    """The evaluation set."""
    against_id: str
    """The id of the item in the evaluation set."""
    kind: str
    """The way in which the row matches the item (`MatchKind`)."""
    score: float
    """1 for `exact`, the share of the item for `overlap`, and the probability of the same problem for `reworded`."""
    evidence: str


class SuspicionRow(TypedDict):
    """A row of `suspicion.parquet`: the probability that a row is at fault. `row_id` is the row's `id`."""

    id: str
    row_id: str
    source: str
    source_row: int
    suspicion: float | None
    """The probability that the problem is ill-posed or its label wrong; null without evidence."""
    ill_posed: float | None
    """The probability that the problem has no answer, or several."""
    label_wrong: float | None
    """The probability that another answer than the label is right; null without samples."""
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
    """The likelihood ratio of the verdict, of ill-posed to sound rows; null if it was not measured."""


class AnswersRow(RowReference):
    """A row of `answers.parquet`: a class of equal answers to a row (`votes.AnswerVotes`)."""

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
    """The facts about an asked model before its verdicts on the rows."""

    prior: float
    """The expected share of ill-posed rows."""
    ill_posed: Mapping[str, int]
    """The number of each outcome on known ill-posed problems; empty for an unmeasured model."""
    sound: Mapping[str, int]
    """The number of each outcome on known sound problems."""


def asked_schema(model: AskedModel) -> pa.Schema:
    """Return the columns of `asked.parquet`, with the facts about the model as metadata."""
    return arrow_schema(AskedRecord).with_metadata({ASKED_MODEL: orjson.dumps(asdict(model))})


def read_asked_model(asked: Path) -> AskedModel:
    """Return the facts about the model from the metadata of a table `asked.parquet`."""
    return AskedModel(**orjson.loads(table_schema(asked).metadata[ASKED_MODEL.encode()]))


def items_by_set(matches: Path) -> dict[str, int]:
    """Return the number of items of each evaluation set that a table of matches was made from."""
    sizes = (pq.read_schema(matches).metadata or {})[AGAINST.encode()]
    return {str(name): int(size) for name, size in orjson.loads(sizes).items()}
