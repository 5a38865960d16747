"""Who is let in to the service: by address, by a token in a header or in the path, which nothing shows."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from truegold.verifiers import ConfigError, SetupError
from truegold.verifiers.extras import require

testclient = pytest.importorskip("starlette.testclient", reason="needs truegold[serve]")
uvicorn = pytest.importorskip("uvicorn", reason="needs truegold[serve]")

import httpx  # noqa: E402

from truegold.verifiers.service import Settings, make_app  # noqa: E402
from truegold.verifiers.service.app import check_access, read_networks  # noqa: E402

TOKEN = "s3cret/with+odd chars"
IN_PATH = "/t/s3cret%2Fwith%2Bodd%20chars"
RIGHT = {"response": "so \\boxed{0.5}", "gold": "1/2"}
CODE = {"code": "print(1)", "language": "python"}
NETWORKS = ["10.0.0.0/8", "192.168.1.7", "fd00::/8"]


@contextmanager
def client_at(address: str, **settings: Any) -> Iterator[Any]:
    """A client that comes from this address."""
    app = make_app(Settings(workers=1, **settings))
    with testclient.TestClient(app, client=(address, 50000)) as client:
        yield client


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("10.1.2.3", 200),
        ("10.255.255.255", 200),
        ("192.168.1.7", 200),
        ("::ffff:10.1.2.3", 200),
        ("fd00::1", 200),
        ("fd00::1%eth0", 200),
        ("11.0.0.1", 403),
        ("192.168.1.8", 403),
        ("127.0.0.1", 403),
        ("::1", 403),
        ("::ffff:11.1.2.3", 403),
        ("no address", 403),
    ],
)
def test_a_client_is_let_in_by_its_address(address: str, status: int) -> None:
    with client_at(address, networks=read_networks(NETWORKS)) as client:
        forwarded = {"X-Forwarded-For": "10.1.2.3", "Forwarded": "for=10.1.2.3"}
        for answer in (client.post("/verify", json=RIGHT, headers=forwarded), client.get("/metrics")):
            assert answer.status_code == status
            assert status == 200 or address in answer.json()["error"]


def test_from_elsewhere_the_token_is_needed() -> None:
    with client_at("11.0.0.1", networks=read_networks(NETWORKS), token=TOKEN) as client:
        assert client.post("/verify", json=RIGHT).status_code == 401
        assert client.post(f"{IN_PATH}/verify", json=RIGHT).json()["score"] == 1.0
    with client_at("10.1.2.3", networks=read_networks(NETWORKS), token=TOKEN) as client:
        assert client.post("/verify", json=RIGHT).json()["score"] == 1.0


def test_a_token_in_the_path_opens_every_route() -> None:
    with client_at("11.0.0.1", token=TOKEN) as client:
        assert client.post(f"{IN_PATH}/run_code", json=CODE).json()["run_result"]["stdout"] == "1\n"
        assert client.post(f"{IN_PATH}/run_code/", json=CODE).status_code == 200
        tests = {"program": "x = 1", "tests": ["assert x == 1"]}
        url = f"{IN_PATH}/test_program"
        assert client.post(url, json=tests).json()["results"] == [1]
        # As open-instruct makes one address of the other.
        stdio = {"program": "print(1)", "tests": [{"input": "", "output": "1"}]}
        stdio_url = url.replace("/test_program", "/test_program_stdio")
        assert client.post(stdio_url, json=stdio).json()["results"] == [1]
        assert client.get(f"{IN_PATH}/metrics").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/run_code",
        "/t/run_code",
        "/t//run_code",
        "/t/wrong/run_code",
        "/t/s3cret/run_code",
        "/t/s3cret%2Fwith%2Bodd%20char/run_code",
        "/t/S3CRET%2Fwith%2Bodd%20chars/run_code",
        "/t/%C3%BC%F0%9F%98%80/run_code",
        "/t/%FF%FE/run_code",
        "/t/%00/run_code",
        "/t/" + "x" * 5000 + "/run_code",
        "/t/wrong/metrics",
    ],
)
def test_a_wrong_token_is_refused_without_an_echo(path: str) -> None:
    with client_at("11.0.0.1", token=TOKEN) as client:
        answer = client.get(path) if path.endswith("metrics") else client.post(path, json=CODE)
        assert answer.status_code == 401
        assert "wrong/" not in answer.text and "s3cret" not in answer.text.lower() and len(answer.text) < 200


def test_a_right_header_beside_a_wrong_path_is_refused() -> None:
    with client_at("11.0.0.1", token=TOKEN) as client:
        header = {"Authorization": f"Bearer {TOKEN}"}
        assert client.post("/t/wrong/verify", json=RIGHT, headers=header).status_code == 401
        assert client.post("/verify", json=RIGHT, headers=header).status_code == 200
        assert client.post("/verify", json=RIGHT, headers={"Authorization": f"bearer  {TOKEN}"}).status_code == 200
        assert client.post("/verify", json=RIGHT, headers={"Authorization": TOKEN}).status_code == 401


@contextmanager
def logging_server(settings: Settings) -> Iterator[str]:
    """A real server that logs every request, as somebody's own deployment of the application may."""
    server = uvicorn.Server(uvicorn.Config(make_app(settings), port=0, log_level="debug", access_log=True))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        deadline = time.monotonic() + 60
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.02)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)


