"""Draws samples once each: requests flow, verdicts run beside, and a kill loses no finished sample.

plan  ->  engine  ->  store (kept for the run)  ->  judging  ->  plan
    ^                                                         |
    +---------------------------------------------------------+

A plan says which samples are wanted and what follows from their verdicts; the profile and the stage `synth` have one
each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from truegold.pipeline.engines import Engine, PromptEncoder, SamplingParams
from truegold.pipeline.engines.base import Request, sample_seed
from truegold.pipeline.profile.judging import Judging, VerdictRecord
from truegold.pipeline.profile.schedule import Draw, SampledRow
from truegold.pipeline.profile.store import SampleStore
from truegold.pipeline.running.progress import Progress


@dataclass(frozen=True, slots=True)
class RowRequest(Request):
    """A sample to draw of a row."""

    sampled: SampledRow


@dataclass
class SamplingCost:
    """What the samples of this process cost."""

    drawn: int = 0
    kept: int = 0
    """The samples that were drawn before."""
    tokens: int = 0
    """The sampled tokens of those that were drawn."""
    seconds: float = 0.0
    """The time between the first request and the last completion."""
    engine: dict[str, Any] = field(default_factory=dict)
    """What the engine says of its work, such as what came of each server."""

    @property
    def tokens_per_second(self) -> float:
        """The pace of the sampling so far."""
        return self.tokens / max(self.seconds, 1e-9)


@dataclass(frozen=True)
class SampleSource:
    """What prompts are encoded with and sent to."""

    encoder: PromptEncoder
    max_model_len: int
    """The longest prompt plus completion, in tokens."""
    start_engine: Callable[[], Engine]
    engine: Engine | None = None
    """The engine, where it has been started: servers say what they are before the first sample."""
    served_model: str | None = None
    """The name of the model on the servers."""


class DrawPlan(Protocol):
    """Which samples are to be drawn."""

    @property
    def finished(self) -> bool:
        """Whether no sample is on its way and none is left to come."""
        ...

    def draws(self, count: int) -> list[Draw]:
        """Return at most `count` samples to draw next."""
        ...

    def spend(self, tokens: int) -> None:
        """Take note that a sample of so many tokens was drawn, whose verdict is still to come."""
        ...

    def record(self, draw: Draw, verdict: VerdictRecord | None) -> None:
        """Take in the verdict on a sample; None where samples are not judged."""
        ...


class Drawing:
    """Draws what plans ask for, on one engine, which starts when the first sample is not in a store."""

    def __init__(self, source: SampleSource, seed: int, progress: Progress) -> None:
        self._source, self._seed, self._progress = source, seed, progress
        self._engine = source.engine
        self.cost = SamplingCost()

    @property
    def engine(self) -> Engine:
        """The engine, which starts at the first use."""
        if self._engine is None:
            self._progress.start("loading the model")
            self._engine = self._source.start_engine()
        return self._engine

    def seed(self, prompt_digest: str, sample: int) -> int:
        """Return the seed of a prompt's sample."""
        return sample_seed(self._seed, prompt_digest, sample)

    def run(
        self,
        plan: DrawPlan,
        store: SampleStore,
        judging: Judging | None,
        sampling: SamplingParams,
        on_sampling: Callable[[], None] = lambda: None,
    ) -> None:
        """Draw and judge until the plan is finished. Samples that are in the store are judged without a request.

        `on_sampling` is called when the engine has started, before the first request.
        """
        take = _Take(self, plan, store, judging)
        while (requests := take(1)) is not None:
            if requests:
                take.held_back = list(requests)
                engine = self.engine
                on_sampling()
                self._stream(engine, take, sampling)
                break
            if judging is not None:
                judging.wait()

    def close(self) -> None:
        """Give back the engine, and note what it says of its work."""
        if self._engine is None:
            return
        self.cost.engine = self._engine.facts()
        for server in self.cost.engine.get("servers", ()):
            if server["state"] != "up":
                self._progress.note(f"the server {server['url']} is {server['state']}: {server['why']}")
        self._engine.close()
        self._engine = None

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return a completion's text."""
        return self._source.encoder.decode(token_ids)

    def _stream(self, engine: Engine, take: _Take, sampling: SamplingParams) -> None:
        cost, earlier = self.cost, self.cost.seconds
        began = time.monotonic()
        for request, completion in engine.stream(take, sampling):
            assert isinstance(request, RowRequest)
            key = request.sampled.prompt_key, request.sample
            take.store.add(*key, completion)
            cost.drawn += 1
            cost.tokens += len(completion.token_ids)
            cost.seconds = earlier + time.monotonic() - began
            for sampled in take.in_flight.pop(key):
                take.hand_in((sampled, request.sample), completion.token_ids)
            take.plan.spend(len(completion.token_ids))


@dataclass
class _Take:
    """Hands requests out to an engine, as `TakeRequests` says, and verdicts to the plan."""

    drawing: Drawing
    plan: DrawPlan
    store: SampleStore
    judging: Judging | None
    held_back: list[RowRequest] = field(default_factory=list)
    in_flight: dict[tuple[str, int], list[SampledRow]] = field(default_factory=dict)
    """The rows that wait for each sample of a prompt: several rows may ask the same, with other golds."""

    def __call__(self, count: int) -> list[RowRequest] | None:
        """Return the next requests."""
        if self.judging is not None:
            for draw, verdict in self.judging.collect():
                self.plan.record(draw, verdict)
        requests, self.held_back = self.held_back, []
        while len(requests) < count:
            draws = self.plan.draws(count - len(requests))
            if not draws:
                break
            for sampled, sample in draws:
                key = sampled.prompt_key, sample
                if key in self.store:
                    self.drawing.cost.kept += 1
                    self.hand_in((sampled, sample), self.store.read(*key).token_ids)
                elif key in self.in_flight:
                    self.drawing.cost.kept += 1
                    self.in_flight[key].append(sampled)
                else:
                    self.in_flight[key] = [sampled]
                    requests.append(RowRequest(sampled.prompt, self.drawing.seed(*key), sample, sampled))
        return None if not requests and self.plan.finished else requests

    def hand_in(self, draw: Draw, token_ids: Sequence[int]) -> None:
        """Have a completion judged, where this plan's are."""
        if self.judging is None:
            self.plan.record(draw, None)
        else:
            self.judging.hand_in(draw, self.drawing.decode(token_ids))
