"""Draws samples once each: requests flow, verdicts run beside, and a kill loses no finished sample.

plan  ->  engine  ->  store (kept for the run)  ->  judging  ->  plan
    ^                                                         |
    +---------------------------------------------------------+

A plan says which samples are wanted and what follows from their verdicts; the profile (`ProfileSamples`) and the stage
`synth` have one each.
"""

from __future__ import annotations

import random
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.engines import Engine, SamplingParams
from truegold.pipeline.engines.base import Completion, Request, sample_seed
from truegold.pipeline.engines.chat import encode_row
from truegold.pipeline.judge.model import Judge
from truegold.pipeline.judge.opinions import SecondOpinion
from truegold.pipeline.profile.judging import Judging, VerdictRecord
from truegold.pipeline.profile.sample_store import CompletionSource, SampleStore, prompt_key
from truegold.pipeline.profile.schedule import PILOT_ROWS, Draw, SampledRow, Schedule, Selection
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.record_log import Position, RecordLog
from truegold.pipeline.tables.rows import (
    Float32List,
    Int32,
    Int32List,
    Row,
    RowReference,
    arrow_schema,
    count_rows,
    read_rows,
    row_reference,
)

SHOWN_EVERY_S = 1.0
"""Samples are reported this often."""


@dataclass(frozen=True, slots=True)
class RowRequest(Request):
    """A sample to draw of a row."""

    sampled: SampledRow


@dataclass
class SamplingCost:
    """The cost of the samples of this process."""

    drawn: int = 0
    kept: int = 0
    """The samples that were drawn before."""
    finished: int = 0
    """The samples of rows that were handed in to be judged: drawn, kept, or another row's with the same prompt."""
    tokens: int = 0
    """The sampled tokens of those that were drawn."""
    seconds: float = 0.0
    """The time between the first request and the last completion."""
    engine: dict[str, Any] = field(default_factory=dict)
    """The engine's own account of its work, such as the samples of each server."""

    @property
    def tokens_per_second(self) -> float:
        """The pace of the sampling so far."""
        return self.tokens / max(self.seconds, 1e-9)


class DrawPlan(Protocol):
    """Plans the samples to draw."""

    @property
    def finished(self) -> bool:
        """Whether no sample is on its way and none is left to come."""

    def draws(self, count: int) -> list[Draw]:
        """Return at most `count` samples to draw next."""

    def spend(self, request: RowRequest, tokens: int) -> None:
        """Take note that a sample of so many tokens was drawn, whose verdict is still to come."""

    def record(self, draw: Draw, verdict: VerdictRecord | None) -> None:
        """Take in the verdict on a sample; None where samples are not judged."""


class Drawing:
    """Draws what plans ask for, on one engine, which starts when the first sample is not in a store."""

    def __init__(self, source: CompletionSource, seed: int, progress: Progress) -> None:
        self._source, self._seed, self._progress = source, seed, progress
        self._engine = source.engine
        self.cost = SamplingCost()

    @property
    def engine(self) -> Engine:
        """The engine, which starts at the first use."""
        if self._engine is None:
            self._progress.start("loading the model")
            self._engine = self._source.start_engine()
            if (threads := self._engine.facts().get("threads")) is not None:
                self._progress.note(f"vLLM samples with {threads}")
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
        """Have a completion judged, where this plan's are."""
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
    """Which of the row's samples this is, from 0."""
    completion: str
    prompt_ids: Int32List
    token_ids: Int32List
    logprobs: Float32List
    """The log-probability of each token, where the settings ask for them; else empty."""
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


