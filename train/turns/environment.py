"""Environments: each opens a dialogue about a row, and answers each turn of the model's.

    class Guess:
        def reset(self, row):
            self.secret = int(row["gold"])
            return [{"role": "user", "content": "Guess a whole number from 1 to 9."}]

        def step(self, completion):
            if completion["content"].strip() == str(self.secret):
                return Done(1.0)
            return Reply([{"role": "user", "content": "No. Again."}])

Both may be coroutines (`async def`). An environment serves one episode; a new one is made for each. Where it has a
method `close`, that is called when the episodes of the step are over, however this one ended.

All parts of an environment and of its answers are its author's code, down to the `get` of a message. That code runs
only in the thread of a call, which has a deadline. Only plain texts, numbers, lists and dicts leave that thread.
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
"""`role` and `content` as a chat template takes them; of the model's also `reasoning_content` and `tool_calls`, where
its format has any."""


@dataclass(frozen=True)
class Reply:
    """The answer of an environment to a turn; the dialogue goes on."""

    messages: Sequence[Message]
    score: float | None = None
    """The score of the turn, where turns are scored one by one."""


@dataclass(frozen=True)
class Done:
    """The end of the dialogue."""

    score: float | None = None
    """The score of the episode, in [0, 1]; None: the row's verifier judges the last completion."""
    turn_score: float | None = None
    """The score of the last turn besides the episode's, where turns are scored one by one."""


class Environment(Protocol):
    """One episode's counterpart of the model."""

    def reset(self, row: Row) -> Sequence[Message] | Awaitable[Sequence[Message]]:
        """Return the first messages of the dialogue about a row."""

    def step(self, completion: Message) -> Reply | Done | Awaitable[Reply | Done]:
        """Return what follows the model's turn."""


MakeEnvironment = Callable[[], Environment]


@dataclass
class HeldEnvironment:
    """One episode's environment: each method is called in a thread, and touches the environment there alone."""

    make: MakeEnvironment
    _environment: Environment | None = None
    """None until it is made, and once its episode is no longer waiting for it."""
    _is_over: bool = False
    """Whether its episode has ended."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    step_counts: dict[str, int] = field(default_factory=dict)
    """How many of its steps a recorded environment has answered as `recorded`, and how many were `missed`."""

    def open(self, row: Row) -> object:
        """Make the environment and begin; what comes back may be awaitable, and is for `read_opening`.

        The environment may change the row, which is a copy.
        """
        environment = self.make()
        with self._lock:
            is_over = self._is_over
            if not is_over:
                self._environment = environment
        # Where its making has outlived the deadline, `close` found nothing that it could close.
        return close_environment(environment) if is_over else environment.reset(copy.deepcopy(row))

    def step(self, completion: Message) -> object:
        """Answer the model's turn; what comes back may be awaitable, and is for `read_answer`."""
        assert self._environment is not None
        try:
            return self._environment.step(copy.deepcopy(completion))
        finally:
            counts = getattr(self._environment, "step_counts", None)
            if isinstance(counts, Mapping):
                self.step_counts = {name: int(counts.get(name, 0)) for name in ("recorded", "missed")}

    def close(self) -> object:
        """Close the environment, now or as soon as it is made; what comes back may be awaitable."""
        with self._lock:
            self._is_over = True
            environment = self._environment
        return None if environment is None else close_environment(environment)


def close_environment(environment: Environment) -> object:
    """Close an environment where that can be closed; what comes back may be awaitable."""
    close = getattr(environment, "close", None)
    return close() if callable(close) else None


def read_opening(value: object) -> Reply | Done:
    """Return what `reset` has returned as a reply of plain values. Raises AnswerError for anything else."""
    return read_answer(value if isinstance(value, Done) else Reply(value))  # type: ignore[arg-type]


def read_answer(value: object) -> Reply | Done:
    """Return what `step` has returned, made of plain values. Raises AnswerError for anything else."""
    if isinstance(value, Done):
        return Done(_read_score(value.score), _read_score(value.turn_score))
    if not isinstance(value, Reply):
        raise AnswerError(f"step must return Reply or Done, and returned a {type(value).__name__}")
    messages = check_messages(value.messages)
    if any(message["role"].strip().lower() == "assistant" for message in messages):
        raise AnswerError("a message has the role assistant, whose turns are the model's alone")
    return Reply(messages, _read_score(value.score))


def _read_score(score: object) -> float | None:
    """Return a score as a plain number, for every kind of number that an environment counts with."""
    if score is None:
        return None
    try:
        # Real numbers, truth values of numpy, tensors of one number.
        plain_score = float(score) if isinstance(score, SupportsFloat) else math.nan
    except (TypeError, ValueError, OverflowError):
        plain_score = math.nan
    if not 0 <= plain_score <= 1:
        raise AnswerError(f"a score must be a number from 0 to 1, and is {score!r:.80}")
    return plain_score


