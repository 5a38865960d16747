"""Tests in the solution's own process: what a program has to do to be paid there, and that it cannot bring it about."""

import pytest

from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.code.outcomes import ONE_PROCESS, SEPARATE_PROCESSES

SUITE = """\
import gc
import unittest
from unittest.mock import patch

class TestAdd(unittest.TestCase):
    def test_quietly(self):
        with patch("builtins.print"):
            self.assertEqual(add(1, 2), 3)
            self.assertTrue(all(add(n, 1) == n + 1 for n in range(3)))
"""


def judged(program: str, code: str = SUITE, kind: str = "unittest") -> tuple[float | None, str]:
    verdict = CodeVerifier()(f"```python\n{program}\n```", info={"tests": {"type": kind, "code": code}})
    return verdict.score, str(verdict.evidence.get("isolation"))


REPLACED = {
    "an assertion": "unittest.TestCase.assertEqual = unittest.TestCase.assertTrue = lambda *args: None",
    "the code of an assertion": "def nothing(self, *args): pass\n"
    "unittest.TestCase.assertEqual.__code__ = unittest.TestCase.assertTrue.__code__ = nothing.__code__",
    "the run of a test": "unittest.TestCase.run = lambda self, result: (result.startTest(self), "
    "result.addSuccess(self), result.stopTest(self))",
    "a builtin": "import builtins\nbuiltins.all = lambda items: True\n"
    "unittest.TestCase.assertEqual = lambda *args: None",
    "while it is called": "def add(a, b):\n"
    "    unittest.TestCase.assertEqual = unittest.TestCase.assertTrue = lambda *args: None",
}


@pytest.mark.parametrize("program", REPLACED.values(), ids=REPLACED.keys())
def test_a_program_that_replaces_what_tests_are_made_of_has_failed(program: str) -> None:
    assert judged(f"import unittest\ndef add(a, b): return 0\n{program}") == (0.0, ONE_PROCESS)


SEARCH = """
import gc, os, re
def texts(value, depth=0):
    if isinstance(value, (str, bytes)):
        yield value if isinstance(value, str) else value.decode("latin-1")
    elif depth < 4:
        for below in gc.get_referents(value):
            yield from texts(below, depth + 1)
found = set()
for held in gc.get_objects():
    if type(held).__name__ in ("generator", "frame", "dict", "cell", "function"):
        values = [*held.gi_frame.f_locals.values()] if type(held).__name__ == "generator" and held.gi_frame else [held]
        for value in values:
            found.update(text for text in texts(value, 3) if re.fullmatch("[0-9a-f]{32}", text))
for text in found:
    os.write(3, b'{"test":"1","ok":true}\\n{"done":{"passed":1,"total":1}}\\n{"nonce":"%s"}\\n' % text.encode())
os._exit(0)
"""


def test_the_word_that_says_passed_is_in_no_object_before_the_end() -> None:
    assert judged(SEARCH) == (0.0, ONE_PROCESS)


def test_programs_that_print_and_read_their_own_way_pass() -> None:
    program = "import builtins\nbuiltins.print = builtins.input = lambda *args: ''\ndef add(a, b): return a + b"
    assert judged(program) == (1.0, ONE_PROCESS)


def test_an_array_of_objects_made_of_an_answer_does_not_bring_one_process_about() -> None:
    pytest.importorskip("numpy")
    code = "import numpy as np\nfor n in range(2):\n    assert total(np.array(items(n))) == 3"
    program = "def items(n): return [None, 1]\ndef total(xs): return len(xs)"
    assert judged(program, code, "asserts") == (0.0, SEPARATE_PROCESSES)
    program = "def items(n): return [1, 2]\ndef total(xs): return int(xs.sum())"
    assert judged(program, code, "asserts") == (1.0, SEPARATE_PROCESSES)


def test_what_a_program_returns_to_assertions_that_became_data_does_not_bring_one_process_about() -> None:
    program = """
class Yes:
    def __next__(self): raise StopIteration
    __iter__ = lambda self: self
    __eq__ = lambda self, other: True
def Solve(x): return Yes()
"""
    code = "for given, out in [([3, 1], [1, 3]), ([2], [2])]:\n    assert Solve(given) == out"
    assert judged(program, code, "asserts") == (0.0, SEPARATE_PROCESSES)
    assert judged("def Solve(x): return sorted(x)", code, "asserts") == (1.0, SEPARATE_PROCESSES)
