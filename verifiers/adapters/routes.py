"""Routes: which verifier judges the rows of which data set, where the rows do not say so themselves.

    TRUEGOLD_ROUTES="openai/gsm8k=math,code_*=code,searchR1_*=trainer"        in the trainer's environment
    compute_score(..., routes={"openai/gsm8k": "math"})                       verl's reward_kwargs
    TruegoldReward(routes={"taco": "code"})

A row's data set is what its columns `data_source`, `dataset`, `datasource` or `source` name. `*` stands for any text;
the first pattern that fits counts, a name without one before all. `trainer` leaves the rows to the trainer's own
scorer: verl's `default_compute_score`; elsewhere they have no score here, so that other rewards judge them.
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
TRAINER = "trainer"
"""In place of a verifier: the trainer's own scorer."""
NO_ROUTES: Mapping[str, str] = {}


def routes_in(value: Mapping[str, str] | str | None) -> dict[str, str]:
    """Return the routes that a setting names, those of the environment where it names none.

    A text is JSON, or `source=verifier` between commas. Raises ConfigError for what is neither, and for a verifier that
    does not exist.
    """
    setting: Any = os.environ.get(VARIABLE, "") if value is None else value
    if isinstance(setting, str):
        setting = _read(setting)
    if not isinstance(setting, Mapping):
        raise ConfigError(f"routes are {setting!r:.60}.", 'Name verifiers by data set: {"openai/gsm8k": "math"}.')
    routes = {str(source): verifier for source, verifier in setting.items()}
    for source, verifier in routes.items():
        if not isinstance(verifier, str):
            raise ConfigError(f"The route of {source!r} is {verifier!r:.60}.", "Name a verifier, or 'trainer'.")
        if verifier != TRAINER:
            resolve(verifier)
    return routes


def _read(text: str) -> Any:
    structure = parse_structure(text)
    if not isinstance(structure, str):
        return structure
    pairs = [pair.strip().rpartition("=") for pair in structure.split(",") if pair.strip()]
    if any(not (source and verifier) for source, _, verifier in pairs):
        raise ConfigError(f"routes are {text!r:.60}.", 'Type "openai/gsm8k=math,code_*=code", or a JSON object.')
    return {source.strip(): verifier.strip() for source, _, verifier in pairs}


def route_of(columns: Mapping[str, Any], routes: Mapping[str, str]) -> str | None:
    """Return the verifier that the routes name for a row's data set, or None if they name none."""
    source = source_of(columns) if routes else None
    if source is None:
        return None
    fitting = (verifier for pattern, verifier in routes.items() if fnmatchcase(source, pattern))
    return routes.get(source) or next(fitting, None)


def source_of(columns: Mapping[str, Any]) -> str | None:
    """Return the name of the data set that a row is from, where its columns have one."""
    for name in SOURCES:
        value = columns.get(name)
        if isinstance(value, list | tuple) and len(value) == 1:
            value = value[0]
        if isinstance(value, str) and value:
            return str(value)
    return None
