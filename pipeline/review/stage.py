"""What reviewers decide about held rows, and the stage that acts on it.

A decision is one line of a JSON Lines file. Each reviewer has a file, which is only ever appended to and suits version
control:

    {"id": "9f0c...", "decision": "fix", "gold": "16", "note": "12+9-5", "reviewer": "ada", "at": "2026-02-03T10:00Z"}

The stage `settle` lets pass what is fit for profiling:

    no blocking flag, no decision        passes
    a blocking flag, none or unsure      dropped here as `held_for_review`, and waits in dropped.parquet
    keep                                 passes                                    ledger: keep reviewer_keep
    fix                                  passes with the gold the reviewer gave    ledger: edit reviewer_fix
    drop                                 dropped                                   ledger: drop reviewer_drop
    reviewers who contradict each other  dropped here as `reviewers_disagree`, to be settled among them

`open_flags.parquet` has the flags of the rows that pass undecided: they advise, and later stages may weigh them.

A decision applies to every row of its id, which is the row's content: it holds in the next run too, while the content
is the same. Decisions about rows that are no longer there are reported as stale.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from truegold.pipeline.config.stages import SettleConfig
from truegold.pipeline.ledger import FLAG_SCHEMA, FlagRecord, Ledger
from truegold.pipeline.rows import ROW_SCHEMA, Row, RowKey, TableWriter, count_rows, read_rows, read_table, row_key
from truegold.pipeline.running.progress import Progress, track
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.verifiers import InputError

OPEN_FLAGS_FILE = "open_flags.parquet"
"""The flags that no reviewer has decided about, of the rows that pass."""
STALE_SHOWN = 20
"""How many stale decisions a report lists by id; their count is in it as well."""

_NOT_IN_NAMES = re.compile(r"[^\w-]+")


class DecisionKind(StrEnum):
    """What a reviewer decides about a row."""

    KEEP = "keep"
    DROP = "drop"
    FIX = "fix"
    UNSURE = "unsure"


class Decision(BaseModel):
    """What one reviewer decided about one row."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1)
    """The row's identity in truegold."""
    decision: DecisionKind
    """What becomes of the row."""
    gold: str | None = None
    """The right gold, which goes with a fix alone."""
    note: str | None = None
    """The reviewer's reason, for whoever reads it later."""
    reviewer: str = Field(min_length=1)
    """Who decided; each reviewer has a file."""
    decided_at: datetime = Field(alias="at")
    """When; of one reviewer's decisions on a row the last one counts."""

    @field_validator("decided_at")
    @classmethod
    def _take_utc_without_zone(cls, moment: datetime) -> datetime:
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    @model_validator(mode="after")
    def _allow_gold_with_fix_only(self) -> Decision:
        if self.decision == DecisionKind.FIX and not (self.gold or "").strip():
            raise ValueError("gold: a fix needs the right gold")
        if self.decision != DecisionKind.FIX and self.gold is not None:
            raise ValueError(f"gold: given with {self.decision}, it goes with fix alone")
        return self


Decisions = dict[str, list[Decision]]
"""The last decision of each reviewer by row id, in the order of the reviewers' names."""


def load_decisions(folder: Path) -> Decisions:
    """Return all decisions in a folder's `*.jsonl`; of several by one reviewer about one row, the latest.

    A folder that is not there yet holds no decisions. A malformed line is an InputError that names it.
    """
    latest: dict[tuple[str, str], Decision] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for decision in _read_file(path):
            key = (decision.id, decision.reviewer)
            if key not in latest or decision.decided_at >= latest[key].decided_at:
                latest[key] = decision
    grouped: Decisions = {}
    for key in sorted(latest):
        grouped.setdefault(key[0], []).append(latest[key])
    return grouped


def _read_file(path: Path) -> Iterator[Decision]:
    with path.open("rb") as file:
        for line_number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                yield Decision.model_validate(orjson.loads(line))
            except orjson.JSONDecodeError as error:
                raise InputError(
                    f"{path}, line {line_number}: not JSON ({error}).", "Mend or delete the line."
                ) from error
            except ValidationError as error:
                raise InputError(
                    f"{path}, line {line_number}: {_describe(error)}.", "Mend or delete the line."
                ) from error


