"""Advantages and the clipped loss against hand-computed values."""

from __future__ import annotations

import math

import pytest
import torch

from truegold.train.objective import clipped_token_loss, group_advantages, mismatch, mismatch_sums

NAN = float("nan")


def test_grpo_advantage_is_the_group_z_score_with_the_unbiased_std() -> None:
    rewards = torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0], dtype=torch.float64)
    groups = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    expected = [1.4997, -0.4999, -0.4999, -0.4999, 0.4999, 0.4999, -1.4997, 0.4999]
    torch.testing.assert_close(group_advantages(rewards, groups).tolist(), expected, atol=5e-5, rtol=0)


def test_dr_grpo_advantage_is_centred_only() -> None:
    rewards = torch.tensor([1.0, 0.0, 0.0, 0.0])
    found = group_advantages(rewards, torch.zeros(4, dtype=torch.int64), "dr_grpo")
    assert found.tolist() == [0.75, -0.25, -0.25, -0.25]


@pytest.mark.parametrize("rewards", [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, NAN, NAN], [NAN, NAN, NAN]])
def test_groups_without_signal_get_zero(rewards: list[float]) -> None:
    found = group_advantages(torch.tensor(rewards), torch.zeros(3, dtype=torch.int64))
    assert found.tolist() == [0.0, 0.0, 0.0]


def test_an_unjudged_completion_leaves_its_group() -> None:
    found = group_advantages(torch.tensor([1.0, NAN, 0.0]), torch.zeros(3, dtype=torch.int64), "dr_grpo")
    assert found.tolist() == [0.5, 0.0, -0.5]


def test_clipped_token_loss_by_hand() -> None:
    ratio = torch.tensor([[1.5, 0.5], [1.5, 0.5]])
    advantages = torch.tensor([2.0, -1.0])
    mask = torch.ones(2, 2)
    parts = clipped_token_loss(ratio.log(), torch.zeros(2, 2), advantages, mask, 0.2, 0.28)
    # A > 0: min(3.0, 1.28*2) = 2.56, min(1.0, 0.8*2) = 1.0; A < 0: min(-1.5, -1.28) = -1.5, min(-0.5, -0.8) = -0.8
    assert parts.loss.item() == pytest.approx(-(2.56 + 1.0 - 1.5 - 0.8))
    assert (parts.clipped_high.item(), parts.clipped_low.item()) == (1.0, 1.0)
    assert parts.ratio_sum.item() == pytest.approx(4.0)


def test_padding_has_no_part_in_loss_or_gradient() -> None:
    current = torch.zeros(1, 3, requires_grad=True)
    mask = torch.tensor([[1.0, 1.0, 0.0]])
    parts = clipped_token_loss(current, torch.zeros(1, 3), torch.tensor([1.0]), mask, 0.2, 0.28)
    parts.loss.backward()
    assert current.grad is not None
    assert current.grad.tolist() == [[-1.0, -1.0, 0.0]]


def test_the_gradient_stops_outside_the_clip_range_on_the_side_that_would_grow() -> None:
    current = torch.tensor([[math.log(1.5), math.log(0.5)]], requires_grad=True)
    old = torch.zeros(1, 2)
    clipped_token_loss(current, old, torch.tensor([1.0]), torch.ones(1, 2), 0.2, 0.28).loss.backward()
    assert current.grad is not None
    assert current.grad.tolist() == [[0.0, -0.5]]


def test_mismatch_reports_mean_absolute_difference_and_k3() -> None:
    own = torch.tensor([[0.0, -1.0, 7.0]])
    other = torch.tensor([[0.1, -1.2, 0.0]])
    mask = torch.tensor([[1.0, 1.0, 0.0]])
    found = mismatch(own, other, mask)
    k3 = ((math.exp(0.1) - 0.1 - 1) + (math.exp(-0.2) + 0.2 - 1)) / 2
    assert found.tokens == 2
    assert found.mean_abs == pytest.approx(0.15, abs=1e-6)
    assert found.mean == pytest.approx(-0.05, abs=1e-6)
    assert found.k3 == pytest.approx(k3, rel=1e-5)
    sums = mismatch_sums(own, other, mask)
    assert sums["mismatch_abs"].item() == pytest.approx(0.3, rel=1e-5)
    assert sums["mismatch_k3"].item() == pytest.approx(2 * k3, rel=1e-4)
