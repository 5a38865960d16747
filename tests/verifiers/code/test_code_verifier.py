"""The verifier `code`: verdicts on responses, over all protocols."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sandboxes import STDIO, box_of, fenced
from tables import crossed, rows

from truegold.verifiers import ConfigError, Item, Reason, Verdict, gold_response, resolve, verify_batch
from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.sandbox import Tier


@pytest.fixture(params=[Tier.FULL, pytest.param(Tier.CONTAINER, marks=pytest.mark.long_table)])
def verifier(request: pytest.FixtureRequest) -> CodeVerifier:
    box_of(request.param)
    return CodeVerifier(tier=request.param)


CALLS = {
    "type": "calls",
    "entry_point": "add",
    "cases": [{"args": [1, 2], "expected": 3}, {"args": [-5, 5], "expected": 0}],
}
LOWERED = {
    "type": "asserts",
    "entry_point": "add",
    "code": "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(-5, 5) == 0\n",
}
BARE = {"type": "asserts", "code": "assert add(1, 2) == 3\nassert add(-5, 5) == 0"}
LOOP = {
    "type": "asserts",
    "entry_point": "add",
    "code": "import random\ndef check(candidate):\n    for _ in range(5):\n        a, b = random.randint(0, 9**9), random.randint(0, 9**9)\n"
    "        assert candidate(a, b) == a + b\n",
}
UNITTEST = {
    "type": "unittest",
    "code": "import unittest\nclass T(unittest.TestCase):\n    def test_small(self):\n        self.assertEqual(add(1, 2), 3)\n"
    "    def test_zero(self):\n        self.assertEqual(add(-5, 5), 0)\n",
}
TOGETHER = {
    "type": "unittest",
    "code": "import gc, unittest\nfrom unittest.mock import patch\nclass T(unittest.TestCase):\n    def test_small(self):\n"
    "        with patch('builtins.print'):\n            self.assertEqual(add(1, 2), 3)\n",
}
FUNCTION_SUITES = {
    "calls": CALLS,
    "lowered": LOWERED,
    "bare": BARE,
    "loop": LOOP,
    "unittest": UNITTEST,
}
RIGHT = "def add(a, b):\n    return a + b"
WRONG = "def add(a, b):\n    return a - b"


@rows("suite", [*FUNCTION_SUITES, "together"])
def test_a_right_function_passes_and_a_wrong_one_fails_in_every_form_of_test(
    verifier: CodeVerifier, suite: str
) -> None:
    tests = {**FUNCTION_SUITES, "together": TOGETHER}[suite]
    good = verifier(fenced(RIGHT), info={"tests": tests})
    assert (good.score, good.reason) == (1.0, Reason.MATCH), good
    assert good.evidence["tier"] == verifier.tier
    assert good.evidence["isolation"] == ("one_process" if suite == "together" else "apart")
    bad = verifier(fenced(WRONG), info={"tests": tests})
    assert (bad.score, bad.reason) == (0.0, Reason.MISMATCH), bad
    assert bad.evidence["failed"]


HACKS = {
    "equal to everything": "class E:\n    def __eq__(s, o): return True\n    def __ne__(s, o): return False\n    __hash__ = None\n"
    "    def __sub__(s, o): return 0\ndef add(a, b): return E()",
    "an int equal to everything": "class I(int):\n    def __eq__(s, o): return True\n    __hash__ = int.__hash__\ndef add(a, b): return I(0)",
    "exit when imported": "import sys\nsys.exit(0)\ndef add(a, b): return 0",
    "exit when called": "import os\ndef add(a, b): os._exit(0)",
    "no checks": "import sys\ndef add(a, b):\n    f = sys._getframe()\n    while f:\n        f.f_globals['check'] = lambda c: None\n        f = f.f_back\n    raise SystemExit(0)",
    "patched builtins": "import builtins\nbuiltins.all = lambda *a: True\nbuiltins.abs = lambda x: 0\nbuiltins.AssertionError = Warning\ndef add(a, b): return 0",
    "markers": "print('ALL TESTS PASSED\\n1 passed\\nOK')\nimport os\nos._exit(0)\ndef add(a, b): return 0",
    "forged results": "import os, json\nfor fd in range(3, 10):\n    for line in ({'loaded': True}, {'r': True}, {'test': 'x', 'ok': True}, {'done': {'passed': 9, 'total': 9}}, {'nonce': ''}):\n"
    "        try: os.write(fd, json.dumps(line).encode() + b'\\n')\n        except OSError: pass\ndef add(a, b): return 0",
    "the test read from files": "import glob, re\ndef add(a, b):\n    t = ''\n    for p in glob.glob('*') + glob.glob('/tmp/*') + ['/proc/self/cmdline', '/proc/self/mem']:\n"
    "        try: t += open(p, errors='ignore').read()\n        except Exception: pass\n    m = re.search(r'%d, ?%d\\) == (-?\\d+)' % (a, b), t)\n    return int(m[1]) if m else 0",
    "not a number": "def add(a, b): return float('nan')",
    "atexit": "import atexit, os\natexit.register(lambda: os._exit(0))\ndef add(a, b): return 0",
    "a thread that ends it": "import threading, os, time\nthreading.Thread(target=lambda: (time.sleep(0.01), os._exit(0))).start()\ndef add(a, b): return 0",
    "huge": "def add(a, b): return [0] * (10**8)",
    "endless": "def add(a, b):\n    while True: yield a",
    "killing": "import os\ndef add(a, b):\n    for p in (-1, os.getppid(), 0):\n        try: os.kill(p, 9)\n        except Exception: pass\n    return 0",
}


@pytest.mark.parametrize(("hack", "suite"), crossed(HACKS, FUNCTION_SUITES))
def test_no_hack_is_paid(verifier: CodeVerifier, suite: str, hack: str) -> None:
    verdict = verifier(fenced(HACKS[hack]), info={"tests": FUNCTION_SUITES[suite], "limits": {"cpu_s": 2}})
    assert verdict.score == 0.0, verdict


STDIO_PROGRAMS = {
    "right": ("print(int(input()) + int(input()))", 1.0, Reason.MATCH),
    "wrong": ("print(7)", 0.0, Reason.MISMATCH),
    "silent": ("pass", 0.0, Reason.MISMATCH),
    "everything": ("for i in range(100): print(i)", 0.0, Reason.MISMATCH),
    "crash after the answer": ("print(int(input()) + int(input())); raise SystemExit(3)", 0.0, Reason.MISMATCH),
    "loop": ("while True: pass", 0.0, Reason.TIMEOUT),
    "flood": ("while True: print('x' * 10**6)", 0.0, Reason.LIMIT),
    "no program": ("def f(:", 0.0, Reason.UNREAD),
}


@rows("name", STDIO_PROGRAMS)
def test_a_program_on_stdin_gets_the_verdict_it_earns(verifier: CodeVerifier, name: str) -> None:
    program, score, reason = STDIO_PROGRAMS[name]
    verdict = verifier(fenced(program), info={"tests": STDIO, "limits": {"cpu_s": 0.5, "output_mb": 1}})
    assert (verdict.score, verdict.reason) == (score, reason), verdict


def test_the_evidence_shows_the_failing_case() -> None:
    box_of(Tier.FULL)
    verdict = CodeVerifier()(fenced("print(7)"), info={"tests": STDIO})
    failed = verdict.evidence["failed"]
    assert (failed["case"], failed["input"], failed["expected"], failed["got"]) == (2, "0\n0\n", "0\n", "7\n")
    assert "expected '0', got '7'" in failed["error"]
    json.dumps(dict(verdict.evidence))


def test_a_pass_rate_is_paid_by_weight_when_asked_for() -> None:
    box_of(Tier.FULL)
    cases = [{"input": "1\n2\n", "output": "3", "weight": 3}, {"input": "1\n1\n", "output": "9"}]
    info = {"tests": {"type": "stdio", "cases": cases}, "reward": "pass_rate"}
    verdict = CodeVerifier()(fenced("print(int(input()) + int(input()))"), info=info)
    assert (verdict.score, verdict.reason) == (0.75, Reason.PARTIAL)
    assert (verdict.evidence["passed"], verdict.evidence["total"]) == (1, 2)


def test_the_first_failure_ends_a_run_unless_all_are_asked_for() -> None:
    box_of(Tier.FULL)
    first = CodeVerifier()(fenced(WRONG), info={"tests": CALLS})
    every = CodeVerifier(stop="never")(fenced("def add(a, b):\n    return 0"), info={"tests": CALLS})
    assert first.evidence["passed"] == 0
    assert every.evidence["passed"] == 1


def test_a_response_without_a_program_earns_nothing() -> None:
    verdict = CodeVerifier()("I cannot solve this.", info={"tests": CALLS})
    assert (verdict.score, verdict.reason) == (0.0, Reason.NO_ANSWER)


@pytest.mark.parametrize(
    ("info", "says"),
    [
        ({}, "tests"),
        ({"tests": {"type": "stdio", "cases": [{"input": "1", "output": 3}]}}, "cases[0].output"),
        ({"tests": {"type": "calls", "cases": []}}, "entry_point"),
        ({"tests": CALLS, "reward": "some"}, "reward must be one of all, pass_rate"),
        ({"tests": {"type": "asserts", "code": "x = 1"}}, "no tests"),
        (
            {"tests": {**STDIO, "checker": {"type": "program", "code": "def check(i, o, a): return 'yes'"}}},
            "True or False",
        ),
        ({"tests": CALLS, "language": "ruby"}, "Python"),
    ],
)
def test_a_suite_that_cannot_be_used_is_no_verdict_on_the_program(info: dict[str, Any], says: str) -> None:
    box_of(Tier.FULL)
    program = "print(1)\ndef add(a, b): return a + b"
    verdict = CodeVerifier()(fenced(program, info.get("language", "python")), info=info)
    assert (verdict.score, verdict.reason) == (None, Reason.VERIFIER_ERROR), verdict
    assert says in verdict.evidence["error"]


def test_a_checker_program_accepts_every_right_answer() -> None:
    box_of(Tier.FULL)
    code = "def check(input, output, answer):\n    a, b = map(int, output.split())\n    return a + b == int(input)"
    tests = {"type": "stdio", "cases": [{"input": "7", "output": "0 7"}], "checker": {"type": "program", "code": code}}
    assert CodeVerifier()(fenced("print(3, 4)"), info={"tests": tests}).score == 1.0
    assert CodeVerifier()(fenced("print(3, 5)"), info={"tests": tests}).score == 0.0
    assert CodeVerifier()(fenced("print('x')"), info={"tests": tests}).score == 0.0


def test_a_checker_that_reads_files_is_run_as_testlib_ones_are() -> None:
    box_of(Tier.FULL)
    code = "import sys\ni, o, a = [open(p).read() for p in sys.argv[1:]]\nsys.exit(0 if o.strip()[::-1] == a.strip() else 1)"
    tests = {"type": "stdio", "cases": [{"input": "", "output": "abc"}], "checker": {"type": "program", "code": code}}
    assert CodeVerifier()(fenced("print('cba')"), info={"tests": tests}).score == 1.0
    assert CodeVerifier()(fenced("print('abc')"), info={"tests": tests}).score == 0.0


def test_classes_with_codecs_cross_the_border() -> None:
    box_of(Tier.FULL)
    prelude = "class ListNode:\n    def __init__(self, val=0, next=None):\n        self.val, self.next = val, next\n"
    helpers = (
        prelude
        + "def list_node(values):\n    head = None\n    for v in reversed(values): head = ListNode(v, head)\n    return head\n"
        "def same(a, b):\n    while a and b and a.val == b.val: a, b = a.next, b.next\n    return a is b is None\n"
    )
    code = "def check(candidate):\n    assert same(candidate(list_node([1, 2, 3])), list_node([3, 2, 1]))\n"
    tests = {"type": "asserts", "entry_point": "Solution().rev", "code": code, "prelude": helpers}
    right = "class Solution:\n    def rev(self, head):\n        out = None\n        while head: out, head = ListNode(head.val, out), head.next\n        return out"
    assert CodeVerifier()(fenced(right), info={"tests": tests}).score == 1.0
    assert CodeVerifier()(fenced(right.replace("return out", "return head")), info={"tests": tests}).score == 0.0


def test_a_completion_may_leave_out_what_its_prompt_gives() -> None:
    box_of(Tier.FULL)
    stub = (
        'from typing import List\n\ndef helper(x):\n    return x + 1\n\ndef f(xs: List[int]) -> int:\n    """Sum."""\n'
    )
    tests = {
        "type": "asserts",
        "entry_point": "f",
        "stub": stub,
        "code": "def check(candidate):\n    assert candidate([1, 2]) == 5\n",
    }
    whole = "def f(xs: List[int]) -> int:\n    return sum(helper(x) for x in xs)"
    body = "    return sum(helper(x) for x in xs)"
    assert CodeVerifier()(fenced(whole), info={"tests": tests}).score == 1.0
    assert CodeVerifier()(body, info={"tests": tests}).score == 1.0


VECTOR = (
    "class V:\n    def __init__(self, x):\n        self.x = x\n    def __add__(self, other):\n        return V(self.x {} other.x)\n"
    "    def __eq__(self, other):\n        return self.x == other.x\n    __hash__ = None"
)


@pytest.mark.parametrize("code", ["assert V(1) + V(2) == V(3)", "assert V(1) == V(1)\nassert (V(1) + V(2)).x == 3"])
def test_objects_of_the_solution_s_classes_are_compared_where_they_live(verifier: CodeVerifier, code: str) -> None:
    tests = {"type": "asserts", "code": code}
    assert verifier(fenced(VECTOR.format("+")), info={"tests": tests}).score == 1.0
    assert verifier(fenced(VECTOR.format("-")), info={"tests": tests}).score == 0.0


def test_verdicts_are_the_same_every_time_and_in_threads(verifier: CodeVerifier) -> None:
    rows = [(fenced(program), suite) for program in (RIGHT, WRONG, HACKS["huge"]) for suite in FUNCTION_SUITES.values()]

    def judge(row: tuple[str, Any]) -> Verdict:
        return verifier(row[0], info={"tests": row[1], "limits": {"memory_mb": 256}})

    alone = [judge(row) for row in rows]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(judge, rows)) == alone


def test_a_batch_loses_no_row_whatever_the_programs_do() -> None:
    box_of(Tier.FULL)
    batch = []
    for program in (RIGHT, *HACKS.values()):
        batch += [Item(fenced(program), None, "code", json.dumps({"tests": CALLS, "limits": {"cpu_s": 1}}))] * 5
    verdicts = list(verify_batch(batch, workers=2))
    assert [verdict.score for verdict in verdicts] == [1.0] * 5 + [0.0] * (len(batch) - 5)


def test_the_verifier_is_found_by_name_and_pickled() -> None:
    box_of(Tier.FULL)
    verifier = pickle.loads(pickle.dumps(resolve("code")))
    assert verifier(fenced(RIGHT), None, info={"tests": CALLS}).score == 1.0


@pytest.mark.parametrize("written", ["{}", "```python\n{}\n```", "Add them:\n\n~~~py\n{}\n~~~\nThat is all."])
def test_a_solution_alone_is_a_gold_response_however_it_is_written(written: str) -> None:
    verifier = resolve("code")
    response = gold_response(verifier, None, written.format(RIGHT))
    assert response is not None
    box_of(Tier.FULL)
    assert verifier(response, None, info=CALLS).score == 1.0
    assert gold_response(verifier, None, None) is None


@pytest.mark.parametrize(
    ("problem", "checker", "score"),
    [
        (None, "tokens", 0.0),
        ("Print the area.", "tokens", 0.0),
        ("The absolute error must not exceed 10^{-6}.", "tokens", 0.0),
        ("The absolute or relative error must not exceed 10^{-6}.", "tokens", 1.0),
        ("相对误差不超过 10^{-6}。", "tokens", 1.0),
        ("The relative error must not exceed 10^{-6}.", {"type": "tokens", "abs_tol": 1e-6}, 0.0),
        ("Answers within 1e-1 of the right one are accepted.", "tokens", 1.0),
    ],
)
def test_the_error_that_a_problem_allows_holds_where_the_checker_names_none(
    problem: str | None, checker: object, score: float
) -> None:
    box_of(Tier.FULL)
    tests = {"type": "stdio", "checker": checker, "cases": [{"input": "", "output": "1234567.00"}]}
    assert CodeVerifier()(fenced("print('1234567.05')"), problem=problem, info={"tests": tests}).score == score


@pytest.mark.parametrize(
    ("expected", "printed", "checker", "score"),
    [
        ("1", "1.0000005", {"type": "tokens", "abs_tol": 1e-6}, 1.0),
        ("1000000000000", "1000000000999.0", {"type": "tokens", "abs_tol": 1e-6}, 0.0),
        ("1000000000000", "1e12", {"type": "tokens", "abs_tol": 1e-6}, 1.0),
        ("1000000", "1000000.5", {"type": "tokens", "rel_tol": 1e-6}, 1.0),
        ("1000000", "1000001", {"type": "tokens", "rel_tol": 1e-6}, 0.0),
        ("007", "7.0", {"type": "tokens", "abs_tol": 1e-6}, 0.0),
        ("1000000", "1000000.5", "tokens", 0.0),
    ],
)
def test_whole_numbers_have_the_tolerance_that_is_stated_and_no_other(
    expected: str, printed: str, checker: object, score: float
) -> None:
    box_of(Tier.FULL)
    tests = {"type": "stdio", "checker": checker, "cases": [{"input": "", "output": expected}]}
    assert CodeVerifier()(fenced(f"print({printed!r})"), info={"tests": tests}).score == score


def test_settings_that_mean_nothing_are_errors_where_they_are_made():
    for setting in ({"reward": "al"}, {"stop": "now"}, {"tier": "strong"}, {"backend": "nonsense://localhost"}):
        with pytest.raises(ConfigError):
            CodeVerifier(**setting)
    assert CodeVerifier(tier="weak").tier is Tier.WEAK


ODD = {
    "an object": "return object()",
    "a lock": "import threading; return threading.Lock()",
    "a module": "import sys; return sys",
    "a list in itself": "x = []; x.append(x); return x",
    "a deep list": "x = []\n    for _ in range(10_000): x = [x]\n    return x",
    "a long integer": "return 10 ** 100_000",
    "half a letter": "return '\\ud800'",
    "no answer of its own": "return NotImplemented",
    "an exit": "raise SystemExit(0)",
    "an end": "import os; os._exit(0)",
    "an interrupt": "raise KeyboardInterrupt",
    "a skipped test": "import unittest; raise unittest.SkipTest('no')",
    "a missing module": "raise ModuleNotFoundError(\"No module named 'numpy'\")",
    "a missing name": "raise NameError(\"name 'add' is not defined\")",
    "word of a bad suite": 'import os; os.write(3, b\'{"bad_suite":["a","b"]}\\n\'); return 0',
    "word of one process": 'import os; os.write(3, b\'{"cannot_isolate":"x"}\\n\'); return 0',
    "word of no tests": 'import os; os.write(3, b\'{"done":{"passed":0,"total":0}}\\n\'); os._exit(0)',
    "closed files": "import os; os.closerange(0, 64)",
    "no modules": "import sys; sys.modules.clear()",
}


@rows("name", ODD)
def test_no_response_makes_its_verdict_none(name: str) -> None:
    program = fenced(f"def add(a, b):\n    {ODD[name]}")
    for suite in [
        *FUNCTION_SUITES.values(),
        {**TOGETHER},
        {"type": "inserted", "code": "#<INSERT>\nassert add(1, 2) == 3"},
    ]:
        assert CodeVerifier()(program, info={"tests": suite}).score == 0.0, suite