def _describe(error: ValidationError) -> str:
    """Return the first problem as `field: what is wrong`."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{field}: {message}" if field else message


def append_decision(folder: Path, decision: Decision) -> Path:
    """Add a decision to its reviewer's file, and return the file.

    No stage decides anything: this is for users' scripts and review tools, which settle rows by it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = _NOT_IN_NAMES.sub("-", unicodedata.normalize("NFKC", decision.reviewer).casefold()).strip("-") or "reviewer"
    path = folder / f"{name}.jsonl"
    line = orjson.dumps(decision.model_dump(mode="json", exclude_none=True, by_alias=True)) + b"\n"
    with path.open("a+b") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            # An editor may have left the last line open.
            if file.read(1) != b"\n":
                line = b"\n" + line
        # One write in append mode keeps the lines of two processes apart.
        file.write(line)
    return path


@stage_function(version=2)
def settle(inputs: Mapping[str, Path], config: SettleConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Apply the reviewers' decisions and hold back what still waits for one."""
    blocking = _blocking_reasons(inputs["flags"])
    decisions_by_id = load_decisions(inputs["decisions"]) if "decisions" in inputs else {}
    total = count_rows(inputs["rows"])
    seen: set[str] = set()
    undecided: set[RowKey] = set()

    with Ledger(out_dir, "settle") as ledger, TableWriter(out_dir / "rows.parquet", ROW_SCHEMA) as cleared:
        for row in track(read_rows(inputs["rows"]), progress, "settle", total):
            decisions = decisions_by_id.get(row["id"], [])
            if decisions:
                seen.add(row["id"])
            settled = _settle_row(row, blocking.get(row_key(row), []), decisions, ledger)
            if settled is not None:
                cleared.write(settled)
                if not decisions:
                    undecided.add(row_key(row))
    with TableWriter(out_dir / OPEN_FLAGS_FILE, FLAG_SCHEMA) as open_flags:
        for flag in read_table(inputs["flags"], FlagRecord):
            if row_key(flag) in undecided:
                open_flags.write(flag)

    stale = sorted(decisions_by_id.keys() - seen)
    return StageReport(
        rows_in=total,
        rows_out=cleared.rows,
        counts=ledger.counts,
        facts={
            "decided_ids": len(seen),
            "stale_decisions": {"count": len(stale), "ids": stale[:STALE_SHOWN]},
        },
    )


def _blocking_reasons(path: Path) -> dict[RowKey, list[str]]:
    """Return the reasons that hold each row back, each once, in the order of the flags."""
    reasons: dict[RowKey, dict[str, None]] = {}
    for flag in read_table(path, FlagRecord, ["id", "source", "source_row", "reason", "blocks"]):
        if flag["blocks"]:
            reasons.setdefault(row_key(flag), {})[flag["reason"]] = None
    return {key: list(row_reasons) for key, row_reasons in reasons.items()}


def _settle_row(row: Row, reasons: list[str], decisions: list[Decision], ledger: Ledger) -> Row | None:
    """Return the row as it passes, or None where it was dropped or held."""
    sure = [decision for decision in decisions if decision.decision != DecisionKind.UNSURE]
    if len({(decision.decision, decision.gold) for decision in sure}) > 1:
        by_reviewer = {decision.reviewer: str(decision.decision) for decision in decisions}
        ledger.drop(row, "reviewers_disagree", flags=reasons, words=by_reviewer)
        return None
    if not sure:
        if not reasons and not decisions:
            return row
        ledger.drop(row, "held_for_review", flags=reasons, unsure=[decision.reviewer for decision in decisions])
        return None
    first = sure[0]
    evidence = {"flags": reasons, "reviewers": [decision.reviewer for decision in sure], "note": first.note}
    if first.decision == DecisionKind.DROP:
        ledger.drop(row, "reviewer_drop", **evidence)
        return None
    if first.decision == DecisionKind.FIX:
        ledger.edit(row, "reviewer_fix", row["gold"], first.gold, column="gold", **evidence)
        return {**row, "gold": first.gold}
    ledger.keep(row, "reviewer_keep", **evidence)
    return row
