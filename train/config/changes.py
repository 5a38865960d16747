"""Which settings a training ran with, step by step: some may change while it is unfinished (`TUNABLE_GRPO`).

    {"step": 0, "settings": {"optimizer.lr": 1e-4, "steps": 200, ...}}
    {"step": 40, "settings": {"optimizer.lr": 2e-5, ...}}                 from step 40 on, after a restart

`settings.jsonl` has one line for each start that changed something, by the step from which it took effect.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from truegold.pipeline.running.disk import write_whole

SETTINGS_FILE = "settings.jsonl"


def record_settings(folder: Path, step: int, config: BaseModel, tunable: Sequence[str]) -> list[str]:
    """Note the tunable settings of a training that starts, or goes on, at `step`; return in words what has changed.

    Lines of that step or a later one are dropped, since their steps are taken again.
    """
    path = folder / SETTINGS_FILE
    settings = {name: value for name in tunable for value in _values(config.model_dump(mode="json"), name)}
    lines = [line for line in read_settings(folder) if line["step"] < step]
    before = lines[-1]["settings"] if lines else settings
    changed = describe_changes(before, settings)
    if changed or not lines:
        lines.append({"step": step, "settings": settings})
    write_whole(path, "".join(json.dumps(line) + "\n" for line in lines).encode())
    return changed


def read_settings(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of a training's settings, none where there are none yet."""
    path = folder / SETTINGS_FILE
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def changes_of(folder: Path) -> list[dict[str, Any]]:
    """Return every change of a training: {"step", "changed"}, for the record of its stage."""
    lines = read_settings(folder)
    return [
        {"step": line["step"], "changed": describe_changes(earlier["settings"], line["settings"])}
        for earlier, line in pairwise(lines)
    ]


def describe_changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return lines such as `optimizer.lr: 0.0001 -> 2e-05`; of a section the settings in it that differ."""
    changed = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            changed += [f"{name}.{line}" for line in describe_changes(old, new)]
        elif old != new:
            changed.append(f"{name}: {json.dumps(old)} -> {json.dumps(new)}")
    return changed


def _values(settings: Any, name: str) -> list[Any]:
    """Return the value of a dotted name in a list, or an empty list where there is no such setting."""
    for part in name.split("."):
        if not isinstance(settings, dict) or part not in settings:
            return []
        settings = settings[part]
    return [settings]
