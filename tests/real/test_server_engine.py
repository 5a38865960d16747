"""A real vLLM server, asked with token ids: the same completions as in-process vLLM, and clear errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from parity_problems import write_parity_problems
from server_process import ServerProcess

from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.config.engines import ChatConfig, ChatEngineConfig, ServerEngineConfig
from truegold.pipeline.config.stages import AskedModelConfig
from truegold.pipeline.engines import build_engine
from truegold.pipeline.engines.base import SamplingParams
from truegold.pipeline.engines.chat import ask_model, load_encoder
from truegold.pipeline.engines.vllm_server import ServerEngine
from truegold.pipeline.running.disk import read_whole_lines
from truegold.pipeline.running.isolation import call_isolated, free_port
from truegold.pipeline.running.progress import NullProgress
from truegold.train.config.grpo import GrpoConfig, ProbeConfig
from truegold.train.config.models import OptimizerConfig
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.segment import Segment
from truegold.train.rollout.rollout import Probe, RolloutSampler, build_rollout_engine
from truegold.train.rollout.samplers import SamplerPool
from truegold.train.rollout.weight_transfer import ServerRollouts
from truegold.train.sft import negative_log_likelihood
from truegold.verifiers import ConfigError, GuardError, SetupError

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]

PROMPTS = [[10, 20, 30], [40, 50], [60]]


@pytest.fixture(scope="module")
def url(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = ServerProcess(tiny_model, tmp_path_factory.mktemp("server") / "log")
    try:
        server.await_health()
        yield server.url
    finally:
        server.stop()


def model_of(url: str) -> str:
    return str(httpx.get(f"{url}/models").json()["data"][0]["id"])


def test_completions_have_token_ids_logprobs_and_reasons(url: str) -> None:
    engine = ServerEngine(ServerEngineConfig(url=url))
    assert engine.max_model_len == 64
    sampling = SamplingParams(temperature=0.8, max_tokens=6)
    first = engine.generate(PROMPTS, sampling, [1, 2, 3])
    again = engine.generate(PROMPTS[::-1], sampling, [3, 2, 1])[::-1]
    assert [done.token_ids for done in first] == [done.token_ids for done in again]
    for done in first:
        assert len(done.token_ids) == len(done.logprobs) == 6
        assert done.finish_reason == "length"
        assert all(logprob <= 0 for logprob in done.logprobs)
    stop = first[0].token_ids[2]
    stopped = engine.generate(PROMPTS[:1], SamplingParams(0.8, 1.0, 6, (stop,)), [1])[0]
    assert stopped.finish_reason == "stop"
    assert stopped.token_ids[-1] == stop
    engine.close()


def test_a_pool_of_real_servers_agrees_on_its_weights_and_passes_every_check(url: str, tiny_model: Path) -> None:
    encoder = load_encoder(tiny_model, ChatConfig())
    pool = ServerEngine(ServerEngineConfig(urls=(url, url.replace("127.0.0.1", "localhost"))), encoder)
    alone = ServerEngine(ServerEngineConfig(url=url), encoder)
    prompts = [[5 + index % 60, 7, 9] for index in range(64)]
    sampling = SamplingParams(max_tokens=40, stop_token_ids=encoder.stop_token_ids, logprobs=False)
    drawn = pool.generate(prompts, sampling, range(64))
    assert [done.token_ids for done in drawn] == [
        done.token_ids for done in alone.generate(prompts, sampling, range(64))
    ]
    for server in pool.facts()["servers"]:
        assert (server["state"], server["failures"]) == ("up", 0)
        assert server["completions"]
    pool.close()
    alone.close()


def test_a_chat_engine_gets_text_and_pays_once(url: str, tmp_path: Path) -> None:
    config = ChatEngineConfig(base_url=url, model=model_of(url), body={"ignore_eos": True})
    asked = AskedModelConfig(name="tiny", engine=config, max_tokens=5, temperature=0.8)
    for requests in (2, 0):
        engine, encoder = build_engine(config, ChatConfig(), None, tmp_path)
        prompts = [encoder.encode("1+1?"), encoder.encode("2+2?")]
        sampling = SamplingParams(asked.temperature, 1.0, asked.max_tokens)
        completions = engine.generate(prompts, sampling, [1, 2])
        assert [(done.finish_reason, done.tokens, done.logprobs) for done in completions] == [("length", 5, ())] * 2
        assert ask_model(prompts, [1, 2], engine, encoder, asked) == [None, None]
        facts = engine.facts()
        engine.close()
        assert (facts["requests"], facts["kept"]) == (requests, 4 - requests)
        assert (facts["input_tokens"] > 0, facts["output_tokens"]) == (requests > 0, 5 * requests)
    other, _ = build_engine(config.model_copy(update={"model": "other"}), ChatConfig(), None)
    with pytest.raises(SetupError, match=r"does not answer for other: it refuses /chat/completions with HTTP 404"):
        other.generate(prompts, sampling, [1, 2])
    other.close()


def test_a_model_the_server_does_not_have_is_one_line(url: str) -> None:
    with pytest.raises(SetupError, match=r"serves .*, not other"):
        ServerEngine(ServerEngineConfig(url=url, model="other"))


def test_a_server_that_is_not_there_is_one_line() -> None:
    with pytest.raises(SetupError, match="does not answer"):
        ServerEngine(ServerEngineConfig(url=f"http://127.0.0.1:{free_port()}/v1", retries=0))


def test_rollouts_of_a_server_follow_the_trainer_s_weights(url: str, tiny_model: Path, tmp_path: Path) -> None:
    settings = ServerEngineConfig(url=url, weights_dir=str(tmp_path))
    optimizer = OptimizerConfig(lr=1e-2, dtype="float32")
    trainer = TrainingEngine(tiny_model, optimizer, pad_id=0, seed=0)
    config = GrpoConfig(optimizer=optimizer, engine=settings, probe=ProbeConfig(tokens=12))
    engine = build_rollout_engine(tiny_model, config)
    probe = Probe(engine, trainer, config, [list(range(5, 45))] * 4)
    rollout = RolloutSampler(engine, load_encoder(tiny_model, ChatConfig()), trainer, config.seed, probe)
    assert rollout.sync(0).mean_abs < 1e-4
    segments = [Segment((5, 6, 7), tuple(range(8, 30)))]
    for step in range(3):
        trainer.update(segments, negative_log_likelihood(trainer.totals(segments)), step, 100)
    with pytest.raises(GuardError, match="Cause: stale weights"):
        probe.check(0)
    assert rollout.sync(1).mean_abs < 1e-4
    assert isinstance(engine, SamplerPool)
    engine.close()
    assert not list(tmp_path.iterdir())


def test_rollouts_of_a_server_need_a_folder_for_weights(url: str) -> None:
    with pytest.raises(ConfigError, match=r"weights_dir is not set"):
        ServerRollouts(ServerEngineConfig(url=url))


@pytest.mark.long_run
def test_a_server_samples_beside_the_update(url: str, tiny_model: Path, tmp_path: Path) -> None:
    weights_dir, out = tmp_path / "weights", tmp_path / "out"
    config = GrpoConfig.model_validate(
        {
            "steps": 5,
            "prompts_per_step": 4,
            "group_size": 4,
            "asynchronous": {"max_staleness": 2},
            "sampling": {"max_tokens": 10, "refills": 1},
            "objective": {"masks": {"truncated": False}, "loss": "ppo"},
            "evaluation": {"every": 2, "samples": 1},
            "engine": {"type": "server", "url": url, "weights_dir": str(weights_dir)},
            "optimizer": {"lr": 1e-3, "dtype": "float32"},
        }
    )
    out.mkdir()
    inputs = write_parity_problems(tiny_model, tmp_path, 16, 8)
    fn, log = "truegold.train.grpo:grpo", tmp_path / "log"
    call_isolated(fn, inputs, config, out, NullProgress(), log, LaunchConfig(), out / "scratch")
    steps = [line for line in read_whole_lines(out / "metrics.jsonl") if "staleness_max" in line]
    assert [step["step"] for step in steps] == list(range(5))
    assert 1 <= max(step["staleness_max"] for step in steps) <= 2
    # The probe at each evaluation would have stopped a run whose server has other weights.
    assert steps[0]["mismatch_abs"] < 1e-3
    ended = Counter(record["group"] for record in read_whole_lines(out / "groups.jsonl"))
    assert set(ended.values()) == {1}
    assert not list(weights_dir.iterdir())
