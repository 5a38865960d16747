"""Recorded environments: the answers that an environment once gave are given again, without it.

    recorder = Recorder(Shop(), "shop.jsonl")            writes one line an episode
    mock = MockEnvironment("shop.jsonl", on_miss="nearest")

A state is what has been done so far: the row and all actions up to it, white space apart. An action that was not
recorded is a miss, and follows a policy: `nearest` answers as it was answered to the most similar action in that state
or, where the state itself is unknown, in the nearest state of the same row; `error` answers with a message that says
that nothing is known; `end` ends the episode, which is not judged then, since its score is unknown. Misses are counted
(`mock_real_steps` in the metrics), since they do not show the real environment.
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
DONE = "done"
"""The field of a recorded step that ends its episode."""
UNKNOWN = "Nothing is known of what this does here."
"""The answer to an action that was not recorded, where the policy is `error`."""
State = tuple[str, ...]
"""The id of the row, and after it all actions so far."""


class UnknownActionError(LookupError):
    """The action was not recorded, and a miss ends the episode."""


class Recorder:
    """An environment that writes down what another one answers: one line an episode, when it is over.

    An answer that training would refuse, such as a message without a role, is handed on and not recorded; the record
    ends before it.
    """

    _lock = threading.Lock()

    def __init__(self, environment: Environment, path: str | Path) -> None:
        """Raises ConfigError for a file that cannot be written."""
        self._environment = environment
        self.tools: Sequence[Mapping[str, Any]] = getattr(environment, "tools", ())
        """The tools of the environment, which the template shows."""
        self._path = Path(path)
        self._record: dict[str, Any] = {}
        """The episode so far; empty if nothing is to be written."""
        try:
            # Otherwise it would be noticed at the end of the first episode, when the caller no longer listens.
            self._path.open("ab").close()
        except OSError as error:
            raise ConfigError(
                f"{self._path} cannot be written: {error}", "Name a file in a folder that is there."
            ) from error

    async def reset(self, row: Row) -> Sequence[Message]:
        """Begin as the environment does."""
        messages: Sequence[Message] = await _value(self._environment.reset(row))
        self._record = {}
        with suppress(AnswerError):
            opening, tools = read_opening(messages), read_tools(self._environment)
            if isinstance(opening, Reply):
                shown = {"tools": tools} if tools else {}
                self._record = {"row": row["id"], **shown, "opening": opening.messages, "steps": []}
        return messages

    async def step(self, completion: Message) -> Reply | Done:
        """Answer as the environment does."""
        # The environment may change the message, and later its answers too.
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
        """Write the episode, if it was not over, and close the environment, if that can be closed."""
        try:
            self._write()
        finally:
            await _value(close_environment(self._environment))

    def _write(self) -> None:
        record, self._record = self._record, {}
        if not record:
            return
        try:
            line = json.dumps(record, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            # The arguments of a tool call may hold half of a surrogate pair.
            line = json.dumps(record).encode()
        with self._lock, self._path.open("ab") as file:
            file.write(line + b"\n")


def _as_step(answer: Reply | Done) -> dict[str, Any]:
    """Return what is written down of an answer."""
    if isinstance(answer, Done):
        return {DONE: True, "score": answer.score, "turn_score": answer.turn_score}
    return {"messages": answer.messages, "turn_score": answer.score}


class Recording:
    """All recorded episodes of a file, by state. What is wrong in it is named by file, line and field.

        {"row": "a1", "opening": [{"role": "user", "content": "Look."}], "steps": [
            {"action": "look", "messages": [{"role": "user", "content": "A cup."}], "turn_score": null},
            {"action": "take cup", "done": true, "score": 1.0, "turn_score": null}]}

    `tools` stands there too, where the recorded environment has any.
    """

    def __init__(self, path: Path) -> None:
        """Raises InputError for a file that cannot be read, and for a line that is not a recorded episode."""
        self.tools: Sequence[Mapping[str, Any]] | None = None
        """The tools of the recorded environment; None before the first episode."""
        self.openings: dict[str, list[Message]] = {}
        self.answers: dict[State, Reply | Done] = {}
        self.actions: dict[State, list[str]] = {}
        """The actions that are known in a state."""
        self.states: dict[str, list[State]] = {}
        """The known states of a row."""
        try:
            # A text editor may have put a byte order mark in front.
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
                    'A line is {"row": ID, "opening": [messages], "steps": [{"action": ..., "messages": [...]}]}, with '
                    '"tools" where the environment has any.',
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
            raise ValueError("its tools are not those of the episodes before it")
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
    """Return what was done in a step, and the answer. label: how a mistake names the step."""
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
    """Return a field of one of the kinds. label: the text before its name in an error."""
    if name not in values:
        raise TypeError(f"{label}{name} is missing")
    if type(values[name]) not in kinds:
        raise TypeError(f"{label}{name} is {values[name]!r:.80}, not {expected}")
    return values[name]


def _read_messages(values: Mapping[str, Any], name: str, label: str) -> list[Message]:
    """Return the messages of a step or an opening, such as an environment may answer."""
    if name not in values:
        raise TypeError(f"{label}{name} is missing")
    try:
        answer = read_answer(Reply(values[name]))
    except TypeError as error:
        raise TypeError(f"{label}{name}: {error}") from error
    assert isinstance(answer, Reply)
    return list(answer.messages)


def _read_score(step: Mapping[str, Any], name: str, label: str) -> float | None:
    score = step.get(name)
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise ValueError(f"{label}.{name} is {score!r:.80}, not a number from 0 to 1")
    return float(score)


class MockEnvironment:
    """Answers from a recording."""

    def __init__(self, path: str, on_miss: MissPolicy = "nearest") -> None:
        if on_miss not in MISS_POLICIES:
            raise ConfigError(f"on_miss is {on_miss!r}; there are {', '.join(MISS_POLICIES)}.")
        self.recording = load_recording(str(Path(path).resolve()))
        self.tools = self.recording.tools or ()
        self.step_counts: Counter[str] = Counter()
        """How many of the episode's steps were answered as `recorded`, and how many were `missed`."""
        self._on_miss = on_miss
        self._state: State = ()

    @staticmethod
    def fingerprint(path: str, on_miss: MissPolicy = "nearest") -> str:
        """Return a text that changes with what was recorded."""
        return digest_file(Path(path).resolve())

    def reset(self, row: Row) -> Sequence[Message]:
        """Begin as the recorded episodes of the row do. Raises KeyError for a row that was never recorded."""
        if row["id"] not in self.recording.openings:
            raise KeyError(f"no episode of row {row['id']} was recorded")
        self._state = (row["id"],)
        return self.recording.openings[row["id"]]

    def step(self, completion: Message) -> Reply | Done:
        """Answer as it was answered to the same action in the same state. Raises UnknownActionError for a miss that
        ends the episode."""
        action = describe_action(completion)
        recording = self.recording
        is_known = (*self._state, action) in recording.answers
        self.step_counts["recorded" if is_known else "missed"] += 1
        if not is_known and self._on_miss == "end":
            raise UnknownActionError(f"nobody did this when it was recorded: {action[:80]!r}")
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
        """Return the known state and action that are most like what was done: the same state, or the one with the most
        similar history."""
        recording, state = self.recording, self._state
        if state not in recording.actions:
            known = recording.states.get(state[0], [])
            if not known:
                return None
            state = known[most_alike("\n".join(state[1:]), ["\n".join(other[1:]) for other in known])]
        actions = recording.actions[state]
        return state, actions[most_alike(action, actions)]


def most_alike(text: str, others: Sequence[str]) -> int:
    """Return which of the other texts is most like a text, the first of those that are equally so.

    Most are ruled out by an upper bound of their likeness, since a thousand environments may ask at once.
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
    """Return the recording of a file, read once however many environments answer from it. Raises InputError for a file
    that cannot be read as one."""
    # Environments are made in many threads at once, of which each would read the file otherwise.
    with _LOADING:
        return _load_recording(path)


_LOADING = threading.Lock()


@lru_cache(maxsize=16)
def _load_recording(path: str) -> Recording:
    recording = Recording(Path(path))
    if not recording.openings:
        raise InputError(f"{path} holds no recorded episode.")
    return recording


async def _value(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer
