"""Which lengths are out of the ordinary. What a length adds to the reward is the verifier `length`'s."""

from __future__ import annotations

import torch
from torch import Tensor


def length_outliers(lengths: Tensor, fence: float = 3.0) -> Tensor:
    """[B] bool: completions far longer than the batch's others, by Tukey's outer fence on log lengths: more than
    `fence` times the distance between the quartiles above the upper one. Never among fewer than eight."""
    if len(lengths) < 8:
        return torch.zeros_like(lengths, dtype=torch.bool)
    logs = lengths.clamp(min=1).double().log()
    lower, upper = torch.quantile(logs, 0.25), torch.quantile(logs, 0.75)
    return logs > upper + fence * (upper - lower).clamp(min=0.1)