def test_no_log_shows_the_token(capfd: pytest.CaptureFixture[str]) -> None:
    with logging_server(Settings(token=TOKEN, workers=1)) as address:
        answers = [
            httpx.post(f"{address}{IN_PATH}/run_code", json=CODE),
            httpx.post(f"{address}{IN_PATH}/run_code?x=1", content=b"{"),
            httpx.get(f"{address}{IN_PATH}/run_code"),
            httpx.post(f"{address}{IN_PATH}/run_code/", json=CODE),
            httpx.post(f"{address}{IN_PATH}/unknown", json=CODE),
            httpx.get(f"{address}{IN_PATH}"),
            httpx.get(f"{address}{IN_PATH}/metrics"),
            httpx.post(f"{address}/{IN_PATH}/run_code", json=CODE),
            httpx.post(f"{address}{IN_PATH.replace('/t/', '/T/')}/run_code", json=CODE),
            httpx.post(f"{address}/run_code{IN_PATH}", json=CODE),
            httpx.post(f"{address}/run_code", params={"token": TOKEN}, json=CODE),
            httpx.post(f"{address}/run_code", params={TOKEN: ""}, json=CODE),
        ]
    statuses = [answer.status_code for answer in answers]
    assert statuses == [200, 400, 405, 200, 404, 404, 200, 200, 404, 404, 401, 401]
    printed = capfd.readouterr()
    logged = printed.out + printed.err
    assert '"POST /run_code HTTP' in logged and '"POST /t/... HTTP' in logged
    shown = [logged, *(f"{answer.text} {dict(answer.headers)}" for answer in answers)]
    assert not any("s3cret" in text for text in shown)


def test_health_tells_nothing_of_the_machine() -> None:
    with client_at("11.0.0.1", token=TOKEN) as client:
        health = client.get("/health").json()
        assert health == {"status": "healthy", "waiting": 0, "queue": 4096, "workers": health["workers"]}
        assert health["workers"] in (0, 1)


def test_beyond_loopback_a_token_or_networks_are_needed() -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        check_access(host, None, ())
    for host in ("0.0.0.0", "::", "0", "10.0.0.1", ""):
        check_access(host, "x", ())
        check_access(host, None, read_networks(["10.0.0.0/8"]))
        with pytest.raises(ConfigError, match="without a token") as refused:
            check_access(host, None, ())
        assert "--allow 10.0.0.0/8" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["10.1.2.3/8"], "--allow 10.0.0.0/8"),
        (["trainer-1"], "not a host name"),
        ([""], "such as"),
        (["10.0.0.0/33"], "such as"),
        (["10.0.0.0-10.0.0.9"], "such as"),
        (["0.0.0.0/0"], "allows every address"),
        (["::/0"], "allows every address"),
        (["0.0.0.0/1", "128.0.0.0/1"], "allows every address"),
        (["10.0.0.0/8", "::/1", "8000::/1"], "allows every address"),
    ],
)
def test_networks_that_are_none_or_all_are_refused(texts: list[str], says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_networks(texts)
    assert says in f"{refused.value} {refused.value.hint}"


def test_a_package_that_is_missing_names_the_extra_that_brings_it() -> None:
    with pytest.raises(SetupError) as missing:
        require("no_package_has_this_name", "serve")
    assert missing.value.hint == "Install it: pip install 'truegold[serve]'."
    require("starlette", "serve")
