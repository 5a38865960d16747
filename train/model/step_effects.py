"""Measurements of an optimizer step: its effect on the tokens of right and wrong completions, and on the weights.

The push of a token is minus the gradient of the loss by its log-probability. It is measured in the backward pass, so it
shows the actual effect of loss, advantages and masks. Examples of the measurements and of the resulting metrics:

    mean push of a token of right completions     0.3      up
    mean push of a token of wrong completions    -0.1      down
    mean |push| of all tokens                     0.2      push_gap = (0.3 - -0.1) / 0.2 = 2

    mean change of a weight 2e-4, learning rate 4e-4     weights_moved 0.5; near 0 if no gradient reaches the weights
    a NaN in one weight tensor                           weights_spoilt 1
    rank 1 has other weights than rank 0                 ranks_drifted 1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from truegold.train.model.distributed import gathered

NO_WEIGHT = 1e-12
"""Smaller absolute values of weights count as 0."""
SAMPLE = 4096
"""The approximate number of values of each tensor that are compared before and after an update."""
INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integer dtypes by their number of bytes."""
PUSH_SUMS = ("push_right", "push_wrong", "push_size", "tokens_right", "tokens_wrong")
"""Sums over a step's tokens, from which `with_push_gap` computes `push_gap`."""


def add_push(sums: dict[str, Tensor], mask: Tensor, right: Tensor, gradient: Tensor) -> None:
    """Add the pushes of a micro-batch to `sums`. It is called as a backward hook of the log-probabilities.

    mask: [B, T], 1 on sampled tokens. right: bool [B], whether each completion is right. gradient: the loss's gradient
    by the log-probabilities, [B, T].
    """
    push = -gradient.detach() * mask
    right_mask, wrong_mask = (mask * is_kind.unsqueeze(1) for is_kind in (right, ~right))
    values = (push * right_mask, push * wrong_mask, push.abs(), right_mask, wrong_mask)
    for name, value in zip(PUSH_SUMS, values, strict=True):
        sums[name] = sums.get(name, torch.zeros((), device=mask.device)) + value.sum()


def with_push_gap(metrics: dict[str, float]) -> dict[str, float]:
    """Return the metrics with the sums of `add_push` replaced by `push_gap`.

    `push_gap` is the mean push of tokens of right completions, minus that of wrong completions, divided by the mean
    |push|. It is left out if the batch has no right or no wrong completions.
    """
    up_right, up_wrong, size, right, wrong = (metrics.pop(name, 0.0) for name in PUSH_SUMS)
    if right and wrong and size > 0:
        metrics["push_gap"] = (up_right / right - up_wrong / wrong) * (right + wrong) / size
    return metrics


@dataclass(frozen=True)
class WeightsState:
    """A summary of the trained weights on this rank. At ZeRO 3 it covers only the rank's share."""

    digest: int
    """The sum of all weights with their bits read as integers."""
    spoilt: int
    """The number of tensors with NaN or infinity."""
    sample: Tensor
    """Some values of each tensor, float32 [values] on the CPU. Absolute values below `NO_WEIGHT` are 0. Tiny learning
    rates move such weights without training the model."""
    is_rounded: bool
    """Whether weights have less precision than float32. Small changes may then be rounded away."""


@torch.no_grad()
def examine_weights(trained: Iterable[Tensor]) -> WeightsState:
    """Return the summary of these parameters, without temporary tensors of their size."""
    # Under ZeRO 3 a parameter is empty. The rank's share is in its `ds_tensor`.
    shares = [getattr(parameter, "ds_tensor", parameter).detach() for parameter in trained]
    if not shares:
        return WeightsState(0, 0, torch.empty(0), is_rounded=False)
    digests = [share.view(INTEGERS[share.element_size()]).sum(dtype=torch.int64) for share in shares]
    spoilt = torch.stack([~share.sum(dtype=torch.float32).isfinite() for share in shares])
    sample = torch.cat([share.flatten()[:: 1 + share.numel() // SAMPLE].float() for share in shares])
    return WeightsState(
        int(torch.stack(digests).sum()),
        int(spoilt.sum()),
        sample.masked_fill_(sample.abs() < NO_WEIGHT, 0).cpu(),
        is_rounded=any(share.dtype != torch.float32 for share in shares),
    )


def compare_weights(
    before: WeightsState, after: WeightsState, updates: Sequence[dict[str, float]], *, is_whole: bool
) -> dict[str, float]:
    """Return metrics of the change of weights by a batch's updates, over all ranks. All ranks call this together.

    weights_moved       the mean |change| of a weight divided by the sum of the updates' learning rates, at most 1; with
                        bfloat16 weights, 1 if any weight changed
    weights_spoilt      the number of tensors with NaN or infinity, on the worst rank
    ranks_drifted       the number of ranks with other weights than rank 0

    updates: the metrics of each optimizer step. is_whole: whether every rank has all weights.
    """
    rate = sum(update["lr"] for update in updates)
    moved = float(not after.sample.equal(before.sample))
    if moved and rate and not after.is_rounded:
        moved = min(1.0, float((after.sample - before.sample).abs().mean()) / rate)
    ranks = gathered((moved, after.spoilt, after.digest))
    digests = [digest for *_, digest in ranks]
    return {
        "weights_moved": max(moved for moved, *_ in ranks),
        "weights_spoilt": float(max(spoilt for _, spoilt, _ in ranks)),
        "ranks_drifted": float(sum(digest != digests[0] for digest in digests)) if is_whole else 0.0,
    }
