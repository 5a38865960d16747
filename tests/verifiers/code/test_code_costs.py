"""What reading and checking results costs the verifier's own process, whatever a program returns or forges."""

import resource
import time
from typing import Any

import pytest

from truegold.verifiers import Reason
from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.code.checks.lowering import lower
from truegold.verifiers.code.protocols.python_tests import lines
from truegold.verifiers.sandbox.inside.wire.decoding import decode
from truegold.verifiers.sandbox.inside.wire.foreign_values import Instance, Undecodable

MOST_CPU_S = 2.0
MOST_MB = 300


def held(code: str, *outcomes: Any) -> list[bool | None]:
    """Each assertion, and the CPU time of them all is bounded."""
    lowered_tests = lower(code, "f")
    assert lowered_tests is not None
    began = time.thread_time()
    verdicts = [check.holds(outcomes) for check in lowered_tests.checks]
    assert time.thread_time() - began < MOST_CPU_S * len(verdicts)
    return verdicts


def ring(length: int) -> Instance:
    nodes = [Instance("ListNode", {"val": 0, "next": None}) for _ in range(length)]
    for node, following in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
        node.fields["next"] = following
    return nodes[0]


LONG = list(range(100_000))
QUADRATIC = {
    "count": ("all(r.count(x) == 1 for x in r)", LONG),
    "index": ("all(r.index(x) == x for x in r)", LONG),
    "contains": ("len([x for x in r if x in r]) == 5", LONG),
    "sorting": ("all(sorted(r) == r for x in r)", LONG),
    "sums": ("all(sum(r) > 0 for x in r)", LONG),
    "slices": ("all(r[:i] == r[:i] for i in range(len(r)))", LONG),
    "concatenation": ("all(len(r + r) > 5 for x in r)", LONG),
    "repetition": ("[r * 9 for x in r] == 5", LONG),
    "two loops": ("all(x >= 0 and y >= 0 for x in r for y in r)", LONG),
    "a chain": ("all(r == r == r for x in r)", LONG),
    "long items": ("all(r.count(x) == 1 for x in r)", [[0] * 1000 + [n] for n in range(2000)]),
    "long texts": ("all(r.count(x) == 1 for x in r)", ["a" * 500 + str(n) for n in range(20_000)]),
    "a text": ("all(x in r for y in r for x in r)", "ab" * 500_000),
    "keys of one hash": ("all(len(r | r) > 5 for x in r)", {n * (2**61 - 1) for n in range(2800)}),
    "large integers": ("all(x * x > y for x in r for y in r)", [10**4000 + n for n in range(2000)]),
    "digits": ("all(str(r) != x for x in r)", [10**4200 + n for n in range(2000)]),
}


@pytest.mark.parametrize(("check", "result"), QUADRATIC.values(), ids=QUADRATIC.keys())
def test_what_is_quadratic_in_a_result_is_left_to_a_process_of_its_own(check: str, result: Any) -> None:
    assert held(f"r = f(1)\nassert {check}", result) == [True, None]


def test_a_list_of_one_long_ring_is_as_long_as_all_its_ways() -> None:
    assert held("assert f(1) == f(2)", [ring(50_000)] * 1000, [ring(50_000)] * 1000) == [None]
    assert held("assert f(1) == f(2)", ring(50_000), ring(50_000)) == [True]


def test_joining_long_texts_is_left_to_a_process_of_its_own() -> None:
    assert held("assert f(1).join(f(2)) == 'x'", "a" * 10**6, ["b"] * 10**6) == [None]


def test_all_checks_of_a_program_share_one_budget() -> None:
    code = "def check(candidate):\n" + "    assert sorted(candidate(1)) == candidate(2)\n" * 200
    verdict = CodeVerifier()(
        "```python\ndef f(x): return list(range(200_000))\n```",
        info={"tests": {"type": "asserts", "entry_point": "f", "code": code}, "limits": {"cpu_s": 2}},
    )
    assert verdict.score == 0.0
    assert verdict.reason in {Reason.TIMEOUT, Reason.LIMIT}


LINEAR = {
    "indexing": ("all(r[i] <= r[i + 1] for i in range(len(r) - 1))", LONG),
    "a set": ("len(r) == len(set(r))", LONG),
    "membership in a set": ("all(x in {0, 1} for x in r)", [0, 1] * 50_000),
    "membership in a result": ("all(x in r for x in range(50000))", set(LONG)),
    "ranges": ("all(x in range(200000) for x in r)", LONG),
    "lookups": ("all(r[x] == x for x in r)", {n: n for n in range(50_000)}),
    "types": ("all(isinstance(x, int) for x in r)", LONG),
    "a short list": ("all(r.count(x) == 1 for x in r)", LONG[:500]),
    "a sum": ("sum(r) == 4999950000 and max(r) == 99999", LONG),
}


