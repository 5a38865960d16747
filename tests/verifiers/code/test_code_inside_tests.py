"""What a forked job makes of test code: what counts as a test, what each one's outcome is, and how it is reported."""

import pytest
from inside_jobs import Outcome, check, run_jobs

ADD = "def add(a, b): return a + b"


def run_in_one_process(program: str, code: str, entry_point: str | None = None, kind: str = "asserts") -> Outcome:
    payload = {"prelude": "", "program": program, "kind": kind, "code": code, "entry_point": entry_point}
    return run_jobs(("one_process", {**payload, "codecs": {}, "stop_first": False, "seed": 17, "nonce": "n0nce"}))[0]


class TestAssertions:
    def test_one_failure_does_not_hide_the_rest(self) -> None:
        code = """
def check(candidate):
    assert candidate(1, 2) == 3
    assert candidate(1, 2) == 4, 'why'
    assert candidate(0, 0) == 0
"""
        done = check(ADD, code, "add")
        assert done.score == (2, 3)
        (failure,) = done.failures
        assert failure["test"] == "2"
        assert failure["line"] == "assert candidate(1, 2) == 4, 'why'"
        assert failure["error"] == ["AssertionError", "why"]
        assert failure["calls"] == ["add", "1, 2", "3"]

    def test_stopping_at_the_first_failure(self) -> None:
        done = check(ADD, "assert add(1, 1) == 3\nassert add(1, 1) == 2", stop_first=True)
        assert done.score == (0, 2)
        assert len(done.failures) == 1

    @pytest.mark.parametrize(
        ("code", "score"),
        [
            ("for n in range(9):\n  assert add(n, 1) == n + 1\nassert add(2, 2) == 4", (2, 2)),
            ("for n in range(9):\n  assert add(n, 1) == n\nassert add(2, 2) == 4", (1, 2)),
            ("x = add(1, 2)\nassert x == 3", (1, 1)),
            ("x = undefined\nassert add(1, 2) == 3\nassert True", (0, 3)),
            ("assert add(1, 2) == 3\nx = 1 / 0\nassert True", (1, 3)),
            ("assert add(1, 2) == 3\nprint(1 / 0)", (1, 2)),
            ("def test_a():\n  assert add(1, 2) == 3\ndef test_b():\n  assert add(1, 2) == 4", (1, 2)),
            ("def test_a():\n  assert add(1, 2) == 3\ntest_a()", (1, 1)),
            ("def t(x, y):\n  assert add(x, x) == y\nt(1, 2)\nt(2, 5)\nt(3, 6)", (2, 3)),
            ("def check(f, x):\n  assert f(x, x) == 2 * x\ncheck(add, 1)\ncheck(add, 2)", (2, 2)),
            ("def check(n):\n  assert add(n, n) == 2 * n\ncheck(1)\ncheck(2)", (2, 2)),
            ("def check(candidate):\n  def t(x):\n    assert candidate(x, 1) == x + 1\n  t(1)\n  t(2)", (2, 2)),
            ("def check(candidate):\n  assert candidate(1, 2) == 3\ncheck(add)", (1, 1)),
            ("def check(candidate):\n  if candidate(1, 2) == 3: return\n  assert False", (1, 1)),
            ("def check(candidate):\n  raise_unless(candidate(1, 2) == 3)", (0, 1)),
            ("def verify(candidate):\n  assert candidate(1, 2) == 3", (1, 1)),
            ("import sys\nassert add(1, 2) == 3\nsys.exit(0)\nassert True", (1, 3)),
            ("import numpy as np\nnp.testing.assert_allclose(add(1, 2), 3)", (1, 1)),
            ("if add(1, 2):\n  assert True\nelse:\n  assert False", (1, 1)),
            ("with __import__('contextlib').suppress(ValueError):\n  assert add(1, 2) == 3", (1, 1)),
            ("x = 5\ny = 6", (0, 0)),
            ("import unittest\nclass T(unittest.TestCase):\n  def test(self): self.assertEqual(add(1, 2), 3)", (1, 1)),
        ],
    )
    def test_what_counts_as_a_test(self, code: str, score: tuple[int, int]) -> None:
        assert check(ADD, code, "add").score == score

    @pytest.mark.parametrize("code", ["assert (", "assert add(1, 2) == 3\0"])
    def test_code_that_cannot_be_read_is_a_bad_suite(self, code: str) -> None:
        done = check(ADD, code, "add")
        assert done.tester.values("bad_suite")
        assert not done.paid

    def test_a_prelude_that_fails_is_a_bad_suite_whatever_the_program_is(self) -> None:
        for program in (ADD, "import os\nos._exit(0)", "def undefined(): raise ValueError"):
            tests = {"kind": "asserts", "code": "", "entry_point": None, "codecs": {}, "stop_first": True, "seed": 17}
            serve = {"prelude": "", "program": program, "codecs": {}}
            _, done = run_jobs(("serve", serve), ("tests", {**tests, "prelude": "undefined()"}))
            assert done.values("bad_suite") == [["NameError", "name 'undefined' is not defined"]]

    def test_a_check_function_needs_an_entry_point(self) -> None:
        assert check(ADD, "def check(candidate):\n  assert candidate(1, 2) == 3").tester.values("bad_suite")

    @pytest.mark.parametrize("program", ["x = (", "1 / 0", "import sys\nsys.exit(0)", "import nowhere"])
    def test_a_program_that_cannot_be_loaded_fails_every_test(self, program: str) -> None:
        done = check(program, "assert add(1, 2) == 3\nassert True", "add")
        assert done.score == (0, 2)
        assert done.tester.values("not_loaded")

    def test_a_missing_entry_point_fails_every_test(self) -> None:
        done = check("def sub(a, b): return a - b", "def check(candidate):\n  assert True\n  assert True", "add")
        assert done.score == (0, 2)
        assert "does not define 'add'" in done.failures[0]["error"][1]


