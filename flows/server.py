"""A Prefect API for the length of one run, and the shards of a deduplication compared through it on Ray.

Where PREFECT_API_URL is set, that server is used. Otherwise one is started as a child (`python -m
truegold.flows.server PARENT PORT`) that the kernel kills with this process, since Prefect's temporary server outlives a
`kill -9` of its client. Its database lies in truegold's cache folder, so that `PREFECT_HOME=... prefect server start`
shows past runs; runs at the same time have a folder each.

On Ray (`on_ray`) each shard is a task of a Prefect flow. The data of the workers is put into the object store of each
machine once and read there without a copy; the keys lie in files that every machine has to see. The outcome is that of
threads, for any number of workers.
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
from typing import TYPE_CHECKING, Any

import httpx

from truegold.pipeline.running.disk import cache_folder
from truegold.pipeline.running.isolation import free_port
from truegold.verifiers import SetupError
from truegold.verifiers.extras import require
from truegold.verifiers.sandbox.child_process import die_with_parent

if TYPE_CHECKING:
    from truegold.pipeline.near.related_pairs import Links, Searcher, ShardRunner

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

    Call it before `prefect` is imported: Prefect reads its settings then. Raises SetupError where the server that
    PREFECT_API_URL names does not answer, where none can be started, and where Prefect is not installed.
    """
    require("prefect")
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    if configured_url := os.environ.get("PREFECT_API_URL"):
        if not answers(configured_url):
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
        server = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        stack.callback(_stop, server)
        _wait_until_ready(server, url, home)
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


def answers(url: str) -> bool:
    """Say whether a healthy Prefect API answers at `url`."""
    try:
        return httpx.get(f"{url}/health", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def _wait_until_ready(server: subprocess.Popen[bytes], url: str, home: Path) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        if answers(url):
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


def on_ray(address: str | None) -> ShardRunner:
    """Return a runner on the Ray cluster of this address; None starts one on this machine, for as long as it is needed.

    The runner raises SetupError where Ray is not installed.
    """

    def run_shards(searcher: Searcher) -> Iterator[Links]:
        with prefect_api():
            try:
                import ray
                from prefect_ray import RayTaskRunner
            except ImportError as error:
                hint = "Install it: pip install 'truegold[ray]'."
                raise SetupError(f"Ray cannot be used ({error}).", hint) from error
            yield from _compare_shards(searcher, RayTaskRunner(address=address), ray)

    return run_shards


def _compare_shards(searcher: Searcher, runner: Any, ray: Any) -> list[Links]:
    from prefect import flow, task
    from prefect.cache_policies import NO_CACHE

    @task(task_run_name="shard-{shard}", cache_policy=NO_CACHE, persist_result=False)
    def links(searcher: Searcher, shard: int) -> Links:
        return searcher.links(shard)

    @flow(name="truegold-dedup-shards", task_runner=runner, persist_result=False)
    def compare() -> list[Links]:
        # The task runner hands a reference over as the object that it refers to.
        reference = ray.put(searcher)
        futures = [links.submit(reference, shard) for shard in range(searcher.shards)]
        return [future.result() for future in futures]

    shard_links: list[Links] = compare()
    return shard_links
