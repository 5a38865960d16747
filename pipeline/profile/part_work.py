"""Keeps the verdicts of a profile in parts of 5,000 rows, until the tables of a part are written.

    scratch/work-3f2a.../rule.json           the stopping rule from the pilot (`saved_rule`)
                         verdicts/pilot/     verdicts on rows of the pilot
                         verdicts/00017/     verdicts on other rows, of an unfinished part
                         parts/00017/        rows, samples and pass rates of a finished part

Only the rows of the pilot (random rows that are sampled first) and of the few unfinished parts are in memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from truegold.pipeline.profile.judging import VerdictRecord
from truegold.pipeline.profile.stopping_rule import SavedRule
from truegold.pipeline.running.record_log import Position, RecordLog

PART_ROWS = 5_000
"""The number of rows in a part."""
PILOT = "pilot"


class _Kept(NamedTuple):
    """A verdict on disk, with the values that planning needs."""

    log: str
    position: Position
    prompt: str
    score: float | None
    answer: str | None


class ProfileParts:
    """The verdicts, finished parts and stopping rule of a profile, over all its attempts."""

    def __init__(self, folder: Path) -> None:
        """Load the state that earlier attempts left in a folder."""
        self._folder, self._parts, self._rule_path = folder, folder / "parts", folder / "rule.json"
        self._logs: dict[str, RecordLog] = {}
        self._verdicts: dict[int, dict[int, _Kept]] = {}
        """Verdicts by row and sample."""
        self._parts.mkdir(parents=True, exist_ok=True)
        (folder / "verdicts").mkdir(exist_ok=True)
        self.rule = SavedRule.read(self._rule_path)
        """The stopping rule, or None before the end of the pilot."""
        self.finished = {int(path.name) for path in self._parts.iterdir() if path.name.isdecimal()}
        """The numbers of the finished parts."""
        self.kept = 0
        """The number of verdicts of earlier attempts on rows of unfinished parts."""
        for path in sorted((folder / "verdicts").iterdir()):
            if path.name.isdecimal() and int(path.name) in self.finished:
                shutil.rmtree(path)
                continue
            for position, record in self._log(path.name).scan():
                if self.part_of(record["row"]) not in self.finished:
                    self._keep(path.name, position, record)
                    self.kept += 1

    @staticmethod
    def part_of(row: int) -> int:
        """Return the number of the part of a row."""
        return row // PART_ROWS

    @staticmethod
    def rows_of(part: int) -> range:
        """Return the row indices of a part; the last part of a table may have fewer."""
        return range(part * PART_ROWS, (part + 1) * PART_ROWS)

    def samples(self) -> Iterator[tuple[str, int]]:
        """Yield the store keys of the judged samples in unfinished parts."""
        for of_row in self._verdicts.values():
            for sample, kept in of_row.items():
                yield kept.prompt, sample

    def judged(self, row: int, sample: int) -> tuple[float | None, str | None] | None:
        """Return score and answer of a judged sample, or None if it is not judged."""
        kept = self._verdicts.get(row, {}).get(sample)
        return None if kept is None else (kept.score, kept.answer)

    def keep(self, verdict: VerdictRecord, *, is_pilot: bool) -> None:
        """Store a verdict."""
        name = PILOT if is_pilot else f"{self.part_of(verdict['row']):05d}"
        self._keep(name, self._log(name).append(verdict), verdict)

    def verdicts(self, row: int) -> Iterator[VerdictRecord]:
        """Yield the verdicts on a row's samples, in order."""
        for _, kept in sorted(self._verdicts.get(row, {}).items()):
            yield self._log(kept.log).read(kept.position)

    def keep_rule(self, rule: SavedRule) -> None:
        """Store the stopping rule, by which later attempts continue without a pilot."""
        self.rule = rule
        rule.write(self._rule_path)

    def finish(self, part: int, write: Callable[[Path], None]) -> None:
        """Write the tables of a part by calling `write` with a folder, and delete the verdicts on its rows."""
        aside = self._parts / f"{part:05d}.tmp"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        write(aside)
        aside.rename(self.folder_of(part))
        self.finished.add(part)
        for row in self.rows_of(part):
            self._verdicts.pop(row, None)
        if (log := self._logs.pop(f"{part:05d}", None)) is not None:
            log.clear()

    def folder_of(self, part: int) -> Path:
        """Return the folder of a finished part."""
        return self._parts / f"{part:05d}"

    def clear(self) -> None:
        """Delete the whole state."""
        self.close()
        shutil.rmtree(self._folder)
        for folder in (self._parts, self._folder / "verdicts"):
            folder.mkdir(parents=True)
        self.rule, self.kept = None, 0
        self.finished.clear()
        self._verdicts.clear()

    def close(self) -> None:
        """Close all files."""
        for log in self._logs.values():
            log.close()
        self._logs.clear()

    def _log(self, name: str) -> RecordLog:
        if name not in self._logs:
            self._logs[name] = RecordLog(self._folder / "verdicts" / name)
        return self._logs[name]

    def _keep(self, name: str, position: Position, verdict: Any) -> None:
        kept = _Kept(name, position, verdict["prompt"], verdict["score"], verdict["extracted"])
        self._verdicts.setdefault(verdict["row"], {})[verdict["sample"]] = kept
