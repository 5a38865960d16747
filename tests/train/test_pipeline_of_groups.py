"""Groups between the feed and a step: how many are asked for, which are taken, and how each ends once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truegold.pipeline.engines.base import Completion, Request, SamplingParams
from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import FeedConfig, GrpoConfig
from truegold.train.grpo.asynchronous import LEDGER, Pipeline
from truegold.train.grpo.feed import Feed
from truegold.train.grpo.groups import GroupScore
from truegold.train.rollout.sampler_child import Usage
from truegold.train.rollout.samplers import FinishedSample

SIZE, STEP = 2, 3
"""Completions of a group, and groups of a step."""


class Sampler:
    """Finishes what it was asked for in the order in which it came, a few at a time, with the weights of the moment."""

    usage = Usage(10.0, 1.0)

    def __init__(self, at_a_time: int = 5) -> None:
        self.at_a_time, self.version = at_a_time, 0
        self.waiting: list[Request] = []
        self.asked: list[str] = []

    def start(self, sampling: SamplingParams, *, in_flight: bool) -> None:
        pass

    def submit(self, requests: Sequence[Request]) -> None:
        assert len({request.prompt for request in requests}) == 1
        self.waiting += requests
        self.asked.append(chr(requests[0].prompt[0]))

    def poll(self, timeout_s: float | None = 0.0) -> list[FinishedSample]:
        if timeout_s is not None:
            return []
        done, self.waiting = self.waiting[: self.at_a_time], self.waiting[self.at_a_time :]
        return [
            FinishedSample(request.sample, Completion((1,), (-1.0,), "stop"), ((self.version, 1),)) for request in done
        ]


def make_pipeline(folder: Path, names: str = "abcdefgh", feed_order: str = "uniform", **settings: Any) -> Pipeline:
    rows = [cast("Row", {"id": name, "prompt": name}) for name in names]
    config = GrpoConfig.model_validate({"asynchronous": settings, "prompts_per_step": STEP, "group_size": SIZE})
    feed = Feed(rows, [], FeedConfig.model_validate({"order": feed_order}), group_size=SIZE, steps=12, seed=0)
    rollout: Any = SimpleNamespace(encoder=SimpleNamespace(encode=lambda prompt, context: [ord(prompt)]))
    sampler: Any = Sampler()
    return Pipeline(feed, config, rollout, sampler, SamplingParams(), folder)


def records(folder: Path) -> list[dict[str, Any]]:
    path = folder / LEDGER
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@given(st.integers(1, 4), st.lists(st.integers(1, 2 * STEP), max_size=5))
@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
def test_no_more_groups_are_asked_for_than_the_bound_allows_however_far_the_trainer_falls_behind(
    staleness: int, takes: list[int]
) -> None:
    pipeline = make_pipeline(Path("unused"), max_staleness=staleness)
    pipeline.begin()
    capacity = STEP * (staleness + 1)
    for count in takes:
        # The trainer is busy: what it does not take is not asked for again.
        for _ in range(20):
            pipeline._take_up(pipeline.sampler.poll(None))
            pipeline.fill()
        assert len(pipeline.ready) == capacity
        assert not pipeline.asked
        pipeline.take(count, 0, 0)
        assert len(pipeline.asked) + len(pipeline.ready) == capacity
    assert len(cast("Any", pipeline.sampler).asked) == capacity + sum(takes)


@pytest.mark.parametrize("order", ["first", "fresh"])
def test_groups_over_the_bound_are_dropped_and_every_group_ends_once(tmp_path: Path, order: str) -> None:
    pipeline = make_pipeline(tmp_path, max_staleness=1, order=order)
    sampler: Any = pipeline.sampler
    sampler.at_a_time = 100
    pipeline.begin()
    stale = 0.0
    for step in range(8):
        # Two versions a step: what was done in the step before, and not taken, is too old.
        version = sampler.version = 2 * step
        taken = pipeline.take(STEP, version, step)
        assert all(group.staleness(version) <= 1 for group in taken)
        metrics = pipeline.finish({0, 1}, version, step)
        assert metrics["staleness_max"] <= 1
        stale += metrics["stale_groups"]
    ended = records(tmp_path)
    assert stale == sum(record["event"] == "stale" for record in ended) > 0
    assert Counter(record["event"] for record in ended)["trained"] == 16
    assert set(Counter(record["group"] for record in ended).values()) == {1}
    pending = {key for key, *_ in pipeline.state()["pending_groups"]}
    assert pending | {record["group"] for record in ended} == set(range(pipeline.next_key))


class Hurrying(Sampler):
    """Has everything done by the time it is asked."""

    def poll(self, timeout_s: float | None = 0.0) -> list[FinishedSample]:
        return super().poll(None)


def test_what_was_done_while_the_trainer_updated_is_held_to_the_bound_too(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path, max_staleness=1)
    sampler: Any = Hurrying(at_a_time=100)
    pipeline.sampler = sampler
    pipeline.begin()
    sampler.version = 0
    done = sampler.poll()
    sampler.version = 5
    sampler.poll = lambda timeout_s=0.0, first=[done]: first.pop() if first else Hurrying.poll(sampler)
    taken = pipeline.take(STEP, version=5, step=0)
    assert [group.staleness(5) for group in taken] == [0] * STEP
    assert pipeline.dropped == 2 * STEP


def test_groups_of_weights_that_the_run_has_returned_from_are_not_trained_on(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path, max_staleness=4)
    sampler: Any = pipeline.sampler
    pipeline.begin()
    for step in range(3):
        sampler.version = step
        pipeline.take(STEP, step, step)
        pipeline.finish({0}, step, step)
    pipeline.oldest_version = sampler.version = 3
    taken = pipeline.take(STEP, 3, 3)
    assert {done.versions[0][0] for group in taken for done in group.ordered()} == {3}
    assert pipeline.finish({0}, 3, 3)["stale_groups"] > 0


def test_what_had_not_ended_is_asked_for_again_and_the_ledger_forgets_what_came_later(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path, max_staleness=2)
    pipeline.begin()
    pipeline.take(STEP, 0, 0)
    pipeline.finish({0, 1, 2}, 0, 0)
    state, position = pipeline.state(), pipeline.feed.state()
    pipeline.take(STEP, 0, 1)
    pipeline.finish({0}, 0, 1)
    again = make_pipeline(tmp_path, max_staleness=2)
    again.feed.restore(position)
    again.restore(state)
    assert [record["step"] for record in records(tmp_path)] == [0] * STEP
    assert sorted(again.asked) == [key for key, *_ in state["pending_groups"]]
    again.begin()
    again.take(STEP, 0, 1)
    again.finish({0}, 0, 1)
    assert set(Counter(record["group"] for record in records(tmp_path)).values()) == {1}


def test_what_is_asked_for_next_follows_the_posterior(tmp_path: Path) -> None:
    pipeline = make_pipeline(tmp_path, feed_order="signal", max_staleness=1)
    sampler: Any = pipeline.sampler
    pipeline.begin()
    for step in range(40):
        sampler.version = step
        taken = pipeline.take(STEP, step, step)
        # Half of the rows are right about every other time, the others always.
        scores = {
            index: GroupScore(1 if group.row["id"] in "abcd" else SIZE, SIZE, group.row["id"] in "abcd")
            for index, group in enumerate(taken)
        }
        pipeline.feed.adopt([group.draw for group in taken])
        pipeline.feed.finish_step(scores)
        pipeline.finish(set(scores), step, step)
    later = Counter(sampler.asked[-60:])
    assert sum(later[name] for name in "abcd") >= 0.8 * 60
