"""Starts a Prefect API for one run.

If PREFECT_API_URL is set, that server is used. Otherwise a server is started as a child process (`python -m
truegold.flows.server PARENT PORT`). The kernel kills this server when the run's process ends, even by `kill -9`, which
Prefect's own temporary server survives. The database is in truegold's cache folder, so that `PREFECT_HOME=... prefect
server start` shows past runs. Runs at the same time use different folders.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from truegold.pipeline.running.disk import cache_folder
from truegold.pipeline.running.isolation import free_port
from truegold.verifiers import SetupError
from truegold.verifiers.extras import require
from truegold.verifiers.sandbox.child_process import die_with_parent

STARTUP_SECONDS = 180
"""Seconds to wait for a server. A start takes about 5 CPU seconds, and many times that on a loaded machine."""

HOMES = 32
"""Maximum number of servers that run at the same time, each with a folder of its own."""

SETTINGS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",  # The command line itself reports errors, in one line.
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    # Lines of a run are still written to its log in Prefect, and printed once.
    "PREFECT_LOGGING_LOGGERS_PREFECT_FLOW_RUNS_LEVEL": "INFO",
    "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "INFO",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
    "PREFECT_CLI_COLORS": "false",
}


@contextmanager
def prefect_api() -> Iterator[str]:
    """Yield the URL of a Prefect API that answers, and set this process's environment for it.

    Call it before importing `prefect`, which reads its settings at import. Raises SetupError if Prefect is not
    installed, if the server of PREFECT_API_URL does not answer, or if no server can be started.
    """
    require("prefect")
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    if configured_url := os.environ.get("PREFECT_API_URL"):
        if not api_answers(configured_url):
            raise SetupError(
                f"PREFECT_API_URL is {configured_url}, and nothing answers there.",
                "Start it (prefect server start), unset the variable, or use --engine local.",
            )
        yield configured_url
        return
    with ExitStack() as stack:
        home = stack.enter_context(_lock_home())
        port = free_port()
        url = f"http://127.0.0.1:{port}/api"
        environment = {**os.environ, "PREFECT_HOME": str(home), "PREFECT_UI_ENABLED": "false"}
        log = stack.enter_context((home / "server.log").open("wb"))
        command = [sys.executable, "-P", "-m", "truegold.flows.server", str(os.getpid()), str(port)]
        # In its own session, the server survives signals to the group (Ctrl-C, preemption) until the run has ended.
        server = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        stack.callback(_stop, server)
        _wait_until_ready(server, url, home)
        # Prefect reads PREFECT_HOME only once, so the variable stays. The URL is removed together with its server.
        os.environ.update(PREFECT_API_URL=url, PREFECT_HOME=str(home))
        stack.callback(os.environ.pop, "PREFECT_API_URL", None)
        yield url


def prefect_home(index: int = 0) -> Path:
    """Return the folder of a database for servers that truegold starts."""
    return cache_folder("prefect") / f"home-{index}"


@contextmanager
def _lock_home() -> Iterator[Path]:
    for index in range(HOMES):
        home = prefect_home(index)
        home.mkdir(parents=True, exist_ok=True)
        with (home / "truegold.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield home
            return
    raise SetupError(f"{HOMES} runs are using Prefect servers in {cache_folder('prefect')}.", "Use --engine local.")


def api_answers(url: str, client: httpx.Client | None = None) -> bool:
    """Return whether a healthy Prefect API answers at `url`. client: an HTTP client to use again, if there is one."""
    try:
        return (client or httpx).get(f"{url}/health", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def _wait_until_ready(server: subprocess.Popen[bytes], url: str, home: Path) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    with httpx.Client() as client:  # Each client reads the certificates of the machine again.
        while server.poll() is None and time.monotonic() < deadline:
            if api_answers(url, client):
                return
            time.sleep(0.2)
    raise SetupError(
        f"The Prefect server did not start (its log: {home / 'server.log'}).", "Use --engine local to run without it."
    )


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGTERM)
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _serve() -> None:
    """Replace this child process by the server."""
    parent, port = int(sys.argv[1]), sys.argv[2]
    die_with_parent(parent)  # This setting survives the exec below.
    factory = "prefect.server.api.server:create_app"
    arguments = ["-P", "-m", "uvicorn", "--factory", factory, "--host", "127.0.0.1", "--port", port]
    os.execv(sys.executable, [sys.executable, *arguments, "--timeout-keep-alive", "60", "--log-level", "warning"])


if __name__ == "__main__":
    _serve()
