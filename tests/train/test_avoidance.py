"""No completion that a policy could write escapes the loss of a plain wrong answer by not being judged.

Each is put into groups of 8 with 0 to 7 right answers and otherwise plain wrong ones; its advantage is never above that
of a plain wrong answer in its place, by any estimator.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest
import torch

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.engines.base import Completion
from truegold.pipeline.engines.chat import ByteEncoder
from truegold.pipeline.tables.rows import Row, dump_json
from truegold.train.config.grpo import RewardConfig
from truegold.train.grpo.groups import CompletionScorer
from truegold.train.objective import ADVANTAGES, PASS_AT_K, advantages

ENCODER = ByteEncoder(ChatConfig())
SIZE = 8


def fenced(program: str) -> str:
    return f"```python\n{program}\n```"


ASSERTS = {"tests": {"type": "asserts", "code": "assert double(2) == 4\nassert double(-3) == -6\n"}}
PYTEST = {
    "tests": {
        "type": "asserts",
        "code": "import pytest\n\n\ndef test_double():\n    for n in numbers():\n        assert double(n) == 2 * n\n"
        "    assert double(4) == 8\n",
    }
}
UNITTEST = {
    "tests": {
        "type": "unittest",
        "code": "import unittest\n\n\nclass TestDouble(unittest.TestCase):\n    def test_two(self):\n"
        "        self.assertEqual(double(2), 4)\n\n    def test_three(self):\n"
        "        self.assertEqual(double(3), 6)\n",
    }
}
STDIO = {"tests": {"type": "stdio", "cases": [{"input": "2\n", "output": "4\n"}, {"input": "5\n", "output": "10\n"}]}}
DOUBLE = "def double(n): return 2 * n"
EVASIVE_PROGRAMS = [
    "import nowhere_to_be_found\n" + DOUBLE,
    "import pytest\npytest.skip('later', allow_module_level=True)\n" + DOUBLE,
    "import unittest\nraise unittest.SkipTest('later')\n" + DOUBLE,
    "def double(n):\n    import unittest\n    raise unittest.SkipTest('later')",
    "def double(n):\n    import pytest\n    pytest.skip('later')",
    "def double(n):\n    import pytest\n    pytest.xfail('later')",
    "def double(n):\n    import pytest\n    pytest.importorskip('nowhere_to_be_found')",
    "def double(n):\n    raise NotImplementedError",
    "def double(n):\n    raise KeyboardInterrupt",
    "def double(n):\n    raise SystemExit(0)",
    "def double(n):\n    raise MemoryError",
    "def double(n):\n    raise RecursionError",
    "def double(n):\n    import os\n    os._exit(0)",
    "def double(n):\n    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)",
    "def double(n):\n    import os, signal\n    os.kill(os.getppid(), signal.SIGKILL)",
    "def double(n):\n    import os, signal\n    os.kill(os.getpid(), signal.SIGSTOP)",
    "def double(n):\n    import sys\n    sys.stdout.close(); sys.stderr.close(); sys.stdin.close()",
    "import os\nfor fd in range(3, 64):\n    try: os.close(fd)\n    except OSError: pass\n"
    + DOUBLE.replace("2 *", "3 *"),
    "def double(n):\n    return double(n)",
    "def double(n):\n    while True: pass",
    "def double(n):\n    import time\n    time.sleep(1000)",
    "def double(n):\n    return 'x' * 10**9",
    "def double(n):\n    return bytearray(10**11)",
    "def double(n):\n    print('x' * 10**8)",
    "def numbers(): return []\ndef double(n): return 3 * n",
    "raise SystemExit(0)",
    "import sys; sys.exit(0)",
    "assert False, 'skipped'",
    "exit()",
    "",
    "def double(n) return 2",
    "class double: pass",
    "double = None",
    "import builtins\nbuiltins.__import__ = None",
    "import sys\nsys.modules.clear()",
    "print(chr(0xD800))",
    "#!/bin/sh\nexit 0",
    "__test__ = False\ndef double(n): return 3 * n",
]
EVASIVE_ANSWERS = [
    "",
    "I do not know.",
    "It cannot be determined.",
    "The answer is left to the reader.",
    "\\boxed{}",
    "\\boxed{?}",
    "\\boxed{\\frac{1}{",
    "\\boxed{\\int_0^{\\infty} e^{-x^2} \\sin(x^{17}) \\, dx}",
    "\\boxed{\\sum_{n=1}^{10^{9}} \\frac{1}{n^3 + \\sin n}}",
    "\\boxed{\\lim_{x \\to 0} \\frac{\\sin x}{x^{x}}}",
    "\\boxed{9^{9^{9^{9}}}}",
    "\\boxed{" + "(" * 3_000 + "5" + ")" * 3_000 + "}",
    "\\boxed{" + "1+" * 20_000 + "1}",
    "\\boxed{5 frobs}",
    "\\boxed{5 glorps per frob}",
    "\\boxed{the number of apples that Tom has}",
    "\\boxed{none of the above}",
    "\\boxed{no solution}",
    "\\boxed{DNE}",
    "\\boxed{x}",
    "\\boxed{5 \\text{ or } 6}",
    "\\boxed{\\text{N/A}}",
    "<answer>null</answer>",
    '{"answer": null}',
    "So altogether that makes some number.",
    "<think> never closed",
    "\x00\x01\x02",
    "\\boxed{\ud800}".encode("utf-8", "replace").decode(),
    "5" * 100_000,
    "\\boxed{\\begin{pmatrix} 1 & 2",
    "\\boxed{\\operatorname{frob}(5)}",
    "\\boxed{\\zeta(\\zeta(3))}",
    "۵",
    "\\boxed{五}",
    "#### ",
]
MATH_GOLDS = ["5", "5 \\text{ glorps}", "\\text{no solution}", "\\int_0^1 x^2 dx", "x^2 + 1", "(1, 2)", "\\text{blue}"]
USERS = (
    "def judge(response, gold):\n"
    "    if 'know' in response:\n        return None\n"
    "    if 'boxed' not in response:\n        raise ValueError('no box')\n"
    "    return response.split('boxed{')[1].split('}')[0] == gold\n"
)


def rewards(row: Row, texts: list[str]) -> list[float | None]:
    completions = [
        Completion(tuple(ENCODER.encode_completion(text)), (-0.5,) * len(ENCODER.encode_completion(text)), "stop")
        for text in texts
    ]
    with closing(CompletionScorer(RewardConfig(deadline_s=5), ENCODER)) as scorer:
        return [score.reward.value for score in scorer.score([row], [completions])]


def row_of(verifier: str, gold: str | None, arguments: Mapping[str, Any]) -> Row:
    fields = {"id": "7", "prompt": "What is it?", "source": "rows", "domain": "math"}
    return {**fields, "gold": gold, "verifier": verifier, "verifier_args": dump_json(dict(arguments))}


def assert_none_is_above_wrong(right: float | None, wrong: float | None, evasive: dict[str, float | None]) -> None:
    assert right == 1.0
    for text, reward in evasive.items():
        if reward == 1.0:
            continue  # It was right after all, such as `5` written otherwise.
        for kind in (*ADVANTAGES, *PASS_AT_K):
            for passes in range(SIZE):
                others = [1.0] * passes + [wrong] * (SIZE - 1 - passes)
                assert advantage(kind, [reward, *others]) <= advantage(kind, [wrong, *others]) + 1e-9, (text, kind)


def advantage(kind: str, group: list[float | None]) -> float:
    values = torch.tensor([float("nan") if reward is None else reward for reward in group], dtype=torch.float64)
    return float(advantages(kind, values, torch.zeros(len(group), dtype=torch.int64), 2)[0])


@pytest.mark.parametrize("gold", MATH_GOLDS)
def test_no_answer_escapes_the_loss_of_a_wrong_one(gold: str) -> None:
    texts = [f"\\boxed{{{gold}}}", "\\boxed{-90210.7}", *EVASIVE_ANSWERS]
    right, wrong, *others = rewards(row_of("math", gold, {}), texts)
    assert_none_is_above_wrong(right, wrong, dict(zip(EVASIVE_ANSWERS, others, strict=True)))


@pytest.mark.parametrize(
    ("verifier", "gold", "arguments"),
    [
        ("choice", "B", {"options": ["red", "blue", "green"]}),
        ("choice", "B", {}),
        ("numeric", "5", {"rel_tol": 0.01}),
        ("exact", "Paris", {}),
    ],
)
def test_no_answer_escapes_other_verifiers(verifier: str, gold: str, arguments: dict[str, Any]) -> None:
    texts = [gold if verifier == "exact" else f"\\boxed{{{gold}}}", "\\boxed{A}", *EVASIVE_ANSWERS]
    right, wrong, *others = rewards(row_of(verifier, gold, arguments), texts)
    assert_none_is_above_wrong(right, wrong, dict(zip(EVASIVE_ANSWERS, others, strict=True)))


def test_no_answer_escapes_a_user_s_verifier_that_raises_or_declines(tmp_path: Any) -> None:
    (tmp_path / "users.py").write_text(USERS)
    texts = ["\\boxed{5}", "\\boxed{6}", *EVASIVE_ANSWERS]
    right, wrong, *others = rewards(row_of(f"{tmp_path / 'users.py'}:judge", "5", {}), texts)
    assert_none_is_above_wrong(right, wrong, dict(zip(EVASIVE_ANSWERS, others, strict=True)))


@pytest.mark.parametrize(
    ("tests", "right"),
    [
        pytest.param(ASSERTS, DOUBLE, id="asserts"),
        pytest.param(PYTEST, f"{DOUBLE}\ndef numbers(): return [1, 2]", id="pytest"),
        pytest.param(UNITTEST, DOUBLE, id="unittest"),
        pytest.param(STDIO, "print(2 * int(input()))", id="stdio"),
    ],
)
def test_no_program_escapes_the_loss_of_a_wrong_one(tests: dict[str, Any], right: str) -> None:
    row = row_of("code", None, {**tests, "limits": {"cpu_s": 1}})
    texts = [fenced(right), fenced("def double(n): return n - 1"), *map(fenced, EVASIVE_PROGRAMS), "No program."]
    paid, wrong, *others = rewards(row, texts)
    assert_none_is_above_wrong(paid, wrong, dict(zip([*EVASIVE_PROGRAMS, "No program."], others, strict=True)))
