"""Positives first: how much more right completions weigh than wrong ones.

Under a token mean the advantages of a group sum to 0, and its losses do not: wrong answers are longer, so that the
batch mostly pushes down. The share of the positive side is measured, and kept above a floor.
"""

from __future__ import annotations

import torch
from torch import Tensor


def positive_weight(advantages: Tensor, lengths: Tensor, floor: float, most: float) -> float:
    """The factor in [1, most] for positive advantages that lifts the positive side to `floor` times the negative one:

        w sum(A_i T_i, A_i > 0)  >=  floor sum(|A_i| T_i, A_i < 0)

    advantages: [B]. lengths: [B] output tokens, or ones to go by completions. 1 where one of the sides is empty.
    """
    mass = advantages * lengths
    positive, negative = float(mass.clamp(min=0).sum()), float(-mass.clamp(max=0).sum())
    if positive <= 0.0 or negative <= 0.0:
        return 1.0
    return min(max(1.0, floor * negative / positive), most)


def weigh(advantages: Tensor, positive: float = 1.0, negative: float = 1.0) -> Tensor:
    """Advantages times one factor where they are positive, another where they are negative (arXiv 2506.01347)."""
    return torch.where(advantages > 0, positive * advantages, negative * advantages)
