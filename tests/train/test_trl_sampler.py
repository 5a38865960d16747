"""The sampler for TRL: it has the layout of TRL's own, draws what teaches, and learns from the groups."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import datasets
import pytest
from trl.trainer.utils import RepeatSampler

from truegold.train.grpo.trl_sampler import PosteriorSampler

GROUP, PROMPTS, REPEATS = 4, 5, 3


def rows(posteriors: list[tuple[float | None, float | None]]) -> datasets.Dataset:
    """Return a set whose rows have these posteriors."""
    return datasets.Dataset.from_list(
        [
            {
                "id": f"row {index}",
                "prompt": f"What is {index}?",
                "posterior": [] if a is None else [{"weight": 1.0, "a": a, "b": b}],
            }
            for index, (a, b) in enumerate(posteriors)
        ]
    )


def test_it_has_the_length_and_the_layout_of_trls_own_sampler() -> None:
    dataset = rows([(2.0, 2.0)] * 23)
    ours = PosteriorSampler(dataset, GROUP, PROMPTS, REPEATS, seed=0)
    theirs = RepeatSampler(dataset, GROUP, PROMPTS, REPEATS, seed=0)
    drawn, expected = list(ours), list(theirs)
    assert len(drawn) == len(expected) == len(ours) == len(theirs)
    size = GROUP * PROMPTS
    for start in range(0, len(drawn), size * REPEATS):
        batch = drawn[start : start + size]
        assert drawn[start : start + size * REPEATS] == batch * REPEATS
        assert all(len(list(same)) % GROUP == 0 for _, same in groupby(batch))


def test_prompts_that_always_or_never_pass_are_drawn_rarely() -> None:
    dataset = rows([(1.0, 200.0)] * 20 + [(5.0, 5.0)] * 20 + [(200.0, 1.0)] * 20)
    sampler = PosteriorSampler(dataset, GROUP, PROMPTS, 1, seed=0)
    counts = Counter(index // 20 for _ in range(5) for index in sampler)
    assert counts[1] > 5 * (counts[0] + counts[2])


def test_equal_seeds_draw_the_same_as_processes_of_one_training_must() -> None:
    dataset = rows([(None, None)] * 30)
    first, second = (list(PosteriorSampler(dataset, GROUP, PROMPTS, 1, seed=7)) for _ in range(2))
    assert first == second != list(PosteriorSampler(dataset, GROUP, PROMPTS, 1, seed=8))


def test_it_learns_from_rewards_which_prompts_teach() -> None:
    """The first half is solved by every completion, the second by half of them; nothing is known at first."""
    dataset = rows([(None, None)] * 40)
    sampler = PosteriorSampler(dataset, GROUP, PROMPTS, 1, seed=0)
    late: Counter[bool] = Counter()
    for epoch in range(12):
        for start in range(0, len(drawn := list(sampler)), GROUP * PROMPTS):
            batch = drawn[start : start + GROUP * PROMPTS]
            rewards = [1.0 if index < 20 else float(place % 2) for place, index in enumerate(batch)]
            sampler.observe([f"row {index}" for index in batch], rewards)
            if epoch >= 9:
                late.update(index < 20 for index in batch)
    assert late[False] > 3 * late[True]


def test_rewards_that_are_missing_count_as_nothing() -> None:
    dataset = rows([(3.0, 3.0)] * 10)
    sampler = PosteriorSampler(dataset, GROUP, PROMPTS, 1, seed=0)
    batch = list(sampler)[: GROUP * PROMPTS]
    before = sampler._feed._posteriors.means().copy()
    sampler.observe([f"row {index}" for index in batch], [None, float("nan")] * (len(batch) // 2))
    assert sampler._feed._posteriors.means() == pytest.approx(before, rel=0.2)
    assert set(sampler._feed._unjudged) == set(batch)
