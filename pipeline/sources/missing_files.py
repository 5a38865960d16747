"""Advice on a path that does not exist: the file that was probably meant, or the data files in its folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from truegold.pipeline.running.disk import runs_in
from truegold.verifiers.user_code import near_path


def advice_on_missing(path: Path, is_data: Callable[[Path], bool]) -> str:
    """Return one or two sentences on a missing path. `is_data` tells data files by their names."""
    if path.parent.is_file():
        return f"{path.parent} is a file, not a folder."
    if "$" in str(path) and Path(expanded := os.path.expandvars(path)).exists():
        return f"Variables of the shell are not replaced here. Name {expanded}"
    parts = str(path).split(",")
    if len(parts) > 1 and all(Path(part.strip()).exists() for part in parts):
        listed = ", ".join(f"{{path: {part.strip()}}}" for part in parts)
        return f"Several files are a list of sources in a run's file: data: [{listed}]"
    return near_path(path) or _list_siblings(path, is_data)


def _list_siblings(path: Path, is_data: Callable[[Path], bool]) -> str:
    if not path.parent.is_dir():
        hub = f" A set of the Hugging Face hub is data: {{type: hf, name: {path}}} in a run's file."
        is_hub_name = len(path.parts) == 2 and not path.suffix and not path.is_absolute()
        return f"Nor does its folder; relative paths start at {Path.cwd()}.{hub if is_hub_name else ''}"
    names = sorted(other.name for other in path.parent.iterdir() if is_data(other))
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    if not names and (runs := runs_in(path.parent)):
        return f"Runs in that folder: {runs}."
    return f"Data files in that folder: {shown}." if names else f"There is no data file in {path.parent.absolute()}."
