"""What reading and checking results costs the verifier's own process, whatever a program returns or forges."""

import resource
import time

import pytest

from truegold.verifiers import Reason
from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.code.protocols.python_tests import lines
from truegold.verifiers.sandbox.inside.wire.decoding import decode
from truegold.verifiers.sandbox.inside.wire.value_types import Undecodable

MOST_CPU_S = 2.0
MOST_MB = 300


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
