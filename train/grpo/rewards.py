"""From completions to rewards: every term of the reward is judged, the terms are composed, and each is measured.

A term without a verifier of its own is judged by the row's, with the row's arguments: that is correctness, which pass
rates are about, whatever else the reward is made of. Every other term gets its own arguments and `length`, the number
of tokens that were sampled, the end-of-sequence token included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from truegold.pipeline.engines.base import Completion
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.rows import Row, dump_json
from truegold.train.model.segment import Segment
from truegold.verifiers import Item, Reward, Term, Verdict, compose, verify_batch

CORRECTNESS = Term("correct")
"""The reward of an evaluation, and of a training that asks for nothing else."""

JUDGED_AT_ONCE = 8
"""Verdicts that a worker is given at a time: few, since a step is short and programs run for seconds."""

Metrics = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Scored:
    """One completion's reward with what it is made of: a verdict for each term, and the one on correctness."""

    reward: Reward
    verdicts: tuple[Verdict, ...]
    correct: Verdict


@dataclass(slots=True)
class Sampled:
    """One completion of a step: its problem, its training record, how it was judged, and what came of it."""

    row: Row
    segment: Segment
    scored: Scored
    advantage: float = 0.0
    trained: bool = False


def judge(
    rows: Sequence[Row],
    groups: Sequence[Sequence[Completion]],
    encoder: PromptEncoder,
    terms: Sequence[Term] = (CORRECTNESS,),
    clip: tuple[float, float] | None = None,
    workers: int = 1,
) -> list[Scored]:
    """The reward of each completion, in order. One of `terms` has no verifier of its own.

    workers: as `verify_batch` has it.
    """
    items = [
        _item(term, row, done, encoder.decode(done.token_ids))
        for row, group in zip(rows, groups, strict=True)
        for done in group
        for term in terms
    ]
    verdicts = list(verify_batch(items, workers, chunk=JUDGED_AT_ONCE))
    correctness = [term.verifier for term in terms].index(None)
    found = []
    for start in range(0, len(verdicts), len(terms)):
        own = tuple(verdicts[start : start + len(terms)])
        found.append(Scored(compose(terms, own, clip), own, own[correctness]))
    return found


def _item(term: Term, row: Row, done: Completion, text: str) -> Item:
    if term.verifier is None:
        return Item(text, row["gold"], row["verifier"], row["verifier_args"], row["prompt"])
    arguments = dump_json({**term.args, "length": len(done.token_ids)})
    return Item(text, row["gold"], term.verifier, arguments, row["prompt"])


def reward_metrics(sampled: Sequence[Sampled], terms: Sequence[Term]) -> Metrics:
    """Pass rate, reward, unjudged share, all-right and all-wrong groups, lengths and truncation of one rollout batch;
    for each term the mean of its scores (`score/NAME`) and of what it added to the reward (`reward/NAME`)."""
    segments, scored = [one.segment for one in sampled], [one.scored for one in sampled]
    scores = [one.correct.score for one in scored]
    lengths = [len(segment.output_ids) for segment in segments]
    groups: dict[int, list[float | None]] = {}
    for segment, score in zip(segments, scores, strict=True):
        groups.setdefault(segment.group, []).append(score)
    means = [_mean(own) for own in groups.values()]
    metrics = {
        "pass_rate": _mean([None if score is None else float(score == 1.0) for score in scores]),
        "reward": _mean([one.reward.value for one in scored]),
        "unjudged": sum(one.reward.value is None for one in scored) / len(scored),
        "groups_all_right": sum(mean == 1.0 for mean in means) / len(means),
        "groups_all_wrong": sum(mean == 0.0 for mean in means) / len(means),
        "length_mean": sum(lengths) / len(lengths),
        "length_max": float(max(lengths)),
        "truncated": sum(segment.truncated for segment in segments) / len(segments),
    }
    for place, term in enumerate(terms):
        metrics[f"score/{term.name}"] = _mean([one.verdicts[place].score for one in scored])
        metrics[f"reward/{term.name}"] = _mean([one.reward.parts[term.name] for one in scored])
    return metrics


def terms_json(one: Scored, terms: Sequence[Term]) -> str:
    """What a completion's table keeps: `{"length": {"score": 0.25, "reason": "partial", "added": -0.75}, ...}`."""
    return dump_json(
        {
            term.name: {"score": verdict.score, "reason": verdict.reason, "added": one.reward.parts[term.name]}
            for term, verdict in zip(terms, one.verdicts, strict=True)
        }
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of what could be judged; None where nothing could."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
