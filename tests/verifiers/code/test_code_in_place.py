"""Functions that change an argument and return a value as well: which changes the tests get to see."""

import pytest
from inside_jobs import check
from tables import rows

REMOVE = """
class Solution:
    def rem(self, nums, val):
        k = 0
        for x in nums:
            if x != val:
                nums[k] = x
                k += 1
        return k
def rem(nums, val): return Solution().rem(nums, val)
"""
SEEN = {
    "cut by the result": "a = [3, 2, 2, 3]\nk = rem(a, 3)\nassert k == 2\nassert a[:k] == [2, 2]",
    "on one line": "a = [3, 2, 2, 3]; k = rem(a, 3); assert k == 2 and sorted(a[:k]) == [2, 2]",
    "by a range": "a, e = [3, 2, 2, 3], [2, 2]\nk = rem(a, 3)\nassert k == len(e)\n"
    "for i in range(k):\n    assert a[i] == e[i]",
    "all of a range": "a, e = [3, 2, 2, 3], [2, 2]\nk = rem(a, 3)\nassert all(a[i] == e[i] for i in range(k))",
    "with a number": "a = [3, 2, 2, 3]\nassert rem(a, 3) == 2\nassert a[:2] == [2, 2]",
    "sorted first": "a = [3, 2, 4, 3]\nk = rem(a, 3)\na[:k] = sorted(a[:k])\nassert a[:k] == [2, 4]",
    "in a loop": "for a, v, e in [([3, 2, 2, 3], 3, [2, 2]), ([1], 1, [])]:\n    k = rem(a, v)\n    assert a[:k] == e",
    "of a case": "case = {'nums': [3, 2, 2, 3], 'e': [2, 2]}\n"
    "k = rem(case['nums'], 3)\nassert case['nums'][:k] == case['e']",
    "in a function": "def run(a, v):\n    k = rem(a, v)\n    return a[:k]\nassert run([3, 2, 2, 3], 3) == [2, 2]",
    "by name": "a = [3, 2, 2, 3]\nk = rem(nums=a, val=3)\nassert a[:k] == [2, 2]",
    "of a method": "s, a = Solution(), [3, 2, 2, 3]\nk = s.rem(a, 3)\nassert a[:k] == [2, 2]",
    "a result of no interest": "a = [3, 2, 2, 3]\nrem(a, 3)\nassert a[:2] == [2, 2]",
    "by a function of the tests": "def values(xs): return list(xs)\na = [3, 2, 2, 3]\n"
    "k = rem(a, 3)\nassert values(a)[:k] == [2, 2]",
    "as text": "a = list('abb')\nk = rem(a, 'a')\nassert ''.join(a[:k]) == 'bb'",
    "a test case": """
import unittest
class T(unittest.TestCase):
    def test_it(self):
        a = [3, 2, 2, 3]
        k = Solution().rem(a, 3)
        self.assertEqual(k, 2)
        self.assertEqual(sorted(a[:k]), [2, 2])
""",
    "by a bound of the bound": "a = [3, 2, 2, 3]\nk = rem(a, 3)\nlast = k - 1\nassert a[last] == 2 and a[:last] == [2]",
    "printed before": "a = [3, 2, 2, 3]\nk = rem(a, 3)\nprint(k, a)\nassert a[:k] == [2, 2]",
    "kept in an attribute": "class N: pass\nn, a = N(), [3, 2, 2, 3]\nn.k = rem(a, 3)\nassert a[:n.k] == [2, 2]",
    "the result first": """
import unittest
class T(unittest.TestCase):
    def test_it(self):
        a = [3, 2, 2, 3]
        self.assertEqual(rem(a, 3), 2)
        self.assertEqual(a[:2], [2, 2])
""",
    "two ways out": "a = [3, 2, 2, 3]\nif True:\n    k = rem(a, 3)\nassert a[:k] == [2, 2]",
}


@rows("code", SEEN.values())
def test_tests_that_look_at_an_argument_afterwards_see_what_became_of_it(code: str) -> None:
    done = check(REMOVE, code, kind="unittest" if "unittest" in code else "asserts")
    assert done.paid, done.failures
    assert not check(
        REMOVE.replace("nums[k] = x", "pass"), code, kind="unittest" if "unittest" in code else "asserts"
    ).paid


