"""The remote back end in trouble: slow, failing and lying servers are tried again or reported."""

from __future__ import annotations

import base64
import multiprocessing
import pickle
import re
import threading
from typing import Any

import pytest
from remote_services import OK, PYTHON, Answer, fused

from truegold.verifiers.sandbox import sandboxfusion
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.sandbox.execution import Limits, SandboxError
from truegold.verifiers.sandbox.sandboxfusion import SandboxFusion

pytestmark = pytest.mark.usefixtures("fresh_connections")


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (Answer({"detail": "worker lost"}, 500), 'status 500 Internal Server Error: {"detail": "worker lost"}'),
        (Answer(b"<html>bad gateway</html>", 502), "status 502 Bad Gateway"),
        (
            Answer({"message": "Requests limited to 1 per 200ms"}, 429),
            '429 Too Many Requests: {"message": "Requests limited to',
        ),
        (Answer({"status": "SandboxError", "message": "no space\nleft"}), "status SandboxError: no space left"),
    ],
)
def test_passing_trouble_is_tried_again_and_lasting_trouble_is_reported(server, time, trouble, message):
    server.script(trouble, trouble, fused(OK))
    assert SandboxFusion(server.url).prepare(PYTHON, Limits()).run(b"").ok
    assert time.pauses == [0.5, 1.0]

    server.script(trouble)
    with pytest.raises(SandboxError, match=re.escape(message)) as error:
        SandboxFusion(server.url).prepare(PYTHON, Limits()).run(b"")
    assert "\n" not in str(error.value)
    assert server.url in str(error.value)
    assert len(server.requests) == 3 + sandboxfusion.ATTEMPTS


@pytest.mark.parametrize(
    ("header", "pauses"),
    [("7", [7.5]), ("Wed, 21 Oct 2015 07:28:00 GMT", [0.5]), ("soon", [0.5]), ("-1", [0.5]), ("86400", None)],
)
def test_a_service_that_asks_for_a_pause_gets_it_unless_it_is_too_long(server, time, header, pauses):
    server.script(Answer({}, 429, {"Retry-After": header}), fused(OK))
    ready = SandboxFusion(server.url).prepare(PYTHON, Limits())
    if pauses is None:
        with pytest.raises(SandboxError, match="429"):
            ready.run(b"")
        assert time.pauses == []
    else:
        assert ready.run(b"").ok
        assert time.pauses == pauses


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(b"<html>\n<title>Sign in</title></html>"), r"not JSON, it begins with '<html> <title>Sign in"),
        (Answer(b""), r"not JSON"),
        (Answer(b"[" * 100_000), r"not JSON"),
        (Answer([1]), r"a JSON list, not an object"),
        (Answer({"status": 3}), r"no text status in the reply"),
        (Answer({"status": "Success"}), r"no object run_result in the reply"),
        (Answer({"status": "Success", "run_result": "x"}), r"no object run_result"),
        (fused({**OK, "return_code": "0"}, None), r"no whole number run_result\.return_code"),
        (fused({**OK, "return_code": None}), r"no whole number run_result\.return_code"),
        (Answer(b'{"status": "Success", "run_result": {"status": 3}}'), r"no text run_result\.status"),
        (Answer({}, 404), r"status 404 Not Found"),
        (Answer({"detail": [{"loc": ["code"]}]}, 422), r"status 422 Unprocessable.*loc"),
        (
            Answer({}, 302, {"Location": "https://me:secret@elsewhere/run_code"}),
            r"status 302 Found",
        ),
    ],
)
def test_nonsense_is_reported_in_one_line_and_not_asked_for_again(server, time, answer, message):
    server.script(answer)
    with pytest.raises(SandboxError, match=message) as error:
        SandboxFusion(server.url).prepare(PYTHON, Limits()).run(b"")
    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value)
    assert len(str(error.value)) < 500
    assert len(server.requests) == 1


def test_a_huge_reply_is_not_read_to_its_end(server, time, monkeypatch):
    monkeypatch.setattr(sandboxfusion, "MAX_REPLY_BYTES", 2**20)
    server.script(fused({**OK, "stdout": "x" * 3 * 2**20}))
    with pytest.raises(SandboxError, match="longer than 1 MiB"):
        SandboxFusion(server.url).prepare(PYTHON, Limits()).run(b"")


def test_a_service_that_does_not_answer_is_given_up_and_not_asked_twice(server, time, monkeypatch):
    release = threading.Event()

    def slow(request: dict[str, Any]) -> Answer:
        release.wait(60)
        return fused(OK)

    server.answer = slow
    monkeypatch.setattr("truegold.verifiers.sandbox.sandboxfusion.QUEUE_S", -7.8)  # The request has 0.2 s in all.
    try:
        with pytest.raises(SandboxError, match="no reply within"):
            SandboxFusion(server.url).prepare(PYTHON, Limits(cpu_s=2)).run(b"")
    finally:
        release.set()
    assert len(server.requests) == 1


def test_a_service_that_is_not_there_is_tried_again(server, time):
    server.stop()
    with pytest.raises(SandboxError, match=r"^http.*refused"):
        SandboxFusion(server.url).prepare(PYTHON, Limits()).run(b"")
    assert time.pauses == [0.5, 1.0, 2.0]


def test_no_more_requests_are_in_flight_than_allowed(server, monkeypatch):
    monkeypatch.setattr(sandboxfusion, "IN_FLIGHT", 2)
    lock, at_once, most = threading.Lock(), 0, 0
    two = threading.Barrier(2, timeout=30)

    def count(request: dict[str, Any]) -> Answer:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        two.wait()
        with lock:
            at_once -= 1
        return fused(OK)

    server.answer = count
    back_end = SandboxFusion(server.url)
    ready = back_end.prepare(PYTHON, Limits())
    succeeded = []
    threads = [threading.Thread(target=lambda: succeeded.append(ready.run(b"").ok)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert succeeded == [True] * 8
    assert most == 2


def test_credentials_are_sent_and_never_shown(server, time):
    url = server.url.replace("http://", "http://me:secret@")
    server.script(Answer({"message": "no"}, 401))
    back_end = SandboxFusion(url)
    with pytest.raises(SandboxError) as error:
        back_end.prepare(PYTHON, Limits()).run(b"")
    assert server.requests[0]["authorization"] == "Basic " + base64.b64encode(b"me:secret").decode()
    assert "secret" not in str(error.value) + repr(back_end)
    with pytest.raises(ConfigError) as wrong:
        SandboxFusion("ftp://me:secret@host")
    assert "secret" not in str(wrong.value)


def _in_child(back_end: Any, outputs: Any) -> None:
    outputs.put(back_end.prepare(PYTHON, Limits()).run(b"").stdout)
    for client in sandboxfusion._CLIENTS.values():
        client.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Forking warns while the server's thread runs.
def test_back_ends_work_in_forked_processes_and_pickled(server):
    server.script(fused(OK))
    back_end = SandboxFusion(server.url)
    ready = back_end.prepare(PYTHON, Limits())
    assert ready.run(b"").ok
    assert pickle.loads(pickle.dumps(back_end)) == back_end
    assert pickle.loads(pickle.dumps(ready)).run(b"").ok
    context = multiprocessing.get_context("fork")
    outputs = context.Queue()
    child = context.Process(target=_in_child, args=(back_end, outputs))
    child.start()
    assert outputs.get(timeout=60) == b"4\n"
    child.join()
    outputs.close()
    outputs.join_thread()
