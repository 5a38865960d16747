"""Which modules a program finds loaded: its own, never those that another program asked for at its cost."""

import pytest
from tables import rows

from truegold.verifiers.sandbox import Job, sandbox
from truegold.verifiers.sandbox.execution import Limits
from truegold.verifiers.sandbox.inside.preload import ANY_PACKAGE, PLAIN
from truegold.verifiers.sandbox.pool import TESTS, group_of, warm_modules

LOADED = b"import sys\nprint('numpy' in sys.modules, 'unittest' in sys.modules)"


@rows(
    "source, names",
    [
        ("import numpy as np", ("numpy",)),
        ("import os, numpy as np, random", ("numpy", "random")),
        ("def f():\n    from scipy.stats import norm", ("scipy", "scipy.stats")),
        ("from scipy import optimize, stats", ("scipy", "scipy.stats")),
        ("text = 'scipy.stats'", ()),
        ("from collections import deque; import sys", ()),
        ("text = 'we import numpy'  # import numpy", ()),
        ("import numpyro, randomness", ()),
        ("from dataclasses import dataclass\nimport datetime  # import pandas", ("dataclasses", "datetime")),
    ],
)
def test_named_modules_are_loaded_before_the_program_starts(source: str, names: tuple[str, ...]) -> None:
    assert warm_modules(source) == names


@rows(
    "roles, warm, group",
    [
        (["main"], ["random"], PLAIN),
        (["calls"], [], PLAIN),
        (["serve", "tests"], [], TESTS),
        (["one_process"], ["datetime"], TESTS),
        (["serve", "tests"], ["numpy"], "numpy"),
        (["main"], ["numpy", "pandas"], ANY_PACKAGE),
        (["main"], ["sympy"], ANY_PACKAGE),
        (["serve", "tests"], ["pytest"], "pytest"),
        (["serve", "tests"], ["numpy", "pytest"], "numpy+pytest"),
    ],
)
def test_jobs_share_zygotes_with_their_like(roles: list[str], warm: list[str], group: str) -> None:
    assert group_of(roles, warm) == group


def test_a_program_does_not_pay_for_what_others_import() -> None:
    box = sandbox()
    box.close()
    numpy_too = box.run(Job("main", b"import numpy\n" + LOADED, Limits(), warm=("numpy",)))
    assert numpy_too.stdout.split()[0] == b"True"
    assert box.run(Job("main", LOADED, Limits())).stdout == b"False False\n"


@pytest.mark.parametrize("first", ["statistics", "tempfile", "numpy"])
def test_random_numbers_start_alike_in_every_run_whatever_loaded_random_first(first: str) -> None:
    box = sandbox()
    box.close()
    warm = (first, "random") if first == "numpy" else ("random",)
    job = Job("main", b"import random\nprint(random.random())", Limits(), warm=warm)
    before = box.run(job).stdout
    box.close()
    box.run(Job("main", f"import {first}".encode(), Limits(), warm=(first,)))
    assert box.run(job).stdout == before != b""


def test_numbers_of_numpy_start_alike_in_every_run() -> None:
    box = sandbox()
    job = Job("main", b"import numpy\nprint(numpy.random.rand())", Limits(), warm=("numpy",))
    numbers = set()
    for _ in range(2):
        box.close()
        numbers.add(box.run(job).stdout)
    assert len(numbers) == 1
    assert float(numbers.pop()) > 0
