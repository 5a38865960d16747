"""Verdicts on samples, beside their generation: a thread judges what has been finished while more is sampled.

Where `profile.judge` is set, a language model is asked about the verdicts that rules left open:

    Verdict(None, gold_unparsed)   SAME in both orders    ->  Verdict(1.0, match), evidence {"judge": "Qwen3-8B", ...}
    Verdict(None, gold_unparsed)   SAME, then DIFFERENT   ->  Verdict(None, gold_unparsed), marked as asked
    Verdict(0.0, mismatch)                                ->  unchanged: what rules judged is never sent

A row is sent if it has no score, its reason is among `reasons`, and its gold and its answer are worth a question
(`truegold.verifiers.model_judge`); all others come back as they were. Any engine will do, the scripted one included.
What a judge decided stays marked in the evidence, so that a report can count it apart.

Verdicts of 0 are not covered: a judge that only ever adds passes is what a policy learns to please. Neither is the
choice of a judge; measure yours on labelled rows first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypedDict

from truegold.pipeline.config.base import VerdictConfig
from truegold.pipeline.config.stages import JudgeConfig
from truegold.pipeline.engines import build_engine
from truegold.pipeline.engines.base import Engine, sample_seed
from truegold.pipeline.engines.chat import PromptEncoder, ask_model
from truegold.pipeline.profile.schedule import Draw
from truegold.pipeline.tables.rows import Row, dump_json, problem_of
from truegold.verifiers import BatchVerifier, Item, Reason, Verdict, committed_answer
from truegold.verifiers.model_judge import decide, make_question, read_reply
from truegold.verifiers.running.batch import TimeoutTally
from truegold.verifiers.running.unread_tally import UnreadTally

BATCH = 1024
"""The samples that are judged in one go, at most."""

SHOWN_CHARS = 500
"""The evidence keeps the end of a reply, where the verdict stands."""


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


class HandedIn(NamedTuple):
    """A completion to judge."""

    draw: Draw
    text: str
    ended: bool
    """Whether the model ended it by itself."""


class Judging:
    """Judges samples in a thread, in the order that they are handed in."""

    def __init__(
        self, config: VerdictConfig, workers: int, judge: Judge | None = None, *, leave_unread_out: bool = False
    ) -> None:
        """`workers` processes verify; 0 takes one per core. leave_unread_out: give no score to completions that end in
        a form which is not read."""
        self._judge = judge
        self._leave_unread_out = leave_unread_out
        self.unread = UnreadTally()
        self._batches = BatchVerifier(workers, item_deadline_s=config.deadline_s, max_timeouts=config.max_timeouts)
        self._timeouts = TimeoutTally(config.max_timeouts, config.deadline_s)
        """Counts over all batches, whose small ones say little of a share."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="judging")
        self._queue: list[HandedIn] = []
        self._batch: list[HandedIn] = []
        self._verdicts: Future[list[Verdict]] | None = None

    def hand_in(self, draw: Draw, completion: str, *, ended: bool) -> None:
        """Have the text of a completion judged. ended: whether the model ended it by itself."""
        self._queue.append(HandedIn(draw, completion, ended))

    def wait(self) -> None:
        """Wait until there are verdicts to collect; not at all where nothing is being judged."""
        if self._verdicts is not None:
            self._verdicts.exception()

    def collect(self) -> Iterator[tuple[Draw, VerdictRecord]]:
        """Yield the verdicts that have come in since the last call."""
        if self._verdicts is not None and self._verdicts.done():
            verdicts, self._verdicts = self._verdicts.result(), None
            for ((sampled, sample), completion, ended), verdict in zip(self._batch, verdicts, strict=True):
                self.unread.add(_question(sampled.row, completion), verdict, ended=ended, source=sampled.row["source"])
                is_left_out = self._leave_unread_out and verdict.reason is Reason.UNREAD
                yield (
                    (sampled, sample),
                    {
                        "row": sampled.index,
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
        """End the thread and the processes, and close the judge."""
        self._pool.shutdown(cancel_futures=True)
        self._batches.close()
        if self._judge is not None:
            self._judge.close()

    def _judge_batch(self, batch: Sequence[HandedIn]) -> list[Verdict]:
        """Return the verdicts, one for each sample. Samples of a row with the same text, which a small model has many
        of, are judged once."""
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
        verdict_of = dict(zip(texts, verdicts, strict=True))
        return [verdict_of[sampled.index, text] for (sampled, _), text, _ in batch]


def _question(row: Row, completion: str) -> Item:
    return Item(completion, row["gold"], row["verifier"], row["verifier_args"], problem_of(row))


@dataclass(frozen=True)
class Judge:
    """A language model, with its engine, that is asked about verdicts without a score."""

    engine: Engine
    encoder: PromptEncoder
    config: JudgeConfig

    def __call__(self, items_to_judge: Sequence[Item], verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Return the verdicts on all items in order, those without a score judged by the model where it can."""
        config, judged = self.config, list(verdicts)
        prompts: dict[int, list[list[int]]] = {}
        for position, (item, verdict) in enumerate(zip(items_to_judge, verdicts, strict=True)):
            if verdict.score is None and verdict.reason in config.reasons:
                encoded = self._encode_questions(item, verdict)
                if encoded and max(map(len, encoded)) < self.engine.max_model_len:
                    prompts[position] = encoded
        for start in range(0, len(prompts), config.batch_size):
            batch = list(prompts)[start : start + config.batch_size]
            seeds = [sample_seed(config.seed, "judge", position, order) for position in batch for order in range(2)]
            asked = [prompt for position in batch for prompt in prompts[position]]
            texts = ask_model(asked, seeds, self.engine, self.encoder, config)
            for position, gold_first, answer_first in zip(batch, texts[::2], texts[1::2], strict=True):
                judged[position] = _judged(judged[position], (gold_first, answer_first), config.name)
        return judged

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()

    def _encode_questions(self, item: Item, verdict: Verdict) -> list[list[int]]:
        """Return the prompts that ask about a verdict, with gold and with the answer first; none where nothing is to be
        asked."""
        answer = verdict.extracted
        if answer is None and (committed := committed_answer(item.response)):
            answer = committed.text
        asked = None if answer is None or item.gold is None else make_question(item.problem, item.gold, answer)
        return [self.encoder.encode(text) for text in (asked.gold_first, asked.answer_first)] if asked else []


def load_judge(config: JudgeConfig, replies: Path | None = None) -> Judge:
    """Start the judge's engine. replies: where one of the type chat keeps its replies."""
    model = Path(config.model) if config.model else None
    return Judge(*build_engine(config.engine, config.chat, model, replies), config)


def _judged(verdict: Verdict, replies: tuple[str | None, str | None], name: str) -> Verdict:
    """Return the verdict as the replies decide it, marked as asked in any case. A reply of None was cut off."""
    gold_first, answer_first = (None if reply is None else read_reply(reply) for reply in replies)
    same = decide(gold_first, answer_first)
    evidence = {
        **verdict.evidence,
        "judge": name,
        "unjudged_because": str(verdict.reason),
        "replies": [None if reply is None else reply[-SHOWN_CHARS:] for reply in replies],
    }
    if same is None:
        return replace(verdict, evidence=evidence)
    return Verdict(float(same), Reason.MATCH if same else Reason.MISMATCH, verdict.extracted, evidence)
