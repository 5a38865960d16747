"""Two real vLLM servers, of which one joins and the other is killed while a profile or a training runs."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from numbered_rows import make_row
from parity_problems import write_parity_problems
from server_process import ServerProcess

from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.config.engines import ChatConfig, ServerEngineConfig
from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.profile.stage import profile
from truegold.pipeline.running.disk import read_whole_lines
from truegold.pipeline.running.isolation import call_isolated
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.tables.rows import write_rows
from truegold.train.config.grpo import GrpoConfig

pytestmark = [
    pytest.mark.real,
    pytest.mark.long_run,
    pytest.mark.timeout(1500),
    pytest.mark.filterwarnings("default"),
]

ROWS, SAMPLES = 120, 8


class Notes(NullProgress):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        """Keep a note."""
        self.lines.append(text)


@pytest.fixture(scope="module")
def start(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], ServerProcess]]:
    servers: list[ServerProcess] = []

    def start_one() -> ServerProcess:
        servers.append(ServerProcess(tiny_model, tmp_path_factory.mktemp("server") / "log"))
        return servers[-1]

    yield start_one
    for server in servers:
        server.stop()


@contextmanager
def beside(act: Callable[[], None]) -> Iterator[None]:
    """Act in a thread while something runs, and wait for its end."""
    errors: list[BaseException] = []

    def acting() -> None:
        try:
            act()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=acting, daemon=True)
    thread.start()
    yield
    thread.join(60)
    assert not errors, errors
    assert not thread.is_alive()


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 600
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def run_profile(model: Path, folder: Path, out: str, **engine: Any) -> StageReport:
    write_rows(folder / "rows.parquet", [make_row(problem, "train", "5") for problem in range(ROWS)])
    (folder / out).mkdir()
    config = ServerEngineConfig(concurrency=4, **engine)
    settings = ProfileConfig(engine=config, chat=ChatConfig(), samples=SAMPLES, first_samples=None, max_tokens=32)
    inputs = {"rows": folder / "rows.parquet", "model": model, "store": folder / f"store-{out}"}
    return profile(inputs, settings, folder / out, NullProgress())


def test_a_profile_and_a_training_go_on_while_servers_leave_and_join(
    start: Callable[[], ServerProcess], tiny_model: Path, tmp_path: Path
) -> None:
    first, second = start(), start()
    first.await_health()
    second.await_health()
    path = tmp_path / "servers"

    def list_servers(*servers: ServerProcess) -> None:
        path.write_text("".join(f"{server.url}\n" for server in servers))

    store = tmp_path / "store-stormy"

    def count_samples() -> int:
        return sum(file.stat().st_size for file in store.rglob("*") if file.is_file())

    def change_servers() -> None:
        wait_for(lambda: count_samples() > 0)
        list_servers(first, second)
        wait_for(lambda: "POST /v1/completions" in second.log.read_text())
        first.kill()

    # The same samples, whichever server is there.
    run_profile(tiny_model, tmp_path, "calm", url=second.url)
    list_servers(first)
    second.log.write_text("")
    with beside(change_servers):
        report = run_profile(tiny_model, tmp_path, "stormy", urls_file=str(path))
    calm, stormy = (pl.read_parquet(tmp_path / out / "samples.parquet") for out in ("calm", "stormy"))
    assert len(stormy) == ROWS * SAMPLES
    assert stormy.drop("logprobs").equals(calm.drop("logprobs"))
    facts = {server["url"]: server for server in report.facts["sampling"]["servers"]}
    assert (facts[first.url]["state"], facts[second.url]["state"]) == ("down", "up")
    assert facts[first.url]["completions"]
    assert facts[second.url]["completions"]

    # A training begins on the server that is left. Another one joins, which has the weights of its start, and the one
    # that was there from the start is killed.
    third = start()
    third.await_health()
    list_servers(second)
    out, notes = tmp_path / "train", Notes()

    def steps() -> list[dict[str, Any]]:
        lines = read_whole_lines(out / "metrics.jsonl") if (out / "metrics.jsonl").exists() else []
        return [line for line in lines if "staleness_max" in line]

    def change_samplers() -> None:
        wait_for(lambda: len(steps()) >= 3)
        list_servers(second, third)
        wait_for(lambda: "POST /v1/completions" in third.log.read_text())
        second.kill()

    out.mkdir()
    config = GrpoConfig.model_validate(
        {
            "steps": 40,
            "prompts_per_step": 4,
            "group_size": 4,
            "asynchronous": {"max_staleness": 2},
            "sampling": {"max_tokens": 10, "refills": 1},
            "objective": {"masks": {"truncated": False}, "loss": "ppo"},
            "evaluation": {"every": 5, "samples": 1},
            "engine": {"type": "server", "urls_file": str(path), "weights_dir": str(tmp_path / "weights")},
            "optimizer": {"lr": 1e-3, "dtype": "float32"},
        }
    )
    inputs = write_parity_problems(tiny_model, tmp_path, 16, 8)
    with beside(change_samplers):
        fn, log = "truegold.train.grpo:grpo", tmp_path / "log"
        call_isolated(fn, inputs, config, out, notes, log, LaunchConfig(), out / "scratch")
    assert [step["step"] for step in steps()] == list(range(40))
    ended = Counter(record["group"] for record in read_whole_lines(out / "groups.jsonl"))
    assert set(ended.values()) == {1}
    # Tokens are of the weights that they are said to be of, or these differ by far more.
    assert max(step["mismatch_fresh"] for step in steps()) < 1e-3, json.dumps(steps())
    assert max(step["staleness_max"] for step in steps()) <= 2
    joined = [line for line in notes.lines if f"{third.url} samples, with the weights of version" in line]
    assert joined
    assert not joined[0].endswith("version 0")
    assert any(f"{second.url} is lost" in line for line in notes.lines)
