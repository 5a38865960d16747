"""Verdicts on samples, beside their generation: a thread judges what has been finished while more is sampled."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypedDict

from truegold.pipeline.config.base import VerdictConfig
from truegold.pipeline.profile.model_judge import Judge
from truegold.pipeline.profile.schedule import Draw
from truegold.pipeline.tables.rows import dump_json
from truegold.verifiers import BatchVerifier, Item, Verdict
from truegold.verifiers.running.deadlines import TimeoutTally

BATCH = 1024
"""The samples that are judged in one go, at most."""


class VerdictRecord(TypedDict):
    """A verdict as it is kept for a killed profile that goes on, and for the tables at the end."""

    row: int
    """The row's number in its file, from 0."""
    sample: int
    completion: str
    score: float | None
    reason: str
    extracted: str | None
    evidence: str


class Judging:
    """Judges samples in a thread, in the order that they are handed in."""

    def __init__(self, config: VerdictConfig, workers: int, judge: Judge | None = None) -> None:
        """`workers` processes verify; 0 takes one per core."""
        self._judge = judge
        self._batches = BatchVerifier(workers, item_deadline_s=config.deadline_s, max_timeouts=config.max_timeouts)
        self._timeouts = TimeoutTally(config.max_timeouts, config.deadline_s)
        """Counts over all batches, whose small ones say little of a share."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="judging")
        self._queue: list[tuple[Draw, str]] = []
        self._batch: list[tuple[Draw, str]] = []
        self._verdicts: Future[list[Verdict]] | None = None

    def hand_in(self, draw: Draw, completion: str) -> None:
        """Have the text of a completion judged."""
        self._queue.append((draw, completion))

    def wait(self) -> None:
        """Wait until there are verdicts to collect; not at all where nothing is being judged."""
        if self._verdicts is not None:
            self._verdicts.exception()

    def collect(self) -> Iterator[tuple[Draw, VerdictRecord]]:
        """Yield the verdicts that have come in since the last call."""
        if self._verdicts is not None and self._verdicts.done():
            verdicts, self._verdicts = self._verdicts.result(), None
            for ((sampled, sample), completion), verdict in zip(self._batch, verdicts, strict=True):
                yield (
                    (sampled, sample),
                    {
                        "row": sampled.index,
                        "sample": sample,
                        "completion": completion,
                        "score": verdict.score,
                        "reason": str(verdict.reason),
                        "extracted": verdict.extracted,
                        "evidence": dump_json(dict(verdict.evidence)),
                    },
                )
        if self._verdicts is None and self._queue:
            self._batch, self._queue = self._queue[:BATCH], self._queue[BATCH:]
            self._verdicts = self._pool.submit(self._judge_batch, self._batch)

    def close(self) -> None:
        """End the thread and the processes, and close the judge."""
        self._pool.shutdown(cancel_futures=True)
        self._batches.close()
        if self._judge is not None:
            self._judge.close()

    def _judge_batch(self, batch: list[tuple[Draw, str]]) -> list[Verdict]:
        """Return the verdicts, one for each sample. Samples of a row with the same text, which a small model has many
        of, are judged once."""
        texts: dict[tuple[int, str], Item] = {}
        for (sampled, _), text in batch:
            if (sampled.index, text) not in texts:
                row = sampled.row
                texts[sampled.index, text] = Item(
                    text, row["gold"], row["verifier"], row["verifier_args"], row["prompt"]
                )
        responses = list(texts.values())
        verdicts = list(self._batches.verify(responses))
        for response, verdict in zip(responses, verdicts, strict=True):
            self._timeouts.add(response, verdict)
        if self._judge is not None:
            verdicts = self._judge(responses, verdicts)
        verdict_of = dict(zip(texts, verdicts, strict=True))
        return [verdict_of[sampled.index, text] for (sampled, _), text in batch]