def test_a_function_that_returns_its_argument_returns_the_tests_own_object() -> None:
    code = "a = [2, 1]\nr = order(a)\nassert r == [1, 2]\nassert a == [1, 2]"
    assert check("def order(xs):\n    xs.sort()\n    return xs", code).paid
    assert check(
        "def order(xs):\n    xs.sort()\n    return xs", "a = [2, 1]\nb = [order(a)]\norder(a)\nassert a == [1, 2]"
    ).paid


@pytest.mark.parametrize("test", ["assert r is not a\nassert a == [2, 1]", "assert a == [2, 1]\nassert r is not a"])
def test_a_function_that_must_leave_its_argument_alone_fails_where_it_does_not(test: str) -> None:
    code = f"a = [2, 1]\nr = order(a)\nassert r == [1, 2]\n{test}"
    assert check("def order(xs): return sorted(xs)", code).paid
    for body in ("return xs", "return xs[:]"):
        assert not check(f"def order(xs):\n    xs.sort()\n    {body}", code).paid


EMPTIES = {
    "within one statement": "a = [3, 1]\nassert f(a) == sum(a)",
    "in the next": "a = [3, 1]\nr = f(a)\nassert r == sum(a)",
    "by another name": "a = [3, 1]\nr = f(a)\nexpected = sum(a)\nassert r == expected",
    "a look and a comparison": "a = [3, 1]\nr = f(a)\nassert a[:r] == []\nassert r == sum(a)",
    "by a further call": "a = [3, 1]\ni = f([])\nassert f(a) in [0, 4]\nassert f(a) == sum(a)",
    "by a helper": "def total(xs): return sum(xs)\na = [3, 1]\nr = f(a)\nassert r == total(a)",
    "in a test case": """
import unittest
class T(unittest.TestCase):
    def test_it(self):
        a = [3, 1]
        r = f(a)
        self.assertEqual(r, sum(a))
""",
    "out of a list": "rs, a = [], [3, 1]\nrs.append(f(a))\nassert rs[0] == sum(a)",
    "out of a list, later": "rs, a = [], [3, 1]\nr = f(a)\nrs.append(r)\nassert rs[0] == sum(a)",
    "out of a dictionary": "d, a = {}, [3, 1]\nd['r'] = f(a)\nassert list(d.values()) == [sum(a)]",
    "of an object": "class N: pass\nn, a = N(), [3, 1]\nn.r = f(a)\nassert n.r == sum(a)",
    "out of a heap": "import heapq\nh, a = [], [3, 1]\nheapq.heappush(h, f(a))\nassert h[0] == sum(a)",
    "by a result of the result": "a = [3, 1]\nr = f(a)\ns = r + 1\nassert s == sum(a) + 1",
    "where it may not be None": "a = [3, 1]\nr = f(a)\nassert r is not None\nassert r == sum(a)",
    "where it is another object": "a = [3, 1]\nr = f(a)\nassert r is not a\nassert r == sum(a)",
    "kept by a helper": "kept = []\ndef keep(r): kept.append(r)\na = [3, 1]\nkeep(f(a))\nassert kept[0] == sum(a)",
    "in an assertion of a test case": """
import unittest
class T(unittest.TestCase):
    def test_it(self):
        a = [3, 1]
        self.assertEqual(f(a), sum(a))
""",
}


@rows("code", EMPTIES.values())
def test_an_argument_that_says_what_is_expected_stays_as_it_was(code: str) -> None:
    program = "def f(a):\n    a.clear()\n    return 0"
    assert not check(program, code, kind="unittest" if "unittest" in code else "asserts").paid


def test_changes_that_nobody_asked_for_are_no_answer() -> None:
    program = """
import os
os.write(4, b'["loaded"]\\n')
while os.read(4, 2**20):
    os.write(4, b'["changed", [[]], 0]\\n')
"""
    done = check(program, "a = [3, 1]\nassert f(a) == sum(a)\n", "f")
    assert not done.paid
    assert done.tester.values("gone")