class ProfileSamples:
    """The samples of the rows in one file."""

    def __init__(
        self,
        rows: Path,
        config: ProfileConfig,
        source: CompletionSource,
        store: SampleStore,
        verdicts: RecordLog,
        spent: RecordLog,
        progress: Progress,
    ) -> None:
        """Go on from the samples in `store`, and from the verdicts on them and what they cost, which an earlier try
        has left.

        Where samples are gone that were judged, all are judged anew: those that are drawn in their place may differ.
        """
        self._rows, self._config, self._source, self._store, self._progress = rows, config, source, store, progress
        self._verdict_log, self._spent_log = verdicts, spent
        self._spent = sum(record["tokens"] for _, record in spent.scan() if _sample_key(record) in store)
        """The tokens that this stage has drawn, in earlier tries too, of the samples that there are."""
        self._verdicts: dict[int, dict[int, Position]] = {}
        self._scores: dict[tuple[int, int], tuple[float | None, str | None]] = {}
        """Score and answer of what was judged before, by row and sample."""
        gone = 0
        for position, record in verdicts.scan():
            gone += _sample_key(record) not in store
            self._verdicts.setdefault(record["row"], {})[record["sample"]] = position
            self._scores[record["row"], record["sample"]] = record["score"], record["extracted"]
        if gone:
            progress.note(f"{gone:,} samples that were judged before are gone; they are drawn again")
            self._verdicts, self._scores = {}, {}
            verdicts.clear()
        self._prompts: dict[int, array[int]] = {}
        """The encoded prompts: the template costs as much as many a verdict, and is applied once a row."""
        self._planned = 0
        """The samples that the schedule has asked for."""
        self._problems = count_rows(rows)
        self._adaptive_rows = 0
        """Those that get further samples by the rule alone."""
        self._shown = 0
        """The samples that were reported."""
        self._shown_at = 0.0
        self._drawing = Drawing(source, config.seed, progress)
        self._drawing.cost.kept = len(self._scores)

    @property
    def cost(self) -> SamplingCost:
        """The cost of the samples of this process."""
        return self._drawing.cost

    def draw(self, judge: Judge | None, opinion: SecondOpinion | None = None) -> Schedule:
        """Draw and judge what is missing, and return the schedule at its end. The engine starts when it is needed."""
        if self._scores:
            self._progress.note(f"{len(self._scores):,} samples were judged before; going on from there")
        config = self._config
        self._schedule = self._plan()
        self._stop_in_time()
        leave_unread_out = config.unread == "left_out"
        judging = self._judging = Judging(config, config.workers, judge, opinion, leave_unread_out=leave_unread_out)
        sampling = SamplingParams(
            config.temperature,
            config.top_p,
            config.max_tokens,
            self._source.encoder.stop_token_ids,
            logprobs=config.logprobs,
            stop_loops=config.stop_loops,
        )

        def start_progress() -> None:
            self._progress.start("samples", self._expected)
            self._progress.advance(self._shown)

        self._progress.start("judging", self._expected)
        try:
            self._drawing.run(self, self._store, judging, sampling, start_progress)
            self._show_progress(at_once=True)
            for line in judging.unread.finish():
                self._progress.note(line)
        finally:
            judging.close()
            self._drawing.close()
        return self._schedule

    @property
    def finished(self) -> bool:
        """Whether no row is open and none is left to come."""
        return self._schedule.finished

    def draws(self, count: int) -> list[Draw]:
        """Return at most `count` samples to draw or to judge next, as `DrawPlan` says."""
        self._show_progress()
        open_draws: list[Draw] = []
        while len(open_draws) < count:
            if not (draws := self._schedule.draws(count - len(open_draws))):
                break
            self._planned += len(draws)
            for sampled, sample in draws:
                if (sampled.index, sample) in self._scores:
                    self._drawing.cost.finished += 1
                    self._schedule.record(sampled, *self._scores[sampled.index, sample])
                else:
                    open_draws.append((sampled, sample))
        return open_draws

    def record(self, draw: Draw, verdict: VerdictRecord | None) -> None:
        """Keep a verdict, and plan what follows from it."""
        assert verdict is not None
        sampled, sample = draw
        self._verdicts.setdefault(sampled.index, {})[sample] = self._verdict_log.append(verdict)
        self._schedule.record(sampled, verdict["score"], verdict["extracted"])
        for line in self._judging.unread.take_lines():
            self._progress.note(line)

    def spend(self, request: RowRequest, tokens: int) -> None:
        """Stop where the budget is spent."""
        self._show_progress()
        if self._config.budget_tokens is not None:
            key = {"prompt": request.sampled.prompt_key, "sample": request.sample}
            self._spent_log.append({**key, "tokens": tokens})
            self._spent += tokens
            self._stop_in_time()

    def _stop_in_time(self) -> None:
        budget = self._config.budget_tokens
        if budget is not None and self._spent >= budget and not self._schedule.stopped:
            self._progress.note(f"the budget of {budget:,} tokens is spent; no row gets more")
            self._schedule.stop(lambda sampled, sample: (sampled.prompt_key, sample) in self._store)

    @property
    def _expected(self) -> int:
        """How many samples there will be: those that rows get in any case, until the pilot tells how many more."""
        if self._schedule.finished or self._schedule.stopped:
            return self._planned
        rule, config = self._schedule.allocation, self._config
        each = config.first_samples or config.samples if rule is None else rule.expected_samples
        whole = (self._problems - self._adaptive_rows) * config.samples
        return max(self._planned, whole + round(self._adaptive_rows * each))

    def _show_progress(self, *, at_once: bool = False) -> None:
        """Report the samples that are finished: rows may be settled only late."""
        cost, now = self.cost, time.monotonic()
        if now - self._shown_at < SHOWN_EVERY_S and not at_once:
            return
        steps, self._shown, self._shown_at = cost.finished - self._shown, cost.finished, now
        pace = f", {cost.tokens_per_second:,.0f} tokens/s" if cost.tokens else ""
        pilot = "pilot, " * self._schedule.is_piloting
        done = f"{pilot}{self._schedule.settled:,} of {self._problems:,} problems done"
        self._progress.advance(steps, f"({done}{pace})", self._expected)

    def samples(self, index: int, row: Row) -> list[SampleRow] | None:
        """Return the judged samples of a row by its number in the file; None where its prompt leaves no room."""
        if (prompt := self._encode(index, row)) is None:
            return None
        config, prompt_digest = self._config, prompt_key(prompt)
        rows: list[SampleRow] = []
        for sample, position in sorted(self._verdicts.get(index, {}).items()):
            verdict: VerdictRecord = self._verdict_log.read(position)
            completion = self._store.read(prompt_digest, sample)
            rows.append(
                {
                    **row_reference(row),
                    "split": row["split"],
                    "sample": sample,
                    "completion": verdict["completion"],
                    "prompt_ids": list(prompt),
                    "token_ids": list(completion.token_ids),
                    "logprobs": list(completion.logprobs),
                    "finish_reason": completion.finish_reason,
                    "temperature": config.temperature,
                    "top_p": config.top_p,
                    "max_tokens": config.max_tokens,
                    "seed": self._drawing.seed(prompt_digest, sample),
                    "score": verdict["score"],
                    "reason": verdict["reason"],
                    "extracted": verdict["extracted"],
                    "evidence": verdict["evidence"],
                }
            )
        return rows

    def _plan(self) -> Schedule:
        config, total = self._config, self._problems
        first = min(config.first_samples or config.samples, config.samples)
        pilot_size = min(PILOT_ROWS, total) if first < config.samples else 0
        pilot = set(random.Random(config.seed).sample(range(total), pilot_size))
        rows = enumerate(read_rows(self._rows)) if pilot else ()
        in_pilot: list[tuple[int, Row]] = []
        training_rows = 0
        for index, row in rows:
            if row["split"] != "heldout":
                training_rows += 1
                in_pilot += [(index, row)] if index in pilot else []
        self._adaptive_rows = training_rows
        indices = {index for index, _ in in_pilot}
        others = ((index, row) for index, row in enumerate(read_rows(self._rows)) if index not in indices)
        return Schedule(
            list(self._sampled_rows(in_pilot)),
            self._sampled_rows(others),
            first,
            config.samples,
            config.suspect_agreement,
            training_rows,
            Selection(config.group_size, config.rows_to_select, config.quotas, config.zero_share),
            config.seed,
        )

    def _sampled_rows(self, rows: Iterable[tuple[int, Row]]) -> Iterator[SampledRow]:
        """Yield the rows whose prompts leave room."""
        for index, row in rows:
            if (prompt := self._encode(index, row)) is not None:
                yield SampledRow(row, index, prompt, prompt_key(prompt))

    def _encode(self, index: int, row: Row) -> tuple[int, ...] | None:
        """Return the ids of a row's prompt, None where it leaves the model no room to answer."""
        if index not in self._prompts:
            self._prompts[index] = array("i", encode_row(self._source.encoder, row))
        prompt = tuple(self._prompts[index])
        return prompt if len(prompt) < self._source.max_model_len else None


def _sample_key(record: Mapping[str, Any]) -> tuple[str, int]:
    """Return the key in the store of the sample that a record is about."""
    return record["prompt"], record["sample"]
