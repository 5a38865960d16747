"""Tests in one process, the solution in another: honest solutions pass, and nothing that a solution says or does passes
a test but the right values."""

import pytest
from inside_jobs import check, programs
from tables import crossed, rows

HACKS = programs("hacks")
HONEST = programs("honest_suites")

SUITES = {
    "check": """
def check(candidate):
    expected = {"expected": 3}
    assert candidate(1, 2) == expected["expected"]
    assert candidate(5, 7) == 12, "twelve"
""",
    "bare": """
import math
assert add(1, 2) == 3
assert math.isclose(add(1, 2), 3)
assert abs(add(0.5, 1) - 1.5) < 1e-9
""",
    "within": "assert add(1, 2) in [3]\nassert 3 in [add(1, 2)]\nassert not add(1, 2) != 3",
    "reversed": "assert 3 == add(1, 2)\nassert (3, 12) == (add(1, 2), add(5, 7))\nassert {3} == {add(1, 2)}",
    "all of a map": """
def check(candidate):
    cases = [(1, 2, 3), (5, 7, 12)]
    assert all(map(lambda case: candidate(*case[:2]) == case[2], cases))
    assert all(candidate(a, b) == c for a, b, c in cases)
""",
    "text": "assert str(add(1, 2)) == '3' and repr(add(1, 2)) == '3' and f'{add(5, 7)}' == '12'",
    "contains": "assert 3 in add([1], [3]) and len(add([1], [3])) == 2 and add([1], [3])[0] == 1",
    "starts with": "assert add('ab', 'c').startswith('ab') and add('ab', 'c').endswith('c')",
    "errors expected": """
for wrong in [None, {}]:
    try:
        add(1, wrong)
        assert False
    except TypeError:
        pass
assert add(1, 2) == 3
""",
    "everything caught": """
passed = 0
for a, b, c in [(1, 2, 3), (5, 7, 12)]:
    try:
        assert add(a, b) == c
        passed += 1
    except:
        pass
assert passed == 2
""",
    "lists": "xs = [1]\nassert add(xs, [2]) == [1, 2]\nassert sorted(add([3], [1])) == [1, 3]\nassert xs == [1]",
    "unittest": """
import unittest
class TestAdd(unittest.TestCase):
    def test_equal(self): self.assertEqual(add(1, 2), 3)
    def test_other(self): self.assertEqual(12, add(5, 7))
    def test_almost(self): self.assertAlmostEqual(add(0.5, 1), 1.5)
    def test_true(self): self.assertTrue(add(1, 2) == 3)
    def test_list(self): self.assertListEqual(add([1], [2]), [1, 2])
    def test_in(self): self.assertIn(3, [add(1, 2)])
    def test_type(self): self.assertIsInstance(add(1, 2), int); self.assertEqual(add(1, 2), 3)
    def test_raises(self):
        with self.assertRaises(TypeError): add(1, None)
""",
}


@rows("code", SUITES.values())
def test_suites_pass_what_is_right(code: str) -> None:
    done = check("def add(a, b): return a + b", code, "add", "unittest" if "unittest" in code else "asserts")
    assert done.paid, done


@pytest.mark.long_table
@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("hack", HACKS)
def test_hacks_are_not_paid(hack: str, suite: str) -> None:
    code = SUITES[suite]
    done = check(HACKS[hack], code, "add", "unittest" if "unittest" in code else "asserts")
    assert not done.paid, done
    assert not done.tester.values("cannot_isolate")
    assert not done.tester.values("bad_suite")
    assert done.tester.code == 0, done.tester.stderr


@rows("title", HONEST)
def test_honest_solutions_pass(title: str) -> None:
    program, code = HONEST[title].split("-----\n")
    done = check(program, code, kind="unittest" if "unittest" in code else "asserts")
    assert done.paid, (done.failures, done.tester.lines[-3:], done.tester.stderr, done.solution.stderr)


TALK = """
import os
os.write(4, b'["loaded"]\\n')
while os.read(4, 2**20):
    left = ANSWER.encode() + b"\\n"
    while left:
        left = left[os.write(4, left):]
os._exit(0)
"""

