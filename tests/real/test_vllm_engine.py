"""vLLM beside the trainer: seeded samples, the trainer's log-probabilities, a probe that catches what went stale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from truegold.pipeline.config.engines import ChatConfig, VllmEngineConfig
from truegold.pipeline.engines.base import Completion, Request, SamplingParams, score
from truegold.pipeline.engines.chat import load_encoder
from truegold.pipeline.engines.vllm_local import VllmEngine
from truegold.pipeline.profile.summary import ends_in_a_loop
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import OptimizerConfig
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.segment import Segment, collate
from truegold.train.objective import mismatch
from truegold.train.rollout.rollout import Probe, RolloutSampler
from truegold.train.sft import negative_log_likelihood
from truegold.verifiers import GuardError

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]

PROMPT_TOKENS = 140
"""More than a block of vLLM's prefix cache, so that prefixes are really cached."""

SAMPLING = SamplingParams(temperature=1.0, max_tokens=12)


@pytest.fixture(scope="module")
def engine(tiny_model: Path) -> Iterator[VllmEngine]:
    made = VllmEngine(tiny_model, VllmEngineConfig(dtype="float32", max_model_len=256, cpu_kv_cache_gib=1))
    yield made
    made.close()


@pytest.fixture
def trainer(tiny_model: Path) -> TrainingEngine:
    return TrainingEngine(tiny_model, OptimizerConfig(lr=1e-2, dtype="float32"), pad_id=0, seed=0)


def prompts(count: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randint(5, 250, (PROMPT_TOKENS,), generator=generator).tolist() for _ in range(count)]


def rollout_of(
    engine: VllmEngine, trainer: TrainingEngine, tiny_model: Path, temperature: float = 1.0
) -> RolloutSampler:
    config = GrpoConfig.model_validate(
        {"sampling": {"temperature": temperature}, "optimizer": {"dtype": "float32"}, "probe": {"tokens": 12}}
    )
    return RolloutSampler(
        engine, load_encoder(tiny_model, ChatConfig()), trainer, config.seed, Probe(engine, trainer, config, prompts(8))
    )


def change_weights(trainer: TrainingEngine) -> None:
    segments = [Segment(tuple(prompt), tuple(range(5, 25))) for prompt in prompts(4)]
    for step in range(3):
        trainer.update(segments, negative_log_likelihood(trainer.totals(segments)), step, 100)


def test_a_seed_decides_a_completion_whatever_else_is_in_the_batch(engine: VllmEngine) -> None:
    together = engine.generate(prompts(6), SAMPLING, [11, 12, 13, 14, 15, 16])
    alone = engine.generate(prompts(6)[2:3], SAMPLING, [13])
    other = engine.generate(prompts(6)[2:3], SAMPLING, [99])
    assert alone[0].token_ids == together[2].token_ids
    assert other[0].token_ids != together[2].token_ids


def test_a_stream_samples_the_same_and_takes_more_as_it_goes(engine: VllmEngine) -> None:
    together = engine.generate(prompts(6), SAMPLING, [11, 12, 13, 14, 15, 16])
    waiting = [Request(tuple(prompt), 11 + index, 0) for index, prompt in enumerate(prompts(6))]
    finished: list[Request] = []

    def take(count: int) -> list[Request] | None:
        if not waiting:
            # Requests may still come of what is on its way, up to the last completion.
            return None if len(finished) == len(together) else []
        return [waiting.pop()] if count else []

    streamed = {}
    for request, completion in engine.stream(take, replace(SAMPLING, logprobs=False)):
        finished.append(request)
        streamed[request.seed] = completion
    assert [streamed[11 + index].token_ids for index in range(6)] == [completion.token_ids for completion in together]
    assert streamed[11].logprobs == ()


def test_a_completion_ends_at_the_stop_token_and_keeps_it(engine: VllmEngine) -> None:
    free = engine.generate(prompts(1), SAMPLING, [1])[0]
    assert (len(free.token_ids), free.finish_reason) == (12, "length")
    stop = free.token_ids[4]
    stopped = engine.generate(prompts(1), SamplingParams(max_tokens=12, stop_token_ids=(stop,)), [1])[0]
    assert stopped.finish_reason == "stop"
    assert stopped.token_ids == free.token_ids[: free.token_ids.index(stop) + 1]
    assert len(stopped.logprobs) == len(stopped.token_ids)


def test_a_loop_is_ended_where_it_is_asked_for(engine: VllmEngine) -> None:
    prompt = [[5, 6, 7]]
    free = engine.generate(prompt, SamplingParams(temperature=0, max_tokens=250), [1])[0]
    assert (len(free.token_ids), free.finish_reason) == (250, "length")
    assert ends_in_a_loop(free.token_ids)
    ended = engine.generate(prompt, SamplingParams(temperature=0, max_tokens=250, stop_loops=True), [1])[0]
    assert ended.finish_reason == "repetition"
    assert ended.token_ids == free.token_ids[: len(ended.token_ids)]
    assert 147 <= len(ended.token_ids) < 250
    assert ends_in_a_loop(ended.token_ids)


def test_a_prompt_that_leaves_no_room_is_an_error(engine: VllmEngine) -> None:
    with pytest.raises(ValueError, match="prompt 0 has 256 tokens"):
        engine.generate([[7] * 256], SAMPLING, [0])


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_both_engines_give_the_same_logprobs_after_a_sync(
    engine: VllmEngine, trainer: TrainingEngine, tiny_model: Path, temperature: float
) -> None:
    rollout = rollout_of(engine, trainer, tiny_model, temperature)
    rollout.sync(1)
    change_weights(trainer)
    assert rollout.sync(2).mean_abs < 1e-5


