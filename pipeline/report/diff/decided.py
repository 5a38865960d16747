"""What reviewers decided about rows, as the ledgers of two runs have it.

reviewer_fix of ada, to "16"          fix to 16 by ada
reviewers_disagree, ada and bob       disagreement of ada, bob
conflict_settled, by the word of ada  another row of its conflict decided by ada
"""

from __future__ import annotations

from typing import Any

import orjson
import polars as pl

from truegold.pipeline.tables.ledger import LEDGER_FILE
from truegold.pipeline.tables.run_files import SOURCE_KEY, RunFiles

DECIDING_STAGE = "settle"
DECISIONS = "decisions"
"""What `diff` calls the cause."""
DECIDED = ["decided", "decided_b"]
"""The columns that `with_decisions` adds: what was decided in the first and the second run, null for nothing."""

_OF_CONFLICTS = ("conflict_settled", "conflict_overruled", "settled_duplicate")
_REASONS = ("reviewer_keep", "reviewer_fix", "reviewer_drop", "reviewers_disagree", *_OF_CONFLICTS)
_GOLD_CHARS = 40


def with_decisions(both: pl.DataFrame, first: RunFiles, second: RunFiles) -> pl.DataFrame:
    """Add to rows that are in both runs what was decided about them in each."""
    for files, suffix, column in ((first, "", DECIDED[0]), (second, "_b", DECIDED[1])):
        keys = [f"{name}{suffix}" for name in SOURCE_KEY]
        both = both.join(_decided(files, column), left_on=keys, right_on=SOURCE_KEY, how="left")
    return both


def _decided(files: RunFiles, column: str) -> pl.DataFrame:
    schema = {"source": pl.String, "source_row": pl.Int64, column: pl.String}
    ledger = files.table(DECIDING_STAGE, LEDGER_FILE)
    if ledger is None:
        return pl.DataFrame(schema=schema)
    columns = [*SOURCE_KEY, "reason", "evidence", "after"]
    records = ledger.filter(pl.col("reason").is_in(_REASONS)).select(columns).collect(engine="streaming")
    words = {(row["source"], row["source_row"]): _describe(row) for row in records.iter_rows(named=True)}
    return pl.DataFrame([(*key, word) for key, word in words.items()], schema=schema, orient="row")


def _describe(record: dict[str, Any]) -> str:
    evidence = orjson.loads(record["evidence"])
    reason = record["reason"]
    if reason == "reviewers_disagree":
        return f"disagreement of {', '.join(evidence['words'])}"
    reviewers = ", ".join(evidence["reviewers"])
    if reason in _OF_CONFLICTS:
        return f"another row of its conflict decided by {reviewers}"
    word = reason.removeprefix("reviewer_")
    return f"fix to {record['after'][:_GOLD_CHARS]} by {reviewers}" if word == "fix" else f"{word} by {reviewers}"
