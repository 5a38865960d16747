"""Mock environments, which repeat the recorded answers of a real environment.

    recorder = Recorder(Shop(), "shop.jsonl")                    writes one line for each episode
    mock = MockEnvironment("shop.jsonl", on_miss="nearest")      answers from these lines

A state is the row with all actions so far. White space in actions is ignored. An action that was not recorded in the
current state is a miss. The setting `on_miss` decides the answer to a miss:

    nearest   the answer to the most similar action in this state; if the state is unknown, in the most similar state of
              the row
    error     a message that nothing is known about the action
    end       the episode ends without a score

The metric `mock_real_steps` is the share of steps without a miss, because misses do not show the real environment.
"""

from __future__ import annotations

import difflib
import inspect
import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from truegold.pipeline.running.disk import digest_file
from truegold.pipeline.tables.rows import Row
from truegold.train.turns.calls import AnswerError
from truegold.train.turns.environment import (
    Done,
    Environment,
    Message,
    Reply,
    close_environment,
    read_answer,
    read_opening,
    read_tools,
)
from truegold.train.turns.template import describe_action
from truegold.verifiers import ConfigError, InputError

MissPolicy = Literal["nearest", "error", "end"]
MISS_POLICIES = ("nearest", "error", "end")
"""The values of `on_miss`."""
DONE = "done"
"""The field of a recorded step that ends its episode."""
UNKNOWN = "Nothing is known of what this does here."
"""The answer to a miss with `on_miss: error`."""
State = tuple[str, ...]
"""The id of the row, followed by all actions so far."""


class UnknownActionError(LookupError):
    """A miss with `on_miss: end`, which ends the episode."""