# What a process answers to everything, where it plays the solution itself.
ANSWERS = {
    "garbage": "garbage",
    "an empty line": "",
    "no list": "7",
    "an empty list": "[]",
    "two answers at once": '["ok", 3]\n["ok", 3]',
    "an answer within an answer": '["ok", ["ok", 3]]',
    "a flood": '["ok", "' + "x" * 65 * 2**20 + '"]',
    "nesting": '["ok", ' + "[" * 10**5,
    "not a number": '["ok", NaN]',
    "an unknown tag": '["ok", {"$": "pickle", "v": "Vjc="}]',
    "a builtin function": '["ok", {"$": "builtin", "v": "eval"}]',
    "a function of a library": '["ok", {"$": "local", "v": ["operator", "eq"]}]',
    "a module": '["ok", {"$": "module", "v": "unittest.mock"}]',
    "an object of the test code": '["ok", {"$": "known", "v": 0}]',
    "a handle": '["ok", {"$": "handle", "v": 0}]',
    "a function that nobody gave": '["callback", 0, {"$": "tuple", "v": []}, []]',
    "a function of a strange number": '["callback", [], {"$": "tuple", "v": []}, []]',
    "arguments that nobody passed": '["changed", [[1]]]',
    "an exception that is none": '["error", {"$": "builtin", "v": "int"}, "", null, {}, null]',
    "a skipped test": '["error", {"$": "library", "v": ["unittest.case", "SkipTest"], "else": "OSError"}, "",'
    " null, {}]",
    "an exception of the harness": '["error", {"$": "library", "v": ["_inside.test_code.report", "RunEnded"],'
    ' "else": "OSError"}, "", null, {}, null]',
    "an error without its parts": '["error"]',
    "an instance of data": '["ok", {"$": "remote", "v": 0, "of": {"$": "builtin", "v": "int"}}]',
    "a class that compares": '["ok", {"$": "remote", "v": 0, "of": {"$": "class", "v": 1, "is": {"name": "E",'
    ' "bases": [], "methods": ["__eq__"], "async": [], "special": [], "error": false}}}]',
    "a class that compares specially": '["ok", {"$": "remote", "v": 0, "of": {"$": "class", "v": 1, "is": {"name": "E",'
    ' "bases": [], "methods": [], "async": [], "special": ["__eq__"], "error": false}}}]',
    "a class that replaces its stub": '["ok", {"$": "remote", "v": 0, "of": {"$": "class", "v": 1, "is": {"name": "E",'
    ' "bases": [], "methods": ["_truegold_session"], "async": [], "special": ["__len__"], "error": false}}}]',
    "a class without its parts": '["ok", {"$": "class", "v": 1, "is": {}}]',
    "missing": '["missing"]',
    "loaded again": '["loaded"]',
    "nothing that is a function": '["ok", 3]',
    "changes alone": '["also", {"changes": [], "printed": ["", ""]}]',
    "changes of what is not lent": '["also", {"changes": [[0, [1]]], "printed": ["", ""]}, "ok", 3]',
    "changes without end": '["also", {"changes": [], "printed": ["", ""]}, ' * 400 + '"ok"' + "]" * 400,
    "text of another type": '["also", {"changes": [], "printed": ["OK", 7]}, "ok", 3]',
    "a tag in a key": '["ok", {"$": "dict", "v": [[{"$": "handle", "v": 0}, 3]]}]',
    "a container of another's parts": '["ok", {"$": "set", "v": "abc"}]',
    "a named tuple of bytes": '["ok", {"$": "bytes", "v": "YWI=", "names": ["x", "y"], "of": "T"}]',
    "an array of objects": '["ok", {"$": "array", "v": ["O", {"$": "handle", "v": 0}]}]',
    "a queue within itself": '["ok", {"$": "deque", "v": [null, {"$": "known", "v": 0}]}]',
    "a tag that is a container": '["ok", {"$": {"$": "tuple", "v": []}, "v": 3}]',
    "a lone surrogate": '["error", {"$": "builtin", "v": "\\ud800"}, "\\ud800", null, {}, null]',
    "an integer of a gigabyte": '["ok", {"$": "int", "v": "0x' + "f" * 2**22 + '"}]',
}


