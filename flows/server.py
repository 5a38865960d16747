"""A Prefect API for the length of one run.

Where PREFECT_API_URL is set, that server is used. Otherwise one is started as a child (`python -m
truegold.flows.server PARENT PORT`) that the kernel kills with this process, since Prefect's temporary server outlives a
`kill -9` of its client. Its database lies in truegold's cache folder, so that `PREFECT_HOME=... prefect server start`
shows past runs; runs at the same time have a folder each.
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
"""A server start takes about 20 CPU-seconds, several times that in wall time on a loaded machine."""

HOMES = 32
"""This many runs can each have a server at the same time."""

SETTINGS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",  # The command line reports errors itself, in one line.
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    # What a run says goes into its log in Prefect all the same, and is printed once.
    "PREFECT_LOGGING_LOGGERS_PREFECT_FLOW_RUNS_LEVEL": "INFO",
    "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "INFO",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
    "PREFECT_CLI_COLORS": "false",
}


@contextmanager
def prefect_api() -> Iterator[str]:
    """Yield the URL of a Prefect API that answers, with this process's environment set for it.

    Call it before `prefect` is imported: Prefect reads its settings then. Raises SetupError if the server that
    PREFECT_API_URL names does not answer, if none can be started, and where Prefect is not installed.
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
        # A signal to the group (Ctrl-C, a preemption) leaves it up until the run has told how it ended.
        server = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        stack.callback(_stop, server)
        _wait_until_ready(server, url, home)
        # Prefect reads PREFECT_HOME once in a process, so that the variable stays; the URL goes with its server.
        os.environ.update(PREFECT_API_URL=url, PREFECT_HOME=str(home))
        stack.callback(os.environ.pop, "PREFECT_API_URL", None)
        yield url


def prefect_home(index: int = 0) -> Path:
    """Return the folder of one of the databases of the servers that truegold starts."""
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


def api_answers(url: str) -> bool:
    """Say whether a healthy Prefect API answers at `url`."""
    try:
        return httpx.get(f"{url}/health", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def _wait_until_ready(server: subprocess.Popen[bytes], url: str, home: Path) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        if api_answers(url):
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
    """Become the server in the child process."""
    parent, port = int(sys.argv[1]), sys.argv[2]
    die_with_parent(parent)  # It survives the exec below.
    factory = "prefect.server.api.server:create_app"
    arguments = ["-P", "-m", "uvicorn", "--factory", factory, "--host", "127.0.0.1", "--port", port]
    os.execv(sys.executable, [sys.executable, *arguments, "--timeout-keep-alive", "60", "--log-level", "warning"])


if __name__ == "__main__":
    _serve()