@pytest.mark.parametrize(("check", "result"), LINEAR.values(), ids=LINEAR.keys())
def test_what_tests_usually_ask_of_long_results_is_told_here(check: str, result: Any) -> None:
    assert held(f"r = f(1)\nassert {check}", result) == [True, True]


# Lines of results


def test_lines_are_complete_ones() -> None:
    assert list(lines(b'{"r":1}\n\n\n{"r":2}\n{"r":', 100)) == [b'{"r":1}', b'{"r":2}']
    assert list(lines(b"", 100)) == []


def test_parts_are_counted_over_all_lines() -> None:
    assert list(lines(b"[1,2,3]\n" * 4, 20)) == [b"[1,2,3]", b"[1,2,3]", None]


def repeated(item: str, megabytes: float = 30) -> str:
    """Python that makes a line of a list of many such items."""
    count = int(megabytes * 2**20) // (len(item) + 1)
    return f"b'{{\"r\":[' + b'{item},' * {count} + b'0]}}\\n'"


FORGED = {
    "empty lines": "b'\\n' * 60_000_000",
    "numbers": "b'2\\n' * 30_000_000",
    "errors": 'b\'{"load_error":["a","b"]}\\n\' * 2_000_000',
    "unknown messages": "b'{}\\n' * 20_000_000",
    "lists": repeated("[]"),
    "lists just below the limit": repeated("[]", 4),
    "objects": repeated('{"a":1}'),
    "objects just below the limit": repeated('{"a":1}', 4),
    "tuples just below the limit": repeated('{"$":"tuple","v":[]}', 8),
    "numbers in a list": repeated("999"),
    "numbers in two lists": f"({repeated('999', 15)}) * 4",
    "texts": repeated('"ab"'),
    "digits": repeated("9" * 4000),
    "digits in lines": f"({repeated('9' * 4000, 15)}) * 4",
    "an array of lists": 'b\'{"r":{"$":"ndarray","dtype":"int64","shape":[4000000,1],"v":[\''
    " + b'1,' * 3999999 + b'1]}}\\n'",
    "brackets": "b'[' * 60_000_000",
    "one text": "b'{\"r\":\"' + b'x' * 60_000_000 + b'\"}\\n'",
}


@pytest.mark.parametrize("line", FORGED.values(), ids=FORGED.keys())
def test_forged_results_cost_little(line: str) -> None:
    program = f"""
import os
left = memoryview({line})
while left:
    left = left[os.write(3, left[:2**24]):]
os._exit(0)
def add(a, b): return 0
"""
    cases = [{"args": [n, 2], "expected": 3} for n in range(3)]
    judge = CodeVerifier()
    info = {"tests": {"type": "calls", "entry_point": "add", "cases": cases}, "stop": "never"}
    began, before = time.thread_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    verdict = judge(f"```python\n{program}\n```", info=info)
    assert verdict.score == 0.0
    assert time.thread_time() - began < MOST_CPU_S
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < MOST_MB


def test_an_array_of_a_shape_with_too_many_lists_is_none() -> None:
    for shape in ([10**6, 1, 1, 1], [2_000_000, 1]):
        count = shape[0]
        with pytest.raises(Undecodable):
            decode({"$": "ndarray", "dtype": "int64", "shape": shape, "v": [0] * count})


TOO_MUCH = {
    "a result larger than a result may be": "def add(a, b): return 'x' * 40_000_000",
    "a result larger than the output may be": "def add(a, b): return 'x' * 3_000_000",
    "a generator without end": "def add(a, b):\n    while True:\n        yield 1",
    "forged lines": "import os\nfor _ in range(100): os.write(3, b'[' * 2**20)\ndef add(a, b): return 0",
    "a line cut off": "import os\nfor _ in range(70): os.write(3, b' ' * 2**20)\ndef add(a, b): return 0",
}


@pytest.mark.parametrize("program", TOO_MUCH.values(), ids=TOO_MUCH.keys())
def test_results_beyond_the_limit_are_called_that(program: str) -> None:
    cases = [{"args": [n, 2], "expected": 3} for n in range(60)]
    info = {
        "tests": {"type": "calls", "entry_point": "add", "cases": cases},
        "limits": {"output_mb": 2, "cpu_s": 5},
        "stop": "never",
    }
    verdict = CodeVerifier()(f"```python\n{program}\n```", info=info)
    assert verdict.score == 0.0
    assert verdict.reason is Reason.LIMIT, verdict
