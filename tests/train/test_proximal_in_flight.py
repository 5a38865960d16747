"""The proximal policy of tokens that several versions of the weights have sampled, in one completion."""

from __future__ import annotations

import torch

from truegold.train.config.objective import ObjectiveConfig
from truegold.train.grpo.update import PreparedBatch, StepLoss, _token_staleness
from truegold.train.model.segment import Segment, collate
from truegold.train.objective import Totals


def loss_of(segment: Segment, version: int) -> float:
    config = ObjectiveConfig.model_validate(
        {"loss": "ppo", "proximal": "interpolated", "corrections": [{"kind": "tis", "high": 10.0}]}
    )
    batch = collate([[segment]], pad_id=0)
    step = StepLoss(
        config,
        8,
        Totals(2.0, 1.0),
        torch.ones(1),
        PreparedBatch(float("-inf"), None, None),
        torch.tensor([float(version - segment.version)]),
        token_staleness=_token_staleness([segment], version),
    )
    current = torch.full((1, 2), -1.0)
    return float(step(current, torch.zeros(1, 2), batch, [0])[0])


def test_a_token_of_fresh_weights_is_not_interpolated_because_an_older_one_stands_before_it() -> None:
    old, fresh = Segment((1,), (2, 3), (-1.5, -1.5), version=2), Segment((1,), (2, 3), (-1.5, -1.5), version=3)
    both = Segment((1,), (2, 3), (-1.5, -1.5), version=2, versions=((2, 1), (3, 1)))
    losses = [loss_of(segment, 3) for segment in (old, fresh)]
    assert losses[0] != losses[1]
    assert abs(loss_of(both, 3) - sum(losses) / 2) < 1e-6
