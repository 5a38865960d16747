"""A typo or a value of a wrong kind, in whichever section of a configuration, is a line that names it as typed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from pydantic import BaseModel
from tables import rows

from truegold.flows.config import RunConfig, validate_config
from truegold.pipeline.config.mistakes import _models_in, _type_of
from truegold.verifiers import ConfigError

LISTED = ("against", "temperature_bands", "advantage_bands", "terms", "target", "corrections")
"""The settings whose sections stand in lists."""
NEEDED = ("sft and train need", "synth needs", "distill is", "train needs")
"""Lines on what a section needs beside itself."""
INTERNAL = ("pydantic", "instance", "dictionary", "tuple", "function-", "constrained", "enum[")
"""Words that no user has typed."""
Path = tuple[str, ...]


def sections(model: type[BaseModel], path: Path = ()) -> Iterator[tuple[Path, type[BaseModel]]]:
    """Yield every section of a configuration with the names that lead to it."""
    yield path, model
    for name, field in model.model_fields.items():
        for section in _models_in(field.annotation):
            yield from sections(section, (*path, name))


ALL = [(path, model) for path, model in sections(RunConfig) if not model.__name__.startswith("Listed")]


def nested(path: Path, value: Any) -> dict[str, Any]:
    """Return settings with this value, in lists where it has to be."""
    for name in reversed(path):
        value = {name: [value] if name in LISTED else value}
    assert isinstance(value, dict)
    return value if "data" in value else {"data": {"path": "train.jsonl"}, **value}


def spelled(path: Path) -> str:
    """Return a path as it is typed."""
    return ".".join(f"{name}.0" if name in LISTED else name for name in path)


def test_every_section_is_looked_at() -> None:
    assert len(ALL) > 90


@rows("path, model", ALL)
def test_a_typo_is_named_with_what_was_meant(path: Path, model: type[BaseModel]) -> None:
    name = max((field for field in model.model_fields if field != "type"), key=len, default=None)
    typo = "pathh" if name is None else name[:2] + name[3:] + "x"
    kind = _type_of(model)
    settings = {typo: 1} if kind is None else {"type": kind, typo: 1}
    with pytest.raises(ConfigError) as caught:
        validate_config(nested(path, settings), "run.yaml")
    lines = str(caught.value).splitlines()
    expected = f"{spelled((*path, typo))}: unknown setting" + (f"; did you mean {name}?" if name else "")
    assert any(line.strip().startswith(expected) for line in lines), lines


@rows("path, value", product(sorted({path for path, _ in ALL if path}), [7, "x y", [1, 2], [[]], True]))
def test_a_value_that_is_no_section_is_one_line(path: Path, value: Any) -> None:
    try:
        validate_config(nested(path, value), "run.yaml")
    except ConfigError as error:
        lines = [line.strip() for line in str(error).splitlines()[1:]]
        assert lines and all(line.startswith((f"{path[0]}", *NEEDED)) for line in lines), lines
        assert not [line for line in lines if any(word in line for word in INTERNAL)], lines
