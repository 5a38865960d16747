"""A profile on a pool in which one server dies, one is slow and one answers garbage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from numbered_rows import make_row
from vllm_servers import FakeServer, Reply, slow

from truegold.pipeline import engines
from truegold.pipeline.config.engines import ChatConfig, ServerEngineConfig
from truegold.pipeline.config.stages import ProfileConfig
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


def run(folder: Path, out: str, *servers: FakeServer, **engine: Any) -> StageReport:
    rows = [make_row(problem, "train", "5") for problem in range(ROWS)]
    write_rows(folder / "rows.parquet", rows)
    (folder / "model").mkdir(exist_ok=True)
    (folder / out).mkdir(exist_ok=True)
    config = ServerEngineConfig(urls=tuple(fake.url for fake in servers), late_seconds=0.2, concurrency=8, **engine)
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