class Recorder:
    """An environment that records the answers of another environment, one line for each finished episode.

    The record ends before an invalid answer, for example a message without a role. The answer is still returned.
    """

    _lock = threading.Lock()

    def __init__(self, environment: Environment, path: str | Path) -> None:
        """Record to the file `path`. Raises ConfigError if it cannot be written."""
        self._environment = environment
        self.tools: Sequence[Mapping[str, Any]] = getattr(environment, "tools", ())
        """The tools of the environment, which the chat template shows."""
        self._path = Path(path)
        self._record: dict[str, Any] = {}
        """The record of the episode so far, or an empty dict if there is nothing to write."""
        try:
            # Checked here, because the first episode ends in a background thread.
            self._path.open("ab").close()
        except OSError as error:
            raise ConfigError(
                f"{self._path} cannot be written: {error}", "Give a file in an existing, writable folder."
            ) from error

    async def reset(self, row: Row) -> Sequence[Message]:
        """Return the first messages of the environment, and begin a record."""
        messages: Sequence[Message] = await _value(self._environment.reset(row))
        self._record = {}
        with suppress(AnswerError):
            opening, tools = read_opening(messages), read_tools(self._environment)
            if isinstance(opening, Reply):
                shown = {"tools": tools} if tools else {}
                self._record = {"row": row["id"], **shown, "opening": opening.messages, "steps": []}
        return messages

    async def step(self, completion: Message) -> Reply | Done:
        """Return the answer of the environment, and record it."""
        # Copied first, because the environment may change the message.
        action = describe_action(completion)
        answer: Reply | Done = await _value(self._environment.step(completion))
        try:
            step = _as_step(read_answer(answer))
        except AnswerError:
            self._write()
            return answer
        if self._record:
            self._record["steps"].append({"action": action, **step})
        if isinstance(answer, Done):
            self._write()
        return answer

    async def close(self) -> None:
        """Write the record of an unfinished episode, and close the environment if it has a `close`."""
        try:
            self._write()
        finally:
            await _value(close_environment(self._environment))

    def _write(self) -> None:
        """Append the record of the episode to the file."""
        record, self._record = self._record, {}
        if not record:
            return
        try:
            line = json.dumps(record, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            # Escaped, because arguments of a tool call may contain half of a surrogate pair.
            line = json.dumps(record).encode()
        with self._lock, self._path.open("ab") as file:
            file.write(line + b"\n")


def _as_step(answer: Reply | Done) -> dict[str, Any]:
    if isinstance(answer, Done):
        return {DONE: True, "score": answer.score, "turn_score": answer.turn_score}
    return {"messages": answer.messages, "turn_score": answer.score}


class Recording:
    """All recorded episodes of a file, by state. Errors name the file, line and field. An episode is one line:

        {"row": "a1", "opening": [{"role": "user", "content": "Look."}], "steps": [
            {"action": "look", "messages": [{"role": "user", "content": "A cup."}], "turn_score": null},
            {"action": "take cup", "done": true, "score": 1.0, "turn_score": null}]}

    It also has `tools`, if the recorded environment has any.
    """

    def __init__(self, path: Path) -> None:
        """Read a file. Raises InputError if it cannot be read, or a line is not a recorded episode."""
        self.tools: Sequence[Mapping[str, Any]] | None = None
        """The tools of the recorded environment; None before the first episode."""
        self.openings: dict[str, list[Message]] = {}
        """The first messages, by the id of the row."""
        self.answers: dict[State, Reply | Done] = {}
        """The answers, by the state after the action."""
        self.actions: dict[State, list[str]] = {}
        """The recorded actions in each state."""
        self.states: dict[str, list[State]] = {}
        """The recorded states, by the id of the row."""
        try:
            # A text editor may have added a byte order mark, which utf-8-sig skips.
            lines = path.read_text(encoding="utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error
        for line_number, line in enumerate(lines, 1):
            try:
                if line.strip():
                    self._add(line)
            except (TypeError, ValueError, RecursionError) as error:
                reason = "its brackets are nested too deep" if isinstance(error, RecursionError) else error
                raise InputError(
                    f"{path}, line {line_number}: this is not a recorded episode: {reason}.",
                    'A line is {"row": ID, "opening": [messages], "steps": [{"action": ..., "messages": [...]}]}, and '
                    'also has "tools" if the environment has any.',
                ) from error

    def _add(self, line: str) -> None:
        """Add an episode. Raises TypeError or ValueError if the line is not an episode."""
        episode = json.loads(line)
        if not isinstance(episode, dict):
            raise TypeError(f"it is a {type(episode).__name__}, not an object")
        row = str(_field(episode, "row", "", (str, int), "the id of a row"))
        tools = episode.get("tools") or []
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            raise TypeError(f"tools is {tools!r:.80}, not a list of objects")
        opening = _read_messages(episode, "opening", "")
        steps = _field(episode, "steps", "", (list,), "a list")
        answers = [_read_step(step, f"steps[{index}]") for index, step in enumerate(steps)]
        if self.tools is not None and tools != self.tools:
            raise ValueError("its tools differ from those of earlier episodes")
        self.tools = tools
        self.openings.setdefault(row, opening)
        state: State = (row,)
        for written, answer in answers:
            action = " ".join(written.split())
            if state not in self.actions:
                self.actions[state] = []
                self.states.setdefault(row, []).append(state)
            if (*state, action) not in self.answers:
                self.actions[state].append(action)
                self.answers[*state, action] = answer
            state = (*state, action)


def _read_step(step: object, label: str) -> tuple[str, Reply | Done]:
    """Return the action and the answer of a recorded step. label: the name of the step in errors."""
    if not isinstance(step, dict):
        raise TypeError(f"{label} is {step!r:.80}, not an object")
    action = _field(step, "action", f"{label}.", (str,), "text")
    turn_score = _read_score(step, "turn_score", label)
    if step.get(DONE, False) not in (True, False):
        raise ValueError(f"{label}.{DONE} is {step[DONE]!r:.80}, not true or false")
    if step.get(DONE):
        return action, Done(_read_score(step, "score", label), turn_score)
    return action, Reply(_read_messages(step, "messages", f"{label}."), turn_score)


def _field(values: Mapping[str, Any], name: str, label: str, kinds: tuple[type, ...], expected: str) -> Any:
    """Return the field `name` of a record. Raises TypeError if it is missing or its type is not in `kinds`.

    label: the text before its name in errors. expected: a description of the type.
    """
    if name not in values:
        raise TypeError(f"{label}{name} is missing")
    if type(values[name]) not in kinds:
        raise TypeError(f"{label}{name} is {values[name]!r:.80}, not {expected}")
    return values[name]


def _read_messages(values: Mapping[str, Any], name: str, label: str) -> list[Message]:
    """Return the messages in the field `name`. Raises TypeError if an environment could not have returned them."""
    if name not in values:
        raise TypeError(f"{label}{name} is missing")
    try:
        answer = read_answer(Reply(values[name]))
    except TypeError as error:
        raise TypeError(f"{label}{name}: {error}") from error
    assert isinstance(answer, Reply)
    return list(answer.messages)


def _read_score(step: Mapping[str, Any], name: str, label: str) -> float | None:
    """Return the score in the field `name`, or None. Raises ValueError if it is not a number from 0 to 1."""
    score = step.get(name)
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise ValueError(f"{label}.{name} is {score!r:.80}, not a number from 0 to 1")
    return float(score)


class MockEnvironment:
    """An environment that answers from a recording."""

    def __init__(self, path: str, on_miss: MissPolicy = "nearest") -> None:
        """Answer from the file `path`. Raises ConfigError for an unknown `on_miss`, InputError for an invalid file."""
        if on_miss not in MISS_POLICIES:
            raise ConfigError(f"on_miss is {on_miss!r}; it must be one of {', '.join(MISS_POLICIES)}.")
        self.recording = load_recording(str(Path(path).resolve()))
        self.tools = self.recording.tools or ()
        self.step_counts: Counter[str] = Counter()
        """The number of the episode's steps that were answered as `recorded`, and that were `missed`."""
        self._on_miss = on_miss
        self._state: State = ()

    @staticmethod
    def fingerprint(path: str, on_miss: MissPolicy = "nearest") -> str:
        """Return a digest of the recording."""
        return digest_file(Path(path).resolve())

    def reset(self, row: Row) -> Sequence[Message]:
        """Return the recorded first messages of a row. Raises KeyError if no episode of the row was recorded."""
        if row["id"] not in self.recording.openings:
            raise KeyError(f"no episode of row {row['id']} was recorded")
        self._state = (row["id"],)
        return self.recording.openings[row["id"]]

    def step(self, completion: Message) -> Reply | Done:
        """Return the recorded answer to this action in the current state, or the answer of `on_miss` for a miss.

        Raises UnknownActionError for a miss with `on_miss: end`.
        """
        action = describe_action(completion)
        recording = self.recording
        is_known = (*self._state, action) in recording.answers
        self.step_counts["recorded" if is_known else "missed"] += 1
        if not is_known and self._on_miss == "end":
            raise UnknownActionError(f"this action was not recorded: {action[:80]!r}")
        if not is_known:
            nearest = self._nearest(action) if self._on_miss == "nearest" else None
            if nearest is None:
                self._state = (*self._state, action)
                return Reply([{"role": "user", "content": UNKNOWN}])
            self._state, action = nearest
        answer = recording.answers[*self._state, action]
        self._state = (*self._state, action)
        return answer

    def _nearest(self, action: str) -> tuple[State, str] | None:
        """Return the most similar recorded state and action, or None if no step of the row was recorded. The state is
        the current one. If it is unknown, it is the one with the most similar history."""
        recording, state = self.recording, self._state
        if state not in recording.actions:
            known = recording.states.get(state[0], [])
            if not known:
                return None
            state = known[most_alike("\n".join(state[1:]), ["\n".join(other[1:]) for other in known])]
        actions = recording.actions[state]
        return state, actions[most_alike(action, actions)]


def most_alike(text: str, others: Sequence[str]) -> int:
    """Return the index of the text in `others` that is most similar to `text`. Of equally similar texts, take the
    first.

    A thousand environments may call this at once. So a cheap upper bound of the similarity rules most texts out first.
    """
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(text)
    best, most = 0, -1.0
    for index, other in enumerate(others):
        matcher.set_seq1(other)
        if matcher.real_quick_ratio() > most and matcher.quick_ratio() > most and (ratio := matcher.ratio()) > most:
            best, most = index, ratio
    return best


def load_recording(path: str) -> Recording:
    """Return the recording of a file, which is read once for all environments. Raises InputError if it is invalid."""
    # Environments are created in several threads. Without a lock, each of them reads the file.
    with _LOADING:
        return _load_recording(path)


_LOADING = threading.Lock()
"""Held while a recording is read."""


@lru_cache(maxsize=16)
def _load_recording(path: str) -> Recording:
    recording = Recording(Path(path))
    if not recording.openings:
        raise InputError(f"{path} has no recorded episode.")
    return recording


async def _value(answer: Any) -> Any:
    """Return a value, after awaiting it if it is awaitable."""
    return await answer if inspect.isawaitable(answer) else answer