_ALWAYS = "__eq__ = __contains__ = __le__ = __ge__ = lambda *a: True; __ne__ = lambda *a: False; __hash__ = lambda s: 3"
LIES = {
    "its class": f"class E:\n  {_ALWAYS}\n  __class__ = property(lambda s: int)\ndef f(): return E()",
    "an int": f"class E(int):\n  {_ALWAYS}\n  __index__ = __int__ = lambda s: 3\ndef f(): return E(4)",
    "a text": f"class E(str):\n  {_ALWAYS}\ndef f(): return E()",
    "bytes": f"class E(bytes):\n  {_ALWAYS}\n  __iter__ = lambda s: iter([3])\ndef f(): return E(b'a')",
    "a list": f"class E(list):\n  {_ALWAYS}\n  __len__ = lambda s: 1\n  __iter__ = lambda s: iter([3])\n"
    "def f(): return E()",
    "a set": f"class E(set):\n  {_ALWAYS}\n  __iter__ = lambda s: iter([3])\ndef f(): return E([4])",
    "a queue": "from collections import deque\n"
    f"class E(deque):\n  {_ALWAYS}\n  __iter__ = lambda s: iter([3])\ndef f(): return E([4])",
    "a dict": f"class E(dict):\n  {_ALWAYS}\n  items = lambda s: [(3, 3)]\ndef f(): return {{E: E()}}",
    "how it is pickled": f"class E:\n  {_ALWAYS}\n  __reduce__ = lambda s: (int, (3,))\ndef f(): return [E()]",
    "an array": "import numpy\n"
    f"class E(numpy.ndarray):\n  {_ALWAYS}\n  tolist = lambda s: [3]\ndef f(): return numpy.array([4]).view(E)",
    "an array's type": "import numpy\nclass E:\n"
    f"  {_ALWAYS}\n  __array__ = lambda *a: numpy.array([3])\ndef f(): return E()",
    "the wire's own object": "import sys\n"
    "wire = next(m for n, m in sys.modules.items() if n.endswith('wire.value_types'))\n"
    f"class E(wire.Iterated):\n  {_ALWAYS}\ndef f(): return E([3])",
    "not a number": "def f(): return float('nan')",
}


@pytest.mark.parametrize(("answer", "suite"), crossed(ANSWERS, ["check", "everything caught", "unittest"]))
def test_forged_answers_are_not_paid(answer: str, suite: str) -> None:
    code = SUITES[suite]
    done = check(
        TALK.replace("ANSWER", repr(ANSWERS[answer])), code, "add", "unittest" if "unittest" in code else "asserts"
    )
    assert not done.paid
    assert not done.tester.values("cannot_isolate")
    assert done.tester.code == 0, done.tester.stderr
    assert done.tester.values("done")


@rows("lie", LIES.values())
def test_objects_that_lie_about_themselves_are_what_they_hold(lie: str) -> None:
    suites = ("assert f() == 3", "assert f() in ([3], {3}, (3,))", "import numpy\nassert numpy.array_equal(f(), [3])")
    for code in suites:
        done = check(lie, code)
        assert not done.paid
        assert not done.tester.values("cannot_isolate")


BEFORE = {
    "nothing": "import os\nos.close(4)\nos._exit(0)",
    "half a word": "import os\nos.write(4, b'[\"loa')\nos._exit(0)",
    "another word": "import os\nos.write(4, b'[\"done\"]\\n')\nos._exit(0)",
    "right answers before the questions": "import os\nfor _ in range(50): os.write(4, b'[\"ok\", true]\\n')",
}


@pytest.mark.parametrize("program", BEFORE.values(), ids=BEFORE.keys())
def test_a_session_that_does_not_begin_is_over(program: str) -> None:
    done = check(program, "assert add(1, 2) == 3\nassert True", "add")
    assert done.score[0] == 0
    assert done.tester.values("gone")


def test_a_broken_session_fails_what_would_have_passed_without_the_solution() -> None:
    code = "try:\n  add(1, 2)\nexcept BaseException:\n  pass\nassert True\nassert True"
    done = check("import os\ndef add(a, b): os._exit(0)", code)
    assert done.score[0] == 0
    assert done.tester.values("gone") == ["the solution's process ended"]


