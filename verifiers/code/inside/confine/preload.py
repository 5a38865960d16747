"""The modules that a zygote loads before it forks.

Too many cost every job, since each megabyte that they take up costs 0.04 ms a fork. Too few cost the programs that
import them. What few programs import is therefore loaded once a program names it (`WARMABLE`), and stays.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import re
import sys
from collections.abc import Iterable

PRELOADED = """
abc array ast bisect builtins calendar cmath collections contextlib copy dataclasses datetime decimal enum fractions
functools heapq inspect io itertools json linecache math numbers operator os queue random re sortedcontainers statistics
string struct sys textwrap threading time traceback types typing unittest
""".split()
"""The modules that programs import all the time; a job finds them loaded."""

WARMABLE = frozenset({"asyncio", "hashlib", "networkx", "numpy", "pandas", "scipy", "sympy", "tempfile"})
"""Packages that are loaded before the fork once a program has asked for them."""

_WARM_IMPORT = re.compile(rf"^[ \t]*(?:import|from)[ \t]+({'|'.join(sorted(WARMABLE))})\b", re.MULTILINE)


def warm_modules(source: str) -> tuple[str, ...]:
    """Return the packages that a program imports and that are worth having loaded before it starts."""
    return tuple(sorted(set(_WARM_IMPORT.findall(source))))


def preload() -> None:
    """Load the modules that programs use, before the process gives up its rights."""
    for name in PRELOADED:
        _load(name)
    gc.collect()
    gc.freeze()  # Otherwise the first collection in a job would copy every page of what is loaded.


def load_warmable(names: Iterable[str]) -> None:
    """Load further packages; names that are not in `WARMABLE` are left alone."""
    missing = [name for name in names if name in WARMABLE and name not in sys.modules]
    for name in missing:
        _load(name)
    if missing:
        gc.collect()
        gc.freeze()


def _load(name: str) -> None:
    # A package may be missing, or fail in its own way where there is no home folder; then the program finds out.
    with contextlib.suppress(Exception):
        importlib.import_module(name)
