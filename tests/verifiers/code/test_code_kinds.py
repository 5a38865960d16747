"""Suites as their authors meant them: what a right program is paid for, and what a look-alike of it is not.

Each kind has a suite, programs that pass it where prompt, program and tests are one file, and programs that must not be
paid.
"""

from dataclasses import dataclass

import pytest

from truegold.verifiers.code import CodeVerifier


@dataclass(frozen=True)
class Kind:
    """A suite with programs that are right and wrong for it."""

    suite: str
    right: tuple[str, ...]
    wrong: tuple[str, ...] = ()
    entry_point: str | None = None


def score(kind: Kind, program: str) -> float | None:
    form = "unittest" if "unittest.TestCase" in kind.suite else "asserts"
    tests = {"type": form, "code": kind.suite, "entry_point": kind.entry_point}
    return CodeVerifier()(f"```python\n{program}\n```", info={"tests": tests}).score


CHECK = "def check(candidate):\n    assert candidate('a1b2') == ['1', '2']\n"
DIGITS = "def digits(s):\n    return re.findall('[0-9]', s)"
IMPORTS = {
    "a module": Kind(f"import re\n{CHECK}", (DIGITS,), ("def digits(s): return re.findall('[a-z]', s)",), "digits"),
    "several in a line": Kind(f"import os, re\n{CHECK}", (DIGITS,), (), "digits"),
    "another name": Kind(f"import re as r\n{CHECK}", (DIGITS.replace("re.", "r."),), (DIGITS,), "digits"),
    "a submodule": Kind(
        "import os.path as p\nassert f('a/b') == 'b'\n", ("def f(x): return p.basename(x)",), ("def f(x): return p",)
    ),
    "its package": Kind("import os.path\nassert f('a/b') == 'b'", ("def f(x): return os.path.basename(x)",)),
    "a function": Kind(f"from re import findall\n{CHECK}", (DIGITS.replace("re.", ""),), (DIGITS,), "digits"),
    "a star": Kind("from math import *\nassert f(16) == 4\n", ("def f(x): return sqrt(x)",)),
    "within try": Kind(f"try:\n    import re\nexcept ImportError:\n    re = None\n{CHECK}", (DIGITS,), (), "digits"),
    "a missing one": Kind(
        f"try:\n    import no_such_one\nexcept ImportError:\n    pass\nimport re\n{CHECK}", (DIGITS,), (), "digits"
    ),
    "the program's own name wins": Kind(
        "from math import floor as f, ceil as g\nassert g(1.2) == 2 and h(1.2) == 'own'\n",
        ("def f(x): return 'own'\ndef h(x): return f(x)",),
        ("def h(x): return f(x)",),
    ),
    "inside a function of the tests": Kind(
        "def check(candidate):\n    import re\n    assert candidate('a1b2') == ['1', '2']\n",
        (f"import re\n{DIGITS}",),
        (DIGITS,),
        "digits",
    ),
    "the program itself": Kind(
        "from solution import answer\nimport solution\nassert answer(2) == 4\n",
        ("def answer(x): return x * x",),
        ("import solution\ndef answer(x): return 0", "from tests import expected as answer"),
    ),
    "of a unittest": Kind(
        "import unittest, math\nclass T(unittest.TestCase):\n"
        "    def test_area(self): self.assertAlmostEqual(area(1), math.pi)\n",
        ("def area(r): return math.pi * r * r",),
        ("def area(r): return math.e * r * r", "def area(r): return unittest.mock.ANY"),
    ),
    "in one process": Kind(f"import gc, re\n{CHECK}", (DIGITS,), (), "digits"),
}

KINDS = {f"imports: {name}": kind for name, kind in IMPORTS.items()}
RIGHT = {f"{name}, {i}": (kind, program) for name, kind in KINDS.items() for i, program in enumerate(kind.right)}
WRONG = {f"{name}, {i}": (kind, program) for name, kind in KINDS.items() for i, program in enumerate(kind.wrong)}


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_are_paid(name: str) -> None:
    assert score(*RIGHT[name]) == 1.0


@pytest.mark.parametrize("name", WRONG)
def test_wrong_programs_are_not(name: str) -> None:
    assert score(*WRONG[name]) == 0.0