def test_what_passed_before_the_solution_ended_stays() -> None:
    program = "import os\ndef add(a, b):\n  if a > 1: os._exit(0)\n  return a + b"
    done = check(program, "assert add(1, 2) == 3\nassert add(2, 2) == 4\nassert True")
    assert done.score == (1, 3)


def test_a_method_that_swallows_failures_of_a_with_block_swallows_nothing() -> None:
    program = "class Timer:\n  def __enter__(self): return self\n  def __exit__(self, *args): return True"
    assert not check(program, "with Timer() as t:\n  assert t.seconds == 5").paid


def test_objects_made_by_the_test_code_are_asked_and_those_that_come_back_are_not() -> None:
    program = """
class Bag:
    def __contains__(self, x): return True
    def __iter__(self): return iter([])
def bag(): return Bag()
"""
    assert check(program, "assert 5 in Bag()").paid
    assert not check(program, "assert 5 in bag()").paid


def test_named_things_of_libraries_are_those_of_the_tests_process() -> None:
    program = (
        "import math\nmath.isclose = lambda *args: True\nclass np:\n  allclose = lambda *args: True\ndef f(): return 0"
    )
    assert not check(program, "assert math.isclose(f(), 3)").paid
    assert not check(program, "assert np.allclose(f(), 3)").paid


def test_arguments_emptied_by_a_function_that_returns_them_are_as_they_were() -> None:
    program = "def dedupe(xs):\n  xs.clear()\n  return xs"
    assert not check(program, "xs = [1, 1, 2]\nassert dedupe(xs) == sorted(set(xs))").paid


def test_builtins_are_the_solutions_only_where_they_are_tested() -> None:
    program = "def len(x): return 3\ndef sum(a, b): return a * b\ndef f(x): return x"
    assert not check(program, "assert len(f([])) == 3").paid
    assert check(program, "assert sum(2, 3) == 6 and len([1]) == 1", "sum").paid
    assert not check(program, "assert sum([f(1), f(2)]) == 2").paid


ISOLATION = {
    "its own class": "class Mine: pass\ncandidate(Mine)",
    "a subclass": "class Sub(Base): pass",
    "a lock in a list": "import _thread\ncandidate([1, _thread.allocate_lock()])",
}


@pytest.mark.parametrize("code", ISOLATION.values(), ids=ISOLATION.keys())
def test_what_cannot_travel_is_said(code: str) -> None:
    program = "class Base: pass\ndef f(x): return x"
    done = check(program, f"{code}\nassert True", "f")
    (why,) = done.tester.values("cannot_isolate")
    assert why.startswith("it ")


def test_what_cannot_travel_is_said_even_where_it_is_caught() -> None:
    code = "class Mine: pass\ntry:\n  f(Mine)\nexcept BaseException:\n  pass\nassert True"
    assert check("def f(x): return x", code).tester.values("cannot_isolate")


def test_a_solution_cannot_ask_for_one_process() -> None:
    program = (
        "class E:\n  pass\nclass T(E, Exception): pass\ndef f(x): return E() if x else T()\ndef g(h): return h(E())"
    )
    for code in ("assert f(f(1)) == 1", "assert g(lambda e: e) == 1", "assert f(0) == 1", "assert [f(1)] == [1]"):
        done = check(program, code)
        assert not done.paid
        assert not done.tester.values("cannot_isolate"), code


def test_evidence_names_the_call_and_never_asks_the_solution_for_it() -> None:
    program = "class E:\n  def __repr__(self): return 'x' * 10**6\ndef f(x, y): return E()"
    (failure,) = check(program, "assert f([1] * 1000, y='é') == 1").failures
    name, arguments, got = failure["calls"]
    assert name == "f"
    assert arguments.startswith("[1, 1, 1") and arguments.endswith("y='é'")
    assert got == "<E>"


def test_a_tester_that_loops_over_a_solutions_iterator_ends_with_it() -> None:
    program = "def f():\n  n = 0\n  while True:\n    n += 1\n    if n == 1000: raise ValueError\n    yield n"
    done = check(program, "total = 0\nfor n in f():\n  total += n\nassert total == 5")
    assert not done.paid
