"""What rollouts are judged by: the rows of the set that the run was trained on, found by their prompts.

A log's prompt may have instructions around the question, or be cut, so that a row is looked for by the same text first
and then by a question that stands whole within the prompt.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.export.convert import read_tables, tables_of
from truegold.pipeline.rescore.rollout import Rollout
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.tables.rows import Row, normalise_for_id
from truegold.verifiers import Item

MIN_CHARS = 20
"""A shorter question may stand in another one by chance."""
KEY_CHARS = 40
"""Questions are looked up within a prompt by so many of their last characters."""


@dataclass(frozen=True)
class DecidedRow:
    """What reviewers have decided about a row."""

    decision: str
    row: Row | None
    """The row with the gold that they stand for; None where they dropped it."""

    def item(self, rollout: Rollout) -> Item | None:
        """Return what tells whether a rollout is right by the reviewers' gold."""
        return None if self.row is None else _item_of(self.row, rollout, self.row["verifier"])


Decide = Callable[[Row], DecidedRow | None]
"""What was decided about a row; None where nothing stands."""


def _item_of(row: Row, rollout: Rollout, verifier: str) -> Item:
    return Item(rollout.completion, row["gold"], verifier, row["verifier_args"], row["prompt"])


class Truths:
    """The rows of a set by their prompts."""

    def __init__(self, data: Path | None) -> None:
        """Read the set: a run, an exported set, or any file. Raises InputError where it cannot be read."""
        self._rows: dict[str, Row] = {}
        self._by_end: dict[str, list[str]] = {}
        self._known: dict[str, Row | None] = {}
        for row in _read(data) if data is not None else ():
            question = normalise_for_id(row["prompt"])
            self._rows[question] = row
            if len(question) >= MIN_CHARS:
                self._by_end.setdefault(question[-KEY_CHARS:], []).append(question)
        self._ends = sorted(set(map(len, self._by_end)), reverse=True)

    def __len__(self) -> int:
        return len(self._rows)

    def row_of(self, rollout: Rollout) -> Row | None:
        """Return the row that a rollout answers; None where the set has none."""
        question = rollout.question
        if question not in self._known:
            self._known[question] = self._rows.get(question) or self._row_within(question)
        return self._known[question]

    def item(self, rollout: Rollout, verifier: str | None) -> Item | None:
        """Return what is asked of a verifier about a rollout; None where nothing is known to judge it by.

        `verifier` judges in place of the row's own, with its arguments, where it is another one.
        """
        row = self.row_of(rollout)
        if row is not None:
            return _item_of(row, rollout, verifier or row["verifier"])
        if rollout.gold is None and rollout.verifier is None:
            return None
        name = verifier or rollout.verifier or "math"
        return Item(rollout.completion, rollout.gold, name, rollout.verifier_args, rollout.prompt or None)

    def _row_within(self, prompt: str) -> Row | None:
        inside: set[str] = set()
        for length in self._ends:
            for start in range(len(prompt) - length + 1):
                for question in self._by_end.get(prompt[start : start + length], ()):
                    if prompt.startswith(question, start + length - len(question)):
                        inside.add(question)
        longest = max(inside, key=len, default=None)
        return None if longest is None else self._rows[longest]


def _read(data: Path) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="truegold-") as scratch:
        # Rollouts are looked up by the last user message, as `logs` reads it out of them.
        source = FileSource(path=str(data), last_turn_only=True)
        tables, _ = tables_of(data, source, Path(scratch), NullProgress())
        return list(read_tables(tables))
