"""Measures which way a step pushes the tokens of right and of wrong completions.

    mean push of a token of right completions     0.3      up
    mean push of a token of wrong completions    -0.1      down
    mean |push| of all tokens                     0.2      push_gap = (0.3 - -0.1) / 0.2 = 2

A token's push is minus the gradient at its log-probability. It is read in the backward pass, so that loss and
advantages are in it as they really are.
"""

from __future__ import annotations

import torch
from torch import Tensor

PUSH_SUMS = ("push_right", "push_wrong", "push_size", "tokens_right", "tokens_wrong")
"""Sums over a step's tokens, of which `with_push_gap` makes one metric."""


def add_push(sums: dict[str, Tensor], mask: Tensor, right: Tensor, gradient: Tensor) -> None:
    """Add the pushes of a micro-batch to `sums`, as a hook of its log-probabilities [B, T] in the backward pass.

    right: [B] bool, which completions are right. gradient: at the log-probabilities.
    """
    push = -gradient.detach() * mask
    right_mask, wrong_mask = (mask * is_kind.unsqueeze(1) for is_kind in (right, ~right))
    values = (push * right_mask, push * wrong_mask, push.abs(), right_mask, wrong_mask)
    for name, value in zip(PUSH_SUMS, values, strict=True):
        sums[name] = sums.get(name, torch.zeros((), device=mask.device)) + value.sum()


def with_push_gap(metrics: dict[str, float]) -> dict[str, float]:
    """Replace the sums of `add_push` by `push_gap`: how much more a token of right completions is pushed up than one of
    wrong ones, relative to the mean push; left out where the batch lacks one of the two."""
    up_right, up_wrong, size, right, wrong = (metrics.pop(name, 0.0) for name in PUSH_SUMS)
    if right and wrong and size > 0:
        metrics["push_gap"] = (up_right / right - up_wrong / wrong) * (right + wrong) / size
    return metrics