def test_weights_that_were_not_synced_are_caught(engine: VllmEngine, trainer: TrainingEngine, tiny_model: Path) -> None:
    rollout = rollout_of(engine, trainer, tiny_model)
    rollout.sync(3)
    change_weights(trainer)
    with pytest.raises(GuardError, match=r"weights version 3 the sampling and the training.* Cause: stale weights"):
        rollout.probe.check(3)


def test_weights_that_never_arrive_are_told_from_those_that_came_late(
    engine: VllmEngine, trainer: TrainingEngine, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = rollout_of(engine, trainer, tiny_model)
    rollout.sync(30)
    change_weights(trainer)
    update = engine.update_weights

    def matrices_only(tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        update(((name, tensor) for name, tensor in tensors if tensor.dim() > 1 and "lm_head" not in name), version)

    monkeypatch.setattr(engine, "update_weights", matrices_only)
    with pytest.raises(GuardError, match="also after all weights have been sent again"):
        rollout.sync(31)


def test_log_probabilities_that_are_not_numbers_are_caught(
    engine: VllmEngine, trainer: TrainingEngine, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = rollout_of(engine, trainer, tiny_model)
    rollout.sync(20)
    monkeypatch.setattr(trainer, "logprobs", lambda all: [torch.full((len(one.output_ids),), torch.nan) for one in all])
    with pytest.raises(GuardError, match="weights version 20 log-probabilities are not finite"):
        rollout.probe.check(20)


def test_a_stale_output_head_is_caught(
    engine: VllmEngine, trainer: TrainingEngine, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = rollout_of(engine, trainer, tiny_model)
    rollout.sync(4)
    change_weights(trainer)
    whole = trainer.named_tensors
    monkeypatch.setattr(trainer, "named_tensors", lambda: ((n, t) for n, t in whole() if n != "lm_head.weight"))
    with pytest.raises(GuardError, match="Cause: stale output head"):
        rollout.sync(5)


def test_a_prefix_cache_of_older_weights_is_caught(
    engine: VllmEngine, trainer: TrainingEngine, tiny_model: Path
) -> None:
    rollout = rollout_of(engine, trainer, tiny_model)
    rollout.sync(6)
    change_weights(trainer)
    engine.update_weights(trainer.named_tensors(), version=6)  # the same version: the salt does not change
    with pytest.raises(GuardError, match="Cause: stale prefix cache"):
        rollout.probe.check(6)


def test_a_temperature_on_one_side_only_is_caught(
    engine: VllmEngine, trainer: TrainingEngine, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = rollout_of(engine, trainer, tiny_model)
    as_asked = engine.generate

    def colder(
        prompts: Sequence[Sequence[int]], sampling: Sequence[SamplingParams], seeds: Sequence[int]
    ) -> list[Completion]:
        return as_asked(prompts, [replace(one, temperature=0.7) for one in sampling], seeds)

    monkeypatch.setattr(engine, "generate", colder)
    with pytest.raises(GuardError, match=r"Cause: temperature\. .* those of temperature 0.7, the trainer's are at 1"):
        rollout.sync(7)


def test_rollout_logprobs_are_those_of_the_trainer(engine: VllmEngine, trainer: TrainingEngine) -> None:
    engine.update_weights(trainer.named_tensors(), version=8)
    sampled = engine.generate(prompts(4), SAMPLING, [1, 2, 3, 4])
    segments = [
        Segment(tuple(prompt), done.token_ids, done.logprobs) for prompt, done in zip(prompts(4), sampled, strict=True)
    ]
    batch = collate([[segment] for segment in segments], pad_id=0)
    own = torch.stack(trainer.logprobs(segments))
    assert mismatch(batch.rollout_logprobs, own, batch.mask).mean_abs < 1e-5


def test_an_output_is_scored_behind_another_prompt_as_the_trainer_would(
    engine: VllmEngine, trainer: TrainingEngine
) -> None:
    engine.update_weights(trainer.named_tensors(), version=10)
    outputs = [done.token_ids for done in engine.generate(prompts(3), SAMPLING, [1, 2, 3])]
    bare = [prompt[:30] for prompt in prompts(3)]
    scored = score(engine, bare, outputs)
    trained = trainer.logprobs([Segment(tuple(p), o) for p, o in zip(bare, outputs, strict=True)])
    for logprobs, expected in zip(scored, trained, strict=True):
        assert list(logprobs) == pytest.approx(expected.tolist(), abs=1e-4)


def test_weights_given_back_for_an_update_come_back_with_the_sync(engine: VllmEngine, trainer: TrainingEngine) -> None:
    engine.update_weights(trainer.named_tensors(), version=9)
    before = engine.generate(prompts(2), SAMPLING, [1, 2])
    engine.sleep()
    with pytest.raises(RuntimeError, match="no weights until update_weights"):
        engine.llm.apply_model(lambda model: model.compute_logits(torch.zeros(1, model.config.hidden_size)))
    with pytest.raises(RuntimeError, match="no weights until update_weights"):
        engine.generate(prompts(2), SAMPLING, [1, 2])
    engine.update_weights(trainer.named_tensors(), version=10)
    assert engine.generate(prompts(2), SAMPLING, [1, 2]) == before
