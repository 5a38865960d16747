"""Verdicts over HTTP: other sandboxes' shapes, refusals that say what to do, nothing lost when processes die."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

testclient = pytest.importorskip("starlette.testclient", reason="needs truegold[serve]")
uvicorn = pytest.importorskip("uvicorn", reason="needs truegold[serve]")
httpx = pytest.importorskip("httpx", reason="needs httpx")

from truegold.verifiers.sandbox.execution import Execution, MachineBusy, ProgramEnd  # noqa: E402
from truegold.verifiers.service import Settings, make_app  # noqa: E402
from truegold.verifiers.service.programs import BUSY_S, in_time  # noqa: E402

RIGHT = {"response": "so \\boxed{0.5}", "gold": "1/2"}

SLOW = """
import os, time
from truegold.verifiers import verifier

@verifier
def slow(response, gold):
    if response == "die":
        os._exit(1)
    time.sleep(float(gold))
    return True
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of a service with one process and a small queue."""
    with testclient.TestClient(make_app(Settings(workers=1, queue=40, max_bytes=100_000))) as client:
        yield client


def test_one_response_and_several(client: Any) -> None:
    answer = client.post("/verify", json=RIGHT).json()
    assert (answer["score"], answer["reason"], answer["extracted"]) == (1.0, "match", "0.5")
    several = [RIGHT, {**RIGHT, "gold": "7"}, {**RIGHT, "gold": "\\frac{1"}, {**RIGHT, "verifier": "exact"}]
    verdicts = client.post("/verify", json={"responses": several}).json()["verdicts"]
    assert [verdict["score"] for verdict in verdicts] == [1.0, 0.0, None, 0.0]


def test_arguments_and_accepted_golds_reach_the_verifier(client: Any) -> None:
    for arguments in ({"other_golds": ["0.5"]}, '{"other_golds": ["0.5"]}'):
        assert client.post("/verify", json={**RIGHT, "gold": "9", "verifier_args": arguments}).json()["score"] == 1.0


def test_what_the_queue_can_never_hold_is_not_to_be_sent_again(client: Any) -> None:
    tests = {"program": "x = 1", "tests": ["assert x"] * 41}
    for path, body in (("/verify", {"responses": [RIGHT] * 41}), ("/test_program", tests)):
        answer = client.post(path, json=body)
        assert (answer.status_code, "retry-after" in answer.headers) == (413, False)
        assert "at most 40 responses" in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        (b"{", 400, "not JSON"),
        (b"[1]", 400, "the body must be a JSON object"),
        (b"\xff", 400, "not JSON"),
        (b'{"gold": "1"}', 400, "response is missing"),
        (b'{"response": 7, "gold": "1"}', 400, "response must be a text"),
        (b'{"responses": {"a": 1}}', 400, "responses must be a list"),
        (b'{"responses": [1]}', 400, "response 1 must be an object"),
        (b'{"response": "x", "gold": "1", "verifier": "os:system"}', 400, "no verifier 'os:system'"),
        (b'{"response": "x", "gold": "1", "deadline_s": -1}', 400, "deadline_s"),
        (b'{"response": "' + b"x" * 100_001 + b'"}', 413, "at most 100000 bytes"),
        (b"[" * 90_000, 400, "not JSON"),
    ],
)
def test_a_wrong_request_is_refused_with_what_is_wrong(client: Any, body: bytes, status: int, error: str) -> None:
    answer = client.post("/verify", content=body)
    assert answer.status_code == status and error in answer.json()["error"]
    assert client.post("/verify", json=RIGHT).json()["score"] == 1.0


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/verify", {"response": "5", "gld": "5"}, "no field 'gld'. Did you mean 'gold'?"),
        ("/verify", {"responses": [], "deadline": 3}, "no field 'deadline'. Did you mean 'deadline_s'?"),
        ("/verify", {"responses": [], "gold": "7"}, "with `responses`, gold belongs in each of them"),
        ("/verify", {"responses": [{"response": "5", "golds": ["5"]}]}, "response 1: there is no field 'golds'."),
        ("/verify", {"response": "5", "gold": "5", "verifier": "mth"}, "Did you mean 'math'? It has choice, code,"),
        ("/verify", {"response": "5", "verifier_args": "{x"}, "verifier_args is not JSON"),
        ("/verify?verifier=exact", {"response": "5", "gold": "5"}, "?verifier=exact would be ignored"),
        ("/run_code", {"code": "1", "languge": "python"}, "Did you mean 'language'?"),
        ("/run_code", {"code": "1", "language": "python", "timeout": 3}, "Did you mean 'run_timeout'?"),
        ("/run_code", {"code": "1", "language": "python", "files": ["a"]}, "files must be an object"),
        ("/test_program", {"program": "x", "test": ["assert x"]}, "Did you mean 'tests'?"),
    ],
)
def test_a_field_that_would_be_ignored_is_refused(client: Any, path: str, body: dict[str, Any], says: str) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == 400 and says in answer.json()["error"]


def test_a_field_of_another_server_with_the_same_format_is_allowed(client: Any) -> None:
    asked = {"code": "print(1)", "language": "python", "provided_by": "a trainer"}
    assert client.post("/run_code", json=asked).json()["status"] == "Success"


def test_a_path_or_method_that_is_not_served_names_those_that_are(client: Any) -> None:
    absent, method = client.post("/verfy", json={}), client.get("/verify")
    assert absent.status_code == 404 and "Did you mean '/verify'? There are: POST /verify," in absent.json()["error"]
    assert method.status_code == 405 and method.json()["error"] == "/verify answers POST, not GET"
    assert method.headers["allow"] == "POST"


def test_a_compressed_body_is_refused_with_its_name(client: Any) -> None:
    answer = client.post("/verify", content=gzip.compress(b"{}"), headers={"content-encoding": "gzip"})
    assert answer.status_code == 400 and "compressed (Content-Encoding: gzip)" in answer.json()["error"]


def test_more_than_the_queue_holds_is_refused_and_may_come_again(client: Any) -> None:
    desk = client.app.state.desk
    desk.waiting = 5
    answer = client.post("/verify", json={"responses": [RIGHT] * 36})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert 'unjudged_requests_total{path="/verify",cause="busy"} 1' in client.get("/metrics").text
    desk.waiting = 0
    assert client.post("/verify", json={"responses": [RIGHT] * 40}).status_code == 200
    assert client.get("/health").json()["waiting"] == 0


def test_programs_in_the_shape_of_sandboxfusion(client: Any) -> None:
    request = {"code": "print(int(input()) + 1)", "language": "python", "stdin": "3", "run_timeout": 5}
    answer = client.post("/run_code", json=request).json()
    assert (answer["status"], answer["run_result"]["stdout"], answer["run_result"]["return_code"]) == (
        "Success",
        "4\n",
        0,
    )
    assert answer["run_result"]["status"] == "Finished" and answer["compile_result"] is None and answer["files"] == {}
    failed = client.post("/run_code", json={**request, "code": "raise SystemExit(3)"}).json()
    assert (failed["status"], failed["run_result"]["return_code"]) == ("Failed", 3)
    late = client.post("/run_code", json={**request, "code": "import time; time.sleep(9)", "run_timeout": 0.3}).json()
    assert (late["status"], late["run_result"]["status"]) == ("Failed", "TimeLimitExceeded")
    files = {"data.txt": base64.b64encode(b"seven").decode()}
    read = client.post("/run_code", json={**request, "code": "print(open('data.txt').read())", "files": files}).json()
    assert read["run_result"]["stdout"] == "seven\n"
    assert client.post("/run_code", json={**request, "fetch_files": ["a"]}).json()["status"] == "SandboxError"
    assert client.post("/run_code", json={**request, "code": 7}).status_code == 400


ENDLESS = {
    "busy": "while True: pass",
    "asleep": "import time; time.sleep(60)",
    "asleep in pieces": "import time\nwhile True: time.sleep(0.001)",
    "busy, then asleep": "import time\nend = time.process_time() + 0.6\n"
    "while time.process_time() < end: pass\ntime.sleep(60)",
    "in a thread": "import threading\nthreading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()",
    "deaf to signals": "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass",
    "bash": "#bash\nwhile true; do :; done",
    "bash asleep": "#bash\nsleep 60",
}


@pytest.mark.parametrize("clients", [1, 4])
@pytest.mark.parametrize("name", ENDLESS)
def test_a_program_that_does_not_end_is_stopped_at_its_timeout_and_not_at_the_limits_of_the_sandbox(
    client: Any, name: str, clients: int
) -> None:
    request = {"code": ENDLESS[name], "language": "bash" if "bash" in name else "python", "run_timeout": 1.0}
    # The first program of a kind waits until its sandbox has started.
    assert client.post("/run_code", json={**request, "code": ""}).status_code == 200
    with ThreadPoolExecutor(clients) as threads:
        answers = [a.json() for a in threads.map(lambda _: client.post("/run_code", json=request), range(clients))]
    for answer in answers:
        if answer["status"] == "SandboxError":
            assert "the machine is too busy" in answer["message"]
        else:
            assert answer["run_result"]["status"] == "TimeLimitExceeded", answer
            # Without it a program may sleep for 5 s and work for 10; the rest is for a machine that is at work.
            assert 0.9 <= answer["run_result"]["execution_time"] < 5.0


def test_a_program_may_sleep_for_as_long_as_its_timeout(client: Any) -> None:
    request = {"code": "import time; time.sleep(5.6); print(1)", "language": "python", "run_timeout": 7}
    answer = client.post("/run_code", json=request).json()
    assert (answer["status"], answer["run_result"]["stdout"]) == ("Success", "1\n")


@pytest.mark.parametrize("name", ["run_timeout", "compile_timeout", "memory_limit_MB", "stdin", "files", "fetch_files"])
def test_a_field_that_is_null_is_one_that_is_absent(client: Any, name: str) -> None:
    answer = client.post("/run_code", json={"code": "print(1)", "language": "python", name: None}).json()
    assert answer["status"] == "Success"


@pytest.mark.parametrize("value", ["10", -1, 0, 1e9, True, [], {}, float("nan"), float("inf")])
def test_a_timeout_that_is_none_is_refused_with_its_bounds(client: Any, value: Any) -> None:
    body = json.dumps({"code": "print(1)", "language": "python", "run_timeout": value})
    answer = client.post("/run_code", content=body)
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        "run_timeout must be a number of seconds from 0.01 to 3600",
    )


def test_a_timeout_beyond_that_of_a_request_is_refused(client: Any) -> None:
    for name in ("run_timeout", "compile_timeout"):
        answer = client.post("/run_code", json={"code": "print(1)", "language": "python", name: 301})
        assert (answer.status_code, answer.json()["error"]) == (
            400,
            f"{name} is 301 s, but a request may take only 300 s here (--request-s)",
        )


@pytest.mark.parametrize("share", [0.0, 0.24, 0.25, 1.1])
def test_a_program_is_late_where_it_was_at_work_for_a_quarter_of_its_timeout(share: float) -> None:
    for limit_s in (0.5, 8.0):
        stopped = Execution(ProgramEnd.WALL_LIMIT, 9, b"", b"", cpu_s=share * limit_s, wall_s=limit_s + BUSY_S)

        def run(stopped: Execution = stopped) -> Execution:
            raise MachineBusy("the machine is too busy", stopped)

        if share < 0.25:
            with pytest.raises(MachineBusy):
                in_time(run, limit_s)
        else:
            assert in_time(run, limit_s) is stopped


def test_a_program_that_never_reached_a_core_is_not_late() -> None:
    def run() -> Execution:
        raise MachineBusy("the machine is too busy")

    with pytest.raises(MachineBusy):
        in_time(run, 1.0)


SLEEP = {"code": "import time; time.sleep(0.7); print(1)", "language": "python"}


def test_the_time_of_a_request_bounds_programs() -> None:
    with testclient.TestClient(make_app(Settings(workers=1, request_s=4.0))) as client:
        client.post("/run_code", json=SLEEP)
        assert client.post("/run_code", json=SLEEP).json()["status"] == "Success"
        for code in ("import time; time.sleep(8)", "while True: pass"):
            answer = client.post("/run_code", json={**SLEEP, "code": code})
            assert answer.status_code == 503 and "within the 4 s of a request" in answer.json()["error"]
            while client.get("/health").json()["waiting"]:
                time.sleep(0.1)
        with ThreadPoolExecutor(12) as threads:
            answers = list(threads.map(lambda _: client.post("/run_code", json=SLEEP), range(12)))
        statuses = sorted(answer.status_code for answer in answers)
        assert 1 <= statuses.count(200) < 12 and statuses.count(503) == 12 - statuses.count(200)


GONE = {
    "/run_code": SLEEP,
    "/test_program": {"program": "import time\ntime.sleep(0.7)\nx = 1", "tests": ["assert x"] * 3},
    "/test_program_stdio": {"program": "import time\ntime.sleep(0.7)", "tests": [{"input": "", "output": ""}] * 3},
    "/verify": {
        "response": "```python\nimport time\ntime.sleep(0.7)\nx = 1\n```",
        "verifier": "code",
        "verifier_args": {"tests": {"type": "asserts", "code": "assert x"}},
    },
}


@pytest.mark.parametrize("path", GONE)
def test_queued_work_of_clients_that_hang_up_is_dropped(path: str) -> None:
    with served(Settings(workers=1)) as (address, desk), httpx.Client(base_url=address, timeout=60) as client:
        assert client.post(path, json=GONE[path]).status_code == 200
        for _ in range(4):
            with pytest.raises(httpx.ReadTimeout):
                client.post(path, json=GONE[path], timeout=0.1)
        assert client.post(path, json=GONE[path]).status_code == 200
        assert desk.waiting == 0
        assert f'{path}",cause="gone"}} 4' in client.get("/metrics").text


def test_a_program_whose_client_hangs_up_is_ended() -> None:
    with served(Settings(workers=1)) as (address, _), httpx.Client(base_url=address, timeout=60) as client:
        with pytest.raises(httpx.ReadTimeout):
            client.post(
                "/run_code", json={"code": "while True: pass", "language": "python", "run_timeout": 90}, timeout=2
            )
        answer = client.post("/run_code", json={"code": "print(1)", "language": "python"})
        assert answer.json()["run_result"]["stdout"] == "1\n"


@contextlib.contextmanager
def served(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Yield the address of a running service, and its desk."""
    app = make_app(settings)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.02)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", app.state.desk
    finally:
        server.should_exit = True
        thread.join(30)


