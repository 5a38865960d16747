"""Clipping has causes, and they add up to it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from truegold.train.objective import CAUSES, clip_causes, ppo_clip

BOUNDS = (0.2, 0.28)


def causes(
    engine: float, stale: float, update: float, engine_difference: float = 0.0, of_sequence: bool = False
) -> dict[str, float]:
    draw = torch.Generator().manual_seed(0)
    rollout = -torch.rand(64, 12, generator=draw)
    advantages = torch.randn(64, generator=draw)

    def noise(scale: float) -> torch.Tensor:
        return scale * torch.randn(64, 12, generator=draw)

    old = rollout + noise(engine) + noise(stale)
    current = old + noise(update)
    is_stale = torch.full((64,), stale > 0)
    sums = clip_causes(
        current, old, rollout, advantages, torch.ones(64, 12), is_stale, BOUNDS, engine_difference, of_sequence
    )
    return {name: float(value) for name, value in sums.items()}


@pytest.mark.parametrize(
    ("cause", "scales"), [("engine", (0.4, 0, 0.01)), ("staleness", (0.01, 0.4, 0.01)), ("update", (0.01, 0, 0.4))]
)
def test_the_injected_cause_has_nearly_all_of_the_clipping(cause: str, scales: tuple[float, float, float]) -> None:
    sums = causes(*scales, engine_difference=0.01)
    assert sums["clip_share"] > 50
    assert sums[f"clip_{cause}"] > 0.9 * sums["clip_share"]


@given(*(st.floats(0, 0.6) for _ in range(3)), st.booleans())
def test_the_causes_add_up_to_the_share(engine: float, stale: float, update: float, of_sequence: bool) -> None:
    sums = causes(engine, stale, update, 0.05, of_sequence)
    assert sum(sums[f"clip_{cause}"] for cause in CAUSES) == pytest.approx(sums["clip_share"], rel=1e-4, abs=1e-3)


def test_without_another_cause_the_share_is_what_ppo_clips() -> None:
    draw = torch.Generator().manual_seed(1)
    old = -torch.rand(16, 8, generator=draw)
    current, advantages = old + 0.4 * torch.randn(16, 8, generator=draw), torch.randn(16, generator=draw)
    token = ppo_clip(current, old, advantages, torch.ones(16, 8), *BOUNDS)
    never = torch.zeros(16, dtype=torch.bool)
    sums = clip_causes(current, old, old, advantages, torch.ones(16, 8), never, BOUNDS)
    assert float(sums["clip_share"]) == float((token.clipped_low | token.clipped_high).sum())
