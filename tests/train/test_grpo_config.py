"""Settings of RL: what depends on the pass rate, what is refused, and why."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from transformers import PreTrainedTokenizerBase

from truegold.train.config.grpo import NEUTRAL, GrpoConfig
from truegold.train.config.objective import ObjectiveConfig
from truegold.train.config.turns import RESERVED


def config(**settings: object) -> GrpoConfig:
    return GrpoConfig.model_validate(settings)


@pytest.mark.parametrize("loss", ["ppo", "gspo", "gspo_token", "cispo", "topr"])
def test_losses_have_the_corrections_of_their_papers(loss: str) -> None:
    kinds = [each.kind for each in ObjectiveConfig.model_validate({"loss": loss}).resolved_corrections]
    assert kinds == (["tis"] if loss == "ppo" else [])
    chosen = ObjectiveConfig.model_validate({"loss": loss, "corrections": [{"kind": "tis", "high": 3.0}]})
    assert [each.high for each in chosen.resolved_corrections] == [3.0]
    assert ObjectiveConfig.model_validate({"loss": loss, "corrections": []}).resolved_corrections == ()


def corrections(*weights: dict[str, object]) -> dict[str, object]:
    return {"objective": {"corrections": list(weights)}}


@pytest.mark.parametrize(
    ("name", "value"), [("top_p", 0.95), ("top_k", 20), ("min_p", 0.1), ("repetition_penalty", 1.1)]
)
def test_sampling_that_biases_the_ratio_is_refused_with_the_reason(name: str, value: float) -> None:
    with pytest.raises(ValidationError, match=rf"leave {name} out: .*importance ratio is biased"):
        config(sampling={name: value})


def test_the_same_settings_at_values_without_effect_are_taken() -> None:
    assert config(sampling={"top_p": 1.0, "top_k": 0, "repetition_penalty": 1}) == config()


@pytest.mark.parametrize("temperature", [0, -1.0])
def test_rollouts_need_a_temperature(temperature: float) -> None:
    with pytest.raises(ValidationError):
        config(sampling={"temperature": temperature})


def test_temperature_follows_its_schedule() -> None:
    sampling = config(sampling={"temperature": {"start": 1.0, "end": 0.6, "steps": 4}}).sampling
    assert [sampling.temperature_for(step, None) for step in (0, 1, 4, 9)] == pytest.approx([1.0, 0.9, 0.6, 0.6])


def test_the_lowest_band_that_fits_a_pass_rate_counts() -> None:
    bands = [{"pass_rate_below": 0.5, "temperature": 1.1}, {"pass_rate_below": 0.1, "temperature": 1.3}]
    settings = config(
        sampling={"temperature_bands": bands},
        objective={"advantage_bands": [{"pass_rate_below": 0.2, "advantage": "maxrl"}]},
    )
    assert [settings.sampling.temperature_for(0, rate) for rate in (0.05, 0.1, 0.5, None)] == [1.3, 1.1, 1.0, 1.0]
    assert [settings.objective.advantage_for(rate) for rate in (0.1, 0.2, None)] == ["maxrl", "grpo", "grpo"]


def turns(**settings: Any) -> dict[str, Any]:
    return {"turns": {"environment": "shop.py:Shop", **settings}}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": {"loss": "cispo", "clip": {"high": 0.3}}}, r"the loss cispo has no clip\.low and clip\.high"),
        ({"objective": {"loss": "gspo", "clip": {"dual": 3.0}}}, r"clip\.dual belongs to the loss ppo"),
        ({"objective": {"minibatches": 9}, "prompts_per_step": 8}, r"minibatches \(9\) must not exceed"),
        ({"sampling": {"right_share": [0.8, 0.2]}}, r"must be \[lowest, highest\]"),
        ({"sampling": {"right_share": [0.2, 0.8], "refills": 0}}, "set refills to 1 or more"),
        ({"objective": {"advantage": "pass_at_k_chen"}, "group_size": 4}, r"pass_at_k \(4\) must be at most 3"),
        (
            {
                "objective": {
                    "advantage_bands": [{"pass_rate_below": 0.2, "advantage": "pass_at_k_walder"}],
                    "pass_at_k": 9,
                }
            },
            r"pass_at_k \(9\) must be at most 8",
        ),
        (
            corrections({"kind": "tis", "high": 2.0}, {"kind": "icepop", "low": 0.5, "high": 5.0}),
            "tis and icepop would weigh by the same ratio twice",
        ),
        (corrections({"kind": "icepop", "high": 5.0}), "icepop needs low as well"),
        (corrections({"kind": "icepop", "low": 5.0, "high": 0.5}), "must be below high"),
        (corrections({"kind": "tis", "low": 0.5, "high": 2.0}), "tis has no low"),
        ({"optimizer": {"offload": True}}, "offload needs zero_stage 2 or 3"),
        ({"optimizer": {"zero_stage": 3, "lora": {"targets": ["lm_head"]}}}, "adapters on lm_head"),
        ({"launch": {"ranks": 2, "hostfile": "hosts"}}, "ranks are of this machine alone"),
        ({"asynchronous": {"max_staleness": 2}, "sync_every": 4}, r"sync_every \(4\) must be at most .* \(3\)"),
        (
            {"asynchronous": {"samplers": 5000}},
            r"samplers \(5000\) must be at most 64, the number of groups that are requested ahead",
        ),
        ({"asynchronous": {"devices": ["0", "0"]}}, "devices names 0 more than once"),
        ({"asynchronous": {"devices": ["0, 1", "1,2"]}}, "devices names 1 more than once"),
        (
            {"launch": {"ranks": 3}, "prompts_per_step": 1},
            r"launch\.ranks \(3\) must not exceed prompts_per_step \(1\)",
        ),
        (turns(deadline_s=float("inf")), r"turns\.deadline_s\n.*finite number"),
        (turns(template_args={"tokenize": True, "tools": []}), "tokenize, tools cannot be set"),
        (
            {**turns(credit="turn"), "objective": {"advantage": "pass_at_k_chen"}},
            "credit: turn has no effect on pass_at_k_chen, .* such as grpo, or turns.credit: equal",
        ),
        (
            {
                **turns(credit="discounted"),
                "objective": {"advantage_bands": [{"pass_rate_below": 0.2, "advantage": "pass_at_k_walder"}]},
            },
            "credit: discounted has no effect on pass_at_k_walder",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_told(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        config(**settings)


def test_bounds_that_a_short_training_can_reach_are_taken() -> None:
    assert config(steps=1, asynchronous={"max_staleness": 1}).asynchronous is not None
    unbounded = config(steps=2, asynchronous={"max_staleness": 1_000_000}).asynchronous
    assert unbounded is not None
    assert unbounded.groups_ahead(2, 8) == 16
    assert config(steps=5, prompts_per_step=1, asynchronous={"max_staleness": 4, "samplers": 5}).steps == 5
    assert config(**turns(), objective={"advantage": "pass_at_k_chen"}).turns is not None
    assert config(launch={"ranks": 32}).launch.ranks == 32


def test_every_argument_of_transformers_own_is_refused_as_one_of_the_template() -> None:
    own = inspect.signature(PreTrainedTokenizerBase.apply_chat_template).parameters
    assert {*own, "messages"} - RESERVED == {"self", "documents", "kwargs"}


SERVER = {"type": "server", "url": "http://localhost:1/v1"}


def is_setting(model: type[BaseModel], path: list[str]) -> bool:
    field = model.model_fields.get(path[0])
    if field is None or len(path) == 1:
        return field is not None
    return isinstance(field.annotation, type) and is_setting(field.annotation, path[1:])


def test_settings_have_moved_to_settings_that_there_are() -> None:
    moved = {old: new for old, new in GrpoConfig.moved.items() if old not in NEUTRAL}
    assert [new for new in moved.values() if not is_setting(GrpoConfig, new.split("."))] == []
    assert not set(GrpoConfig.moved) & set(GrpoConfig.model_fields)


def test_every_old_spelling_is_refused_with_its_new_one_beside_other_mistakes() -> None:
    with pytest.raises(ValidationError) as caught:
        config(temperature=1.0, eval_every=2, reward=[{"name": "correct"}], steps=0, sampling={"refills": -1}, words=1)
    mistakes = {".".join(map(str, mistake["loc"])): mistake["msg"] for mistake in caught.value.errors()}
    assert mistakes["temperature"] == "moved to sampling.temperature"
    assert mistakes["eval_every"] == "moved to evaluation.every"
    assert mistakes["reward"] == "moved to reward.terms"
    assert set(mistakes) == {"temperature", "eval_every", "reward", "steps", "sampling.refills", "words"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"feed": {"stages": 5}}, "stages .5. belong to a curriculum"),
        ({"feed": {"order": "signal", "stages": 2}}, "stages .2. belong to a curriculum"),
        ({"objective": {"covariance": {"share": 0.01}}}, "share belongs to kind clip or kl"),
        ({"objective": {"covariance": {"kind": "kl", "low": 3.0}}}, "low belongs to kind clip"),
        ({"objective": {"covariance": {"kind": "clip", "weight": 10}}}, "weight belongs to kind kl"),
        ({"asynchronous": {"devices": ["0", "1"], "samplers": 3}}, "samplers .3. have 2 entries of devices"),
        (
            {"asynchronous": {"in_flight": True}, "engine": SERVER},
            "in_flight does not work with an engine of type server",
        ),
        ({"asynchronous": {"samplers": 2}, "engine": SERVER}, "name the servers in engine.urls"),
    ],
)
def test_settings_without_effect_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        GrpoConfig.model_validate(settings)


@pytest.mark.parametrize(
    ("settings", "devices"),
    [
        ({}, (None,)),
        ({"samplers": 2}, (None, None)),
        ({"devices": "4,5"}, ("4,5",)),
        ({"devices": ["4", "5"]}, ("4", "5")),
    ],
)
def test_samplers_have_the_devices_that_are_named(settings: dict[str, Any], devices: tuple[str | None, ...]) -> None:
    asynchronous = GrpoConfig.model_validate({"asynchronous": settings}).asynchronous
    assert asynchronous is not None
    assert asynchronous.sampler_devices == devices


def test_a_configuration_that_was_written_out_whole_is_read_again() -> None:
    config = GrpoConfig.model_validate({"objective": {"minibatches": 2, "covariance": {"kind": "kl", "weight": 2}}})
    assert GrpoConfig.model_validate(config.model_dump(mode="json")) == config
