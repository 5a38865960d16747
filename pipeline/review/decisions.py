"""Stores reviewers' decisions about rows as JSON Lines, one file for each reviewer.

    {"id": "9f0c...", "seen": "51b7...", "decision": "fix", "gold": "16", "note": "12+9", "reviewer": "ada", "at": ...}
    {"id": "9f0c...", "decision": "undo", "reviewer": "ada", "at": "2026-02-03T10:01:12Z"}
    {"id": "9f0c...", "decision": "note", "note": "which year?", "reviewer": "ada", "at": "2026-02-03T10:02:40Z"}

Lines are only appended. An `undo` cancels the reviewer's last decision about the row, and a `note` decides nothing. To
merge files, concatenate them: lines are ordered by time, and equal lines count once. A line is on disk before
`append_decision` returns. If a crash has cut a line, reading ignores it, and the next call removes it.
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

from truegold.pipeline.config.mistakes import plain_words
from truegold.pipeline.running.disk import digest_json
from truegold.verifiers import InputError

DECISIONS = "decisions"
"""The default name of the folder of decisions in a run."""

_NOT_IN_NAMES = re.compile(r"[^\w-]+")
"""Characters that are replaced in file names: the decisions of "Ada L." are in ada-l.jsonl."""
MAX_REVIEWER = 60
"""The maximum number of characters of a reviewer's name. The name must fit in a file name of 255 bytes."""
MAX_GOLD, MAX_NOTE = 20_000, 10_000
"""The maximum numbers of characters of a gold and of a note."""


class DecisionKind(StrEnum):
    """The kinds of decisions about a row."""

    KEEP = "keep"
    DROP = "drop"
    FIX = "fix"
    UNSURE = "unsure"
    UNDO = "undo"
    """Cancels the reviewer's last decision about the row."""
    NOTE = "note"
    """Stores a note on a row without a decision."""

    @property
    def decides(self) -> bool:
        """True for keep, drop, fix and unsure."""
        return self not in (DecisionKind.UNDO, DecisionKind.NOTE)


class Decision(BaseModel):
    """One reviewer's decision about one row."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    id: str = Field(min_length=1)
    """The row's id."""
    seen: str | None = None
    """A hash of the content that the reviewer saw (`truegold.pipeline.tables.rows.content_key`). If the row's content
    has changed, the decision is not applied. Without this hash, it is applied to any content."""
    decision: DecisionKind
    """The kind of decision."""
    gold: str | None = Field(default=None, max_length=MAX_GOLD)
    """The right gold, only with a fix. For a row with tests: lines that change the tests, such as further cases."""
    note: str | None = Field(default=None, max_length=MAX_NOTE)
    """The reviewer's reason, for later readers."""
    drawn: str | None = Field(default=None, pattern=r"^(suspicious|random:\d{1,19})$")
    """How the row was chosen for review: as one of the most suspicious, or at random with a seed."""
    passes: int | None = Field(default=None, ge=0)
    """The number of right samples at the time of the decision, or None if the row was not profiled."""
    suspicion: float | None = Field(default=None, ge=0, le=1)
    """The probability, from samples, that the row's label is wrong."""
    blind: bool = False
    """True if the reviewer could not see others' decisions about the row."""
    reviewer: str = Field(min_length=1, max_length=MAX_REVIEWER)
    """The reviewer's name."""
    decided_at: datetime = Field(alias="at")
    """The time of the decision. Only a reviewer's last decision about a row is valid."""

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
            raise ValueError(f"gold: given with {self.decision}, but only a fix has one")
        return self

    @property
    def is_random(self) -> bool:
        """True if the row was drawn at random. Such rows represent others of their kind."""
        return self.drawn is not None and self.drawn.startswith("random:")


Decisions = dict[str, list[Decision]]
"""Row id -> the last decision of each reviewer, ordered by the reviewers' names."""


def load_decisions(*paths: Path) -> Decisions:
    """Return the last decision of each reviewer about each row, from files and from all `*.jsonl` in folders.

    A folder that does not exist has no decisions. Raises InputError with the file and line of a malformed line.
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


def digest_decisions(decisions: Decisions) -> str:
    """Return a digest of the current decisions, by which `settle` tells whether they are applied."""
    return digest_json({key: [made.model_dump(mode="json") for made in each] for key, each in decisions.items()})


def load_notes(reviewer: str, *paths: Path) -> dict[str, str]:
    """Return a reviewer's last note on each row. It may belong to a decision."""
    notes: dict[str, str] = {}
    for decision in _read_lines(paths):
        if decision.reviewer == reviewer and (decision.note or decision.decision is DecisionKind.NOTE):
            notes[decision.id] = decision.note or ""
    return notes


def _read_lines(paths: Iterable[Path]) -> list[Decision]:
    """Return the distinct lines of files and folders in order of time."""
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
                    f"{path}, line {line_number}: not JSON ({error}).", "Correct or delete the line."
                ) from error
            except ValidationError as error:
                raise InputError(
                    f"{path}, line {line_number}: {describe_problem(error)}.", "Correct or delete the line."
                ) from error


def _is_cut_short(line: bytes) -> bool:
    """Return True if a crash has cut the line: it has no line end and is not JSON."""
    if line.endswith(b"\n"):
        return False
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return True
    return False


def describe_problem(error: ValidationError) -> str:
    """Return the first problem of a decision as `field: message`."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    message = plain_words(first["msg"])
    return f"{field}: {message}" if field else message


def reviewer_file(folder: Path, reviewer: str) -> Path:
    """Return the file of a reviewer's decisions."""
    name = _NOT_IN_NAMES.sub("-", unicodedata.normalize("NFKC", reviewer).casefold()).strip("-")
    return folder / f"{name[:MAX_REVIEWER] or 'reviewer'}.jsonl"


def append_decision(folder: Path, decision: Decision) -> Path:
    """Append a decision to its reviewer's file, and return the file once the line is on disk.

    Several processes may append at the same time. A reloaded page may send a note twice. So a note that is equal to the
    reviewer's last note on the row is not stored again.
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
    """Remove the last line if a crash has cut it. Return a line end if a complete last line needs one, else nothing."""
    size = os.fstat(descriptor).st_size
    if not size or os.pread(descriptor, 1, size - 1) == b"\n":
        return b""
    start, last = size, b""
    while start and b"\n" not in last:
        start = max(0, start - 65_536)
        last = os.pread(descriptor, size - start, start)
    last = last[last.rfind(b"\n") + 1 :]
    if not _is_cut_short(last):
        # An editor may have saved the file without a final line end.
        return b"\n"
    os.ftruncate(descriptor, size - len(last))
    return b""


def _write_durably(descriptor: int, line: bytes) -> None:
    """Write a line and flush it to disk. If the disk is full, the file is left unchanged."""
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
    """Flush a folder's list of files to disk, so that a new file survives a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
