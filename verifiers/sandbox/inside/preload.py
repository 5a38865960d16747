"""The modules that a zygote loads before it forks.

Each loaded module makes every fork dearer (a megabyte, and the files of a package, take 0.04 ms and more); each missing
one makes the programs that import it slower. So a zygote starts with the modules that nearly all programs use, and
loads others once a program names them (`LOADED_WHEN_NAMED`); they stay loaded. Packages, and what runs test code, take
so much that their jobs get zygotes of their own (`pool.group_of`): else every job after one that imports sympy would
cost four times as much.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
from collections.abc import Iterable

PRELOADED = """
bisect collections contextlib copy functools heapq itertools json linecache math operator re string threading time
traceback types typing
""".split()
"""The modules that programs import all the time; a job finds them loaded."""

LOADED_WHEN_NAMED = frozenset(
    """
    abc array ast asyncio calendar cmath csv dataclasses datetime decimal enum fractions hashlib inspect io numbers
    pathlib queue random scipy.stats sortedcontainers statistics struct tempfile textwrap unittest
    """.split()
)
"""Modules that are loaded before the fork once a program has named them."""

PYTEST = "pytest"
PACKAGES = frozenset({"networkx", "numpy", "pandas", PYTEST, "scipy", "sympy"})
"""Packages that are loaded before the fork once a program has named them."""

PLAIN = "plain"
"""The group of zygotes that loads no packages, and nothing of what runs test code (`pool.group_of`)."""

ANY_PACKAGE = "any"
"""The group of zygotes that load all named packages."""

_SEED = 0
"""The seed of `random` and numpy's generator in every process that was forked after a program named them."""


def preload() -> None:
    """Load the modules that programs use, before the process gives up its rights."""
    for name in PRELOADED:
        _load(name)
    freeze()


def load_warm(names: Iterable[str]) -> None:
    """Load further modules; names that are in neither list are left alone."""
    for name in names:
        if name in LOADED_WHEN_NAMED or name in PACKAGES:
            _load(name)
    # Other modules load `random` too: numpy, statistics, tempfile.
    if "random" in sys.modules:
        sys.modules["random"].seed(_SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(_SEED)


def freeze() -> None:
    """Keep the garbage collector off what is loaded: its first run in a job would copy every page of that."""
    gc.collect()
    gc.freeze()


def _load(name: str) -> None:
    if name in sys.modules:
        return
    # A package may be missing, or fail in its own way where there is no home folder; then the program finds out.
    with contextlib.suppress(Exception):
        importlib.import_module(name)
