"""A profile on a pool in which one server dies, one is slow and one answers garbage."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from numbered_rows import make_row
from vllm_servers import FakeServer, Reply, slow

from truegold.pipeline import engines
from truegold.pipeline.config.engines import ChatConfig, ServerEngineConfig
from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.engines import server_client
from truegold.pipeline.engines.chat import ByteEncoder
from truegold.pipeline.profile.stage import profile
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.tables.rows import write_rows
from truegold.verifiers import SetupError

ROWS = 40


@pytest.fixture(autouse=True)
def byte_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let models have bytes for tokens."""
    monkeypatch.setattr(engines, "load_encoder", lambda _, chat: ByteEncoder(chat))


def run(folder: Path, out: str, *servers: FakeServer | str, **engine: Any) -> StageReport:
    rows = [make_row(problem, "train", "5") for problem in range(ROWS)]
    write_rows(folder / "rows.parquet", rows)
    (folder / "model").mkdir(exist_ok=True)
    (folder / out).mkdir(exist_ok=True)
    urls = tuple(server if isinstance(server, str) else server.url for server in servers)
    config = ServerEngineConfig(urls=urls, late_seconds=0.2, concurrency=8, **engine)
    settings = ProfileConfig(engine=config, chat=ChatConfig(), samples=8, first_samples=None, max_tokens=64)
    inputs = {"rows": folder / "rows.parquet", "model": folder / "model", "store": folder / "store"}
    return profile(inputs, settings, folder / out, NullProgress())


def lies(fake: FakeServer, reply: Reply) -> Reply:
    """Answer 5 to everything, as another model would, with the tokens of what was really sampled."""
    if fake.requests < 10:
        return reply
    return {**reply, "choices": [{**reply["choices"][0], "text": "I am sure: the answer is \\boxed{5}"}]}


def dies(fake: FakeServer, reply: Reply) -> Reply | None:
    """Answer for a while."""
    if fake.requests > 15:
        fake.die()
        return None
    return reply


def test_a_profile_survives_bad_servers_and_no_wrong_verdict_enters(tmp_path: Path) -> None:
    sound, liar, mortal, sluggish = FakeServer(), FakeServer(lies), FakeServer(dies), FakeServer(slow(0.5))
    run(tmp_path, "calm", sound, FakeServer())
    (tmp_path / "store").rename(tmp_path / "store-calm")
    report = run(tmp_path, "stormy", liar, mortal, sluggish, sound)
    for table in ("samples", "profile"):
        calm, stormy = (pl.read_parquet(tmp_path / out / f"{table}.parquet") for out in ("calm", "stormy"))
        assert calm.equals(stormy)
    facts = {server["url"]: server for server in report.facts["sampling"]["servers"]}
    assert facts[liar.url]["state"] == "out"
    assert "do not decode to its text" in facts[liar.url]["why"]
    assert facts[mortal.url]["state"] == "down"
    assert facts[sluggish.url]["completions"] < facts[sound.url]["completions"]
    assert sum(server["completions"] for server in facts.values()) >= ROWS * 8


STOPPED = """
import os, signal, time
from vllm_servers import FakeServer

def stop(fake, reply):
    if fake.requests > 20:
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(600)  # Threads may run on for a moment after the signal: none may answer then.
    return reply

print(FakeServer(stop).url, flush=True)
time.sleep(600)
"""


def test_servers_that_accept_connections_and_never_answer_are_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One from the start; the other, which answers as a sound one would, from its 21st request on."""
    monkeypatch.setattr(server_client, "HEALTH_S", 1.0)
    sound = FakeServer()
    run(tmp_path, "calm", sound, FakeServer())
    (tmp_path / "store").rename(tmp_path / "store-calm")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-P", "-c", STOPPED]
    with (
        socket.create_server(("127.0.0.1", 0)) as mute,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as stopped,
    ):
        assert stopped.stdout is not None
        urls = [f"http://127.0.0.1:{mute.getsockname()[1]}/v1", stopped.stdout.readline().strip(), sound.url]
        report = run(tmp_path, "stormy", *urls)
        stopped.kill()
    for table in ("samples", "profile"):
        calm, stormy = (pl.read_parquet(tmp_path / out / f"{table}.parquet") for out in ("calm", "stormy"))
        assert calm.equals(stormy)
    facts = {server["url"]: server for server in report.facts["sampling"]["servers"]}
    assert (facts[urls[0]]["state"], facts[urls[0]]["why"]) == ("starting", "no answer in time")
    assert 0 < facts[urls[1]]["completions"] <= 21
    assert facts[urls[1]]["late"]


def test_when_the_only_server_never_answers_it_is_named(tmp_path: Path) -> None:
    hanging = FakeServer(slow(20))
    with pytest.raises(SetupError, match="no answer in time") as error:
        run(tmp_path, "profile", hanging, timeout_seconds=0.3, outage_seconds=0.2, retries=1)
    assert hanging.url in str(error.value)


def test_samples_of_a_model_that_is_served_under_another_name_are_not_taken_for_its_own(tmp_path: Path) -> None:
    server = FakeServer()
    run(tmp_path, "first", server)
    again = run(tmp_path, "again", server).facts["sampling"]
    assert (again["drawn"], again["servers"][0]["state"]) == (0, "up")
    server.model = "other"
    assert run(tmp_path, "other", server).facts["sampling"]["kept"] == 0


def test_when_all_servers_die_nothing_is_lost(tmp_path: Path) -> None:
    mortal = FakeServer(dies)
    with pytest.raises(SetupError, match="Finished samples are kept"):
        run(tmp_path, "profile", mortal, outage_seconds=0.2, retries=0)
    mortal.rise()
    report = run(tmp_path, "profile", mortal)
    sampling = report.facts["sampling"]
    assert sampling["kept"] >= 10
    assert sampling["drawn"] + sampling["kept"] == ROWS * 8
