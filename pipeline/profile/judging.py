"""Judges samples in a thread while the engine draws more.

Each sample is judged by the verifier of its row. With `profile.judge`, a language model judges the samples that the
verifier cannot decide (`judge.model`). With `profile.second_opinion`, another verifier or model is asked if the
verifier cannot read the answer (`judge.opinions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypedDict

from truegold.pipeline.config.base import VerdictConfig
from truegold.pipeline.judge.model import Judge
from truegold.pipeline.judge.opinions import SecondOpinion
from truegold.pipeline.profile.schedule import Draw
from truegold.pipeline.tables.rows import Row, dump_json, problem_of
from truegold.verifiers import BatchVerifier, Item, Reason, Verdict
from truegold.verifiers.running.batch import TimeoutTally
from truegold.verifiers.running.unread_tally import UnreadTally

BATCH = 1024
"""The maximum number of samples in one batch."""


class VerdictRecord(TypedDict):
    """A verdict on disk. A profile that was killed resumes from these records."""

    row: int
    """The row's index in its file, from 0."""
    prompt: str
    """The digest of the prompt. Together with `sample`, it is the key of the sample in the store."""
    sample: int
    completion: str
    score: float | None
    reason: str
    extracted: str | None
    evidence: str


class HandedIn(NamedTuple):
    """A completion to judge."""

    draw: Draw
    text: str
    ended: bool
    """True if the model ended the completion with a stop token."""


class Judging:
    """Judges samples in a thread, in the order in which they arrive."""

    def __init__(
        self,
        config: VerdictConfig,
        workers: int,
        judge: Judge | None = None,
        opinion: SecondOpinion | None = None,
        *,
        leave_unread_out: bool = False,
    ) -> None:
        """Start the thread, and `workers` processes for verification (0 stands for one per core).

        With `leave_unread_out`, a completion whose answer cannot be read has no score. Without it, the completion is
        wrong.
        """
        self._judge, self._opinion = judge, opinion
        self._leave_unread_out = leave_unread_out
        self.unread = UnreadTally()
        self._batches = BatchVerifier(workers, item_deadline_s=config.deadline_s, max_timeouts=config.max_timeouts)
        self._timeouts = TimeoutTally(config.max_timeouts, config.deadline_s)
        """Timeouts are counted over all batches, because their share in a small batch is unreliable."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="judging")
        self._queue: list[HandedIn] = []
        self._batch: list[HandedIn] = []
        self._verdicts: Future[list[Verdict]] | None = None

    def hand_in(self, draw: Draw, completion: str, *, ended: bool) -> None:
        """Queue the text of a completion. `ended` is true if the model ended it with a stop token."""
        self._queue.append(HandedIn(draw, completion, ended))

    def wait(self) -> None:
        """Wait until there are verdicts to collect. Return at once if nothing is being judged."""
        if self._verdicts is not None:
            self._verdicts.exception()

    def collect(self) -> Iterator[tuple[Draw, VerdictRecord]]:
        """Yield the verdicts since the last call."""
        if self._verdicts is not None and self._verdicts.done():
            verdicts, self._verdicts = self._verdicts.result(), None
            for ((sampled, sample), completion, ended), verdict in zip(self._batch, verdicts, strict=True):
                self.unread.add(_question(sampled.row, completion), verdict, ended=ended, source=sampled.row["source"])
                is_left_out = self._leave_unread_out and verdict.reason is Reason.UNREAD
                yield (
                    (sampled, sample),
                    {
                        "row": sampled.index,
                        "prompt": sampled.prompt_key,
                        "sample": sample,
                        "completion": completion,
                        "score": None if is_left_out else verdict.score,
                        "reason": str(verdict.reason),
                        "extracted": verdict.extracted,
                        "evidence": dump_json(dict(verdict.evidence)),
                    },
                )
        if self._verdicts is None and self._queue:
            self._batch, self._queue = self._queue[:BATCH], self._queue[BATCH:]
            self._verdicts = self._pool.submit(self._judge_batch, self._batch)

    def close(self) -> None:
        """End the thread and the processes, and close the judge and the second opinion."""
        self._pool.shutdown(cancel_futures=True)
        self._batches.close()
        for asked in (self._judge, self._opinion):
            if asked is not None:
                asked.close()

    def _judge_batch(self, batch: Sequence[HandedIn]) -> list[Verdict]:
        """Return a verdict for each sample. Small models often write equal texts for a row. They are judged once."""
        texts: dict[tuple[int, str], Item] = {}
        for (sampled, _), text, _ in batch:
            if (sampled.index, text) not in texts:
                texts[sampled.index, text] = _question(sampled.row, text)
        responses = list(texts.values())
        verdicts = list(self._batches.verify(responses))
        for response, verdict in zip(responses, verdicts, strict=True):
            self._timeouts.add(response, verdict)
        if self._judge is not None:
            verdicts = self._judge(responses, verdicts)
        if self._opinion is not None:
            verdicts = self._opinion(responses, verdicts)
        verdict_of = dict(zip(texts, verdicts, strict=True))
        return [verdict_of[sampled.index, text] for (sampled, _), text, _ in batch]


def _question(row: Row, completion: str) -> Item:
    return Item(completion, row["gold"], row["verifier"], row["verifier_args"], problem_of(row))
