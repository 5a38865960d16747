"""From completions to rewards: every term of the reward is judged, and the terms are composed.

A term without a verifier of its own is judged by the row's, with the row's arguments: that is correctness, which pass
rates are about, whatever else the reward is made of. Every other term gets its own arguments and `length`, the number
of tokens that were sampled, the end-of-sequence token included, where it reads that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from truegold.pipeline.engines.base import Completion
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.tables.rows import Row, dump_json
from truegold.train.config.reward import RewardConfig
from truegold.train.model.segment import Segment
from truegold.verifiers import BatchVerifier, Item, Reward, Term, Verdict, compose, resolve
from truegold.verifiers.registry import declared

CORRECTNESS = Term("correct")
"""The reward of an evaluation."""

CHUNK = 8
"""Verdicts that a worker is given at a time: few, since a step is short and programs run for seconds."""


@dataclass(frozen=True, slots=True)
class CompletionScore:
    """One completion's reward with what it is made of."""

    reward: Reward
    verdicts: tuple[Verdict, ...]
    """A verdict for each term."""
    correct: Verdict
    """The verdict on correctness."""


@dataclass(slots=True)
class StepCompletion:
    """One completion of a step: its problem, its training record, its score, and what came of it."""

    row: Row
    """The row whose prompt it answers."""
    segment: Segment
    """Its tokens."""
    score: CompletionScore
    """Its reward and verdicts."""
    advantage: float = 0.0
    """How much better it is than its group."""
    trained: bool = False
    """Whether it is in the batch that is trained on."""
    parts: tuple[Segment, ...] = ()
    """Of an episode of several turns: what is trained on. `segment` has all that the policy sampled in it, one turn
    behind the other, for whatever counts completions."""
    ending: str | None = None
    """How an episode ended."""


def without_contents(completion: StepCompletion) -> StepCompletion:
    """Return a completion with everything that metrics over all ranks need, and nothing else: of its tokens their
    number, of its row pass rate and domain, of its verdicts no evidence."""
    segment, score = completion.segment, completion.score

    def without_evidence(verdict: Verdict) -> Verdict:
        return Verdict(verdict.score, verdict.reason, verdict.extracted)

    return replace(
        completion,
        row=cast("Row", {name: completion.row.get(name) for name in ("pass_rate", "domain")}),
        segment=replace(
            segment,
            prompt_ids=cast("tuple[int, ...]", range(len(segment.prompt_ids))),
            output_ids=cast("tuple[int, ...]", range(len(segment.output_ids))),
            rollout_logprobs=(),
        ),
        score=CompletionScore(
            score.reward, tuple(map(without_evidence, score.verdicts)), without_evidence(score.correct)
        ),
        parts=(),
    )


class CompletionScorer:
    """Judges the completions of a training, step after step, with processes that are kept from one to the next."""

    def __init__(self, config: RewardConfig, encoder: PromptEncoder) -> None:
        self.config = config
        self._encoder = encoder
        self._batches = BatchVerifier(config.workers, CHUNK, config.deadline_s, config.max_timeouts)

    def score(
        self, rows: Sequence[Row], groups: Sequence[Sequence[Completion]], *, correctness_only: bool = False
    ) -> list[CompletionScore]:
        """Return the score of each completion, in order.

        groups: the completions of each row. correctness_only: leave all other terms out, as an evaluation does. Raises
        GuardError where a verifier hangs.
        """
        terms, clip = ((CORRECTNESS,), None) if correctness_only else (self.config.composition, self.config.clip)
        questions = [
            _question(term, row, completion, self._encoder.decode(completion.token_ids))
            for row, group in zip(rows, groups, strict=True)
            for completion in group
            for term in terms
        ]
        verdicts = list(self._batches.verify(questions))
        correctness = [term.verifier for term in terms].index(None)
        scores = []
        for start in range(0, len(verdicts), len(terms)):
            term_verdicts = tuple(verdicts[start : start + len(terms)])
            reward = compose(terms, term_verdicts, clip)
            scores.append(CompletionScore(reward, term_verdicts, term_verdicts[correctness]))
        return scores

    def close(self) -> None:
        """End the processes."""
        self._batches.close()


def _question(term: Term, row: Row, completion: Completion, text: str) -> Item:
    """Return what is asked of a term's verifier."""
    if term.verifier is None:
        return Item(text, row["gold"], row["verifier"], row["verifier_args"], row["prompt"])
    known = declared(resolve(term.verifier))
    # A verifier that refuses options which it does not know would refuse the length as well.
    length = {"length": len(completion.token_ids)} if known is None or "length" in known else {}
    return Item(text, row["gold"], term.verifier, dump_json({**term.args, **length}), row["prompt"])


def scored_segment(
    prompt: tuple[int, ...],
    completion: Completion,
    score: CompletionScore,
    group: int,
    temperature: float,
    versions: Sequence[tuple[int, int]],
) -> Segment:
    """Return the training record of one completion. versions: of the weights, and the tokens that each has sampled."""
    return Segment(
        prompt_ids=prompt,
        output_ids=completion.token_ids,
        rollout_logprobs=completion.logprobs,
        version=min(version for version, _ in versions),
        temperature=temperature,
        reward=score.reward.value,
        right=score.correct.passed,
        group=group,
        truncated=completion.finish_reason == "length",
        versions=tuple(versions) if len(versions) > 1 else (),
    )


def terms_json(score: CompletionScore, terms: Sequence[Term]) -> str:
    """Return what a completion's table keeps.

    {"length": {"score": 0.25, "reason": "partial", "added": -0.75}, "correct": ...}
    """
    return dump_json(
        {
            term.name: {"score": verdict.score, "reason": verdict.reason, "added": score.reward.parts[term.name]}
            for term, verdict in zip(terms, score.verdicts, strict=True)
        }
    )
