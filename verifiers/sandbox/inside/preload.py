"""Loads the modules that most programs import into a zygote, the process that forks a copy of itself for every job.

Each loaded module makes every fork slower: a megabyte of modules takes 0.04 ms or more. Each missing module makes the
programs that import it slower. So a zygote starts with the modules that nearly all programs use. It loads other modules
once a program names them (`LOADED_WHEN_NAMED`), and these stay loaded. Packages, and modules that run test code, are so
large that their jobs get separate zygotes (`pool.group_of`). In a zygote that has loaded sympy, every job costs four
times as much.
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
"""Modules that most programs import. Every job finds them loaded."""

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
"""The group of zygotes without packages and without modules that run test code (`pool.group_of`)."""

ANY_PACKAGE = "any"
"""The group of zygotes that load any named package."""

_SEED = 0
"""The seed of `random` and of numpy's generator in every forked process, if they are loaded."""


def preload() -> None:
    """Load the modules that most programs use, before the process is confined."""
    for name in PRELOADED:
        _load(name)
    freeze()


def load_warm(names: Iterable[str]) -> None:
    """Load modules of LOADED_WHEN_NAMED and PACKAGES. Other names are ignored."""
    for name in names:
        if name in LOADED_WHEN_NAMED or name in PACKAGES:
            _load(name)
    # `random` may be loaded by numpy, statistics or tempfile.
    if "random" in sys.modules:
        sys.modules["random"].seed(_SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(_SEED)


def freeze() -> None:
    """Exclude loaded objects from garbage collection. The first collection in a job would copy all their pages."""
    gc.collect()
    gc.freeze()


def _load(name: str) -> None:
    if name in sys.modules:
        return
    # A package may be missing or fail without a home folder. The program that imports the package then gets the error.
    with contextlib.suppress(Exception):
        importlib.import_module(name)
