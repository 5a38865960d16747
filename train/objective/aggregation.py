"""How token losses become one number: the weight of each token, with denominators of the whole batch.

    token      sum of all / N, the number of tokens of the batch             DAPO, arXiv 2503.14476, eq. 8
    sequence   mean over sequences of the mean over their tokens             GRPO, arXiv 2402.03300, eq. 3
    constant   sum of all / (B * L), L a constant such as the longest output  Dr. GRPO, arXiv 2503.20783, section 3.2

A batch that is cut into micro-batches and spread over ranks gives each token the same weight as in one piece: the
totals are the whole batch's, counted before any mask of corrections, so that masking does not raise what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

Aggregation = Literal["token", "sequence", "constant"]
AGGREGATIONS: tuple[str, ...] = get_args(Aggregation)


@dataclass(frozen=True)
class Totals:
    """tokens: output tokens of the whole batch; sequences: how many completions have any."""

    tokens: float
    sequences: float

    @staticmethod
    def of(mask: Tensor) -> Totals:
        """Of a batch in one piece; mask [B, T]."""
        lengths = mask.sum(1)
        return Totals(float(lengths.sum()), float((lengths > 0).sum()))


def token_weights(mask: Tensor, kind: Aggregation, totals: Totals, constant: int | None = None) -> Tensor:
    """[B, T]: what each token's loss is multiplied by before all are added up; 0 on padding.

    constant: L, in tokens, for the kind "constant". ValueError where it is missing.
    """
    if kind == "token":
        return mask / max(totals.tokens, 1.0)
    if kind == "sequence":
        return mask / (mask.sum(1, keepdim=True).clamp(min=1) * max(totals.sequences, 1.0))
    if not constant:
        raise ValueError("the aggregation `constant` needs its length")
    return mask / (constant * max(totals.sequences, 1.0))


def aggregate(values: Tensor, mask: Tensor, kind: Aggregation, constant: int | None = None) -> Tensor:
    """A batch in one piece, [B, T] -> scalar."""
    weights = token_weights(mask, kind, Totals.of(mask), constant)
    return (values.where(mask > 0, 0) * weights).sum()
