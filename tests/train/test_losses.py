"""Losses, corrections, masks and weights: by hand, against finite differences, and against each other."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import torch
from real_data import real_data
from torch import Tensor

from truegold.train.config.objective import Aggregation, Correction, CovarianceConfig
from truegold.train.objective import (
    LOSSES,
    Totals,
    choose_covariant,
    cispo,
    covariances,
    distillation_weights,
    engine_weights,
    entropy_threshold,
    gspo,
    gspo_token,
    interpolated_proximal,
    kl_estimate,
    kl_penalty,
    length_outliers,
    off_policy_sequence_mask,
    positive_weight,
    ppo_clip,
    shaped_imitation,
    token_weights,
    top_entropy_mask,
    topr,
    weigh,
)

ROOT = Path(__file__).parents[2]


def aggregate(values: Tensor, mask: Tensor, kind: Aggregation, constant: int | None = None) -> Tensor:
    """Return the token losses of a batch in one piece as a scalar."""
    weights = token_weights(mask, kind, Totals(float(mask.sum()), len(mask)), constant)
    return (values.where(mask > 0, 0) * weights).sum()


MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], dtype=torch.float64)
ADVANTAGES = torch.tensor([1.5, -0.5, -2.0], dtype=torch.float64)


def random_policies(seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    old = -torch.rand(3, 4, generator=generator, dtype=torch.float64) * 3
    current = old + torch.randn(3, 4, generator=generator, dtype=torch.float64) * 0.4
    return current, old


def test_every_value_of_the_reference_fixture(tmp_path: Path) -> None:
    fixture = real_data("train/loss_fixture.json")
    command = [sys.executable, str(ROOT / "benchmarks" / "loss_fixture.py")]
    checked = subprocess.run([*command, str(fixture)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    content = json.loads(fixture.read_text())
    content["expected"]["loss"]["dr_grpo_const_6"] += 1e-5
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(content))
    checked = subprocess.run([*command, str(wrong)], capture_output=True, text=True, check=False)
    assert checked.returncode == 1
    assert "1.00e-05 (loss.dr_grpo_const_6)" in checked.stdout
    content["expected"]["loss"]["unheard_of_.2"] = 0.0
    wrong.write_text(json.dumps(content))
    checked = subprocess.run([*command, str(wrong)], capture_output=True, text=True, check=False)
    assert checked.returncode == 1
    assert "inf  loss.unheard_of_.2" in checked.stdout


def test_ppo_clip_by_hand() -> None:
    ratio = torch.tensor([[1.5, 0.5], [1.5, 0.5]])
    token_loss = ppo_clip(ratio.log(), torch.zeros(2, 2), torch.tensor([2.0, -1.0]), torch.ones(2, 2), 0.2, 0.28)
    # A > 0: min(3.0, 1.28*2) = 2.56, min(1.0, 0.8*2) = 1.0; A < 0: min(-1.5, -1.28) = -1.5, min(-0.5, -0.8) = -0.8.
    torch.testing.assert_close(token_loss.loss, torch.tensor([[-2.56, -1.0], [1.5, 0.8]]))
    assert token_loss.clipped_high.tolist() == [[True, False], [False, False]]
    assert token_loss.clipped_low.tolist() == [[False, False], [False, True]]


def test_dual_clip_bounds_the_loss_of_negative_advantages_alone() -> None:
    ratio = torch.tensor([[10.0], [10.0]])
    token_loss = ppo_clip(
        ratio.log(), torch.zeros(2, 1), torch.tensor([1.0, -1.0]), torch.ones(2, 1), 0.2, 0.28, dual=3.0
    )
    torch.testing.assert_close(token_loss.loss, torch.tensor([[-1.28], [3.0]]))
    assert token_loss.clipped_high.tolist() == [[True], [True]]


def test_cispo_keeps_the_gradient_of_every_token_with_a_bounded_weight() -> None:
    current = torch.tensor([[math.log(8.0), math.log(0.5)]], dtype=torch.float64, requires_grad=True)
    token_loss = cispo(
        current, torch.zeros(1, 2, dtype=torch.float64), torch.tensor([1.0]), torch.ones(1, 2), max_rho=5.0
    )
    token_loss.loss.sum().backward()
    assert current.grad is not None
    torch.testing.assert_close(current.grad, torch.tensor([[-5.0, -0.5]], dtype=torch.float64))


def test_topr_pushes_no_further_down_what_is_already_unlikely() -> None:
    current = torch.tensor([[math.log(4.0), math.log(0.25)]] * 2, dtype=torch.float64, requires_grad=True)
    topr(current, torch.zeros(2, 2), torch.tensor([1.0, -1.0]), torch.ones(2, 2)).loss.sum().backward()
    assert current.grad is not None
    assert current.grad.tolist() == [[-1.0, -1.0], [1.0, 0.25]]


@pytest.mark.parametrize("name", ["ppo", "gspo"])
@pytest.mark.parametrize("kind", get_args(Aggregation))
def test_gradients_equal_finite_differences(name: str, kind: str) -> None:
    current, old = random_policies()

    def loss(values: Tensor) -> Tensor:
        return aggregate(LOSSES[name](values, old, ADVANTAGES, MASK).loss, MASK, kind, 7)  # type: ignore[arg-type]

    assert torch.autograd.gradcheck(loss, current.clone().requires_grad_())


@pytest.mark.parametrize("name", ["cispo", "topr", "gspo_token"])
def test_gradients_equal_finite_differences_with_the_weights_held(name: str) -> None:
    """Where a weight is a stopped gradient, the surrogate has it fixed at its value."""
    current, old = random_policies()
    point = current.clone().requires_grad_()
    aggregate(LOSSES[name](point, old, ADVANTAGES, MASK).loss, MASK, "token").backward()
    ratio = torch.exp(current - old)
    column = ADVANTAGES.unsqueeze(1)
    if name == "cispo":
        slope = -ratio.clamp(max=5.0) * column
    elif name == "topr":
        slope = -torch.where(column > 0, 1.0, ratio.clamp(max=1.0)) * column
    else:
        mean = ((current - old) * MASK).sum(1, keepdim=True) / MASK.sum(1, keepdim=True)
        s = torch.exp(mean)
        outside = ((s > 1 + 4e-4) & (column > 0)) | ((s < 1 - 3e-4) & (column < 0))
        slope = torch.where(outside, 0.0, -s * column).expand_as(current)
    torch.testing.assert_close(point.grad, slope * MASK / MASK.sum())


def test_gspo_token_has_the_gradient_of_gspo() -> None:
    current, old = random_policies(3)
    gradients = []
    for loss in (gspo, gspo_token):
        point = current.clone().requires_grad_()
        aggregate(loss(point, old, ADVANTAGES, MASK, 0.3, 0.3).loss, MASK, "sequence").backward()
        assert point.grad is not None
        gradients.append(point.grad)
    torch.testing.assert_close(gradients[0], gradients[1])
    assert float(gradients[0].abs().sum()) > 0


@pytest.mark.parametrize("name", list(LOSSES))
def test_padding_has_no_part_in_loss_or_gradient(name: str) -> None:
    current, old = random_policies()
    losses = []
    for filler in (0.0, -1e4, float("inf")):
        point = torch.where(MASK > 0, current, filler).requires_grad_()
        loss = aggregate(LOSSES[name](point, old, ADVANTAGES, MASK).loss, MASK, "token")
        losses.append(float(loss.detach()))
        if math.isfinite(filler):
            loss.backward()
            assert point.grad is not None
            assert not point.grad[MASK == 0].any()
    assert losses[0] == losses[1] == losses[2]


@pytest.mark.parametrize("name", list(LOSSES))
def test_ratios_beyond_all_bounds_stay_finite(name: str) -> None:
    current = torch.tensor([[0.0, -500.0, -0.1]], requires_grad=True)
    old = torch.tensor([[-500.0, 0.0, -0.1]])
    for advantage in (1.0, -1.0):
        loss = LOSSES[name](current, old, torch.tensor([advantage]), torch.ones(1, 3)).loss.sum()
        (gradient,) = torch.autograd.grad(loss, current)
        assert torch.isfinite(loss)
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("kind", get_args(Aggregation))
def test_a_batch_cut_into_pieces_weighs_the_same(kind: str) -> None:
    values, _ = random_policies(1)
    whole = aggregate(values, MASK, kind, 9)  # type: ignore[arg-type]
    totals = Totals(float(MASK.sum()), len(MASK))
    parts = [
        (values[[row]] * token_weights(MASK[[row]], kind, totals, 9)).sum()  # type: ignore[arg-type]
        for row in range(3)
    ]
    torch.testing.assert_close(sum(parts, torch.zeros(())).double(), whole)


def test_aggregations_by_hand() -> None:
    values = torch.tensor(
        [[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 99.0, 99.0], [6.0, 99.0, 99.0, 99.0]], dtype=torch.float64
    )
    assert float(aggregate(values, MASK, "token")) == pytest.approx((10 + 30 + 6) / 7)
    assert float(aggregate(values, MASK, "sequence")) == pytest.approx((2.5 + 15 + 6) / 3)
    assert float(aggregate(values, MASK, "constant", 8)) == pytest.approx((10 + 30 + 6) / (3 * 8))
    with pytest.raises(ValueError, match="length"):
        aggregate(values, MASK, "constant")


@pytest.mark.parametrize("kind", get_args(Correction))
def test_engines_that_agree_need_no_correction(kind: str) -> None:
    _, old = random_policies()
    weights = engine_weights(old, old, MASK, kind, high=2.0, low=0.5)  # type: ignore[arg-type]
    assert (weights * MASK).tolist() == MASK.tolist()


def test_corrections_by_hand() -> None:
    kappa = torch.tensor([[0.25, 1.0, 4.0, 2.0], [3.0, 3.0, 50.0, 50.0], [0.9, 50.0, 50.0, 50.0]], dtype=torch.float64)
    old, rollout = kappa.log(), torch.zeros_like(kappa)

    def weights(kind: str, high: float, low: float = 0.0) -> list[list[float]]:
        weights_on_tokens = engine_weights(old, rollout, MASK, kind, high, low) * MASK  # type: ignore[arg-type]
        return [[round(value, 6) for value in row] for row in weights_on_tokens.tolist()]

    assert weights("tis", 2.0) == [[0.25, 1, 2, 2], [2, 2, 0, 0], [0.9, 0, 0, 0]]
    assert weights("icepop", 3.5, 0.5) == [[0, 1, 0, 2], [3, 3, 0, 0], [0.9, 0, 0, 0]]
    assert weights("sequence_tis", 5.0) == [[2, 2, 2, 2], [5, 5, 0, 0], [0.9, 0, 0, 0]]
    assert weights("sequence_mask", 5.0, 1.0) == [[2, 2, 2, 2], [0, 0, 0, 0], [0, 0, 0, 0]]
    # The geometric means are 2 ** (1/4) = 1.19, 9 ** (1/2) = 3 and 0.9.
    assert weights("geometric_mask", 1.2, 0.95) == [[1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_a_long_sequence_off_by_noise_alone_is_kept_by_the_geometric_mask() -> None:
    drift = torch.full((1, 20_000), 0.005)
    zero, mask = torch.zeros_like(drift), torch.ones_like(drift)
    assert engine_weights(drift, zero, mask, "geometric_mask", 1.01, 0.99).min() == 1.0
    assert engine_weights(drift, zero, mask, "sequence_mask", 3.0, 0.0).max() == 0.0


def test_kl_estimates_by_hand() -> None:
    current, reference = torch.tensor([[-1.0]]), torch.tensor([[-1.5]])
    assert float(kl_estimate(current, reference, "k1")) == pytest.approx(0.5)
    assert float(kl_estimate(current, reference, "k3")) == pytest.approx(math.exp(-0.5) + 0.5 - 1)


def test_the_penalty_k1_pulls_along_the_gradient_of_the_divergence() -> None:
    logits = torch.tensor([0.3, -1.2, 0.8, 0.1, -0.4], dtype=torch.float64, requires_grad=True)
    reference = torch.log_softmax(torch.tensor([-0.5, 0.2, 0.9, -1.0, 0.4], dtype=torch.float64), 0)
    current = torch.log_softmax(logits, 0)
    (exact,) = torch.autograd.grad((current.exp() * (current - reference)).sum(), logits, retain_graph=True)
    # In expectation over samples of the policy, which are all five tokens with their probabilities.
    expected = (current.exp().detach() * kl_penalty(current, reference, "k1")).sum()
    (gradient,) = torch.autograd.grad(expected, logits)
    assert torch.allclose(gradient, exact, atol=1e-12)
    assert float(expected.detach()) == pytest.approx(float((current.exp() * (current - reference)).detach().sum()))


def test_the_penalty_k3_is_its_estimate() -> None:
    current, reference = torch.tensor([[-1.0, -0.2]]), torch.tensor([[-1.5, -0.1]])
    assert torch.equal(kl_penalty(current, reference, "k3"), kl_estimate(current, reference, "k3"))


def test_the_off_policy_sequence_mask_drops_wrong_completions_the_policy_left() -> None:
    rollout = torch.zeros(3, 2)
    current = torch.tensor([[-1.0, -1.0], [-1.0, -1.0], [-0.01, -0.01]])
    kept = off_policy_sequence_mask(current, rollout, torch.tensor([1.0, -1.0, -1.0]), torch.ones(3, 2), 0.1)
    assert kept.tolist() == [1.0, 0.0, 1.0]


def test_the_highest_fifth_of_the_entropies_is_kept() -> None:
    entropy = torch.arange(1.0, 11.0).view(2, 5)
    mask = torch.ones(2, 5)
    kept = top_entropy_mask(entropy, mask, entropy_threshold(entropy.flatten(), 0.2))
    assert kept.tolist() == [[0, 0, 0, 0, 0], [0, 0, 0, 1, 1]]
    assert entropy_threshold(torch.empty(0), 0.2) == float("-inf")


def test_covariances_are_those_of_the_paper() -> None:
    logprobs, advantages = torch.tensor([-1.0, -3.0, -2.0, -2.0]), torch.tensor([1.0, -1.0, 0.5, -0.5])
    assert covariances(logprobs, advantages).tolist() == [1.0, 1.0, 0.0, 0.0]


def test_kl_cov_takes_the_highest_share_and_clip_cov_a_part_of_the_range() -> None:
    values = torch.tensor([0.0, 6.0, 2.0, 1.5, 3.0, -4.0, 0.5, 0.9, 4.0, 0.0])
    highest = choose_covariant(values, CovarianceConfig(kind="kl", share=0.2), seed=0)
    assert highest.nonzero().flatten().tolist() == [1, 8]
    clipped = [choose_covariant(values, CovarianceConfig(kind="clip", share=0.2), seed) for seed in range(20)]
    assert all(mask.sum() == 2 for mask in clipped)
    assert {index for mask in clipped for index in mask.nonzero().flatten().tolist()} == {2, 3, 4, 8}
    # One token at least, and none where the range has none.
    assert choose_covariant(values, CovarianceConfig(kind="clip", share=1e-4), 0).sum() == 1
    assert choose_covariant(values, CovarianceConfig(kind="clip", low=10.0, high=20.0), 0).sum() == 0


def test_the_positive_weight_lifts_the_positive_side_to_the_floor() -> None:
    advantages, lengths = torch.tensor([1.0, -0.5, -0.5]), torch.tensor([10.0, 40.0, 40.0])
    weight = positive_weight(advantages, lengths, floor=1.0, max_weight=10.0)
    assert weight == pytest.approx(4.0)
    mass = weigh(advantages, weight) * lengths
    assert float(mass.clamp(min=0).sum()) == pytest.approx(float(-mass.clamp(max=0).sum()))
    assert positive_weight(advantages, lengths, floor=1.0, max_weight=2.0) == 2.0
    assert positive_weight(advantages, torch.ones(3), floor=1.0, max_weight=10.0) == 1.0
    assert positive_weight(torch.tensor([1.0]), torch.tensor([5.0]), 1.0, 10.0) == 1.0


def test_only_lengths_far_from_the_others_are_outliers() -> None:
    lengths = torch.tensor([90.0, 100.0, 110.0, 95.0, 105.0, 120.0, 80.0, 2000.0])
    assert length_outliers(lengths).tolist() == [False] * 7 + [True]
    assert not length_outliers(torch.tensor([10.0, 2000.0])).any()


def test_distillation_weights_by_hand() -> None:
    bare = torch.tensor([[0.5, 2.0, 9.0]]).log()
    mask = torch.tensor([[1.0, 1.0, 0.0]])
    zero = torch.zeros(1, 3)
    assert distillation_weights(bare, zero, mask, "token")[0, :2].tolist() == pytest.approx([0.5, 1.0])
    assert float(distillation_weights(bare, zero, mask, "sequence", 2.0)) == pytest.approx(1.0)
    assert float(distillation_weights(bare * 2, zero, mask, "geometric", 9.0)) == pytest.approx(1.0)
    assert float(distillation_weights(bare, zero, mask, "none")) == 1.0


def test_shaped_imitation_pulls_hardest_where_the_policy_finds_a_token_unlikely() -> None:
    current = torch.tensor([[math.log(0.9), math.log(0.1), math.log(0.001)]], dtype=torch.float64, requires_grad=True)
    shaped_imitation(current, torch.ones(1, dtype=torch.float64), 0.1).sum().backward()
    assert current.grad is not None
    # The derivative of -p / (p + g) by log p is -g p / (p + g)^2.
    expected = [-0.1 * p / (p + 0.1) ** 2 for p in (0.9, 0.1, 0.001)]
    assert current.grad[0].tolist() == pytest.approx(expected)


def test_the_interpolated_proximal_is_nearer_to_the_sampler_the_fresher_a_completion_is() -> None:
    current, rollout = torch.tensor([[-1.0, -2.0]] * 4), torch.tensor([[-3.0, -2.5]] * 4)
    made = interpolated_proximal(current, rollout, torch.tensor([0.0, 1.0, 2.0, 4.0]))
    # d = 0: the current policy; 1/d of the way to the sampler's for d = 1, 2, 4.
    expected = torch.tensor([[-1.0, -2.0], [-3.0, -2.5], [-2.0, -2.25], [-1.5, -2.125]])
    assert torch.allclose(made, expected)
    # Weights that arrive in flight make the tokens of one completion differ.
    by_token = interpolated_proximal(current, rollout, torch.tensor([[2.0, 0.0]] * 4))
    assert torch.allclose(by_token, torch.tensor([[-2.0, -2.0]] * 4))
