"""Reviewers' decisions about rows: one line for each, in a JSON Lines file for each reviewer.

    {"id": "9f0c...", "seen": "51b7...", "decision": "fix", "gold": "16", "note": "12+9", "reviewer": "ada", "at": ...}
    {"id": "9f0c...", "decision": "undo", "reviewer": "ada", "at": "2026-02-03T10:01:12Z"}
    {"id": "9f0c...", "decision": "note", "note": "which year?", "reviewer": "ada", "at": "2026-02-03T10:02:40Z"}

The files are only ever appended to and suit version control: `undo` is a line too, and takes back what its reviewer
decided last about that row. A `note` decides nothing. Lines are ordered by their moments, and equal lines count once,
so that files may be merged by putting their lines together. Each line is on the disk before anyone is told that it was
taken; a line that a crash has cut short is left out when the file is read, and cut off when the next one is added.
"""

from __future__ import annotations

import fcntl
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from truegold.pipeline.config.base import plain_words
from truegold.verifiers import InputError

DECISIONS = "decisions"
"""The folder inside a run's that holds reviewers' decisions about it, where its configuration names no other."""

_NOT_IN_NAMES = re.compile(r"[^\w-]+")
"""Characters that a file is not named with: "Ada L." has the file ada-l.jsonl."""
MAX_REVIEWER = 60
"""Characters of a reviewer's name, of which a file is named: 255 bytes are all that a file's name may have."""
MAX_GOLD, MAX_NOTE = 20_000, 10_000
"""Characters of a gold and of a note."""


class DecisionKind(StrEnum):
    """The kinds of decisions about a row."""

    KEEP = "keep"
    DROP = "drop"
    FIX = "fix"
    UNSURE = "unsure"
    UNDO = "undo"
    """Takes back the reviewer's last decision about the row."""
    NOTE = "note"
    """Keeps a note on a row and decides nothing."""

    @property
    def decides(self) -> bool:
        """Whether it says what is to be done with the row."""
        return self not in (DecisionKind.UNDO, DecisionKind.NOTE)


class Decision(BaseModel):
    """One reviewer's decision about one row."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    id: str = Field(min_length=1)
    """The row's identity in truegold."""
    seen: str | None = None
    """The content of the row as its reviewer saw it (`truegold.pipeline.tables.rows.content_key`). A row that has other
    content by now is not touched; without it the identity alone counts."""
    decision: DecisionKind
    """The kind of decision."""
    gold: str | None = Field(default=None, max_length=MAX_GOLD)
    """The right gold, which goes with a fix alone; of a row that is judged by tests, cases to add, one a line."""
    note: str | None = Field(default=None, max_length=MAX_NOTE)
    """The reviewer's reason, for later readers."""
    drawn: str | None = Field(default=None, pattern=r"^(suspicious|random:\d{1,19})$")
    """The draw by which the row came before its reviewer: one of the most suspicious, or at random with this seed."""
    passes: int | None = Field(default=None, ge=0)
    """The right samples that the row had when it was decided about, or None if it was not profiled."""
    suspicion: float | None = Field(default=None, ge=0, le=1)
    """How probable its samples made it that its label is at fault."""
    blind: bool = False
    """Whether the reviewer could not see what others had decided about the row."""
    reviewer: str = Field(min_length=1, max_length=MAX_REVIEWER)
    """The reviewer who decided; each reviewer has a file."""
    decided_at: datetime = Field(alias="at")
    """When; of one reviewer's decisions on a row the last one counts."""

    @field_validator("decided_at")
    @classmethod
    def _take_utc_without_zone(cls, moment: datetime) -> datetime:
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    @field_validator("reviewer")
    @classmethod
    def _names_somebody(cls, name: str) -> str:
        if not (name := " ".join(name.split())).isprintable() or not name:
            raise ValueError("a reviewer's name is printable text")
        return name

    @model_validator(mode="after")
    def _allow_gold_with_fix_only(self) -> Decision:
        if self.decision == DecisionKind.FIX and not (self.gold or "").strip():
            raise ValueError("gold: a fix needs the right gold")
        if self.decision != DecisionKind.FIX and self.gold is not None:
            raise ValueError(f"gold: given with {self.decision}, it goes with fix alone")
        return self

    @property
    def is_random(self) -> bool:
        """Whether the row was drawn at random, so that it speaks for others of its kind."""
        return self.drawn is not None and self.drawn.startswith("random:")


Decisions = dict[str, list[Decision]]
"""The standing decision of each reviewer by row id, in the order of the reviewers' names."""


