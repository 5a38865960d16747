"""Names of libraries that test code uses without importing them, and names of the solution's that are called so."""

import pytest
from inside_jobs import check
from tables import rows

from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.code.checks.lowering import functions_under_test

LIARS = """
class Yes:
    __call__ = lambda self, *args, **named: True
isclose = approx = allclose = deepcopy = lambda *args, **named: True
Counter = sqrt = gcd = lambda *args: 3
def f(x): return 3
"""
HELPED = {
    "a comparison": "for n in range(3):\n    assert isclose(f(n), n * 1.5 + 1)",
    "a helper on the expected side": "n = 16\nwhile n < 18:\n    n += 1\n    assert f(n) == sqrt(n)",
    "both sides": "assert Counter(f(3)) == Counter([3, 4])",
    "approx": "assert f(3) == approx(4.5)",
    "arrays": "assert allclose(f(3), [3.5, 4.5])",
    "before the assertion": "expected = gcd(12, 8)\nassert f(1) == expected",
    "of a result in a name": "r = f(3)\nassert isclose(r, 4.5)",
    "of all that it has": "from solution import *\nr = f(3)\nassert isclose(r, 4.5)",
    "counted": "r = [f(3)]\nassert Counter(r) == Counter([3, 4])",
    "in a helper": "def close(r, e):\n    assert isclose(r, e)\nclose(f(3), 4.5)",
    "of a class's result": "s = f(3)\nr = s + 1\nassert isclose(r, 5.5)",
    "on an expected value": "x = 7\nr = f(4)\nassert deepcopy(x) == r",
}


@rows("code", HELPED.values())
def test_a_solution_does_not_bring_the_helpers_that_judge_it(code: str) -> None:
    pytest.importorskip("numpy")
    done = check(LIARS, code)
    assert not done.paid
    assert not done.tester.values("cannot_isolate")
    assert not check(LIARS, code, "f").paid


def test_helpers_are_there_though_nobody_imports_them() -> None:
    code = "for n in range(4):\n    assert isclose(f(n), sqrt(n) * 2)\nassert Counter([f(4)]) == Counter([4.0])"
    assert check("def f(n): return 2 * n ** 0.5", code, "f").paid


@pytest.mark.parametrize(
    ("program", "code", "entry_point"),
    [
        ("def gcd(a, b): return 99", "for n in range(2):\n    assert gcd(n, 3) == 99", "gcd"),
        ("def sqrt(n): return 'root'\ndef f(n): return n", "assert f(2) == 2\nassert sqrt(n := 3) == 'root'", None),
        (
            "def product(xs): return 6\ndef f(n): return n",
            "i = 0\nwhile i < 1:\n    i += 1\n    assert product([2, 3]) == 6\n    assert f(i) == 1",
            None,
        ),
        (
            "def ceil(x, options): return min(n for n in options if n >= x)",
            "from solution import ceil\nfor x in [2, 3]:\n    assert ceil(x, [1, 5]) == 5",
            None,
        ),
        ("def sqrt(n): return n ** 0.5 + 1", "r = sqrt(16)\nassert abs(r - 5) < 1e-9", None),
        ("class Counter:\n    n = 7", "assert Counter().n == 7", None),
        (
            "class Counter:\n    n = 0\n    def up(self): self.n += 1",
            "c = Counter()\nc.up()\nassert c.n == len([c])",
            None,
        ),
    ],
)
def test_a_name_that_is_tested_is_the_solutions(program: str, code: str, entry_point: str | None) -> None:
    assert check(program, code, entry_point).paid


def test_names_that_test_code_defines_or_imports_are_its_own() -> None:
    assert check("def f(n): return n", "def isclose(a, b): return a + 1 == b\nassert isclose(f(2), 3)").paid
    assert check("def f(n): return n", "from operator import sub as isclose\nassert isclose(f(2), 3)").paid


def test_lowered_assertions_leave_helpers_to_the_tests_own_process() -> None:
    response = "```python\ndef sqrt(n): return 1\ndef f(n): return 1\n```"
    tests = {"type": "asserts", "code": "assert f(16) == sqrt(16)"}
    assert CodeVerifier()(response, info={"tests": tests}).score == 0.0


def test_the_function_under_test_is_not_a_helper() -> None:
    assert functions_under_test("assert isclose(area(2), 3.5)") == ("area",)
    assert functions_under_test("assert gcd(4, 6) == 2") == ("gcd",)


@pytest.mark.parametrize(
    ("code", "program"),
    [
        ("datetime.strptime('17:05', '%H:%M').hour", "from datetime import datetime\ndef f(n): return 17"),
        ("datetime.datetime(2020, 1, 2).day + 15", "import datetime\ndef f(n): return 17"),
        ("math.floor(17.5)", "import math\ndef f(n): return 17"),
    ],
)
def test_a_name_that_is_module_and_class_is_the_one_with_the_attributes_used(code: str, program: str) -> None:
    assert check(program, f"expected = [{code}]\nfor n in range(2):\n    assert [f(n)] == expected", "f").paid


def test_arrays_of_a_solution_that_imports_numpy_can_be_indexed() -> None:
    pytest.importorskip("numpy")
    code = "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        s = Seats()\n"
    code += "        self.assertEqual(s.taken[0][1], 1)\n        self.assertEqual(s.taken.shape, (2, 2))"
    program = "import numpy as np\nclass Seats:\n    def __init__(self): self.taken = np.array([[0, 1], [0, 0]])"
    info = {"tests": {"type": "unittest", "code": code}}
    verdict = CodeVerifier()(f"```python\n{program}\n```", info=info)
    assert (verdict.score, verdict.evidence["isolation"]) == (1.0, "apart"), verdict
