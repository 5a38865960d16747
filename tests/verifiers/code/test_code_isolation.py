"""Which test code has to share the solution's process, and which names in it mean the solution."""

import ast

import pytest
from tables import rows

from truegold.verifiers.code.protocols.python_tests import needs_one_process
from truegold.verifiers.sandbox.inside.test_code.library_functions import is_solution_module
from truegold.verifiers.sandbox.inside.test_code.statements import plan_units
from truegold.verifiers.sandbox.inside.test_session import tests

TOGETHER = {
    "def f():\n  import threading": "imports threading",
    "import inspect": "imports inspect",
    "import sympy as sp": "imports sympy",
    "class T:\n  def test(self):\n    with self.assertLogs(): f()": "logs",
    "assert eval(f(1)) == 2": "calls eval",
    "import pandas as pd\nassert len(pd.DataFrame({'a': [1]}).query(f('a'))) == 1": "calls ().query",
    "import timeit\nassert timeit.timeit(f(1), number=1) < 1": "calls timeit",
    "from timeit import timeit as t\nassert t(f(1)) < 1": "calls t ",
    "import timeit\nassert timeit.timeit('pass', f(1)) < 1": "calls timeit",
    "import timeit\nassert timeit.timeit(stmt=f(1)) < 1": "calls timeit",
    "import pandas as pd\nassert pd.eval(expr=f(1)) == 2": "calls pd.eval",
    "from pandas import eval as e\nassert e(f(1)) == 2": "calls e ",
    "assert list(map(eval, f(1))) == [2]": "calls eval",
    "run = eval\nassert run(f(1)) == 2": "calls eval",
    "x = '1'\nx = f(1)\nassert eval(x) == 2": "calls eval",
    "import typing\nassert typing.get_type_hints(f) == {'a': int}": "calls typing.get_type_hints",
    "import cProfile\ncProfile.run(f(1))": "imports cProfile",
    "from pdb import run\nrun(f(1))": "imports pdb",
    "class U: n = 3\nassert f(1).format(U()) == '3'": "calls ().format",
    "import string\nclass U: n = 3\nassert string.Formatter().format(f(1), U()) == '3'": "calls ().format",
    "assert f(1).format(**locals()) == '3'": "names of the process",
    "import doctest\nfor test in doctest.DocTestFinder().find(f): doctest.DocTestRunner().run(test)": "docstrings",
    "import code\ncode.InteractiveInterpreter({}).runsource(f(1))": "imports code",
    "import pandas as pd\npd.read_pickle('x')": "pickled",
    "import numpy as np\nnp.load('x', allow_pickle=True)": "pickled",
    "async def f():\n  async for x in stream(): pass": "asynchronous",
    "assert 'f' in globals()": "names of the process",
    "class Mine(Base): pass": "derives a class from Base",
    "from solution import Base\nclass Mine(Base): pass": "derives a class from Base",
}


@rows("code, why", TOGETHER.items())
def test_code_that_needs_the_solutions_process(code: str, why: str) -> None:
    reason = needs_one_process(code)
    assert reason is not None
    assert why in reason