def load_decisions(*paths: Path) -> Decisions:
    """Return the decisions that stand in files and in folders' `*.jsonl`; of several by one reviewer about one row, the
    latest.

    A folder that is not there yet holds no decisions. A malformed line is an InputError that names it.
    """
    histories: dict[tuple[str, str], list[Decision]] = {}
    for decision in _read_lines(paths):
        history = histories.setdefault((decision.id, decision.reviewer), [])
        if decision.decision.decides:
            history.append(decision)
        elif history and decision.decision is DecisionKind.UNDO:
            history.pop()
    standing: Decisions = {}
    for (row_id, _), history in sorted(histories.items()):
        if history:
            standing.setdefault(row_id, []).append(history[-1])
    return standing


def load_notes(reviewer: str, *paths: Path) -> dict[str, str]:
    """Return the last note of a reviewer on each row, whether it came with a decision or without one."""
    notes: dict[str, str] = {}
    for decision in _read_lines(paths):
        if decision.reviewer == reviewer and (decision.note or decision.decision is DecisionKind.NOTE):
            notes[decision.id] = decision.note or ""
    return notes


def _read_lines(paths: Iterable[Path]) -> list[Decision]:
    """Return the lines of files and folders in the order of their moments, equal ones once."""
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.glob("*.jsonl")))]
    lines = {decision: None for file in files for decision in _read_file(file)}
    return sorted(lines, key=lambda decision: decision.decided_at)


def _read_file(path: Path) -> Iterator[Decision]:
    with path.open("rb") as file:
        for line_number, line in enumerate(file, start=1):
            if not line.strip() or _is_cut_short(line):
                continue
            try:
                yield Decision.model_validate(orjson.loads(line))
            except orjson.JSONDecodeError as error:
                raise InputError(
                    f"{path}, line {line_number}: not JSON ({error}).", "Mend or delete the line."
                ) from error
            except ValidationError as error:
                raise InputError(
                    f"{path}, line {line_number}: {describe_problem(error)}.", "Mend or delete the line."
                ) from error


def _is_cut_short(line: bytes) -> bool:
    """Say whether a line is what a crash has left of one: it has no end, and is not JSON."""
    if line.endswith(b"\n"):
        return False
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return True
    return False


def describe_problem(error: ValidationError) -> str:
    """Return the first problem of a decision as `field: what is wrong`."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    message = plain_words(first["msg"])
    return f"{field}: {message}" if field else message


def reviewer_file(folder: Path, reviewer: str) -> Path:
    """Return the file of a reviewer's decisions."""
    name = _NOT_IN_NAMES.sub("-", unicodedata.normalize("NFKC", reviewer).casefold()).strip("-")
    return folder / f"{name[:MAX_REVIEWER] or 'reviewer'}.jsonl"


def append_decision(folder: Path, decision: Decision) -> Path:
    """Add a decision to its reviewer's file, and return the file. When this returns, the line is on the disk.

    No stage calls it: this is for users' scripts and review tools. Any number of processes may append at once. A note
    that is the reviewer's last one on the row is not added again: a page that is reloaded may send it twice.
    """
    is_new_folder = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    path = reviewer_file(folder, decision.reviewer)
    settings = decision.model_dump(mode="json", exclude_defaults=True, by_alias=True)
    line = orjson.dumps(settings) + b"\n"
    is_new_file = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        is_sent_again = decision.decision is DecisionKind.NOTE and (
            load_notes(decision.reviewer, path).get(decision.id) == (decision.note or "")
        )
        _write_durably(descriptor, _mend_last_line(descriptor) + (b"" if is_sent_again else line))
    finally:
        os.close(descriptor)
    if is_new_file:
        _sync_folder(folder)
    if is_new_folder:
        _sync_folder(folder.parent)
    return path


def _mend_last_line(descriptor: int) -> bytes:
    """Cut off a last line that a crash has left half written; return what ends one that only lacks its end."""
    size = os.fstat(descriptor).st_size
    if not size or os.pread(descriptor, 1, size - 1) == b"\n":
        return b""
    start, last = size, b""
    while start and b"\n" not in last:
        start = max(0, start - 65_536)
        last = os.pread(descriptor, size - start, start)
    last = last[last.rfind(b"\n") + 1 :]
    if not _is_cut_short(last):
        # An editor may have left the last line open.
        return b"\n"
    os.ftruncate(descriptor, size - len(last))
    return b""


def _write_durably(descriptor: int, line: bytes) -> None:
    """Write a line and put it on the disk; if there is no room for all of it, none of it stays."""
    size = os.fstat(descriptor).st_size
    try:
        written = 0
        while written < len(line):
            written += os.write(descriptor, line[written:])
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _sync_folder(folder: Path) -> None:
    """Put a folder's list of files on the disk, so that a new file outlives a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
