"""Estimates of the KL divergence from samples, token by token; a penalty that is off by default."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

KlEstimator = Literal["k1", "k3"]


def kl_estimate(current: Tensor, reference: Tensor, kind: KlEstimator = "k3") -> Tensor:
    """[B, T]: of KL(current || reference) where `current` sampled.

    k1 = current - reference, unbiased and as often negative; k3 = exp(reference - current) - (reference - current) - 1,
    unbiased, never negative and of lower variance (Schulman 2020, "Approximating KL divergence"). Samples of another
    policy have to be weighted by the ratio to it (DeepSeek-V3.2, arXiv 2512.02556).
    """
    delta = (reference - current).clamp(-20.0, 20.0)
    return -delta if kind == "k1" else torch.expm1(delta) - delta


def kl_penalty(current: Tensor, reference: Tensor, kind: KlEstimator = "k3") -> Tensor:
    """[B, T]: `kl_estimate`, to be minimised.

    The gradient of k1 itself has nothing to do with the reference, and its expectation is 0. Here k1 has the gradient
    of half its square, whose expectation is that of the KL divergence (arXiv 2510.01555).
    """
    estimate = kl_estimate(current, reference, kind)
    if kind == "k3":
        return estimate
    pull = estimate.square() / 2
    return estimate.detach() + pull - pull.detach()
