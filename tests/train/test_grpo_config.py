"""Settings of RL: what depends on the pass rate, what is refused, and why."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from truegold.train.config.grpo import GrpoConfig


def config(**settings: object) -> GrpoConfig:
    return GrpoConfig.model_validate(settings)


@pytest.mark.parametrize(
    ("name", "value"), [("top_p", 0.95), ("top_k", 20), ("min_p", 0.1), ("repetition_penalty", 1.1)]
)
def test_sampling_that_biases_the_ratio_is_refused_with_the_reason(name: str, value: float) -> None:
    with pytest.raises(ValidationError, match=rf"{name} must stay away: .*importance ratio is biased"):
        config(**{name: value})


def test_the_same_settings_at_values_without_effect_are_taken() -> None:
    assert config(top_p=1.0, top_k=0, repetition_penalty=1) == config()


@pytest.mark.parametrize("temperature", [0, -1.0])
def test_rollouts_need_a_temperature(temperature: float) -> None:
    with pytest.raises(ValidationError):
        config(temperature=temperature)


def test_temperature_follows_its_schedule() -> None:
    settings = config(temperature={"start": 1.0, "end": 0.6, "steps": 4})
    assert [settings.temperature_of(step, None) for step in (0, 1, 4, 9)] == pytest.approx([1.0, 0.9, 0.6, 0.6])


def test_the_lowest_band_that_fits_a_pass_rate_counts() -> None:
    settings = config(
        temperature_bands=[{"pass_rate_below": 0.5, "temperature": 1.1}, {"pass_rate_below": 0.1, "temperature": 1.3}],
        advantage_bands=[{"pass_rate_below": 0.2, "advantage": "maxrl"}],
    )
    assert [settings.temperature_of(0, rate) for rate in (0.05, 0.1, 0.5, None)] == [1.3, 1.1, 1.0, 1.0]
    assert [settings.advantage_of(rate) for rate in (0.1, 0.2, None)] == ["maxrl", "grpo", "grpo"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "cispo", "clip_high": 0.3}, "the loss cispo has no clip_low and clip_high"),
        ({"loss": "gspo", "dual_clip": 3.0}, "dual_clip belongs to the loss ppo"),
        ({"minibatches": 9, "prompts_per_step": 8}, r"minibatches \(9\) must not exceed"),
        ({"right_share": [0.8, 0.2]}, r"must be \[lowest, highest\]"),
        ({"right_share": [0.2, 0.8]}, "set refills to 1 or more"),
        ({"advantage": "pass_at_k_chen", "group_size": 4}, r"pass_at_k \(4\) must be at most 3"),
        (
            {"advantage_bands": [{"pass_rate_below": 0.2, "advantage": "pass_at_k_walder"}], "pass_at_k": 9},
            r"pass_at_k \(9\) must be at most 8",
        ),
        (
            {"corrections": [{"kind": "tis", "high": 2.0}, {"kind": "icepop", "low": 0.5, "high": 5.0}]},
            "tis and icepop would weigh by the same ratio twice",
        ),
        ({"corrections": [{"kind": "icepop", "high": 5.0}]}, "icepop needs low as well"),
        ({"corrections": [{"kind": "icepop", "low": 5.0, "high": 0.5}]}, "must be below high"),
        ({"corrections": [{"kind": "tis", "low": 0.5, "high": 2.0}]}, "tis has no low"),
        ({"optimizer": {"offload": True}}, "offload needs zero_stage 2 or 3"),
        ({"optimizer": {"zero_stage": 3, "lora": {"targets": ["lm_head"]}}}, "adapters on lm_head"),
        ({"launch": {"ranks": 2, "hostfile": "hosts"}}, "ranks are of this machine alone"),
    ],
)
def test_settings_that_contradict_each_other_are_told(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        config(**settings)
