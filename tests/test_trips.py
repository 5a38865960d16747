"""How many files of the product a reader meets who follows one call, with everything loaded and cached."""

from __future__ import annotations

import pytest
from trips import files_entered

import truegold.verifiers as tv

ADDITION = "```python\ndef add(a, b):\n    return a + b\n```"
INCREMENT = "```python\nprint(int(input()) + 1)\n```"
ASSERTS = ["assert add(1, 2) == 3"]
CALLS = {"type": "calls", "entry_point": "add", "cases": [{"args": [1, 2], "expected": 3}]}
STDIO = {"type": "stdio", "cases": [{"input": "1\n", "output": "2\n"}]}


@pytest.mark.parametrize(
    ("response", "gold", "limit"),
    [
        ("#### 72", "72", 6),
        (r"\boxed{0.5}", "1/2", 7),
        ("x = 2 or x = -3", r"\{-3, 2\}", 16),
        ("x <= 3", r"(-\infty, 3]", 16),
    ],
)
def test_a_verdict_of_maths_is_a_short_trip(response: str, gold: str, limit: int) -> None:
    assert tv.verify(response, gold=gold).score == 1.0
    entered = files_entered(lambda: tv.verify(response, gold=gold))
    assert len(entered) <= limit, entered


@pytest.mark.parametrize(
    ("response", "tests", "limit"), [(ADDITION, ASSERTS, 15), (ADDITION, CALLS, 15), (INCREMENT, STDIO, 14)]
)
def test_a_verdict_of_a_program_is_a_short_trip(response: str, tests: object, limit: int) -> None:
    verdict = tv.verify(response, verifier="code", tests=tests)
    assert verdict.score == 1.0, verdict
    entered = files_entered(lambda: tv.verify(response, verifier="code", tests=tests))
    assert len(entered) <= limit, entered
