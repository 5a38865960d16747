"""Environments by their import string."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from truegold.train.config.turns import TurnsConfig
from truegold.train.turns.environment import Environment, MakeEnvironment
from truegold.verifiers import ConfigError
from truegold.verifiers.user_code import load_object, source_digest, split_spelling


def load_environment(config: TurnsConfig) -> MakeEnvironment:
    """Return what makes an environment. Raises ConfigError where there is nothing of that name or it takes other
    arguments."""
    label = f"environment {config.environment!r}"
    parts = split_spelling(config.environment)
    if parts is None:
        raise ConfigError(f"train.turns.environment is {config.environment!r}.", "Write path/to/mine.py:Name.")
    made = load_object(*parts, label)
    if not callable(made):
        raise ConfigError(f"{label} is a {type(made).__name__}, not a class or a function that makes an environment.")
    factory: Callable[..., Any] = made

    def make() -> Environment:
        environment: Environment = factory(**config.args)
        return environment

    try:
        first = make()
    except Exception as error:
        raise ConfigError(
            f"{label} cannot be made: {type(error).__name__}: {error}", "See train.turns.args."
        ) from error
    for method in ("reset", "step"):
        if not callable(getattr(first, method, None)):
            raise ConfigError(f"{label} has no method {method}.", "See docs/turns.md for what an environment is.")
    return make


def environment_fingerprint(config: TurnsConfig) -> str:
    """Return a text that changes with the file of the environment."""
    parts = split_spelling(config.environment)
    return source_digest(parts[0], f"environment {config.environment!r}") if parts is not None else ""
