"""Where truegold keeps what several runs share: compiled operators, Prefect's databases."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Return `~/.cache/truegold/NAME`, or the same below XDG_CACHE_HOME where that is set."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "truegold" / name
