"""The distance between two engines' log-probabilities, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from truegold.train.objective import mismatch, mismatch_sums


def test_mismatch_reports_mean_absolute_difference_and_the_sums_of_a_step() -> None:
    sampler = torch.tensor([[0.0, -1.0, 7.0]])
    trainer = torch.tensor([[0.1, -1.2, 0.0]])
    mask = torch.tensor([[1.0, 1.0, 0.0]])
    distance = mismatch(sampler, trainer, mask)
    k3 = ((math.exp(0.1) - 0.1 - 1) + (math.exp(-0.2) + 0.2 - 1)) / 2
    assert distance.tokens == 2
    assert distance.mean_abs == pytest.approx(0.15, abs=1e-6)
    sums = mismatch_sums(sampler, trainer, mask, torch.tensor([[True, False, True]]))
    assert sums["mismatch_abs"].item() == pytest.approx(0.3, rel=1e-5)
    assert sums["mismatch_k3"].item() == pytest.approx(2 * k3, rel=1e-4)
    assert sums["fresh_tokens"].item() == 1.0
    assert sums["mismatch_fresh"].item() == pytest.approx(0.1, rel=1e-5)


def test_tokens_outside_of_the_clip_range_are_counted() -> None:
    sampler = torch.zeros(1, 5)
    trainer = torch.tensor([[0.3, -0.3, 0.2, -0.2, 9.0]])  # The ratios are 1.35, .74, 1.22, .82, and padding.
    mask = torch.tensor([[1.0, 1.0, 1.0, 1.0, 0.0]])
    assert mismatch_sums(sampler, trainer, mask, mask > 0)["mismatch_outside"].item() == 2.0
