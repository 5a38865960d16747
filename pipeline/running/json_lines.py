"""JSON Lines that a process appends to and may be killed while it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_whole_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file up to a line that a kill has cut short; none where there is no file.

    Python's own JSON reader takes them: a diverged loss is written as NaN.
    """
    if not path.exists():
        return []
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return lines
