"""Finds the verifier of a row that names none, by its data set (a route).

    TRUEGOLD_ROUTES="openai/gsm8k=math,code_*=code,searchR1_*=trainer"        in the trainer's environment
    compute_score(..., routes={"openai/gsm8k": "math"})                       verl's reward_kwargs
    TruegoldReward(routes={"taco": "code"})

The columns `data_source`, `dataset`, `datasource` or `source` name a row's data set. `*` stands for any text. A route
with exactly that name comes first, then the first pattern that fits.

The route `trainer` leaves the rows to the trainer's own scorer: with verl to `default_compute_score`. With other
trainers such rows have no score here, so that another reward function has to judge them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from truegold.verifiers.columns import SOURCES
from truegold.verifiers.registry import resolve
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.strict_json import parse_structure

VARIABLE = "TRUEGOLD_ROUTES"
"""The environment variable with the default routes."""
TRAINER = "trainer"
"""The route to the trainer's own scorer, in place of a verifier."""
NO_ROUTES: Mapping[str, str] = {}


def routes_in(value: Mapping[str, str] | str | None) -> dict[str, str]:
    """Return the routes in a setting; None reads the environment variable TRUEGOLD_ROUTES.

    A text is a JSON object, or `source=verifier` pairs separated by commas. Raises ConfigError for any other value and
    for a verifier that does not exist.
    """
    setting: Any = os.environ.get(VARIABLE, "") if value is None else value
    if isinstance(setting, str):
        setting = _read(setting)
    if not isinstance(setting, Mapping):
        raise ConfigError(f"routes cannot be {setting!r:.60}.", 'Map data sets to verifiers: {"openai/gsm8k": "math"}.')
    routes = {str(source): verifier for source, verifier in setting.items()}
    for source, verifier in routes.items():
        if not isinstance(verifier, str):
            raise ConfigError(f"The route of {source!r} cannot be {verifier!r:.60}.", "Name a verifier, or 'trainer'.")
        if verifier != TRAINER:
            resolve(verifier)
    return routes


def _read(text: str) -> Any:
    structure = parse_structure(text)
    if not isinstance(structure, str):
        return structure
    pairs = [pair.strip().rpartition("=") for pair in structure.split(",") if pair.strip()]
    if any(not (source and verifier) for source, _, verifier in pairs):
        raise ConfigError(f"routes cannot be {text!r:.60}.", 'Type "openai/gsm8k=math,code_*=code", or a JSON object.')
    return {source.strip(): verifier.strip() for source, _, verifier in pairs}


def route_of(columns: Mapping[str, Any], routes: Mapping[str, str]) -> str | None:
    """Return the verifier of the route that fits a row's data set, or None if no route fits."""
    source = source_of(columns) if routes else None
    if source is None:
        return None
    fitting = (verifier for pattern, verifier in routes.items() if fnmatchcase(source, pattern))
    return routes.get(source) or next(fitting, None)


def source_of(columns: Mapping[str, Any]) -> str | None:
    """Return the name of a row's data set, or None if its columns do not name one."""
    for name in SOURCES:
        value = columns.get(name)
        if isinstance(value, list | tuple) and len(value) == 1:
            value = value[0]
        if isinstance(value, str) and value:
            return str(value)
    return None
