"""Recorded environments: what an environment answered once is answered again, without it.

    recorder = Recorder(Shop(), "shop.jsonl")            writes one line an episode
    mock = MockEnvironment("shop.jsonl", on_miss="nearest")

A state is what has been done so far: the row and all actions up to it, white space apart. What nobody did before is a
miss, and follows a policy: `nearest` answers as it was answered to the most similar action in that state or, where the
state itself is unknown, in the nearest state of the same row; `error` answers with a message that says that nothing is
known; `end` ends the episode without a score. Misses are counted, since what is learnt from them is not the world.
"""

from __future__ import annotations

import difflib
import inspect
import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from truegold.pipeline.rows import Row
from truegold.train.turns.environment import Done, Environment, Message, Reply
from truegold.train.turns.messages import describe_action
from truegold.verifiers import ConfigError, InputError

MissPolicy = Literal["nearest", "error", "end"]
MISS_POLICIES = ("nearest", "error", "end")
UNKNOWN = "Nothing is known of what this does here."
"""The answer to an action that nobody did before, where the policy is `error`."""
DONE = "done"
State = tuple[str, ...]
"""The id of the row, and behind it all actions so far."""


class Recorder:
    """An environment that writes down what another one answers: one line an episode, when it is over."""

    _lock = threading.Lock()

    def __init__(self, environment: Environment, path: str | Path) -> None:
        self._environment = environment
        self.tools: Sequence[Mapping[str, Any]] = getattr(environment, "tools", ())
        """Those of the environment, which the template shows."""
        self._path = Path(path)
        self._record: dict[str, Any] = {}

    async def reset(self, row: Row) -> Sequence[Message]:
        """Begin as the environment does."""
        messages = await _value(self._environment.reset(row))
        tools = {"tools": list(self.tools)} if self.tools else {}
        self._record = {"row": row["id"], **tools, "opening": list(messages), "steps": []}
        return list(messages)

    async def step(self, completion: Message) -> Reply | Done:
        """Answer as the environment does."""
        answer: Reply | Done = await _value(self._environment.step(completion))
        step: dict[str, Any] = {"action": describe_action(completion)}
        if isinstance(answer, Done):
            step |= {DONE: True, "score": answer.score, "turn_score": answer.turn_score}
        else:
            step |= {"messages": list(answer.messages), "turn_score": answer.score}
        self._record["steps"].append(step)
        if isinstance(answer, Done):
            self._write()
        return answer

    async def close(self) -> None:
        """Write the episode, if it was not over, and close the environment, if that can be closed."""
        self._write()
        close = getattr(self._environment, "close", None)
        if close is not None:
            await _value(close())

    def _write(self) -> None:
        if self._record:
            line = json.dumps(self._record, ensure_ascii=False) + "\n"
            with self._lock, self._path.open("a", encoding="utf-8") as file:
                file.write(line)
            self._record = {}


class Recording:
    """All recorded episodes of a file, by state."""

    def __init__(self, path: Path) -> None:
        self.tools: Sequence[Mapping[str, Any]] | None = None
        """What the recorded environment had; None before the first episode."""
        self.openings: dict[str, list[Message]] = {}
        self.answers: dict[State, dict[str, Any]] = {}
        self.actions: dict[State, list[str]] = {}
        """The actions that are known in a state."""
        self.states: dict[str, list[State]] = {}
        """The known states of a row."""
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        """Steps answered from the recording, and misses."""
        for line_number, line in enumerate(_lines(path), 1):
            self._add(line, path, line_number)

    def _add(self, line: str, path: Path, line_number: int) -> None:
        try:
            episode = json.loads(line)
            row, steps = str(episode["row"]), episode["steps"]
            tools = episode.get("tools", [])
            if self.tools is not None and tools != self.tools:
                raise ValueError("its tools are not those of the episodes before it")
            self.tools = tools
            self.openings.setdefault(row, episode["opening"])
            state: State = (row,)
            for step in steps:
                action = " ".join(step["action"].split())
                if state not in self.actions:
                    self.actions[state] = []
                    self.states.setdefault(row, []).append(state)
                if (*state, action) not in self.answers:
                    self.actions[state].append(action)
                    self.answers[*state, action] = step
                state = (*state, action)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path}, line {line_number}: this is no recorded episode ({type(error).__name__}: {error}).",
                'A line is {"row": ID, "opening": [messages], "steps": [{"action": ..., "messages": [...]}]}, with '
                '"tools" where the environment has any.',
            ) from error

    def count(self, kind: str) -> None:
        """Count a step. Environments answer from several threads."""
        with self._lock:
            self.counts[kind] += 1

    @property
    def real_share(self) -> float | None:
        """The share of steps that were answered as they were recorded, None before the first."""
        steps = self.counts["recorded"] + self.counts["missed"]
        return self.counts["recorded"] / steps if steps else None


class MockEnvironment:
    """Answers from a recording."""

    def __init__(self, path: str, on_miss: MissPolicy = "nearest") -> None:
        if on_miss not in MISS_POLICIES:
            raise ConfigError(f"on_miss is {on_miss!r}; there are {', '.join(MISS_POLICIES)}.")
        self.recording = load_recording(str(Path(path).resolve()))
        self.tools = self.recording.tools or ()
        self._on_miss = on_miss
        self._state: State = ()

    def reset(self, row: Row) -> Sequence[Message]:
        """Begin as the recorded episodes of the row do. Raises KeyError for a row that was never recorded."""
        if row["id"] not in self.recording.openings:
            raise KeyError(f"no episode of row {row['id']} was recorded")
        self._state = (row["id"],)
        return self.recording.openings[row["id"]]

    def step(self, completion: Message) -> Reply | Done:
        """Answer as it was answered to the same action in the same state."""
        action = describe_action(completion)
        recording = self.recording
        is_known = (*self._state, action) in recording.answers
        recording.count("recorded" if is_known else "missed")
        if not is_known and self._on_miss == "end":
            return Done()
        if not is_known:
            nearest = self._nearest(action) if self._on_miss == "nearest" else None
            if nearest is None:
                self._state = (*self._state, action)
                return Reply([{"role": "user", "content": UNKNOWN}])
            self._state, action = nearest
        answer = recording.answers[*self._state, action]
        self._state = (*self._state, action)
        if answer.get(DONE):
            return Done(answer.get("score"), answer.get("turn_score"))
        return Reply(answer["messages"], answer.get("turn_score"))

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


@lru_cache(maxsize=16)
def load_recording(path: str) -> Recording:
    """Return the recording of a file, read once however many environments answer from it. Raises InputError for a file
    that cannot be read as one."""
    recording = Recording(Path(path))
    if not recording.openings:
        raise InputError(f"{path} holds no recorded episode.")
    return recording


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


async def _value(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


def report_misses(recordings: Mapping[str, Recording]) -> dict[str, dict[str, float | int | None]]:
    """Return of each recording how many steps were answered as recorded, how many were misses, and the real share."""
    return {
        name: {
            "recorded": recording.counts["recorded"],
            "missed": recording.counts["missed"],
            "real_share": recording.real_share,
        }
        for name, recording in recordings.items()
    }