APART = [
    "assert add(1, 2) == 3",
    "import unittest, math, random, json, os, re, numpy as np, pytest",
    "from solution import f\nimport your_module\nfrom main import *\nfrom src.thing import f",
    "import os\nassert f(os.path.join('a', 'b')) == 'a/b'",
    "import random\nrandom.seed(1)\nassert f(random.random()) < 1",
    "import unittest\nclass T(unittest.TestCase): pass",
    "from unittest import TestCase\nclass T(TestCase): pass",
    "class Helper: pass\nclass Other(Helper): pass",
    "class E(Exception): pass",
    "class Point: pass\nassert Point() != Point()",
    "from collections import Counter\nassert Counter('a') == Counter('a')",
    "assert Sort([2, 1]) == [1, 2]",
    "assert not Is_Prime(4)",
    "assert Solution().f(1) == 2",
    "s = Stack()\ns.push(1)\nassert s.pop() == 1 and 1 not in s and len(s) == 0 and s is not None",
    "v = Vector(1)\nassert v.x == 1 and v.add(2).x == 3",
    "with Timer() as t: pass",
    "assert Vector(1) + Vector(2) == w and not Stack()",
    "v = Card(1)\nassert sorted([v, Card(2)])[0].n == 1 and len({v, v}) == 1",
    "assert x.replace('a', 'b') == y.walk()",
    "from . import thing",
    "from unittest.mock import patch\nimport sys, random\nrandom.seed(1)\nsys.stdout = x",
    "from contextlib import redirect_stdout\nimport os\nos.environ['X'] = '1'\nos.chdir('x')",
    "import tempfile, shutil, pandas as pd\ndef test(tmp_path): pass",
    "import os\nos.makedirs('x')\nwith open('x/y') as f: assert eval('1')",
    "import torch, cv2\nfrom matplotlib import pyplot as plt\nfrom scipy import sparse\nfrom PIL import Image",
    "def test_a(monkeypatch):\n    monkeypatch.setenv('A', 'b')",
    "import os\npath = os.path.dirname(__file__)\nassert f(path)",
    "import timeit\nassert timeit.timeit(lambda: f(1), number=1) < 1",
    "x = '1 + 1'\nassert eval(x) == f(1) == eval('2')",
    "assert f(1).format('a', n=3) == 'a3'\nassert '{}'.format(f(1)) == '3'\nM = '{}'\nassert g(1), M.format(h(1))",
    "import traceback, re\nassert traceback.format_exception(f(1)) and re.compile(f(2))",
    "import pandas as pd\nassert len(f(pd.DataFrame({'a': [1]})).query('a > 0')) == 1",
    "for text, value in [('1+1', 2)]: assert Calculator().eval(text) == value",
    "this is no python",
    "x = 1\0",
]


@rows("code", APART)
def test_code_that_can_be_apart(code: str) -> None:
    assert needs_one_process(code) is None


@pytest.mark.parametrize("name", ["solution", "my_code", "your_module", "two_sum_solution", "main", "src.main"])
def test_modules_that_stand_for_the_solution(name: str) -> None:
    assert is_solution_module(name)


@pytest.mark.parametrize("name", ["pandas", "math", "mypackage", "mainly"])
def test_modules_that_do_not(name: str) -> None:
    assert not is_solution_module(name)


@rows(
    "code, entry_point, builtins",
    [
        ("assert sum(10, 15) == 6\nassert sum(100, 150) == 93", None, {"sum"}),
        ("assert set(similar((3, 4), (5, 4))) == set((4,))", None, set()),
        ("assert len(sum(1, 2)) == 1\nassert len(sum(2, 3)) == 1", None, {"sum"}),
        ("assert sum(1, 2) == 3\nassert max(1, 2) == 2", None, set()),
        ("assert sum(f(1)) == 3", "sum", {"sum"}),
        ("assert sum(f(1)) == 3", "f", set()),
        ("x = 1", None, set()),
        ("for a, b, c in [(1, 2, 4)]:\n    assert sum(a, b) == c", None, {"sum"}),
        ("from solution import sum\nassert sum(1, 2) == 4", None, {"sum"}),
        ("from solution import *\nimport math\nassert sum(math.pi, 2) == 4", None, {"sum"}),
        ("r = root(2)\nassert abs(r - 1.41) < 0.01", None, set()),
        ("from solution import root\nr = root(2)\nassert abs(r - 1.41) < 0.01", None, set()),
        ("import solution\nr = solution.root(2)\nassert abs(r - 1.41) < 0.01", None, set()),
        ("def run(n): return root(n)\nr = run(2)\nassert abs(r - 1.41) < 0.01", None, set()),
        ("r = eval('root(2)')\nassert abs(r - 1.41) < 0.01", None, set()),
        ("r = sqrt(2)\nassert abs(r - 1.41) < 0.01", None, set()),
    ],
)
def test_builtins_that_are_tested(code: str, entry_point: str | None, builtins: set[str]) -> None:
    assert tests.tested_builtins(ast.parse(code), entry_point) == builtins


def test_a_plan_keeps_the_lines_of_the_code() -> None:
    plan = plan_units("x = 1\n\nassert x == (\n    1)\ndef check(candidate):\n    '''doc'''\n    assert candidate\n")
    assert plan.units == [("assert x == (\n    1)", 3), ("assert candidate", 7)]
    assert plan.check == "check"
    assert [node.lineno for node in plan.tree.body] == [1, 3, 5]
