"""Servers that a training samples from: each sample is of the weights in training, whichever server is lost."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from vllm_servers import FakeServer, Reply, slow, text_of

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines import server_pool
from truegold.pipeline.engines.base import Completion, Request, SamplingParams
from truegold.train.config.grpo import GrpoConfig
from truegold.train.model.distributed import init_distributed
from truegold.train.rollout import samplers
from truegold.train.rollout.rollout import build_rollout_engine
from truegold.train.rollout.samplers import SamplerPool
from truegold.train.rollout.weight_transfer import ServerRollouts, write_weights
from truegold.verifiers import SetupError

SAMPLING = SamplingParams(max_tokens=64)
PROMPTS = [(1, 2, index) for index in range(12)]


def shows_weights(fake: FakeServer, reply: Reply) -> Reply:
    """Show by the log-probabilities which weights it has sampled with: -0.5 for those of its start, else -version."""
    time.sleep(0.01)
    value = -0.5 if fake.loaded is None else -float(fake.loaded.rpartition("-")[2])
    (choice,) = reply["choices"]
    return {**reply, "choices": [{**choice, "logprobs": {"token_logprobs": [value] * len(choice["token_ids"])}}]}


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], FakeServer]]:
    """Start servers that end with the test; pauses are short."""
    for module, name, seconds in (
        (server_pool, "FIRST_PAUSE_S", 0.02),
        (server_pool, "LONGEST_PAUSE_S", 0.1),
        (server_pool, "LOOK_EVERY_S", 0.1),
        (samplers, "FIRST_PAUSE_S", 0.02),
        (samplers, "LONGEST_PAUSE_S", 0.1),
        (samplers, "LOOK_EVERY_S", 0.1),
        (samplers, "WAIT_S", 0.1),
    ):
        monkeypatch.setattr(module, name, seconds)
    init_distributed()
    servers: list[FakeServer] = []

    def start_one() -> FakeServer:
        servers.append(FakeServer(shows_weights))
        return servers[-1]

    yield start_one
    for server in servers:
        server.stop()


NOTES: list[str] = []


def pool_on(folder: Path, **engine: Any) -> SamplerPool:
    NOTES.clear()
    settings = {"type": "server", "weights_dir": str(folder), "retries": 1, "outage_seconds": 1.0, **engine}
    made = build_rollout_engine(folder, GrpoConfig.model_validate({"engine": settings}), NOTES.append)
    assert isinstance(made, SamplerPool)
    return made


def send(pool: SamplerPool, version: int) -> None:
    pool.update_weights(iter([("w", torch.zeros(2))]), version)


def check(completions: list[Completion], version: float) -> None:
    for seed, (prompt, completion) in enumerate(zip(PROMPTS, completions, strict=True)):
        assert bytes(completion.token_ids[:-1]).decode() == text_of(list(prompt), 1000 + seed)
        assert set(completion.logprobs) == {-version}


def generate(pool: SamplerPool | ServerRollouts) -> list[Completion]:
    return pool.generate(PROMPTS, [SAMPLING] * len(PROMPTS), [1000 + index for index in range(len(PROMPTS))])


def test_a_server_that_is_started_again_unnoticed_samples_with_the_weights_in_training(
    start: Callable[[], FakeServer], tmp_path: Path
) -> None:
    server = start()
    engine = ServerRollouts(ServerEngineConfig(url=server.url, weights_dir=str(tmp_path)))
    check(generate(engine), 0.5)
    write_weights(iter([("w", torch.zeros(2))]), tmp_path / "version-7")
    engine.load(tmp_path / "version-7", 7)
    check(generate(engine), 7)
    server.restart()
    check(generate(engine), 7)
    assert (server.starts, server.loaded) == (1, "version-7")
    engine.close()


def test_a_lost_server_is_done_without_and_comes_back_with_the_weights_in_training(
    start: Callable[[], FakeServer], tmp_path: Path
) -> None:
    mortal, other = start(), start()
    pool = pool_on(tmp_path, urls=[mortal.url, other.url])
    send(pool, 1)
    check(generate(pool), 1)
    mortal.die()
    check(generate(pool), 1)
    send(pool, 2)
    check(generate(pool), 2)
    assert len(pool.samplers) == 1
    mortal.rise()
    mortal.behave = shows_weights
    while len(pool.samplers) < 2:
        check(generate(pool), 2)
    served = mortal.requests
    check(generate(pool), 2)
    assert mortal.requests > served
    assert mortal.loaded == "version-2"
    assert f"the server {mortal.url} is lost: No vLLM server can be sampled from" in NOTES[0]
    assert NOTES[-1] == f"the server {mortal.url} samples, with the weights of version 2"
    # What a server needs that is started again, and no more.
    assert [path.name for path in (tmp_path / "samplers").iterdir()] == ["version-2"]
    pool.close()
    assert not list(tmp_path.iterdir())


def test_a_server_that_hangs_is_named_and_others_do_its_work(start: Callable[[], FakeServer], tmp_path: Path) -> None:
    hanging, other = start(), start()
    pool = pool_on(tmp_path, urls=[hanging.url, other.url], timeout_seconds=0.5)
    send(pool, 1)
    check(generate(pool), 1)
    hanging.behave = slow(20)
    check(generate(pool), 1)
    lost = re.escape(f"the server {hanging.url} is lost: ")
    assert re.search(rf"{lost}(?:A request failed 2 times|No vLLM server can be sampled from)", NOTES[0])
    assert "no answer in time" in NOTES[0]
    pool.close()


def test_what_a_lost_server_had_begun_in_the_background_is_done_by_others(
    start: Callable[[], FakeServer], tmp_path: Path
) -> None:
    mortal, other = start(), start()
    path = tmp_path / "servers"
    path.write_text(f"{mortal.url}\n")
    pool = pool_on(tmp_path / "weights", urls_file=str(path))
    send(pool, 1)
    pool.start(SAMPLING)
    requests = [Request((1, 2, index // 4), 1000 + index, index) for index in range(200)]
    for first in range(0, 200, 4):
        pool.submit(requests[first : first + 4])
    done = pool.poll(None)
    (tmp_path / "aside").write_text(f"{mortal.url}\n{other.url}\n")
    (tmp_path / "aside").rename(path)
    while len(pool.samplers) < 2:
        done += pool.poll(0.05)
    mortal.die()
    send(pool, 2)
    while len(done) < len(requests):
        done += pool.poll(None)
    assert sorted(each.sample for each in done) == list(range(200))
    for each in done:
        assert isinstance(each.answer, Completion)
        ((version, tokens),) = each.versions
        assert tokens == len(each.answer.token_ids)
        # The version that is written down is that of the weights that have sampled it.
        assert set(each.answer.logprobs) == {-float(version)}
    assert other.requests
    path.write_text(f"{other.url}\n")
    while not any("was removed from the list of servers" in note for note in NOTES):
        pool.poll(0.05)
    pool.close()


def test_when_all_servers_are_lost_the_training_waits_and_then_ends(
    start: Callable[[], FakeServer], tmp_path: Path
) -> None:
    servers = [start(), start()]
    pool = pool_on(tmp_path, urls=[server.url for server in servers])
    send(pool, 1)
    for server in servers:
        server.die()
    with pytest.raises(SetupError, match=r"No server can be sampled from: the server http.*; the server http.*last ch"):
        generate(pool)
    pool.close()


def test_a_list_without_servers_is_one_line(start: Callable[[], FakeServer], tmp_path: Path) -> None:
    (tmp_path / "servers").write_text("# none yet\n")
    with pytest.raises(SetupError, match="The list of servers is empty"):
        pool_on(tmp_path, urls_file=str(tmp_path / "servers"))
