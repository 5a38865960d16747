"""In which settings and code two runs differ, stage by stage.

clean    clean.languages: [] -> ["en"]       another setting
clean    version 1 -> 2                      another version of the stage's code
ingest   the data differs                    the same setting, other content
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from truegold.pipeline.tables.run_files import RunFiles

_SOURCE = "ingest"
_DECIDE_NOTHING = ("report",)
"""Stages that only report on others."""


@dataclass(frozen=True)
class Setting:
    """One difference: its name, and its value in the first and in the second run."""

    stage: str
    name: str
    first: Any
    second: Any


def setting_differences(first: RunFiles, second: RunFiles) -> list[Setting]:
    """Return the differences in the order of the first run's stages, of the stages that both runs have."""
    return [
        difference
        for stage in first.records
        if stage in second and stage not in _DECIDE_NOTHING
        for difference in _stage_differences(stage, first.records[stage], second.records[stage])
    ]


def _stage_differences(stage: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[Setting]:
    a, b = _flatten(first.get("config", {})), _flatten(second.get("config", {}))
    differences = [
        Setting(stage, f"{stage}.{name}", a.get(name), b.get(name))
        for name in sorted(a.keys() | b.keys())
        if a.get(name) != b.get(name)
    ]
    for name in ("version", "truegold"):
        if first.get(name) != second.get(name):
            differences.append(Setting(stage, f"{stage} {name}", first.get(name), second.get(name)))
    yield from differences
    if stage == _SOURCE and not differences and first["key"] != second["key"]:
        yield Setting(stage, "the data", "differs", "differs")


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return `{"a": {"b": 1}}` as `{"a.b": 1}`; lists stay whole."""
    if not isinstance(value, Mapping):
        return {prefix: value}
    flat: dict[str, Any] = {}
    for name, inner in value.items():
        flat |= _flatten(inner, f"{prefix}.{name}" if prefix else str(name))
    return flat
