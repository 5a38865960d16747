"""Environments by their import string."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truegold.train.config.turns import TurnsConfig
from truegold.train.turns.calls import Calls, describe_error
from truegold.train.turns.environment import Environment, close_environment, read_tools
from truegold.verifiers import ConfigError
from truegold.verifiers.user_code import load_object, source_digest, split_spelling


@dataclass(frozen=True)
class LoadedEnvironment:
    """Makes environments of one kind."""

    factory: Callable[..., Any]
    args: Mapping[str, Any]
    tools: Sequence[Mapping[str, Any]]
    """The JSON schemas of their tools."""

    def __call__(self) -> Environment:
        """Return another environment."""
        environment: Environment = self.factory(**self.args)
        return environment


def load_environment(config: TurnsConfig) -> LoadedEnvironment:
    """Return what makes an environment; one is made on trial, and closed.

    Raises ConfigError where there is nothing of that name, it takes other arguments, or what it makes is no
    environment.
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
        return LoadedEnvironment(made, config.args, _read_environment(first, label))
    finally:
        _close(first, config.deadline_s)


def _read_environment(environment: Any, label: str) -> list[dict[str, Any]]:
    """Return the tools of what should be an environment. Raises ConfigError where it is none."""
    hint = "See docs/turns.md for what an environment is."
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
    calls = Calls(deadline_s, threads=1)
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
