"""Draws samples from an engine, stores them, and judges them while sampling continues.

A plan (`DrawPlan`) decides from earlier verdicts which samples to draw next. The stage `profile` has one plan
(`profiling`), and the stage `synth` has another. Every sample passes these steps:

    plan  ->  engine  ->  store on disk  ->  judging  ->  plan

No sample is drawn twice. If the process is killed, its finished samples are in the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from truegold.pipeline.engines import Engine, SamplingParams
from truegold.pipeline.engines.base import Completion, Request, sample_seed
from truegold.pipeline.profile.judging import Judging, VerdictRecord
from truegold.pipeline.profile.sample_store import CompletionSource, SampleStore
from truegold.pipeline.profile.schedule import Draw, SampledRow
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.tables.rows import Float32List, Int32, Int32List, RowReference, arrow_schema


@dataclass(frozen=True, slots=True)
class RowRequest(Request):
    """A request for a sample of a row."""

    sampled: SampledRow


@dataclass
class SamplingCost:
    """The cost of the samples in this process."""

    drawn: int = 0
    kept: int = 0
    """The number of samples that were not drawn, because the store or another row with the same prompt had them."""
    finished: int = 0
    """The number of samples, drawn or kept, that were passed on to be judged."""
    tokens: int = 0
    """The number of tokens of the drawn samples."""
    seconds: float = 0.0
    """The time from the first request to the last completion."""
    engine: dict[str, Any] = field(default_factory=dict)
    """Facts from the engine, such as the number of samples by server."""

    @property
    def tokens_per_second(self) -> float:
        """The sampling speed so far."""
        return self.tokens / max(self.seconds, 1e-9)


class DrawPlan(Protocol):
    """A plan of the samples to draw."""

    @property
    def finished(self) -> bool:
        """True if all samples are drawn and judged."""

    def draws(self, count: int) -> list[Draw]:
        """Return at most `count` samples to draw next."""

    def spend(self, request: RowRequest, tokens: int) -> None:
        """Record that a sample with this number of tokens was drawn. Its verdict comes later."""

    def record(self, draw: Draw, verdict: VerdictRecord | None) -> None:
        """Record the verdict on a sample, or None if samples are not judged."""


class Drawing:
    """Draws the samples of plans on one engine, which starts when a sample is missing from the store."""

    def __init__(self, source: CompletionSource, seed: int, progress: Progress) -> None:
        self._source, self._seed, self._progress = source, seed, progress
        self._engine = source.engine
        self.cost = SamplingCost()

    @property
    def engine(self) -> Engine:
        """The engine, started on first use."""
        if self._engine is None:
            self._progress.start("loading the model")
            self._engine = self._source.start_engine()
            if (threads := self._engine.facts().get("threads")) is not None:
                self._progress.note(f"vLLM samples with {threads}")
        return self._engine

    def seed(self, prompt_digest: str, sample: int) -> int:
        """Return the seed for a sample of a prompt."""
        return sample_seed(self._seed, prompt_digest, sample)

    def run(
        self,
        plan: DrawPlan,
        store: SampleStore,
        judging: Judging | None,
        sampling: SamplingParams,
        on_sampling: Callable[[], None] = lambda: None,
    ) -> None:
        """Draw and judge samples until the plan is finished. Samples in the store are judged, but not drawn.

        `on_sampling` is called after the engine has started, before the first request.
        """
        take = _Requests(self, plan, store, judging)
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
        """Close the engine, and print which servers failed."""
        if self._engine is None:
            return
        self.cost.engine = self._engine.facts()
        for server in self.cost.engine.get("servers", ()):
            if server["state"] != "up":
                self._progress.note(f"the server {server['url']} is {server['state']}: {server['why']}")
        self._engine.close()
        self._engine = None

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of a completion."""
        return self._source.encoder.decode(token_ids)

    def _stream(self, engine: Engine, take: _Requests, sampling: SamplingParams) -> None:
        cost, earlier = self.cost, self.cost.seconds
        began = time.monotonic()
        for request, completion in engine.stream(take, sampling):
            assert isinstance(request, RowRequest)
            key = request.sampled.prompt_key, request.sample
            take.store.add(*key, completion)
            cost.drawn += 1
            cost.tokens += completion.tokens
            cost.seconds = earlier + time.monotonic() - began
            for sampled in take.in_flight.pop(key):
                take.hand_in((sampled, request.sample), completion)
            take.plan.spend(request, completion.tokens)


@dataclass
class _Requests:
    """Passes requests from the plan to the engine (as `TakeRequests`), and verdicts from judging to the plan."""

    drawing: Drawing
    plan: DrawPlan
    store: SampleStore
    judging: Judging | None
    held_back: list[RowRequest] = field(default_factory=list)
    in_flight: dict[tuple[str, int], list[SampledRow]] = field(default_factory=dict)
    """The rows that wait for each sample. Several rows may have one prompt and different golds."""

    def __call__(self, count: int) -> list[RowRequest] | None:
        """Return the next requests."""
        if self.judging is not None:
            for draw, verdict in self.judging.collect():
                self.plan.record(draw, verdict)
        requests, self.held_back = self.held_back, []
        while len(requests) < count:
            if not (draws := self.plan.draws(count - len(requests))):
                break
            for sampled, sample in draws:
                key = sampled.prompt_key, sample
                if key in self.store:
                    self.drawing.cost.kept += 1
                    self.hand_in((sampled, sample), self.store.read(*key))
                elif key in self.in_flight:
                    self.drawing.cost.kept += 1
                    self.in_flight[key].append(sampled)
                else:
                    self.in_flight[key] = [sampled]
                    requests.append(RowRequest(sampled.prompt, self.drawing.seed(*key), sample, sampled))
        return None if not requests and self.plan.finished else requests

    def hand_in(self, draw: Draw, completion: Completion) -> None:
        """Pass a completion on to be judged, or to the plan if samples are not judged."""
        self.drawing.cost.finished += 1
        if self.judging is None:
            self.plan.record(draw, None)
        else:
            text = self.drawing.decode(completion.token_ids)
            self.judging.hand_in(draw, text, ended=completion.finish_reason == "stop")


class SampleRow(RowReference):
    """A row of `samples.parquet`: one judged sample."""

    split: str
    sample: Int32
    """The index of the sample among the samples of its row, from 0."""
    completion: str
    prompt_ids: Int32List
    token_ids: Int32List
    logprobs: Float32List
    """The log-probability of each token if the setting `logprobs` is on, else empty."""
    finish_reason: str
    temperature: float
    top_p: float
    max_tokens: Int32
    seed: int
    score: float | None
    reason: str
    extracted: str | None
    evidence: str
    """A JSON object."""


SAMPLE_SCHEMA = arrow_schema(SampleRow)
