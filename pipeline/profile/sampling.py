"""The samples of a profile: which are drawn, their verdicts, and the rows of `samples.parquet`.

schedule  ->  drawing  ->  verdicts (kept until the stage is done)  ->  schedule
"""

from __future__ import annotations

import random
import time
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.engines import SamplingParams
from truegold.pipeline.profile.drawing import Drawing, SampleSource, SamplingCost
from truegold.pipeline.profile.judging import Judging, VerdictRecord
from truegold.pipeline.profile.model_judge import Judge
from truegold.pipeline.profile.schedule import PILOT_ROWS, Draw, SampledRow, Schedule
from truegold.pipeline.profile.store import Position, RecordLog, SampleStore, prompt_key
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.tables.rows import (
    Float32List,
    Int32,
    Int32List,
    Row,
    RowReference,
    arrow_schema,
    count_rows,
    read_rows,
)


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

SHOWN_EVERY_S = 1.0
"""Samples are reported this often while no row is settled."""


class Sampling:
    """The samples of the rows in one file."""

    def __init__(
        self,
        rows: Path,
        config: ProfileConfig,
        source: SampleSource,
        store: SampleStore,
        verdicts: RecordLog,
        spent: RecordLog,
        progress: Progress,
    ) -> None:
        """Go on from the samples in `store`, and from the verdicts and what was spent, which an earlier try has
        left."""
        self._rows, self._config, self._source, self._store, self._progress = rows, config, source, store, progress
        self._verdict_log, self._spent_log = verdicts, spent
        self._spent = sum(record["tokens"] for _, record in spent.scan())
        """The tokens that this stage has drawn, in earlier tries too."""
        self._verdicts: dict[int, dict[int, Position]] = {}
        self._scores: dict[tuple[int, int], tuple[float | None, str | None]] = {}
        """Score and answer of what was judged before, by row and sample."""
        for position, record in verdicts.scan():
            self._verdicts.setdefault(record["row"], {})[record["sample"]] = position
            self._scores[record["row"], record["sample"]] = record["score"], record["extracted"]
        self._prompts: dict[int, array[int]] = {}
        """The encoded prompts: the template costs as much as many a verdict, and is applied once a row."""
        self._settled = 0
        self._shown_at = 0.0
        self._drawing = Drawing(source, config.seed, progress)
        self._drawing.cost.kept = len(self._scores)

    @property
    def cost(self) -> SamplingCost:
        """What the samples of this process cost."""
        return self._drawing.cost

    def draw(self, judge: Judge | None) -> Schedule:
        """Draw and judge what is missing, and return the schedule at its end. The engine starts when it is needed."""
        total = count_rows(self._rows)
        if self._scores:
            self._progress.note(f"{len(self._scores):,} samples were judged before; going on from there")
        config = self._config
        self._schedule = self._plan(total)
        self._stop_in_time()
        judging = Judging(config, config.workers, judge)
        sampling = SamplingParams(
            config.temperature,
            config.top_p,
            config.max_tokens,
            self._source.encoder.stop_token_ids,
            logprobs=config.logprobs,
            stop_loops=config.stop_loops,
        )

        def start_progress() -> None:
            self._progress.start("sampling", total)
            self._progress.advance(self._settled)

        self._progress.start("judging", total)
        try:
            self._drawing.run(self, self._store, judging, sampling, start_progress)
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
            draws = self._schedule.draws(count - len(open_draws))
            if not draws:
                break
            for sampled, sample in draws:
                if (sampled.index, sample) in self._scores:
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

    def spend(self, tokens: int) -> None:
        """Stop where the budget is spent."""
        self._show_progress()
        if self._config.budget_tokens is not None:
            self._spent_log.append({"tokens": tokens})
            self._spent += tokens
            self._stop_in_time()

    def _stop_in_time(self) -> None:
        budget = self._config.budget_tokens
        if budget is not None and self._spent >= budget and not self._schedule.stopped:
            self._progress.note(f"the budget of {budget:,} tokens is spent; no row gets more")
            self._schedule.stop(lambda sampled, sample: (sampled.prompt_key, sample) in self._store)

    def _show_progress(self) -> None:
        """Report rows that are settled, and every second that samples come in: rows may be settled only late."""
        newly_settled, cost, now = self._schedule.settled - self._settled, self.cost, time.monotonic()
        if not newly_settled and (not cost.drawn or now - self._shown_at < SHOWN_EVERY_S):
            return
        self._settled += newly_settled
        self._shown_at = now
        drawn = f"{cost.drawn:,} samples, {cost.tokens_per_second:,.0f} tokens/s" if cost.tokens else ""
        self._progress.advance(newly_settled, drawn)

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
                    "seed": self._drawing.seed(prompt_digest, sample),
                    "score": verdict["score"],
                    "reason": verdict["reason"],
                    "extracted": verdict["extracted"],
                    "evidence": verdict["evidence"],
                }
            )
        return rows

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
