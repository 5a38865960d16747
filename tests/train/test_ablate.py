"""One recorded batch under two objectives."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from truegold.train.config.objective import ObjectiveConfig
from truegold.train.grpo.ablate import compare, completion_weights
from truegold.verifiers import ConfigError, InputError


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A hard group of one right completion in four, and an easy one of three in four, whose wrong one is long."""
    right = [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]
    lengths = [2, 2, 2, 2, 2, 2, 2, 10]
    path = tmp_path / "step-000003.parquet"
    pl.DataFrame(
        {
            "id": [f"id-{index}" for index in range(8)],
            "group": [0] * 4 + [1] * 4,
            "token_ids": [[7] * length for length in lengths],
            "truncated": [False] * 8,
            "score": right,
            "reward": right,
            "completion": [f"answer {index}" for index in range(8)],
        }
    ).write_parquet(path)
    return path


def test_the_shares_of_a_batch_are_signed_and_add_up_to_one_in_size(recorded: Path) -> None:
    weights = completion_weights(pl.read_parquet(recorded), ObjectiveConfig(advantage="dr_grpo"))
    assert sum(map(abs, weights)) == pytest.approx(1.0)
    assert [weight > 0 for weight in weights] == [True, False, False, False, True, True, True, False]


def test_maxrl_weighs_the_hard_group_more_than_dr_grpo_does(recorded: Path) -> None:
    lines = list(compare(recorded, {"advantage": "dr_grpo"}, {"advantage": "maxrl"}))
    hard = next(line for line in lines if "hard groups" in line).split()[-2:]
    assert float(hard[1]) > float(hard[0])


def test_a_mean_over_sequences_takes_the_weight_of_length_away(recorded: Path) -> None:
    by_token, by_sequence = ({"aggregation": kind} for kind in ("token", "sequence"))
    longest = next(line for line in compare(recorded, by_token, by_sequence) if "longest" in line).split()[-2:]
    assert float(longest[0]) > 1.5 * float(longest[1])


def test_what_is_no_batch_or_no_objective_is_refused(recorded: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        list(compare(recorded.with_name("none.parquet"), {}, {}))
    with pytest.raises(ConfigError, match="This is no objective: advantage"):
        list(compare(recorded, {"advantage": "best"}, {}))
