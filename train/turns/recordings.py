"""Recorded episodes in a file, one a line. What is wrong is named by file, line and field before anything is played.

    {"row": "a1", "opening": [{"role": "user", "content": "Look."}], "steps": [
        {"action": "look", "messages": [{"role": "user", "content": "A cup."}], "turn_score": null},
        {"action": "take cup", "done": true, "score": 1.0, "turn_score": null}]}

`tools` stands there too, where the recorded environment has any.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truegold.train.turns.environment import Done, Message, Reply, read_answer
from truegold.verifiers import InputError

DONE = "done"
"""The field of a step that ends its episode."""


@dataclass(frozen=True)
class RecordedEpisode:
    """One line of a recording."""

    line_number: int
    row: str
    """The id of the row."""
    tools: list[dict[str, Any]]
    """What the template shows of the environment's tools."""
    opening: list[Message]
    """What the dialogue began with."""
    steps: list[tuple[str, Reply | Done]]
    """What was done, and what the environment answered to it."""


def read_episodes(path: Path) -> Iterator[RecordedEpisode]:
    """Yield the episodes of a recording. Raises InputError for a file that cannot be read, and for a line that is no
    recorded episode."""
    try:
        # A text editor may have put a byte order mark in front.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    for line_number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _read_episode(_read_json(line), line_number)
        except (TypeError, ValueError) as error:
            raise mistake_in(path, line_number, str(error)) from error


def mistake_in(path: Path, line_number: int, what: str) -> InputError:
    """Return the error that refuses a line of a recording."""
    return InputError(
        f"{path}, line {line_number}: this is no recorded episode: {what}.",
        'A line is {"row": ID, "opening": [messages], "steps": [{"action": ..., "messages": [...]}]}, with '
        '"tools" where the environment has any.',
    )


def _read_json(line: str) -> Mapping[str, Any]:
    try:
        episode = json.loads(line)
    except RecursionError as error:
        raise ValueError("its brackets are nested too deep") from error
    if not isinstance(episode, dict):
        raise TypeError(f"it is a {type(episode).__name__}, not an object")
    return episode


def _read_episode(episode: Mapping[str, Any], line_number: int) -> RecordedEpisode:
    row, tools = _field(episode, "row", "row"), episode.get("tools") or []
    if isinstance(row, bool) or not isinstance(row, str | int):
        raise TypeError(f"row is {row!r:.80}, not the id of a row")
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise TypeError(f"tools is {tools!r:.80}, not a list of objects")
    steps = _field(episode, "steps", "steps")
    if not isinstance(steps, list):
        raise TypeError(f"steps is {steps!r:.80}, not a list")
    opening = _read_messages(_field(episode, "opening", "opening"), "opening")
    read_steps = [_read_step(step, f"steps[{index}]") for index, step in enumerate(steps)]
    return RecordedEpisode(line_number, str(row), tools, opening, read_steps)


def _read_step(step: object, label: str) -> tuple[str, Reply | Done]:
    """Return what was done in a step, and the answer. label: how a mistake names the step."""
    if not isinstance(step, dict):
        raise TypeError(f"{label} is {step!r:.80}, not an object")
    action = _field(step, "action", f"{label}.action")
    if not isinstance(action, str):
        raise TypeError(f"{label}.action is {action!r:.80}, not text")
    turn_score = _read_score(step, "turn_score", label)
    if step.get(DONE, False) not in (True, False):
        raise ValueError(f"{label}.{DONE} is {step[DONE]!r:.80}, not true or false")
    if step.get(DONE):
        return action, Done(_read_score(step, "score", label), turn_score)
    name = f"{label}.messages"
    return action, Reply(_read_messages(_field(step, "messages", name), name), turn_score)


def _field(values: Mapping[str, Any], name: str, label: str) -> Any:
    if name not in values:
        raise TypeError(f"{label} is missing")
    return values[name]


def _read_messages(messages: Any, label: str) -> list[Message]:
    """Return the messages of a step or an opening, such as an environment may answer."""
    try:
        answer = read_answer(Reply(messages))
    except TypeError as error:
        raise TypeError(f"{label}: {error}") from error
    assert isinstance(answer, Reply)
    return list(answer.messages)


def _read_score(step: Mapping[str, Any], name: str, label: str) -> float | None:
    score = step.get(name)
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise ValueError(f"{label}.{name} is {score!r:.80}, not a number from 0 to 1")
    return float(score)
