"""Which settings and code two runs differ in, stage by stage.

clean    clean.languages: [] -> ["en"]       another setting
clean    version 1 -> 2                      another version of the stage's code
ingest   the data differs                    the same setting, other content
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from truegold.pipeline.report.run_files import RunFiles

_SOURCE = "ingest"
_NOTHING_DECIDED = ("report",)
"""Stages that only tell of others."""


@dataclass(frozen=True)
class Setting:
    """One difference: what it is called, and its value in the first and in the second run."""

    stage: str
    name: str
    first: Any
    second: Any


def setting_differences(first: RunFiles, second: RunFiles) -> list[Setting]:
    """In the order of the first run's stages. Stages that only one run has are left out."""
    return [
        difference
        for stage in first.records
        if stage in second and stage not in _NOTHING_DECIDED
        for difference in _of_stage(stage, first.records[stage], second.records[stage])
    ]


def _of_stage(stage: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Setting]:
    a, b = _flat(one.get("config", {})), _flat(other.get("config", {}))
    found = [
        Setting(stage, f"{stage}.{name}", a.get(name), b.get(name))
        for name in sorted(a.keys() | b.keys())
        if a.get(name) != b.get(name)
    ]
    for name in ("version", "truegold"):
        if one.get(name) != other.get(name):
            found.append(Setting(stage, f"{stage} {name}", one.get(name), other.get(name)))
    yield from found
    if stage == _SOURCE and not found and one["key"] != other["key"]:
        yield Setting(stage, "the data", "differs", "differs")


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """`{"a": {"b": 1}}` as `{"a.b": 1}`; lists stay whole."""
    if not isinstance(value, Mapping):
        return {prefix: value}
    flat: dict[str, Any] = {}
    for name, inner in value.items():
        flat |= _flat(inner, f"{prefix}.{name}" if prefix else str(name))
    return flat
