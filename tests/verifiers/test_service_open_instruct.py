"""open-instruct's server, answered by truegold's: what its verifiers `code` and `code_stdio` make of the answers.

Source: open-instruct e6c3044aa, open_instruct/ground_truth_utils.py and code_utils/.
"""

from __future__ import annotations

import base64
import json
import pickle
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

testclient = pytest.importorskip("starlette.testclient", reason="needs truegold[serve]")

from truegold.verifiers.sandbox.execution import SandboxError  # noqa: E402
from truegold.verifiers.service import Settings, make_app  # noqa: E402
from truegold.verifiers.service import programs as shapes  # noqa: E402

ASSERTS, STDIO = "/test_program", "/test_program_stdio"
ADD = "def add(a, b):\n    return a + b\n"
BUSY = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of a service whose sandbox runs already."""
    with testclient.TestClient(make_app(Settings(workers=2, queue=500))) as client:
        for path, tests in ((ASSERTS, ["assert add(1, 2) == 3"]), (STDIO, [{"input": "", "output": ""}])):
            assert client.post(path, json={"program": ADD, "tests": tests}).json()["results"] == [1]
        yield client


def encode_tests(tests: Sequence[Any]) -> str:
    """code_utils.py, encode_tests."""
    return base64.b64encode(zlib.compress(pickle.dumps(tests))).decode("utf-8")


def code_verifier(client: Any, path: str, program: str, label: Any, limit_s: float, penalty: bool) -> float:
    """ground_truth_utils.py, CodeVerifier.async_call: the score, with a threshold of 0."""
    payload = {"program": program, "tests": label, "max_execution_time": limit_s}
    response = client.post(path, json=payload)
    response.raise_for_status()
    result = response.json()
    passes = result["results"]
    score = sum(passes) / len(passes) if passes else 0.0
    if penalty and score > 0.0:
        multipliers = [(limit_s - runtime) / limit_s for runtime in result["runtimes"]]
        penalized_passes = [passes[i] * multipliers[i] for i in range(len(passes))]
        score = sum(penalized_passes) / len(penalized_passes)
    return score


@pytest.mark.parametrize("form", [list, json.dumps, encode_tests])
@pytest.mark.parametrize("penalty", [False, True])
def test_the_score_of_its_verifiers_lies_between_0_and_1(client: Any, form: Any, penalty: bool) -> None:
    asserts = form(["assert add(1, 2) == 3", "assert add(-1, 1) == 0", "assert add(0, 0) == 1", "assert add(1) == 1"])
    cases = form([{"input": "1\n2\n", "output": "3\n"}, {"input": "0\n0\n", "output": "1\n"}])
    reads = "print(int(input()) + int(input()))"
    for path, program, label in ((ASSERTS, ADD, asserts), (STDIO, reads, cases)):
        score = code_verifier(client, path, program, label, 2.0, penalty)
        assert 0.4 < score <= 0.5, (path, score)
        assert code_verifier(client, path, "raise ValueError", label, 2.0, penalty) == 0.0


TIMES = [
    ("quick", "pass", 1.0, 1, (0.0, 0.2)),
    ("half a second", BUSY.format(0.5), 2.0, 1, (0.45, 0.75)),
    ("sleeping", "import time; time.sleep(0.4)", 2.0, 1, (0.35, 0.75)),
    ("beyond the limit", BUSY.format(1.5), 0.5, 0, (-1.0, -1.0)),
    ("endless", "while True: pass", 0.3, 0, (-1.0, -1.0)),
    ("asleep beyond the limit", "import time; time.sleep(1.0)", 0.5, 0, (-1.0, -1.0)),
    ("asleep for ever", "import time; time.sleep(60)", 0.5, 0, (-1.0, -1.0)),
    ("asleep for long, within the limit", "import time; time.sleep(5.4)", 8.0, 1, (5.3, 6.0)),
    ("raising", "raise ValueError", 1.0, 0, (-1.0, -1.0)),
    ("no Python", "def f(:", 1.0, 0, (-1.0, -1.0)),
]


@pytest.mark.parametrize(("name", "body", "limit_s", "passes", "bounds"), TIMES)
def test_the_runtime_is_what_the_program_took(
    client: Any, name: str, body: str, limit_s: float, passes: int, bounds: tuple[float, float]
) -> None:
    calls = "def f():\n" + "".join(f"    {line}\n" for line in body.splitlines()) + "    return 7\n"
    for path, program, tests in (
        (ASSERTS, calls, ["assert f() == 7"]),
        (STDIO, f"{body}\nprint(7)", [{"input": "", "output": "7"}]),
    ):
        answer = client.post(path, json={"program": program, "tests": tests, "max_execution_time": limit_s}).json()
        assert answer["results"] == [passes], (name, path, answer)
        low, high = bounds
        assert low <= answer["runtimes"][0] <= min(high, limit_s), (name, path, answer)


def test_each_test_has_its_own_runtime_whatever_ran_before_it(client: Any) -> None:
    program = (
        "def f(s):\n    import time\n    end = time.process_time() + s\n    while time.process_time() < end: pass\n"
    )
    tests = ["assert f(0.4) is None", "assert f(0.0) is None", "assert f(0.0) == 1", "assert f(0.4) is None"]
    answer = client.post(ASSERTS, json={"program": program, "tests": tests, "max_execution_time": 1.5}).json()
    slow, quick, failed, again = answer["runtimes"]
    assert answer["results"] == [1, 1, 0, 1] and failed == -1.0
    assert quick < 0.2 < 0.35 < min(slow, again) and max(slow, again) < 0.8


OUTPUTS = [
    ("the same", "3\n", "3\n", True),
    ("without the last newline", "3\n", "3", True),
    ("blank lines around", "3", "\n\n3\n\n", True),
    ("blanks around lines", "1 2\n3", "  1 2  \n 3 ", True),
    ("carriage returns", "1\n2", "1\r\n2\r\n", True),
    ("numbers written otherwise", "1.50 2", "1.5 2.0", True),
    ("an exponent", "100", "1e2", True),
    ("blanks between numbers", "1   2", "1 2", True),
    ("blanks between words", "a   b", "a b", False),
    ("numbers on other lines", "1 2", "1\n2", False),
    ("a line too many", "1", "1\n2", False),
    ("a blank line within", "1\n2", "1\n\n2", False),
    ("nearly", "0.1", "0.10000001", False),
    ("another case", "Yes", "YES", False),
    ("another number", "3", "4", False),
    ("a word and a number", "3", "three", False),
    ("not a number", "nan", "nan", True),
    ("nothing where something is expected", "3", "", False),
    ("nothing where nothing is expected", "", "\n", True),
]


@pytest.mark.parametrize(("name", "expected", "printed", "same"), OUTPUTS)
def test_outputs_are_compared_as_there(name: str, expected: str, printed: str, same: bool) -> None:
    assert shapes.same_output(expected, printed) is same


PROGRAMS = [
    ("names that it did not import", "print(gcd(12, 18), len(deque([1])), math.sqrt(4))", "", "6 1 2.0", 1),
    ("imports from the future", "from __future__ import annotations\nprint(1)", "", "1", 1),
    ("as a script", "def main():\n    print(input())\nif __name__ == '__main__':\n    main()", "x", "x", 1),
    ("all of stdin", "import sys\nprint(sum(map(int, sys.stdin.read().split())))", "1\n2\n3", "6", 1),
    ("bytes of stdin", "import sys\nprint(sys.stdin.buffer.readline().decode().strip())", "a\nb\n", "a", 1),
    ("lines of stdin", "import sys\nfor line in sys.stdin: print(line.strip())", "a\nb", "a\nb", 1),
    ("an early exit", "print(1)\nimport sys\nsys.exit()\nprint(2)", "", "1", 1),
    ("recursion", "def f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(20000))", "", "20000", 1),
    ("a module that is refused there", "import os\nprint(os.sep)", "", "/", 1),
    ("text beyond ASCII", "print(input())", "ü 你", "ü 你", 1),
    ("an error after the output", "print(1)\nraise ValueError", "", "1", 0),
    ("too little input", "print(input())", "", "", 0),
    ("nothing of what is expected in its folder", "print(open('expected.txt').read())", "", "1", 0),
]


@pytest.mark.parametrize(("name", "program", "stdin", "output", "passes"), PROGRAMS)
def test_programs_on_stdin(client: Any, name: str, program: str, stdin: str, output: str, passes: int) -> None:
    tests = [{"input": stdin, "output": output}, {"input": stdin.split("\n"), "output": output}]
    answer = client.post(STDIO, json={"program": program, "tests": tests, "max_execution_time": 2.0}).json()
    assert answer["results"] == [passes] * 2, answer
    assert all((seconds >= 0.0) == bool(passes) for seconds in answer["runtimes"])


def test_a_wrong_output_has_its_runtime_as_there(client: Any) -> None:
    answer = client.post(STDIO, json={"program": "print(1)", "tests": [{"input": "", "output": "2"}]}).json()
    assert answer["results"] == [0] and 0.0 <= answer["runtimes"][0] < 0.3


@pytest.mark.parametrize("path", [ASSERTS, STDIO])
@pytest.mark.parametrize("tests", [[], "", "[]", encode_tests([])])
def test_no_tests_are_no_outcomes(client: Any, path: str, tests: Any) -> None:
    assert client.post(path, json={"program": ADD, "tests": tests}).json() == {"results": [], "runtimes": []}


class _Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("run",))


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (ASSERTS, {"tests": []}, "program is missing"),
    (ASSERTS, {"program": 7, "tests": []}, "program must be a text"),
    (ASSERTS, {"program": "x", "tests": [7]}, "each of tests must be a text"),
    (ASSERTS, {"program": "x", "tests": {"a": 1}}, "tests must be a list"),
    (ASSERTS, {"program": "x", "tests": "no list"}, "tests must be a list"),
    (ASSERTS, {"program": "x", "tests": '{"a": 1}'}, "tests must be a list"),
    (ASSERTS, {"program": "x", "tests": ["assert 1"], "max_execution_time": 0}, "max_execution_time must be a number"),
    (
        ASSERTS,
        {"program": "x", "tests": ["assert 1"], "max_execution_time": "1"},
        "max_execution_time must be a number",
    ),
    (STDIO, {"program": "x", "tests": ["assert 1"]}, "each of tests must be an object"),
    (STDIO, {"program": "x", "tests": [{"input": "1"}]}, "each of tests must be an object"),
    (STDIO, {"program": "x", "tests": [{"input": 1, "output": "2"}]}, "each of tests must be an object"),
    (STDIO, {"program": "x", "tests": encode_tests([_Runs()])}, "builtins.print is not allowed"),
    (STDIO, {"program": "x", "tests": base64.b64encode(zlib.compress(b"\x80\x05X")).decode()}, "cannot be unpickled"),
    (STDIO, {"program": "x", "tests": encode_tests(["a" * 2**26])}, "decompressed tests have more than"),
    (ASSERTS, {"program": "x"}, "tests is missing"),
    (STDIO, {"program": "x", "tests": None}, "tests is missing"),
]


@pytest.mark.parametrize(("path", "body", "says"), REFUSED)
def test_a_request_that_cannot_be_read_is_refused_with_what_is_wrong(
    client: Any, path: str, body: dict[str, Any], says: str
) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == 400 and says in answer.json()["error"]


@pytest.mark.parametrize(("path", "test"), [(ASSERTS, "assert 1"), (STDIO, {"input": "", "output": ""})])
def test_more_tests_than_the_queue_holds_are_refused(client: Any, path: str, test: Any) -> None:
    assert client.post(path, json={"program": "x = 1", "tests": [test] * 501}).status_code == 413
    assert client.get("/health").json()["waiting"] == 0


def test_a_sandbox_that_fails_is_no_zero(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise SandboxError("no room")

    monkeypatch.setattr(shapes, "Local", fails)
    answer = client.post(STDIO, json={"program": "x = 1", "tests": [{"input": "", "output": ""}] * 3})
    assert (answer.status_code, answer.json()["error"]) == (503, "no room")
    deadline = time.monotonic() + 10
    while client.get("/health").json()["waiting"] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert client.get("/health").json()["waiting"] == 0


SUITES = [
    ("an absent package", "import nopackage\nassert add(1, 2) == 3", "import nopackage"),
    ("constants", "assert True", "assert anything about a program"),
    ("a parameter", "def test_f(x):\n    assert add(1, 2) == 3", "the fixture x is not there"),
    ("no text", "", "must hold the tests"),
    ("no Python", "assert add(", "never closed"),
    ("a function that nothing calls", "def check():\n    assert add(1, 2) == 3", "check"),
]


@pytest.mark.parametrize(("name", "test", "says"), SUITES)
@pytest.mark.parametrize("program", [ADD, "pass", "def f(:"])
def test_tests_that_judge_nothing_are_no_zero(client: Any, name: str, test: str, says: str, program: str) -> None:
    for tests, number in (([test], "test 1 of 1"), (["assert add(1, 2) == 3", test], "test 2 of 2")):
        answer = client.post(ASSERTS, json={"program": program, "tests": tests})
        assert answer.status_code == 422, (name, answer.text)
        error = answer.json()["error"]
        assert number in error and says in error and "\n" not in error


def test_what_comes_too_late_is_no_zero() -> None:
    sleeps = "import time\ntime.sleep(0.6)\ndef f(): return 7\nprint(7)"
    cases = (
        (ASSERTS, {"program": sleeps, "tests": ["assert f() == 7"]}),
        (STDIO, {"program": sleeps, "tests": [{"input": "", "output": "7"}]}),
    )
    with testclient.TestClient(make_app(Settings(workers=1))) as client:
        assert [client.post(path, json=body).json()["results"] for path, body in cases] == [[1], [1]]
    with testclient.TestClient(make_app(Settings(workers=1, request_s=5))) as client:
        for path, body in cases:
            client.post(path, json=body)
            assert client.post(path, json=body).json()["results"] == [1]
            answer = client.post(path, json={**body, "tests": body["tests"] * 16})
            assert answer.status_code == 503 and "within the 5 s of a request" in answer.json()["error"]
            # What had not begun is gone from the queue, which is empty once the running one has ended.
            while client.get("/health").json()["waiting"]:
                time.sleep(0.1)
            assert client.post(path, json=body).json()["results"] == [1]
        assert f'unjudged_requests_total{{path="{STDIO}",cause="late"}} 1' in client.get("/metrics").text


@pytest.mark.parametrize("path", [ASSERTS, STDIO])
def test_a_limit_beyond_that_of_a_request_is_refused(client: Any, path: str) -> None:
    answer = client.post(path, json={"program": ADD, "tests": [], "max_execution_time": 301})
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        "max_execution_time is 301 s, but a request may take only 300 s here (--request-s)",
    )