UNITTEST = """
import unittest
class TestAdd(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.three = 3
    def setUp(self): self.two = 2
    def test_right(self): self.assertEqual(add(1, self.two), self.three)
    def test_wrong(self): self.assertEqual(add(1, 1), 3)
    def test_error(self): add(1)
    def test_raises(self):
        with self.assertRaises(TypeError): add(1, None)
    def test_parts(self):
        for n in range(3):
            with self.subTest(n=n): self.assertEqual(add(n, n), 2 * n)
    def test_bad_part(self):
        for n in range(3):
            with self.subTest(n=n): self.assertNotEqual(n, 1)
    @unittest.skip('never')
    def test_skipped(self): self.fail()
    def test_skips_itself(self): self.skipTest('now')
    @unittest.expectedFailure
    def test_expected(self): self.assertEqual(add(1, 1), 3)
    @unittest.expectedFailure
    def test_unexpected(self): self.assertEqual(add(1, 1), 2)
class Helper(unittest.TestCase):
    def help(self): pass
def test_function():
    assert add(1, 1) == 2
def test_with_argument(fixture):
    assert False
if __name__ == '__main__':
    unittest.main()
unittest.main()
"""


class TestCases:
    def test_outcomes(self) -> None:
        done = check(ADD, UNITTEST, kind="unittest")
        passed = [line["test"] for line in done.tester.lines if line.get("ok")]
        assert passed == [
            "TestAdd.test_parts",
            "TestAdd.test_raises",
            "TestAdd.test_right",
            "test_function",
        ]
        assert sorted(failure["test"] for failure in done.failures) == [
            "TestAdd.test_bad_part",
            "TestAdd.test_error",
            "TestAdd.test_expected",
            "TestAdd.test_skipped",
            "TestAdd.test_skips_itself",
            "TestAdd.test_unexpected",
            "TestAdd.test_wrong",
            "test_with_argument",
        ]
        assert done.score == (4, 12)

    @pytest.mark.parametrize(
        ("code", "score"),
        [
            ("import unittest\nclass T(unittest.TestCase): pass", (0, 0)),
            ("import unittest\n@unittest.skip('x')\nclass T(unittest.TestCase):\n  def test(self): pass", (0, 1)),
            ("from unittest import *\nclass T(TestCase):\n  def test(self): assert add(1, 1) == 2", (1, 1)),
            (
                "import unittest\nclass T(unittest.TestCase):\n  @classmethod\n  def setUpClass(cls): raise OSError\n"
                "  def test(self): pass",
                (0, 1),
            ),
            (
                "from unittest import *\nclass T(IsolatedAsyncioTestCase):\n  async def test(self): assert add(1, 1)",
                (1, 1),
            ),
            ("import unittest\nclass T(unittest.TestCase):\n  def test(self): raise KeyboardInterrupt", (0, 1)),
            ("async def test_it(): assert add(1, 1) == 2", (1, 1)),
            ("import nowhere\ndef test_it(): assert True", (0, 1)),
            ("assert add(1, 1) == 2\ndef test_it(): assert True", (2, 2)),
        ],
    )
    def test_what_is_found(self, code: str, score: tuple[int, int]) -> None:
        assert check(ADD, code, kind="unittest").score == score

    def test_stopping_at_the_first_failure(self) -> None:
        code = (
            "import unittest\nclass T(unittest.TestCase):\n  def test_a(self): assert False\n  def test_b(self): pass"
        )
        done = check(ADD, code, kind="unittest", stop_first=True)
        assert done.score == (0, 2)
        assert len(done.failures) == 1