def read_tools(environment: Environment) -> list[dict[str, Any]]:
    """Return the JSON schemas of an environment's tools, if it has any. Raises AnswerError for anything else
    than a list of dicts."""
    tools = getattr(environment, "tools", ())
    schemas = _to_plain(tools) if _is_list(tools) else [tools]
    if not all(isinstance(schema, dict) for schema in schemas):
        raise AnswerError(f"tools must be a list of JSON schemas, and are {str(tools)[:80]!r}")
    return list(schemas)


def check_messages(messages: object) -> list[Message]:
    """Return messages as plain values: a copy, since the environment may change its own later.

    Raises AnswerError, with what is wrong, for anything else.
    """
    if not _is_list(messages):
        raise AnswerError(f"messages must be a list of dicts, and are a {type(messages).__name__}")
    copied = _to_plain(messages)
    for message in copied:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise AnswerError(f"a message must be a dict with a role, and is {str(message)[:80]!r}")
        if not isinstance(message.get("content"), str):
            raise AnswerError(f"the content of a message must be text, and is {str(message.get('content'))[:80]!r}")
    return list(copied)


def _is_list(value: object) -> bool:
    """Return whether a value is a sequence of values, and no text or bytes."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview)


def _to_plain(value: Any, depth: int = 0) -> Any:
    """Return a copy of what JSON can hold, of Python's own types. Raises AnswerError for anything else."""
    if depth > DEEPEST:
        raise AnswerError(f"lists and dicts are nested more than {DEEPEST} levels deep")
    if isinstance(value, str):
        if HALF_PAIR.search(value):
            raise AnswerError("a text holds half of a surrogate pair, which stands for no character")
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
    raise AnswerError(f"messages and tools hold what JSON can hold, and not a {type(value).__name__}")


def count_characters(messages: Sequence[Message]) -> int:
    """Return how long messages are together, all of their fields, so that nothing passes by a limit."""
    return sum(
        len(value) if isinstance(value, str) else len(repr(value))
        for message in messages
        for name, value in message.items()
        if name != "role" or len(value) > LONGEST_ROLE
    ) + sum(not message["content"] for message in messages)


LONGEST_ROLE = 32
"""The characters of a role that are not counted."""
DEEPEST = 64
"""Levels of lists and dicts within each other that a message may have. A model that writes nothing but brackets, or an
environment whose list holds itself, would take copying and templates, which call themselves for each level, to Python's
limit of some hundred."""
HALF_PAIR = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which JSON can spell and no tokenizer can write."""


def load_environment(config: TurnsConfig) -> tuple[MakeEnvironment, list[dict[str, Any]]]:
    """Return what makes an environment, and the JSON schemas of its tools; one is made on trial, and closed.

    Raises ConfigError if there is nothing of that name, it takes other arguments, or it does not make an environment.
    """
    label = f"environment {config.environment!r}"
    parts = split_spelling(config.environment)
    if parts is None:
        raise ConfigError(f"train.turns.environment is {config.environment!r}.", "Write path/to/mine.py:Name.")
    made = load_object(*parts, label)
    if not callable(made):
        raise ConfigError(f"{label} is a {type(made).__name__}, not a class or a function that makes an environment.")
    try:
        first = made(**config.args)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{label} cannot be made: {describe_error(error)}", "See train.turns.args.") from error
    try:
        return partial(made, **config.args), _read_environment(first, label)
    finally:
        _close(first, config.deadline_s)


def _read_environment(environment: Any, label: str) -> list[dict[str, Any]]:
    """Return the tools of an environment. Raises ConfigError if the object is not an environment."""
    hint = "See docs/how-to/train-on-dialogues.md for what an environment is."
    try:
        missing = [name for name in ("reset", "step") if not callable(getattr(environment, name, None))]
        tools = read_tools(environment)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{label} cannot be read: {describe_error(error)}", hint) from error
    if missing:
        raise ConfigError(f"{label} has no method {missing[0]}.", hint)
    return tools


def _close(environment: Any, deadline_s: float) -> None:
    """Close an environment that has opened no dialogue; what goes wrong in that will be counted in training."""
    calls = EnvironmentCalls(deadline_s, threads=1)
    calls.start("close", close_environment, environment)
    while calls.pending:
        calls.take_answers(CLOSE_POLL_S)
    calls.close()


CLOSE_POLL_S = 0.05


def environment_fingerprint(config: TurnsConfig) -> str:
    """Return a text that changes with the file of the environment, and with what else it says that it is made of."""
    parts = split_spelling(config.environment)
    if parts is None:
        return ""
    label = f"environment {config.environment!r}"
    fingerprint = getattr(load_object(*parts, label), "fingerprint", None)
    made_of = fingerprint(**config.args) if callable(fingerprint) else ""
    return f"{source_digest(parts[0], label)}{made_of}"
