"""Measures what an optimizer step does: which way it pushes the tokens of right and of wrong completions, and how it
moves the weights.

    mean push of a token of right completions     0.3      up
    mean push of a token of wrong completions    -0.1      down
    mean |push| of all tokens                     0.2      push_gap = (0.3 - -0.1) / 0.2 = 2

    |change| of a weight 2e-4 at a rate of 4e-4       weights_moved .5; of 1e-7: 2.5e-4, hardly anything reaches them
    an embedding is NaN that no batch has asked for   weights_spoilt 1
    rank 0 holds the digest 81, rank 1 holds 93       ranks_drifted 1

A token's push is minus the gradient at its log-probability. It is read in the backward pass, so that loss and
advantages are in it as they really are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from truegold.train.model.distributed import gathered

NO_WEIGHT = 1e-12
"""A weight below this is as good as none."""
SAMPLE = 4096
"""Values of each tensor that are compared with those before an update."""
INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
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


@dataclass(frozen=True)
class WeightsState:
    """The state of the trained weights of this rank, or of its share of them."""

    digest: int
    """The sum of all their bits, read as integers."""
    spoilt: int
    """How many tensors are not finite."""
    sample: Tensor
    """Some values of each tensor, float32 on the CPU. Those below `NO_WEIGHT` are 0: a rate of 1e-30 moves them, and
    trains nothing."""
    is_rounded: bool
    """Whether they are not float32: bfloat16 rounds most small changes away for a while."""


@torch.no_grad()
def examine_weights(trained: Iterable[Tensor]) -> WeightsState:
    """Return the state of these parameters. Nothing of a parameter's size is made."""
    # Under ZeRO 3 a parameter is empty, and the rank's share of it is in `ds_tensor`.
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
    """Return what an update has done to the weights, over all ranks, which call this together.

    weights_moved       the mean change of a weight, relative to the sum of the updates' learning rates, 1 at most;
                        in bfloat16 1 where any has changed
    weights_spoilt      tensors that are not finite, on the worst rank
    ranks_drifted       ranks that hold other weights than the first one

    is_whole: whether every rank holds all weights.
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
