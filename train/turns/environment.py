"""Environments: objects that begin a dialogue about a row and answer each turn of the model.

    class Guess:
        def reset(self, row):
            self.secret = int(row["gold"])
            return [{"role": "user", "content": "Guess a whole number from 1 to 9."}]

        def step(self, completion):
            if completion["content"].strip() == str(self.secret):
                return Done(1.0)
            return Reply([{"role": "user", "content": "No. Again."}])

Both methods may be coroutines (`async def`). An episode is one dialogue about a row. Each episode has a new
environment. At its end, also after an error, the environment's method `close` is called if there is one.

Answers may contain code of the environment's author, for example a message that is an object with its own `get`. Such
code runs only in the thread of a call, which has a deadline. Only plain strings, numbers, lists and dicts leave this
thread.
"""

from __future__ import annotations

import copy
import math
import re
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral, Real
from typing import Any, Protocol, SupportsFloat

from truegold.pipeline.tables.rows import Row
from truegold.train.config.turns import TurnsConfig
from truegold.train.turns.calls import AnswerError, EnvironmentCalls, describe_error
from truegold.verifiers import ConfigError
from truegold.verifiers.user_code import load_object, source_digest, split_spelling

Message = dict[str, Any]
"""A message for the chat template, with `role` and `content`. Messages of the model may also have `reasoning_content`
and `tool_calls`."""


@dataclass(frozen=True)
class Reply:
    """The answer of an environment to a turn, after which the dialogue continues."""

    messages: Sequence[Message]
    score: float | None = None
    """The score of the turn, in [0, 1]. It is read for every `turns.credit` except `equal`."""


@dataclass(frozen=True)
class Done:
    """The end of the dialogue."""

    score: float | None = None
    """The score of the episode, in [0, 1]. With None, the row's verifier judges the last completion."""
    turn_score: float | None = None
    """The score of the last turn, in [0, 1]. The episode's score is separate."""


class Environment(Protocol):
    """The environment of one episode."""

    def reset(self, row: Row) -> Sequence[Message] | Awaitable[Sequence[Message]]:
        """Return the first messages of the dialogue about a row."""

    def step(self, completion: Message) -> Reply | Done | Awaitable[Reply | Done]:
        """Return the answer to the model's turn, or the end of the dialogue."""


MakeEnvironment = Callable[[], Environment]
"""A function that creates an environment."""


@dataclass
class HeldEnvironment:
    """The environment of one episode. Its methods are called in threads of `EnvironmentCalls`."""

    make: MakeEnvironment
    _environment: Environment | None = None
    """The environment, or None until it is created."""
    _is_over: bool = False
    """Whether the episode has ended."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    step_counts: dict[str, int] = field(default_factory=dict)
    """The number of steps by outcome. Only a mock environment (`mock`), which replays recorded answers, counts steps:
    `recorded` where it had an answer, `missed` where it had none."""

    def open(self, row: Row) -> object:
        """Create the environment and call its `reset` with a copy of the row.

        The result may be awaitable; pass it to `read_opening`.
        """
        environment = self.make()
        with self._lock:
            is_over = self._is_over
            if not is_over:
                self._environment = environment
        # The episode may have ended while the environment was created.
        return close_environment(environment) if is_over else environment.reset(copy.deepcopy(row))

    def step(self, completion: Message) -> object:
        """Call the environment's `step`. The result may be awaitable; pass it to `read_answer`."""
        assert self._environment is not None
        try:
            return self._environment.step(copy.deepcopy(completion))
        finally:
            counts = getattr(self._environment, "step_counts", None)
            if isinstance(counts, Mapping):
                self.step_counts = {name: int(counts.get(name, 0)) for name in ("recorded", "missed")}

    def close(self) -> object:
        """Close the environment, now or as soon as it is created. The result may be awaitable."""
        with self._lock:
            self._is_over = True
            environment = self._environment
        return None if environment is None else close_environment(environment)


def close_environment(environment: Environment) -> object:
    """Call an environment's `close`, if it has one. The result may be awaitable."""
    close = getattr(environment, "close", None)
    return close() if callable(close) else None


def read_opening(value: object) -> Reply | Done:
    """Return the result of `reset` as a reply of plain values. Raises AnswerError if it is invalid."""
    return read_answer(value if isinstance(value, Done) else Reply(value))  # type: ignore[arg-type]


def read_answer(value: object) -> Reply | Done:
    """Return the result of `step` with plain values. Raises AnswerError if it is invalid."""
    if isinstance(value, Done):
        return Done(_read_score(value.score), _read_score(value.turn_score))
    if not isinstance(value, Reply):
        raise AnswerError(f"step must return Reply or Done, but returned a {type(value).__name__}")
    messages = check_messages(value.messages)
    if any(message["role"].strip().lower() == "assistant" for message in messages):
        raise AnswerError("a message has the role assistant, which only the model may have")
    return Reply(messages, _read_score(value.score))


def _read_score(score: object) -> float | None:
    """Return a score as a float, or None. Raises AnswerError if it is not a number from 0 to 1."""
    if score is None:
        return None
    try:
        # Python and numpy numbers, booleans, tensors with one element.
        plain_score = float(score) if isinstance(score, SupportsFloat) else math.nan
    except (TypeError, ValueError, OverflowError):
        plain_score = math.nan
    if not 0 <= plain_score <= 1:
        raise AnswerError(f"a score must be a number from 0 to 1, but is {score!r:.80}")
    return plain_score


