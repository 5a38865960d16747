"""Suites with tests that are not run: no program is judged by them, and the message names what does not run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tables import rows

from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.code.suite.imports import missing_package
from truegold.verifiers.code.suite.unrun import unrun_tests
from truegold.verifiers.verdict import Reason

RIGHT = "def add(a, b):\n    return a + b"
WRONG = "def add(a, b):\n    return 0"
ZERO = "def test_zero():\n    assert add(0, 0) == 0\n"
"""A test that the wrong program passes, beside the one that is not run."""

UNRUN = {
    "the fixture numbers is not there": "import pytest\ndef test_r(numbers):\n    assert add(*numbers) == 3\n",
    "Sums is a class that no runner collects": "class Sums:\n    def test_one(self):\n        assert add(1, 2) == 3\n",
    "TestUse is a class that no runner collects": "import pytest\nclass TestUse:\n    def __init__(self):\n"
    "        self.n = 1\n    def test_bad(self):\n        with pytest.raises(TypeError): add(1)\n",
    "nothing calls main": "def main():\n    assert add(1, 2) == 3\n",
    "nothing calls check_add": "def check_add():\n    assert add(1, 2) == 3\n",
    "nothing calls inner": "def test_u():\n    def inner():\n        assert add(1, 2) == 3\n",
    "nothing calls should_add": "import unittest\nclass T(unittest.TestCase):\n"
    "    def should_add(self):\n        self.assertEqual(add(1, 2), 3)\n",
    "test_p[NOTSET]: line 6 asserts nothing": "import pytest\n@pytest.mark.parametrize('a', [])\ndef test_p(a):\n"
    "    assert add(a, 2) == 3\n",
    "asserts nothing": "def test_v():\n    yield\n    assert add(1, 2) == 3\n",
    "line 5 asserts nothing": "import os\nif os.environ.get('FULL'):\n    assert add(1, 2) == 3\n",
    "is never reached": "if False:\n    assert add(1, 2) == 3\n",
    "line 5 is never reached": "def test_z():\n    return\n    assert add(1, 2) == 3\n",
    "line 4 silences its failure": "def test_a():\n    try:\n        assert add(1, 2) == 3\n"
    "    except Exception:\n        pass\n",
    "is always true": "def test_b():\n    assert (add(1, 2) == 3, 'wrong')\n",
    "never runs its assertion": "import unittest\nclass T(unittest.TestCase):\n    def test_c(self):\n"
    "        self.assertEqual\n        (add(1, 2), 3)\n",
    "test_zero is defined twice": "def test_zero():\n    assert add(0, 0) == 0\n",
    "test_zero is replaced or deleted": "test_zero = None\ndef test_d():\n    assert add(0, 0) == 0\n",
    "test_f returns": "def test_f():\n    return add(1, 2) == 3\n",
    "the tests define add": "def add(a, b):\n    return a + b\n",
    "doctests": "import doctest\ndef g():\n    '''\n    >>> add(1, 2)\n    3\n    '''\n"
    "import solution\ndoctest.testmod(solution)\n",
    "T is defined twice": "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n"
    "        self.assertEqual(add(1, 2), 3)\nclass T(unittest.TestCase):\n    def test_b(self):\n"
    "        self.assertEqual(add(0, 0), 0)\n",
    "Inner is not at module level": "import unittest\nclass Outer:\n    class Inner(unittest.TestCase):\n"
    "        def test_a(self):\n            self.assertEqual(add(1, 2), 3)\n",
    "Inner is not at module": "import unittest\nclass T(unittest.TestCase):\n    def test_z(self):\n"
    "        self.assertEqual(add(0, 0), 0)\n    class Inner(unittest.TestCase):\n        def test_a(self):\n"
    "            self.assertEqual(add(1, 2), 3)\n",
    "TestIn is not at module": "class TestOut:\n    def __init__(self):\n        pass\n    class TestIn:\n"
    "        def test_a(self):\n            assert add(1, 2) == 3\n",
    "load_tests is never called": "def load_tests(loader, tests, pattern):\n    return tests\n",
}

IMPORT = "from solution import add\n"
SKIPPED = "def test_no():\n    assert add(1, 2) == 4\ndef test_sum():\n    assert add(1, 2) == 3\n"

RUN = {
    "a skip beside an import": f"import pytest\n{IMPORT}@pytest.mark.skip\n{SKIPPED}",
    "a skip in one process": f"import gc, pytest\n{IMPORT}@pytest.mark.skip\n{SKIPPED}",
    "a platform's skip in one process": f"import gc, sys, unittest\n{IMPORT}class T(unittest.TestCase):\n"
    "    def test_no(self):\n        if sys.platform != 'win32':\n            self.skipTest('windows')\n"
    "        self.assertEqual(add(1, 2), 4)\n    def test_sum(self):\n        self.assertEqual(add(1, 2), 3)\n",
    "classes within a class": "class TestAll:\n    def test_zero(self):\n        assert add(0, 0) == 0\n"
    "    class TestSums:\n        def test_sum(self):\n            assert add(1, 2) == 3\n",
    "a module that is loaded again": "import importlib, add_numbers\nimportlib.reload(add_numbers)\n"
    "def test_sum():\n    assert add_numbers.add(1, 2) == 3\n",
    "a module that is loaded anew": "import importlib\ndef test_sum():\n    import solution\n    solution.add = None\n"
    "    importlib.reload(solution)\n    assert solution.add(1, 2) == 3\n",
    "its own folder": f"import os\n{IMPORT}HERE = os.path.dirname(os.path.abspath(__file__))\n"
    "def test_sum():\n    assert os.path.isdir(HERE)\n    assert add(1, 2) == 3\n",
    "a module as a name": "import solution\ndef test_sum():\n    assert hasattr(solution, 'add')\n"
    "    assert solution.add(1, 2) == 3\n",
    "parameters": "import pytest\n@pytest.mark.parametrize('a, c', [(1, 3), pytest.param(0, 2, id='zero')])\n"
    "def test_p(a, c):\n    assert add(a, 2) == c\n",
    "a fixture that fills a list": "import pytest\nROWS = []\n@pytest.fixture(autouse=True)\ndef fill():\n"
    "    ROWS[:] = [(1, 2, 3)]\n    yield\n    ROWS.clear()\ndef test_sum():\n"
    "    for a, b, c in ROWS: assert add(a, b) == c\n",
    "an inherited test": "class Base:\n    n = 1\n    def test_sum(self):\n"
    "        assert add(self.n, 2) == self.n + 2\nclass TestMore(Base):\n    n = 4\n",
    "a skip that the program brings about": "import pytest\ndef test_zero():\n    assert add(0, 0) == 0\n"
    "def test_sum():\n    if add(1, 2) != 3: pytest.skip()\n    assert add(1, 2) == 3\n",
    "a skip after a caught error": "import pytest\ndef test_sum():\n    try: r = add(1, 2)\n"
    "    except Exception: r = None\n    if r != 3: pytest.xfail('no')\n    assert r == 3\n",
    "an expected failure that the program decides": "import pytest\n@pytest.mark.xfail('add(1, 2) != 3')\n"
    "def test_sum():\n    assert add(1, 2) == 3\n",
    "a skip of the machine": "import pytest, sys\n@pytest.mark.skipif(sys.platform != 'win32', reason='')\n"
    "def test_w():\n    assert add(1, 2) == 4\ndef test_sum():\n    assert add(1, 2) == 3\n",
    "a class that skips itself": "import unittest\nclass S(unittest.TestCase):\n    @classmethod\n"
    "    def setUpClass(cls):\n        raise unittest.SkipTest('no')\n    def test_a(self):\n        self.fail()\n"
    "class T(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(add(1, 2), 3)\n",
    "a check after a fixture": "import pytest\n@pytest.fixture\ndef sums():\n    yield\n    assert add(1, 2) == 3\n"
    "def test_zero(sums):\n    assert add(0, 0) == 0\n",
    "a relative import": "from .add_numbers import add\ndef test_sum():\n    assert add(1, 2) == 3\n",
    "an exception of its own": "if add(1, 2) != 3:\n    raise Exception('wrong')\n",
    "a check that returns early": "def check(candidate):\n    if candidate(1, 2) == 3:\n        return True\n"
    "    assert False, 'wrong'\n",
    "a base class that is deleted": "import unittest\nclass Base(unittest.TestCase):\n    def test_sum(self):\n"
    "        self.assertEqual(add(1, 2), 3)\nclass T(Base):\n    pass\ndel Base\n",
    "a check": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
    "a check that a guard calls": "def check(candidate):\n    assert candidate(1, 2) == 3\n"
    "if __name__ == '__main__':\n    check(add)\n",
    "bare assertions": "assert add(1, 2) == 3\nassert add(0, 0) == 0\n",
    "a guard around all": "if __name__ == '__main__':\n    assert add(1, 2) == 3\n    print('ok')\n",
    "a guard the other way round": "def main():\n    assert add(1, 2) == 3\nif '__main__' == __name__:\n    main()\n",
    "a guard that leaves": "import sys\ndef main():\n    assert add(1, 2) == 3\n    return 0\n"
    "if __name__ == '__main__':\n    sys.exit(main())\n",
    "assertions beside a decorated test": "import functools\ndef twice(f):\n    @functools.wraps(f)\n    def run():\n"
    "        f()\n        f()\n    return run\nassert add(0, 0) == 0\n@twice\n"
    "def test_sum():\n    assert add(1, 2) == 3\n",
    "assertions beside test cases": "import unittest\nassert add(0, 0) == 0\nclass T(unittest.TestCase):\n"
    "    def test_sum(self):\n        self.assertEqual(add(1, 2), 3)\n"
    "if __name__ == '__main__':\n    unittest.main()\n",
    "a test that is made": "def make(a, b, c):\n    def run():\n        assert add(a, b) == c\n    return run\n"
    "test_a = make(1, 2, 3)\ntest_b = make(0, 0, 0)\n",
    "a test that is bound": "from functools import partial\ndef both(a, c):\n    assert add(a, 2) == c\n"
    "test_a = partial(both, 1, 3)\n",
    "a helper that is called": "def close(a, b):\n    assert abs(a - b) < 1e-9\ndef test_sum():\n"
    "    close(add(1, 2), 3)\n",
    "a helper with parameters that nothing calls": "def close(a, b):\n    assert abs(a - b) < 1e-9\n"
    "assert add(1, 2) == 3\n",
    "functions in a list": "def one():\n    assert add(1, 2) == 3\nfor test in [one]:\n    test()\n",
    "functions handed over": "def one(row):\n    assert add(row[0], row[1]) == row[2]\nlist(map(one, [(1, 2, 3)]))\n",
    "a mixin": "import unittest\nclass Sums:\n    def test_sum(self):\n        self.assertEqual(add(1, 2), 3)\n"
    "class T(Sums, unittest.TestCase):\n    pass\n",
    "a set-up of the module": "import unittest\nROWS = []\ndef setUpModule():\n    ROWS.append((1, 2, 3))\n"
    "class T(unittest.TestCase):\n    def test_sum(self):\n        for a, b, c in ROWS * 2:\n"
    "            self.assertEqual(add(a, b), c)\n",
    "a condition that holds": "import sys\nif sys.version_info >= (3, 8):\n    assert add(1, 2) == 3\n",
    "a marked test": "import pytest\n@pytest.mark.timeout(5)\ndef test_sum():\n    assert add(1, 2) == 3\n",
    "an asynchronous test": "async def test_sum():\n    assert add(1, 2) == 3\n",
    "an exception that has to come": "assert add(1, 2) == 3\ntry:\n    add(None, 1)\n    assert False\n"
    "except TypeError:\n    pass\n",
}


DOCTEST = "import doctest, sys\ndef sums():\n    '''\n    >>> add(1, 2)\n    3\n    '''\n"
CASES = (
    "import sys, unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(add(1, 2), 3)\n"
)
LOADED = "unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(T))"
MAIN = "import sys\ndef main():\n    assert add(1, 2) == 3\n    return 0\n"
GUARD = "if __name__ == '__main__':\n    "

ENDINGS = [
    f"{DOCTEST}{GUARD}raise SystemExit(bool(doctest.testmod().failed))\n",
    f"{DOCTEST}{GUARD}results = doctest.testmod(verbose=True)\n    sys.exit(results.failed > 0)\n",
    f"{DOCTEST}sys.exit(doctest.testmod()[0])\n",
    f"{DOCTEST}failed, _ = doctest.testmod()\nif failed:\n    sys.exit(1)\n",
    f"{DOCTEST}assert doctest.testmod().failed == 0\n",
    f"{DOCTEST}def main():\n    raise SystemExit(doctest.testmod().failed)\n{GUARD}main()\n",
    f"from doctest import testmod\n{DOCTEST}{GUARD}raise SystemExit(testmod().failed)\n",
    f"{CASES}{GUARD}sys.exit(unittest.main())\n",
    f"from unittest import main\n{CASES}main()\n",
    f"{CASES}r = unittest.main(exit=False)\nraise SystemExit(not r.result.wasSuccessful())\n",
    f"{CASES}r = {LOADED}\nraise SystemExit(not r.wasSuccessful())\n",
    f"{CASES}def main():\n    return 0 if {LOADED}.wasSuccessful() else 1\n{GUARD}sys.exit(main())\n",
    "import pytest, sys\ndef test_a():\n    assert add(1, 2) == 3\nsys.exit(pytest.main([__file__]))\n",
    f"{MAIN}{GUARD}raise SystemExit(main())\n",
    f"{MAIN}sys.exit(main())\n",
    "import sys\ndef main():\n    assert add(1, 2) == 3\n    sys.exit(0)\nmain()\n",
    f"import sys\ndef main():\n    return int(add(1, 2) != 3)\n{GUARD}sys.exit(main())\n",
    "import sys\nfailed = 0\nif add(1, 2) != 3:\n    failed += 1\nsys.exit(failed)\n",
    "import sys\nif add(1, 2) == 3:\n    sys.exit(0)\nelse:\n    sys.exit(1)\n",
    "assert add(1, 2) == 3\nraise SystemExit\n",
]
"""Suites that run their tests themselves, or say by their exit status how these ended."""


def judge(program, code, **tests):
    return CodeVerifier()(f"```python\n{program}\n```", info={"tests": {"code": code, "entry_point": "add", **tests}})


@pytest.mark.parametrize("kind", ["asserts", "unittest"])
@pytest.mark.parametrize("name", UNRUN)
def test_a_suite_with_tests_that_are_not_run_judges_nothing_and_names_them(name, kind):
    for program in (RIGHT, WRONG, "pass"):
        verdict = judge(program, ZERO + UNRUN[name], type=kind)
        assert (verdict.score, verdict.reason) == (None, Reason.VERIFIER_ERROR)
        assert name in verdict.evidence["error"]


@rows("name", RUN)
def test_a_suite_that_is_run_whole_tells_right_from_wrong(name):
    assert unrun_tests(RUN[name], "add") == ()
    assert judge(RIGHT, RUN[name], type="asserts").score == 1.0
    assert judge(WRONG.replace("return 0", "return (a or b) and 0"), RUN[name], type="asserts").score == 0.0


@rows("code", ENDINGS)
def test_an_exit_status_at_the_end_is_that_of_the_tests(code):
    leaving = ("import sys\ndef add(a, b):\n    sys.exit(0)", "def add(a, b):\n    raise SystemExit")
    for kind in ("asserts", "unittest"):
        scores = [judge(program, code, type=kind).score for program in (RIGHT, WRONG, *leaving)]
        assert scores == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("fact", ["add is not None", "callable(add)", "isinstance(Sum, type)", "Sum is not add"])
@pytest.mark.parametrize("suite", ["from solution import *\nassert {}\n", "{}def test_a():\n    assert {}\n"])
def test_what_a_program_defines_can_be_all_that_is_asked(fact, suite):
    code = suite.format(*["from solution import add, Sum\n", fact][-suite.count("{}") :])
    assert judge(f"{RIGHT}\nclass Sum: pass", code, type="unittest", entry_point=None).score == 1.0
    assert (
        judge("add = Sum = None" if "Sum is" in fact else "pass", code, type="unittest", entry_point=None).score == 0.0
    )


ASSERTS_NOTHING = (
    f"import pytest\n{IMPORT}@pytest.mark.parametrize('a', [1])\ndef test_a(a):\n    assert a\n",
    f"{IMPORT}class TestSums:\n    def test_a(self):\n        assert True\n",
    f"{IMPORT}def test_a():\n    assert 1 + 2 == 3\n",
    "assert True\n",
    "assert add(0, 0) == 0\nassert [add(1, 2) == 3]\n",
    "assert add(0, 0) == 0\nassert add(1, 2) == 3 or True\n",
    "assert add(0, 0) == 0\nadd(1, 2) == 3\n",
    "assert add(0, 0) == 0\nasync def sums():\n    assert add(1, 2) == 3\nsums()\n",
    "assert add(0, 0) == 0\nfor _ in range(0):\n    assert add(1, 2) == 3\n",
    "def test_add():\n    try:\n        assert add(1, 2) == 3\n    except Exception:\n        return False\n"
    "    return True\n",
    "def check(candidate):\n    pass\n",
    "def check(candidate):\n    return candidate(1, 2) == 3 and candidate(0, 0) == 0\n",
    "def test_add():\n    '''1 and 2 make 3.'''\n",
    "def test_add():\n    return all(add(n, 0) == n for n in range(3))\n",
)


@rows("code", ASSERTS_NOTHING)
def test_a_suite_that_asserts_nothing_judges_nothing(code):
    assert judge(WRONG, code, type="asserts").score is None


HEALTHY = {
    "a nested generator": "def test_sum():\n    def rows():\n        yield 1, 2, 3\n"
    "    for a, b, c in rows():\n        assert add(a, b) == c\n",
    "cases from a generator": "def test_cases():\n    yield 1, 2, 3\nfor a, b, c in test_cases():\n"
    "    assert add(a, b) == c\n",
    "a name that is no skip": "skip = 2\nassert add(1, skip) == 3\n",
    "a skip for old versions": "import sys, unittest\nclass T(unittest.TestCase):\n"
    "    @unittest.skipIf(sys.version_info < (3, 8), 'old')\n    def test_sum(self):\n"
    "        self.assertEqual(add(1, 2), 3)\n",
    "a class that asserts for itself": "class Stack:\n    def __init__(self):\n        self.rows = []\n"
    "    def pop(self):\n"
    "        assert self.rows\n        return self.rows.pop()\nassert add(1, 2) == 3\n",
    "a list that a function fills": "import heapq\nrows = []\nheapq.heappush(rows, (1, 2, 3))\nfor a, b, c in rows:\n"
    "    assert add(a, b) == c\n",
    "counted failures": "right = 0\nfor a, b, c in [(1, 2, 3)]:\n    try:\n        assert add(a, b) == c\n"
    "        right += 1\n"
    "    except AssertionError:\n        print('wrong', a, b)\nassert right == 1\n",
    "tests that main calls": "TOTAL = []\ndef test_sum():\n    TOTAL.append(add(1, 2))\n    assert TOTAL == [3]\n"
    "def main():\n    test_sum()\nif __name__ == '__main__':\n    main()\n",
    "a registry": "TESTS = []\ndef case(function):\n    TESTS.append(function)\n    return function\n"
    "@case\ndef one():\n"
    "    assert add(1, 2) == 3\nfor test in TESTS:\n    test()\nassert add(0, 0) == 0\n",
    "the program as a script": "from __main__ import add\nassert add(1, 2) == 3\n",
    "doctest that is not used": "import doctest\n# >>> add(1, 2)\nassert add(1, 2) == 3\n",
}


@rows("name", HEALTHY)
def test_a_healthy_suite_is_run(name):
    assert unrun_tests(HEALTHY[name], "add") == ()
    assert judge(RIGHT, HEALTHY[name], type="asserts").score == 1.0


def test_suites_of_any_depth_and_length_are_read():
    chain = "def f0():\n    assert add(1, 2) == 3\n" + "".join(
        f"def f{index}():\n    f{index - 1}()\n" for index in range(1, 2000)
    )
    assert unrun_tests(f"{chain}f1999()\n") == ()
    for code in (
        "x = " + "a" + ".b()" * 3000,
        "if x == 0: pass\n" + "elif x == 1: pass\n" * 3000,
        "assert " + "-" * 90000 + "1",
    ):
        assert unrun_tests(code) == ()
    assert unrun_tests("import sys\nif sys.version_info[9]: assert add(1, 2)\n") == ()


def test_a_suite_that_wants_a_package_which_is_absent_judges_nothing():
    code = f"from no_such_package import helper\n{ZERO}"
    assert missing_package(code) == "no_such_package"
    assert judge(RIGHT, code, type="unittest").score is None
    for several in (
        "from add_numbers import add\nfrom other_one import helper\n",
        "from solution import add\nfrom other_one import helper\n",
        "from .sums import add\nimport other_one\n",
        "import other_one\ndef check(candidate): assert candidate(1, 2) == 3\n",
    ):
        assert "other_one" in judge(RIGHT, several + ZERO, type="unittest").evidence["error"]
    for installed in ("import json", "from solution import add", "try:\n    import no_such_package\nexcept: pass"):
        assert missing_package(installed) is None


def test_tests_that_a_program_defines_are_not_the_suites():
    own = f"{RIGHT}\n\ndef test_add():\n    assert add(1, 2) == 4\n"
    apart = "assert add(1, 2) == 3\n"
    for code in (apart, f"import gc\n{apart}"):
        assert judge(own, code, type="asserts").score == 1.0
    in_one_process = f"import gc, unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        {apart}"
    assert judge(own, in_one_process, type="unittest").score == 1.0


def test_a_suite_that_fails_before_its_first_call_judges_nothing():
    code = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        assert [][0] == add(1, 2)\n"
    assert "IndexError" in judge(RIGHT, code, type="unittest").evidence["error"]


def test_code_that_does_not_parse_has_no_unrun_tests():
    assert unrun_tests("def test_a(:") == ()
    assert missing_package("def test_a(:") is None


FRESH = [
    json.loads(line) for line in Path(__file__).with_name("fresh_suites.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Suites by an author who had read the documentation and not the code; `want_right` and `want_wrong` are his."""

VALUES_DECIDE = {"mock's misspelt assertion", "prelude helpers"}
"""Suites whose values leave their assertions out, which no reading of the code shows."""

AUTHOR_SKIPS = {
    *("mark.skip", "skipif true", "xfail", "pytest.skip in the body", "unittest.skip", "expectedFailure"),
    *("__test__ False", "platform only Windows"),
}
"""Suites whose author leaves a test out, or expects it to fail, for every program: the other tests decide."""


@rows("suite", FRESH)
def test_suites_of_another_author(suite):
    scores = [CodeVerifier()(f"```python\n{suite[side]}\n```", info=suite["info"]).score for side in ("right", "wrong")]
    allowed = {"any_true": (1.0, None), "any_false": (0.0, None)}
    holds = [
        score in allowed.get(suite[f"want_{side}"], (suite[f"want_{side}"],))
        for side, score in zip(("right", "wrong"), scores, strict=True)
    ]
    assert all(holds) == (suite["name"] not in VALUES_DECIDE | AUTHOR_SKIPS), scores