def test_a_request_that_does_not_arrive_is_refused() -> None:
    with served(Settings(workers=1, request_s=0.5)) as (address, _):
        url = httpx.URL(address)
        with socket.create_connection((url.host, url.port), timeout=20) as connection:
            connection.sendall(b"POST /verify HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            assert connection.recv(1000).startswith(b"HTTP/1.1 408 ")


def test_programs_in_the_shape_of_open_instruct(client: Any) -> None:
    request = {
        "program": "def add(a, b):\n    return a + b\n",
        "tests": ["assert add(1, 2) == 3", "assert add(-1, 1) == 0", "assert add(0, 0) == 1"],
        "max_execution_time": 1.0,
    }
    answer = client.post("/test_program", json=request).json()
    assert answer["results"] == [1, 1, 0] and len(answer["runtimes"]) == 3
    assert client.post("/test_program", json={**request, "tests": "x"}).status_code == 400


def test_metrics_count_verdicts_and_requests(client: Any) -> None:
    client.post("/verify", json=RIGHT)
    text = client.get("/metrics").text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(values['truegold_verdicts_total{verifier="math",reason="match"}']) >= 1
    buckets = [float(value) for name, value in values.items() if name.startswith("truegold_request_seconds_bucket")]
    assert buckets and float(values["truegold_queue_waiting"]) == 0


def test_a_token_is_needed_where_one_is_set() -> None:
    with testclient.TestClient(make_app(Settings(token="a" * 20, workers=1))) as client:
        assert client.post("/verify", json=RIGHT).status_code == 401
        assert client.post("/verify", json=RIGHT, headers={"Authorization": "Bearer " + "b" * 20}).status_code == 401
        assert client.get("/metrics").status_code == 401 and client.get("/health").status_code == 200
        right = {"Authorization": "Bearer " + "a" * 20}
        assert client.post("/verify", json=RIGHT, headers=right).json()["score"] == 1.0


def test_processes_that_die_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    name = f"{tmp_path / 'slow.py'}:slow"
    with testclient.TestClient(make_app(Settings(workers=2, verifiers=(name,)))) as client:
        entries = [{"response": str(place), "gold": "0.02", "verifier": name} for place in range(64)]
        answers: list[Any] = []
        asking = threading.Thread(target=lambda: answers.append(client.post("/verify", json={"responses": entries})))
        asking.start()
        killed = 0
        while killed < 2 and asking.is_alive():
            for pid in client.app.state.desk.pids:
                os.kill(pid, signal.SIGKILL)
                killed += 1
            time.sleep(0.2)
        asking.join(60)
        assert killed >= 2
        assert [verdict["score"] for verdict in answers[0].json()["verdicts"]] == [1.0] * 64
        dying = {"responses": [entries[0], {**entries[0], "response": "die"}, entries[1]]}
        verdicts = client.post("/verify", json=dying).json()["verdicts"]
        assert [verdict["score"] for verdict in verdicts] == [1.0, None, 1.0]
        late = client.post("/verify", json={"response": "x", "gold": "3", "verifier": name, "deadline_s": 0.3}).json()
        assert (late["score"], late["reason"]) == (None, "timeout")
    json.dumps(late)
