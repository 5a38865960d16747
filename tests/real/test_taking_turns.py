"""A trainer and vLLM on one GPU take turns: which of them gives its memory up, and when.

There is no GPU here. What stands in for vLLM's `LLM` is told that it is on one, records its calls, and samples nothing;
the trainer, and truegold's engine around the stand-in, are the real ones.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import vllm
from vllm.platforms import current_platform

from truegold.pipeline.config.engines import ChatConfig, VllmEngineConfig
from truegold.pipeline.engines.base import SamplingParams
from truegold.pipeline.engines.chat import load_encoder
from truegold.pipeline.engines.vllm_local import VllmEngine
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import OptimizerConfig
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.segment import Segment
from truegold.train.objective import Totals
from truegold.train.rollout.rollout import Probe, RolloutSampler
from truegold.train.sft import negative_log_likelihood

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]

CALLS: list[str] = []


class StandInForLLM:
    """Stands in for `vllm.LLM` on a GPU: it writes its calls down."""

    def __init__(self, **options: Any) -> None:
        CALLS.append(f"vllm starts, sleep {options['enable_sleep_mode']}, eager {options['enforce_eager']}")

    def sleep(self, level: int) -> None:
        CALLS.append(f"vllm sleeps at {level}")

    def wake_up(self, tags: list[str]) -> None:
        CALLS.append(f"vllm wakes {'+'.join(tags)}")

    def collective_rpc(self, method: str, kwargs: dict[str, Any]) -> None:
        CALLS.append(f"vllm takes {len(dict(kwargs['weights_iterator']))} tensors")

    def generate(self, prompts: list[Any], *_: Any, **__: Any) -> list[Any]:
        CALLS.append("vllm samples")
        output = SimpleNamespace(token_ids=(5,), logprobs=({5: SimpleNamespace(logprob=-1.0)},), finish_reason="stop")
        return [SimpleNamespace(outputs=[output], prompt_token_ids=[1], prompt_logprobs=None) for _ in prompts]


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    CALLS.clear()
    monkeypatch.setattr(vllm, "LLM", StandInForLLM)
    monkeypatch.setattr(type(current_platform), "is_cpu", lambda _: False)


def start(tiny_model: Path, **settings: Any) -> RolloutSampler:
    """Build both engines in the order of a training, and have them write down what the trainer does."""
    config = GrpoConfig()
    sampler = VllmEngine(tiny_model, VllmEngineConfig(**settings), beside_trainer=True)
    trainer = TrainingEngine(tiny_model, OptimizerConfig(), pad_id=0, seed=0)
    CALLS.append("trainer starts")
    for name in ("leave", "come_back"):
        move = getattr(trainer._states, name)

        def noted(move: Any = move, name: str = name) -> None:
            if (name == "leave") is not trainer._states.are_away:
                CALLS.append({"leave": "states leave", "come_back": "states come back"}[name])
            move()

        setattr(trainer._states, name, noted)
    probe = Probe(sampler, trainer, config, [])
    return RolloutSampler(sampler, load_encoder(tiny_model, ChatConfig()), trainer, 0, probe)


def train(rollout: RolloutSampler) -> None:
    segments = [Segment((1, 2, 3), (4, 5, 6))]
    rollout.trainer.update(segments, negative_log_likelihood(Totals(3, 1)), 0, 1)
    CALLS.append("update done")


def sample(rollout: RolloutSampler) -> None:
    rollout.engine.generate([[1]], [SamplingParams(max_tokens=4)], [1])


def take_calls() -> list[str]:
    calls = [call for call in CALLS if "tensors" not in call]
    CALLS.clear()
    return calls


def test_vllm_starts_on_a_free_gpu_and_sleeps_until_the_trainers_states_have_left(
    tiny_model: Path, tmp_path: Path
) -> None:
    rollout = start(tiny_model)
    train(rollout)
    rollout.send(1)
    sample(rollout)
    assert take_calls() == [
        "vllm starts, sleep True, eager False",
        "vllm sleeps at 2",
        "trainer starts",
        "update done",
        "states leave",
        "vllm wakes weights",
        "vllm wakes kv_cache",
        "vllm samples",
    ]
    rollout.engine.sleep()
    train(rollout)
    rollout.send(2)
    assert take_calls() == [
        *("vllm sleeps at 2", "states come back", "update done"),
        *("states leave", "vllm wakes weights", "vllm wakes kv_cache"),
    ]
    # A checkpoint needs the states, and the sampler goes on with the weights that it has.
    rollout.trainer.save(tmp_path, 1, {})
    assert take_calls() == ["vllm sleeps at 1", "states come back"]
    sample(rollout)
    sample(rollout)
    assert take_calls() == ["states leave", "vllm wakes weights+kv_cache", "vllm samples", "vllm samples"]
    rollout.trainer.return_to(tmp_path, 1)
    rollout.send(3)
    assert take_calls() == [
        *("vllm sleeps at 1", "states come back"),
        *("states leave", "vllm wakes weights", "vllm wakes kv_cache"),
    ]


def test_an_update_without_a_sync_leaves_the_sampler_its_weights(tiny_model: Path) -> None:
    rollout = start(tiny_model)
    rollout.send(0)
    take_calls()
    rollout.engine.sleep(weights_follow=False)
    train(rollout)
    sample(rollout)
    assert take_calls() == [
        *("vllm sleeps at 1", "states come back", "update done"),
        *("states leave", "vllm wakes weights+kv_cache", "vllm samples"),
    ]


def test_without_sleep_both_keep_what_they_have(tiny_model: Path, tmp_path: Path) -> None:
    rollout = start(tiny_model, sleep=False, enforce_eager=True)
    rollout.send(0)
    rollout.engine.sleep()
    train(rollout)
    rollout.trainer.save(tmp_path, 1, {})
    sample(rollout)
    assert take_calls() == [
        *("vllm starts, sleep False, eager True", "trainer starts", "update done", "vllm samples"),
    ]
