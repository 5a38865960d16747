"""The reasons of drops and flags, and the files of findings, under the names by which several stages know them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

CONFLICTING_LABELS = "conflicting_labels"
"""Copies or rewordings of one problem have different golds."""
POSSIBLE_TRANSLATION = "possible_translation"
"""A row in another script has the same numbers and the same question."""
SUSPECT_GOLD = "suspect_gold"
"""The samples of a problem agree on another answer than the gold."""
UNPAYABLE_REASONS = ("gold_unmatchable", "gold_unparsed", "gold_fails_verifier", "gold_unverified")
"""No answer could earn the reward of such a gold."""
GOLD_REASONS = (*UNPAYABLE_REASONS, "solution_contradicts_gold")
"""The reasons of the flags of the stage `verify`."""


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
    """It has fewer right samples than `min_passes`."""
    OUTSIDE_BAND = "outside_band"
    """Its expected pass rate is one that is not to be selected."""
    ZERO_QUOTA = "zero_quota"
    """Its source or domain has the quota 0."""
    OVER_ZERO_SHARE = "over_zero_share"
    """It never passed, and enough such rows are selected."""
    IN_RESERVE = "in_reserve"
    """It is good, and `max_rows`, the target or a quota has enough like it."""


MATCHES_FILE = "matches.parquet"
MATCH_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("row", pa.int64()),
        ("against", pa.string()),
        ("against_id", pa.string()),
        ("kind", pa.string()),
        ("score", pa.float64()),
        ("evidence", pa.string()),
    ]
)
"""One line for each match of a row with an item of an evaluation set."""
AGAINST = "against"
"""Under this name the metadata of a table of matches has what it was made from: {set: items}."""
SUSPICION_FILE = "suspicion.parquet"
SUSPICION_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("row_id", pa.string()),
        ("source", pa.string()),
        ("source_row", pa.int64()),
        ("suspicion", pa.float64()),
        ("tier", pa.string()),
        ("evidence", pa.string()),
        ("suggestion", pa.string()),
    ]
)
ANSWERS_FILE = "answers.parquet"
ANSWERS_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("source_row", pa.int64()),
        ("kind", pa.string()),
        ("spellings", pa.list_(pa.string())),
        ("votes", pa.int32()),
        ("systems", pa.list_(pa.string())),
    ]
)
"""What was answered to each row: one line for each class of equal answers (`ballot.AnswerVotes`)."""


def items_by_set(matches: Path) -> dict[str, int]:
    """Return the numbers of items of the sets that a table of matches was made from, matches or not."""
    sizes = (pq.read_schema(matches).metadata or {})[AGAINST.encode()]
    return {str(name): int(size) for name, size in orjson.loads(sizes).items()}
