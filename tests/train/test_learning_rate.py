"""The learning rate by step."""

import pytest
from pydantic import ValidationError

from truegold.train.config.models import OptimizerConfig


def rates(steps: int, **settings: object) -> list[float]:
    config = OptimizerConfig.model_validate({"lr": 0.8, **settings})
    return [round(10 * config.learning_rate(step, steps), 5) for step in range(steps)]


def test_it_is_constant_after_the_warm_up_unless_told_otherwise() -> None:
    assert rates(6, warmup_steps=4) == [2.0, 4.0, 6.0, 8.0, 8.0, 8.0]


def test_it_falls_in_a_straight_line_to_the_final_rate() -> None:
    assert rates(6, warmup_steps=2, schedule="linear", final_lr=0.4) == [4.0, 8.0, 8.0, 7.0, 6.0, 5.0]


def test_a_cosine_is_half_way_down_at_half_time() -> None:
    assert rates(4, schedule="cosine") == [8.0, 6.82843, 4.0, 1.17157]


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_past_the_end_it_stays_at_the_final_rate(schedule: str) -> None:
    config = OptimizerConfig.model_validate({"lr": 0.8, "schedule": schedule, "final_lr": 0.1})
    assert [config.learning_rate(step, 10) for step in (10, 25)] == pytest.approx([0.1, 0.1])


def test_a_run_that_is_all_warm_up_has_a_rate() -> None:
    assert rates(2, warmup_steps=4, schedule="cosine") == [2.0, 4.0]


def test_a_final_rate_above_the_first_is_refused() -> None:
    with pytest.raises(ValidationError, match="final_lr"):
        OptimizerConfig(lr=1e-6, final_lr=1e-5)


@pytest.mark.parametrize("rate", [5.0, 0.0, -1e-6])
def test_a_rate_that_no_model_survives_is_refused(rate: float) -> None:
    with pytest.raises(ValidationError, match="lr"):
        OptimizerConfig(lr=rate)
