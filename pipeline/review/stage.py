"""What reviewers decide about held rows, and the stage that acts on it.

A decision is one line of a JSON Lines file, one file per reviewer, only ever appended to, made for version control:

    {"id": "9f0c...", "decision": "fix", "gold": "16", "note": "12+9-5", "reviewer": "ada", "at": "2026-02-03T10:00Z"}

`settle` lets pass what is fit for profiling:

    no blocking flag, no word            passes
    a blocking flag, no word or unsure   dropped here as `held_for_review`, and waits in dropped.parquet
    keep                                 passes                                    ledger: keep reviewer_keep
    fix                                  passes with the gold the reviewer gave    ledger: edit reviewer_fix
    drop                                 dropped                                   ledger: drop reviewer_drop
    reviewers who contradict each other  dropped here as `reviewers_disagree`, to be settled among them

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
from truegold.pipeline.ledger import Ledger
from truegold.pipeline.rows import ROW_SCHEMA, Row, TableWriter, count_rows, read_rows
from truegold.pipeline.running.progress import Progress, track
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.verifiers import InputError

STALE_SHOWN = 20
"""Stale decisions listed by id in a report; the count says how many there are."""

_NOT_IN_NAMES = re.compile(r"[^\w-]+")


class Word(StrEnum):
    """What a reviewer says of a row."""

    KEEP = "keep"
    DROP = "drop"
    FIX = "fix"
    UNSURE = "unsure"


class Decision(BaseModel):
    """One reviewer's word about one row."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1)
    decision: Word
    gold: str | None = None
    note: str | None = None
    reviewer: str = Field(min_length=1)
    at: datetime

    @field_validator("at")
    @classmethod
    def _without_a_zone_it_is_utc(cls, at: datetime) -> datetime:
        return at if at.tzinfo else at.replace(tzinfo=UTC)

    @model_validator(mode="after")
    def _gold_goes_with_fix(self) -> Decision:
        if self.decision == Word.FIX and not (self.gold or "").strip():
            raise ValueError("gold: a fix needs the right gold")
        if self.decision != Word.FIX and self.gold is not None:
            raise ValueError(f"gold: given with {self.decision}, it goes with fix alone")
        return self


Decisions = dict[str, list[Decision]]
"""Row id -> the last word of each reviewer, in the order of their names."""


def load_decisions(folder: Path) -> Decisions:
    """All decisions in a folder's `*.jsonl`; of several words of one reviewer about one row, the latest.

    A folder that is not there yet holds no decisions. A malformed line is an InputError that names it.
    """
    latest: dict[tuple[str, str], Decision] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for decision in _read_file(path):
            key = (decision.id, decision.reviewer)
            if key not in latest or decision.at >= latest[key].at:
                latest[key] = decision
    grouped: Decisions = {}
    for key in sorted(latest):
        grouped.setdefault(key[0], []).append(latest[key])
    return grouped


def _read_file(path: Path) -> Iterator[Decision]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                yield Decision.model_validate(orjson.loads(line))
            except orjson.JSONDecodeError as error:
                raise InputError(f"{path}, line {number}: not JSON ({error}).", "Mend or delete the line.") from error
            except ValidationError as error:
                raise InputError(f"{path}, line {number}: {_describe(error)}.", "Mend or delete the line.") from error


def _describe(error: ValidationError) -> str:
    """The first problem as `field: what is wrong`."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{field}: {message}" if field else message


def append_decision(folder: Path, decision: Decision) -> Path:
    """Add a decision to its reviewer's file, and return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    name = _NOT_IN_NAMES.sub("-", unicodedata.normalize("NFKC", decision.reviewer).casefold()).strip("-") or "reviewer"
    path = folder / f"{name}.jsonl"
    line = orjson.dumps(decision.model_dump(mode="json", exclude_none=True)) + b"\n"
    with path.open("a+b") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":  # an editor left the last line open
                line = b"\n" + line
        file.write(line)  # one write in append mode: two processes do not mix their lines
    return path


@stage_function(version=1)
def settle(inputs: Mapping[str, Path], config: SettleConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Apply the reviewers' decisions and hold back what still waits for one."""
    blocking = _blocking_flags(inputs["flags"])
    decisions = load_decisions(inputs["decisions"]) if "decisions" in inputs else {}
    total = count_rows(inputs["rows"])
    seen: set[str] = set()

    with Ledger(out_dir, "settle") as ledger, TableWriter(out_dir / "rows.parquet", ROW_SCHEMA) as cleared:
        for row in track(read_rows(inputs["rows"]), progress, "settle", total):
            words = decisions.get(row["id"], [])
            if words:
                seen.add(row["id"])
            reasons = blocking.get((row["id"], row["source"], row["source_row"]), [])
            settled = _settle_row(row, reasons, words, ledger)
            if settled is not None:
                cleared.write(settled)

    stale = sorted(decisions.keys() - seen)
    return StageReport(
        rows_in=total,
        rows_out=cleared.rows,
        counts=ledger.counts,
        facts={
            "decided_ids": len(seen),
            "stale_decisions": {"count": len(stale), "ids": stale[:STALE_SHOWN]},
        },
    )


def _blocking_flags(path: Path) -> dict[tuple[str, str, int], list[str]]:
    """The reasons that hold each row back."""
    reasons: dict[tuple[str, str, int], list[str]] = {}
    for flag in read_rows(path, columns=["id", "source", "source_row", "reason", "blocks"]):
        if flag["blocks"]:
            found = reasons.setdefault((flag["id"], flag["source"], flag["source_row"]), [])
            if flag["reason"] not in found:
                found.append(flag["reason"])
    return reasons


def _settle_row(row: Row, reasons: list[str], words: list[Decision], ledger: Ledger) -> Row | None:
    """The row as it passes, or None where it was dropped or held."""
    deciding = [word for word in words if word.decision != Word.UNSURE]
    if len({(word.decision, word.gold) for word in deciding}) > 1:
        said = {word.reviewer: str(word.decision) for word in words}
        ledger.drop(row, "reviewers_disagree", flags=reasons, words=said)
        return None
    if not deciding:
        if not reasons and not words:
            return row
        ledger.drop(row, "held_for_review", flags=reasons, unsure=[word.reviewer for word in words])
        return None
    word = deciding[0]
    evidence = {"flags": reasons, "reviewers": [word.reviewer for word in deciding], "note": word.note}
    if word.decision == Word.DROP:
        ledger.drop(row, "reviewer_drop", **evidence)
        return None
    if word.decision == Word.FIX:
        ledger.edit(row, "reviewer_fix", row["gold"], word.gold, column="gold", **evidence)
        return {**row, "gold": word.gold}
    ledger.keep(row, "reviewer_keep", **evidence)
    return row
