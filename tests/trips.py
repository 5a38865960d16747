"""Measures trips: the files of the product that one call enters once everything is loaded and cached.

    files_entered(lambda: tv.verify("#### 72", gold="72"))      ["verifiers/extract/committed.py", ...]

What runs in other processes, as programs in the sandbox do, is not seen.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from house import FLOORS

import truegold.verifiers

PACKAGE = Path(truegold.verifiers.__file__).parents[1]


def files_entered(call: Callable[[], object]) -> list[str]:
    """Call twice and return the files that the second call enters, in all of its threads, in order of their names."""
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            entered.add(frame.f_code.co_filename)

    call()
    threading.setprofile_all_threads(note) if hasattr(threading, "setprofile_all_threads") else threading.setprofile(
        note
    )
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    paths = [Path(name) for name in entered]
    inside = [path.relative_to(PACKAGE) for path in paths if path.is_relative_to(PACKAGE)]
    return sorted(str(path) for path in inside if path.parts[0] in FLOORS)
