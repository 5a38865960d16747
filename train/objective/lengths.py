"""What the length of a completion adds to its reward, and which lengths are out of the ordinary."""

from __future__ import annotations

import torch
from torch import Tensor


def soft_overlong(lengths: Tensor, longest: int, cache: int) -> Tensor:
    """[B], in [-1, 0]: 0 up to longest - cache tokens, then down in a line to -1 at `longest`, and -1 beyond.

    DAPO, arXiv 2503.14476, eq. 13. lengths: [B] output tokens. ValueError unless 0 < cache <= longest.
    """
    if not 0 < cache <= longest:
        raise ValueError(f"cache ({cache}) must be from 1 to longest ({longest})")
    return ((longest - cache - lengths) / cache).clamp(-1.0, 0.0)


def length_outliers(lengths: Tensor, fence: float = 3.0) -> Tensor:
    """[B] bool: completions far longer than the batch's others, by Tukey's outer fence on log lengths: more than
    `fence` times the distance between the quartiles above the upper one. Never among fewer than eight."""
    if len(lengths) < 8:
        return torch.zeros_like(lengths, dtype=torch.bool)
    logs = lengths.clamp(min=1).double().log()
    lower, upper = torch.quantile(logs, 0.25), torch.quantile(logs, 0.75)
    return logs > upper + fence * (upper - lower).clamp(min=0.1)