def read_tools(environment: Environment) -> list[dict[str, Any]]:
    """Return the JSON schemas of an environment's tools, its attribute `tools`; an empty list without this attribute.

    Raises AnswerError if they are not a list of dicts.
    """
    tools = getattr(environment, "tools", ())
    schemas = _to_plain(tools) if _is_list(tools) else [tools]
    if not all(isinstance(schema, dict) for schema in schemas):
        raise AnswerError(f"tools must be a list of JSON schemas, but are {str(tools)[:80]!r}")
    return list(schemas)


def check_messages(messages: object) -> list[Message]:
    """Return a copy of messages with plain values, which the environment cannot change later.

    Raises AnswerError with the reason if they are invalid.
    """
    if not _is_list(messages):
        raise AnswerError(f"messages must be a list of dicts, but are a {type(messages).__name__}")
    copied = _to_plain(messages)
    for message in copied:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise AnswerError(f"a message must be a dict with a role, but is {str(message)[:80]!r}")
        if not isinstance(message.get("content"), str):
            raise AnswerError(f"the content of a message must be text, but is {str(message.get('content'))[:80]!r}")
    return list(copied)


def _is_list(value: object) -> bool:
    """Return whether a value is a sequence other than text and bytes."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview)


def _to_plain(value: Any, depth: int = 0) -> Any:
    """Return a copy of a JSON value with Python's builtin types. Raises AnswerError for other values."""
    if depth > DEEPEST:
        raise AnswerError(f"lists and dicts are nested more than {DEEPEST} levels deep")
    if isinstance(value, str):
        if HALF_PAIR.search(value):
            raise AnswerError("a text contains half of a surrogate pair, which is not a character")
        return str.__str__(value)
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise AnswerError("the keys of a dict must be text")
        return {_to_plain(name): _to_plain(part, depth + 1) for name, part in value.items()}
    if _is_list(value):
        return [_to_plain(part, depth + 1) for part in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise AnswerError(f"messages and tools may only contain JSON values, but contain a {type(value).__name__}")


def count_characters(messages: Sequence[Message]) -> int:
    """Return the number of characters in all fields of messages. Fields like tool calls count too."""
    return sum(
        len(value) if isinstance(value, str) else len(repr(value))
        for message in messages
        for name, value in message.items()
        if name != "role" or len(value) > LONGEST_ROLE
    ) + sum(not message["content"] for message in messages)


LONGEST_ROLE = 32
"""Roles up to this length, in characters, do not count towards the length of a message."""
DEEPEST = 64
"""The deepest nesting of lists and dicts in a message. Deeper messages could reach Python's recursion limit, because
copying and rendering are recursive. An example is a list that contains itself."""
HALF_PAIR = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which JSON can contain but tokenizers cannot encode."""


def load_environment(config: TurnsConfig) -> tuple[MakeEnvironment, list[dict[str, Any]]]:
    """Return a function that creates environments, and the JSON schemas of their tools.

    One environment is created as a test and closed. Raises ConfigError if the import string is invalid, the arguments
    are wrong, or the result is not an environment.
    """
    label = f"environment {config.environment!r}"
    parts = split_spelling(config.environment)
    if parts is None:
        raise ConfigError(f"train.turns.environment is {config.environment!r}.", "Write path/to/mine.py:Name.")
    made = load_object(*parts, label)
    if not callable(made):
        raise ConfigError(f"{label} is a {type(made).__name__}, not a class or function that returns an environment.")
    try:
        first = made(**config.args)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{label} cannot be created: {describe_error(error)}", "Check train.turns.args.") from error
    try:
        return partial(made, **config.args), _read_environment(first, label)
    finally:
        _close(first, config.deadline_s)


def _read_environment(environment: Any, label: str) -> list[dict[str, Any]]:
    """Return the tools of an environment. Raises ConfigError if the object is not an environment."""
    hint = "Environments are described in docs/how-to/train-on-dialogues.md."
    try:
        missing = [name for name in ("reset", "step") if not callable(getattr(environment, name, None))]
        tools = read_tools(environment)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{label} cannot be read: {describe_error(error)}", hint) from error
    if missing:
        raise ConfigError(f"{label} has no method {missing[0]}.", hint)
    return tools


def _close(environment: Any, deadline_s: float) -> None:
    """Close an environment that was created as a test. Errors are ignored; in a training they are counted."""
    calls = EnvironmentCalls(deadline_s, threads=1)
    calls.start("close", close_environment, environment)
    while calls.pending:
        calls.take_answers(CLOSE_POLL_S)
    calls.close()


CLOSE_POLL_S = 0.05
"""The number of seconds between two looks at whether `close` has ended."""


def environment_fingerprint(config: TurnsConfig) -> str:
    """Return a text that changes with the environment's source file, and with the result of its `fingerprint` if it has
    one."""
    parts = split_spelling(config.environment)
    if parts is None:
        return ""
    label = f"environment {config.environment!r}"
    fingerprint = getattr(load_object(*parts, label), "fingerprint", None)
    made_of = fingerprint(**config.args) if callable(fingerprint) else ""
    return f"{source_digest(parts[0], label)}{made_of}"