class TestTogether:
    def test_passing_tests_give_the_nonce(self) -> None:
        done = run_in_one_process(
            ADD, "def check(candidate):\n  assert candidate(1, 2) == 3\nassert add(1, 1) == 2", "add"
        )
        assert done.lines == [
            {"test": "1", "ok": True},
            {"test": "2", "ok": True},
            {"done": {"passed": 2, "total": 2}},
            {"nonce": "n0nce"},
        ]

    @pytest.mark.parametrize(
        ("program", "code"),
        [
            (ADD, "assert add(1, 1) == 3"),
            (ADD, "x = 1"),
            (ADD, "import sys\nsys.exit(0)\nassert True"),
            ("import sys\nsys.exit(0)", "assert True"),
            ("import os\ndef add(a, b): os._exit(0)", "assert add(1, 1) == 2"),
            ("import sys\ndef add(a, b): sys.exit(0)", "assert add(1, 1) == 2"),
            ("x = (", "assert True"),
            ('import os\nos.write(3, b\'{"done": {"passed": 1, "total": 1}}\\n\')\nos._exit(0)', "assert True"),
            (ADD, "assert ("),
        ],
    )
    def test_nothing_else_does(self, program: str, code: str) -> None:
        assert "n0nce" not in run_in_one_process(program, code).raw.decode()

    def test_a_missing_entry_point(self) -> None:
        done = run_in_one_process(ADD, "assert True", "sub")
        assert done.values("not_loaded")
        assert done.values("done") == [{"passed": 0, "total": 1}]

    def test_test_code_may_patch_and_capture(self) -> None:
        code = """
import io, unittest
from contextlib import redirect_stdout
from unittest.mock import patch
import solution
class T(unittest.TestCase):
    def test_patch(self):
        with patch('solution.now', return_value=7), patch('builtins.open', side_effect=OSError):
            self.assertEqual(solution.later(), 8)
            self.assertRaises(OSError, read)
    def test_output(self):
        with redirect_stdout(io.StringIO()) as out: say()
        self.assertEqual(out.getvalue(), 'hi\\n')
"""
        program = "def now(): return 1\ndef later(): return now() + 1\ndef read(): open('x')\ndef say(): print('hi')"
        assert run_in_one_process(program, code, kind="unittest").values("nonce") == ["n0nce"]

    def test_the_nonce_is_not_in_the_frames_of_the_program(self) -> None:
        program = """
import sys
at = sys._getframe()
while at.f_code.co_name != 'start':
    assert not any('n0' + 'nce' in repr(value) for value in at.f_locals.values()), at.f_code.co_name
    at = at.f_back
"""
        assert run_in_one_process(program, "assert True").values("nonce") == ["n0nce"]


def test_random_inputs_of_tests_cannot_be_foreseen() -> None:
    code = "import random\nassert draw() != random.random()"
    assert check("import random\ndef draw(): return random.random()", code).paid


def test_prints_of_test_code_are_no_results() -> None:
    assert check(ADD, 'print(\'{"done": {"passed": 1, "total": 1}}\')\nassert add(1, 1) == 3').score == (0, 1)
