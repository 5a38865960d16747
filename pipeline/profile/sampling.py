"""Draws and judges the samples of a profile: requests flow, verdicts run beside, and a kill loses no finished sample.

schedule  ->  engine  ->  store (kept for the run)  ->  judging  ->  verdicts (kept until the stage is done)
    ^                                                      |
    +------------------------------------------------------+
"""

from __future__ import annotations

import math
import random
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.engines import Engine, PromptEncoder, SamplingParams
from truegold.pipeline.engines.base import Request, sample_seed
from truegold.pipeline.profile.judging import Judging, VerdictRecord
from truegold.pipeline.profile.model_judge import Judge
from truegold.pipeline.profile.schedule import PILOT_ROWS, SampledRow, Schedule
from truegold.pipeline.profile.store import Position, RecordLog, SampleStore, prompt_key
from truegold.pipeline.rows import Float32List, Int32, Int32List, Row, RowReference, arrow_schema, count_rows, read_rows
from truegold.pipeline.running.progress import Progress


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


@dataclass(frozen=True)
class SampleSource:
    """What prompts are encoded with and sent to."""

    encoder: PromptEncoder
    max_model_len: int
    """The longest prompt plus completion, in tokens."""
    start_engine: Callable[[], Engine]


class Sampling:
    """The samples of the rows in one file."""

    def __init__(
        self,
        rows: Path,
        config: ProfileConfig,
        source: SampleSource,
        store: SampleStore,
        verdicts: RecordLog,
        progress: Progress,
    ) -> None:
        """Go on from the samples in `store` and from the verdicts that an earlier try has left."""
        self._rows, self._config, self._source, self._store, self._progress = rows, config, source, store, progress
        self._verdict_log = verdicts
        self._verdicts: dict[int, dict[int, Position]] = {}
        self._scores: dict[tuple[int, int], tuple[float | None, str | None]] = {}
        """Score and answer of what was judged before, by row and sample."""
        for position, record in verdicts.scan():
            self._verdicts.setdefault(record["row"], {})[record["sample"]] = position
            self._scores[record["row"], record["sample"]] = record["score"], record["extracted"]
        self._prompts: dict[int, array[int]] = {}
        """The encoded prompts: the template costs as much as many a verdict, and is applied once a row."""
        self._held_back: list[RowRequest] = []
        self._settled = 0
        self.cost = SamplingCost(kept=len(self._scores))

    def draw(self, judge: Judge | None) -> Schedule:
        """Draw and judge what is missing, and return the schedule at its end. The engine starts when it is needed."""
        total = count_rows(self._rows)
        if self._scores:
            self._progress.note(f"{len(self._scores):,} samples were judged before; going on from there")
        self._schedule = self._plan(total)
        self._judging = Judging(self._config, judge)
        self._progress.start("judging", total)
        try:
            while (requests := self._take(1)) is not None:
                if requests:
                    self._held_back = list(requests)
                    self._stream(total)
                    break
                self._judging.wait()
        finally:
            self._judging.close()
        return self._schedule

    def samples(self, index: int, row: Row) -> list[SampleRow] | None:
        """Return the judged samples of a row by its number in the file; None where its prompt leaves no room."""
        prompt = self._encode(index, row)
        if prompt is None:
            return None
        config, prompt_digest = self._config, prompt_key(prompt)
        rows: list[SampleRow] = []
        for sample, position in sorted(self._verdicts.get(index, {}).items()):
            verdict: VerdictRecord = self._verdict_log.read(position)
            completion = self._store.read(prompt_digest, sample)
            rows.append(
                {
                    "id": row["id"],
                    "source": row["source"],
                    "source_row": row["source_row"],
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
                    "seed": self._seed(prompt_digest, sample),
                    "score": verdict["score"],
                    "reason": verdict["reason"],
                    "extracted": verdict["extracted"],
                    "evidence": verdict["evidence"],
                }
            )
        return rows

    def _stream(self, total: int) -> None:
        config, cost = self._config, self.cost
        self._progress.start("loading the model")
        engine = self._source.start_engine()
        self._progress.start("sampling", total)
        self._progress.advance(self._settled)
        sampling = SamplingParams(
            config.temperature,
            config.top_p,
            config.max_tokens,
            self._source.encoder.stop_token_ids,
            logprobs=config.logprobs,
            stop_loops=config.stop_loops,
        )
        began = time.monotonic()
        try:
            for request, completion in engine.stream(self._take, sampling):
                assert isinstance(request, RowRequest)
                sampled = request.sampled
                self._store.add(sampled.prompt_key, request.sample, completion)
                cost.drawn += 1
                cost.tokens += len(completion.token_ids)
                cost.seconds = time.monotonic() - began
                self._judging.hand_in((sampled, request.sample), self._source.encoder.decode(completion.token_ids))
                if cost.tokens >= (config.budget_tokens or math.inf) and not self._schedule.stopped:
                    self._progress.note(f"the budget of {config.budget_tokens:,} tokens is spent; no row gets more")
                    self._schedule.stop()
        finally:
            cost.engine = engine.facts()
            for server in cost.engine.get("servers", ()):
                if server["state"] != "up":
                    self._progress.note(f"the server {server['url']} is {server['state']}: {server['why']}")
            engine.close()

    def _plan(self, total: int) -> Schedule:
        config = self._config
        first = min(config.first_samples or config.samples, config.samples)
        pilot: set[int] = set()
        if first < config.samples:
            pilot = set(random.Random(config.seed).sample(range(total), min(PILOT_ROWS, total)))
        rows = (row for index, row in enumerate(read_rows(self._rows)) if index in pilot) if pilot else iter(())
        training = [(index, row) for index, row in zip(sorted(pilot), rows, strict=False) if row["split"] != "heldout"]
        in_pilot = {index for index, _ in training}
        others = ((index, row) for index, row in enumerate(read_rows(self._rows)) if index not in in_pilot)
        pilot_rows = list(self._sampled_rows(training))
        return Schedule(pilot_rows, self._sampled_rows(others), first, config.samples, config.suspect_agreement, total)

    def _sampled_rows(self, rows: Iterable[tuple[int, Row]]) -> Iterator[SampledRow]:
        """Yield the rows whose prompts leave room."""
        for index, row in rows:
            prompt = self._encode(index, row)
            if prompt is not None:
                yield SampledRow(row, index, prompt, prompt_key(prompt))

    def _encode(self, index: int, row: Row) -> tuple[int, ...] | None:
        """Return the ids of a row's prompt, None where it leaves the model no room to answer."""
        if index not in self._prompts:
            self._prompts[index] = array("i", self._source.encoder.encode(row["prompt"]))
        prompt = tuple(self._prompts[index])
        return prompt if len(prompt) < self._source.max_model_len else None

    def _take(self, count: int) -> list[RowRequest] | None:
        """Return the next requests, as `TakeRequests` says. Samples that are in the store are judged without one."""
        self._collect()
        requests, self._held_back = self._held_back, []
        while len(requests) < count:
            draws = self._schedule.draws(count - len(requests))
            if not draws:
                break
            for sampled, sample in draws:
                if (sampled.index, sample) in self._scores:
                    self._schedule.record(sampled, *self._scores[sampled.index, sample])
                elif (sampled.prompt_key, sample) in self._store:
                    self.cost.kept += 1
                    completion = self._store.read(sampled.prompt_key, sample)
                    self._judging.hand_in((sampled, sample), self._source.encoder.decode(completion.token_ids))
                else:
                    seed = self._seed(sampled.prompt_key, sample)
                    requests.append(RowRequest(sampled.prompt, seed, sample, sampled))
        return None if not requests and self._schedule.finished else requests

    def _collect(self) -> None:
        for (sampled, sample), record in self._judging.collect():
            self._verdicts.setdefault(sampled.index, {})[sample] = self._verdict_log.append(record)
            self._schedule.record(sampled, record["score"], record["extracted"])
        newly_settled = self._schedule.settled - self._settled
        if newly_settled:
            self._settled += newly_settled
            rate = self.cost.tokens / max(self.cost.seconds, 1e-9)
            self._progress.advance(newly_settled, f"{rate:,.0f} tokens/s" if self.cost.tokens else "")

    def _seed(self, prompt_digest: str, sample: int) -> int:
        return sample_seed(self._config.seed, prompt_digest, sample)
