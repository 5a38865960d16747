"""Groups of single answers: sampling, judging, the choice of groups for a batch, and files of completions.

A group teaches if its completions have advantages. In this example, a batch needs 2 of 4 groups, and the share of right
completions in it must be within [.25, .75]:

    group       right of 8   teaches
    a            8           no        left out
    b            1           yes       enters
    c            2           yes       replaced by d, because the share of b and c is .19
    d            6           yes       enters: the share of b and d is .44

The reward is a sum of terms. One of these terms, correctness, is judged by the row's verifier with the row's arguments.
It defines pass rates. Other terms have their own verifiers and arguments. Verifiers that read `length` also get the
number of sampled tokens, end-of-sequence token included.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import torch

from truegold.pipeline.config.stages import GRADED
from truegold.pipeline.engines.base import Completion, SamplingParams
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.judge.audit import check_audit
from truegold.pipeline.judge.grading import GradedTerms
from truegold.pipeline.judge.opinions import RAISED, open_opinion, raise_unread
from truegold.pipeline.running.disk import written_aside
from truegold.pipeline.tables.rows import Row, dump_json, problem_of, write_rows
from truegold.train.config.grpo import GrpoConfig, RewardConfig
from truegold.train.grpo.feed import Draw, Feed, GroupScore
from truegold.train.grpo.update import WeighedBatch
from truegold.train.model.distributed import rank, world_size
from truegold.train.model.ending import interruptible
from truegold.train.model.segment import Segment
from truegold.train.objective import Mismatch, advantages
from truegold.train.rollout.rollout import RolloutSampler
from truegold.train.rollout.sampler import FinishedSample
from truegold.train.rollout.sampler_child import Usage
from truegold.train.turns.template import TurnTemplate
from truegold.verifiers import BatchVerifier, Item, Reason, Reward, Term, Verdict, compose, resolve
from truegold.verifiers.registry import declared
from truegold.verifiers.running.batch import TimeoutTally, VerifierPool
from truegold.verifiers.running.blame import AVOIDABLE, score_avoidable
from truegold.verifiers.running.unread_tally import UnreadTally

CORRECTNESS = Term("correct")
"""The only term of an evaluation's reward."""

EVALUATED = 16
"""Maximum number of completions of an evaluation that each rank keeps, to judge them again (`belonging`)."""
CHUNK = 8
"""The number of completions that a worker judges at a time. It is small because programs may run for seconds."""


@dataclass(frozen=True, slots=True)
class CompletionScore:
    """The reward of a completion, and the verdicts that it was computed from."""

    reward: Reward
    verdicts: tuple[Verdict, ...]
    """The verdict of each term of the reward."""
    correct: Verdict
    """The verdict on correctness."""


@dataclass(slots=True)
class StepCompletion:
    """One completion of a step: its problem, its training record and its score."""

    row: Row
    segment: Segment
    """The tokens of the prompt and completion."""
    score: CompletionScore
    advantage: float = 0.0
    trained: bool = False
    """Whether the completion is in the training batch."""
    parts: tuple[Segment, ...] = ()
    """The trained segments of an episode (a dialogue). `segment` then has all tokens that the policy sampled, turn
    after turn."""
    ending: str | None = None


def strip_texts(completion: StepCompletion) -> StepCompletion:
    """Return a completion with only the parts that metrics over all ranks need, so that it is small to send.

    Token ids are replaced by the same number of placeholders. The row keeps only its pass rate and domain. Verdicts
    keep only the marks `AVOIDABLE` and `RAISED` of their evidence.
    """
    segment, score = completion.segment, completion.score

    def without_evidence(verdict: Verdict) -> Verdict:
        evidence = {name: True for name in (AVOIDABLE, RAISED) if name in verdict.evidence}
        return Verdict(verdict.score, verdict.reason, verdict.extracted, evidence)

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
    """Judges the completions of a training, in worker processes that are kept between steps."""

    def __init__(self, config: RewardConfig, encoder: PromptEncoder, folder: Path | None = None) -> None:
        """folder: the folder for replies of a second opinion and of graders. Raises ConfigError if the second opinion
        has not passed its audit."""
        self.config = config
        self._opinion = open_opinion(config.second_opinion, folder)
        self._audited = check_audit(config.second_opinion) if config.second_opinion is not None else ()
        self.graded = GradedTerms({term.name: term.judge for term in config.terms if term.judge is not None}, folder)
        self._encoder = encoder
        self._batches = BatchVerifier(config.workers, CHUNK, config.deadline_s, config.max_timeouts)
        self._apart: VerifierPool | None = None
        self._unread = UnreadTally()
        self._uncounted: list[tuple[Item, Verdict, bool, str]] = []
        """Verdicts that `count_unread` has not counted yet. Each entry has the arguments of `UnreadTally.add`."""

    def score(
        self,
        rows: Sequence[Row],
        groups: Sequence[Sequence[Completion]],
        *,
        correctness_only: bool = False,
    ) -> list[CompletionScore]:
        """Return the score of each completion, in order.

        A completion that could not be judged scores 0 if this was the completion's fault (`verifiers.running.blame`).

        groups: the completions of each row. correctness_only: leave out all other terms, for an evaluation. Raises
        GuardError if a verifier hangs.
        """
        terms, clip = ((CORRECTNESS,), None) if correctness_only else (self.config.composition, self.config.clip)
        ruled = [term for term in terms if term.verifier != GRADED]
        questions = [
            _question(term, row, completion, self._encoder.decode(completion.token_ids))
            for row, group in zip(rows, groups, strict=True)
            for completion in group
            for term in ruled
        ]
        verdicts = list(self._batches.verify(questions))
        if any(verdict.score is None for verdict in verdicts):
            verdicts = score_avoidable(questions, verdicts, self._batches.verify)
        if self._opinion is not None and not correctness_only:
            verdicts = list(map(raise_unread, self._opinion(questions, verdicts, self._may_raise)))
        names, size = [term.name for term in ruled], len(ruled)
        known = [
            dict(zip(names, verdicts[start : start + size], strict=True)) for start in range(0, len(verdicts), size)
        ]
        asked = questions[_correctness(ruled) :: size]
        self.graded.add(terms, asked, known)
        scores = [compose_score(terms, tuple(by_name[term.name] for term in terms), clip) for by_name in known]
        if not correctness_only:
            sampled = [(row["source"], done) for row, group in zip(rows, groups, strict=True) for done in group]
            self._uncounted += [
                (question, score.correct, done.finish_reason != "length", source)
                for (source, done), question, score in zip(sampled, asked, scores, strict=True)
            ]
        return scores

    def judge_apart(self, questions: Sequence[Item]) -> list[Verdict]:
        """Return verdicts of a separate process, which shares no state with the usual worker processes."""
        if not questions:
            return []
        if self._apart is None:
            self._apart = VerifierPool(1, self.config.deadline_s)
        timed = self._apart.submit(list(questions), TimeoutTally(1.0, self.config.deadline_s)).result()
        return [each.verdict for each in timed]

    def _may_raise(self, question: Item, verdict: Verdict) -> bool:
        return verdict.reason is Reason.UNREAD and question.gold is not None and question.verifier in self._audited

    def count_unread(self) -> list[str]:
        """Count this rank's unread answers since the last call, and return lines for the log about them."""
        for question, verdict, ended, source in self._uncounted:
            self._unread.add(question, verdict, ended=ended, source=source)
        self._uncounted.clear()
        return self._unread.take_lines()

    def close(self) -> None:
        """End the worker processes and close connections."""
        self._batches.close()
        self.graded.close()
        if self._apart is not None:
            self._apart.close()
        if self._opinion is not None:
            self._opinion.close()


def compose_score(
    terms: Sequence[Term], verdicts: tuple[Verdict, ...], clip: tuple[float, float] | None
) -> CompletionScore:
    """Return the score of a completion from a verdict for each term."""
    return CompletionScore(compose(terms, verdicts, clip), verdicts, verdicts[_correctness(terms)])


def _correctness(terms: Sequence[Term]) -> int:
    """Return the index of the term that the row's own verifier judges."""
    return [term.verifier for term in terms].index(None)


def _question(term: Term, row: Row, completion: Completion, text: str) -> Item:
    if term.verifier is None:
        return Item(text, row["gold"], row["verifier"], row["verifier_args"], problem_of(row))
    known = declared(resolve(term.verifier))
    # A verifier that declares its arguments refuses other arguments, such as `length`.
    length = {"length": len(completion.token_ids)} if known is None or "length" in known else {}
    return Item(text, row["gold"], term.verifier, dump_json({**term.args, **length}), problem_of(row))


CountMissing = Callable[[Sequence[StepCompletion]], int]
"""A function from this rank's completions of a step to the number of groups that the batch lacks, over all ranks."""


@dataclass
class RequestedGroup:
    """A group that is sampled in the background, and its samples so far."""

    key: int
    """The unique number of the group, in the order of requests."""
    draw: Draw
    row: Row
    prompt: tuple[int, ...]
    """The token ids of the prompt. Empty for episodes."""
    done: dict[int, FinishedSample] = field(default_factory=dict)
    """The finished samples, by their index in the group."""

    def staleness(self, version: int) -> int:
        """Return the age of the group's oldest token: `version` minus the version of the weights that sampled it."""
        versions = [oldest for done in self.done.values() for oldest, _ in done.versions]
        # There are no tokens if all episodes failed in the environment before the first turn.
        return version - min(versions, default=version)

    def ordered(self) -> list[FinishedSample]:
        """Return the samples in the order of their indices."""
        return [done for _, done in sorted(self.done.items())]


@dataclass
class SampledGroups:
    """Groups of single answers, which are sampled when a step asks for them. All ranks call its methods together."""

    feed: Feed
    config: GrpoConfig
    rollout: RolloutSampler
    scorer: CompletionScorer
    max_tokens: int
    """The largest number of tokens of a completion."""
    template: TurnTemplate | None
    """The template of dialogues; None for single answers."""
    evaluated: list[tuple[Item, Verdict]] = field(init=False, default_factory=list)
    """Some completions of the last evaluation on this rank, and their verdicts."""

    @property
    def answers(self) -> SampledGroups:
        """This object. `AsynchronousGroups` has the same attribute, the object that scores its completions."""
        return self

    def begin(self) -> None:
        """Do nothing, because there is no sampling in the background."""

    def collect(self, version: int, step: int, count_missing: CountMissing) -> list[StepCompletion]:
        """Return this rank's scored completions of a step.

        This rank samples its share of the step's groups and of refills: groups that replace others without advantages,
        or bring the share of right completions into its bounds. version: the version of the weights in training.
        """
        size = self.config.prompts_per_step
        completions = self.sample(self.feed.take(size), step, 0)
        for _ in range(self.config.sampling.refills or 0):
            missing = count_missing(completions)
            if not missing:
                break
            completions += self.sample(self.feed.refill(missing), step, size)
            size += missing
        return completions

    def sample(self, rows: Sequence[Row], step: int, first_group: int) -> list[StepCompletion]:
        """Return the scored completions of this rank's share of `rows`. Groups are numbered from `first_group` on."""
        groups = range(first_group + rank(), first_group + len(rows), world_size())
        return self.answer([rows[group - first_group] for group in groups], groups, step)

    def answer(self, rows: Sequence[Row], groups: Sequence[int], step: int) -> list[StepCompletion]:
        """Return a group of scored completions for each row."""
        sampling = [self.sampling_params(step, row["pass_rate"]) for row in rows]
        prompts, completions = self.rollout.sample(rows, sampling, step, groups, self.config.group_size)
        with interruptible():
            scores = iter(self.scorer.score(rows, completions))
        version = self.rollout.version
        return [
            score_completion(row, prompt, completion, next(scores), group, params.temperature, [(version, 0)])
            for row, prompt, group, params, members in zip(rows, prompts, groups, sampling, completions, strict=True)
            for completion in members
        ]

    def sampling_params(self, step: int, pass_rate: float | None) -> SamplingParams:
        """Return the sampling parameters at a step for a problem with this measured pass rate."""
        temperature = self.config.sampling.temperature_for(step, pass_rate)
        return SamplingParams(temperature, 1.0, self.max_tokens, self.rollout.encoder.stop_token_ids)

    def score_finished(
        self, groups: Sequence[RequestedGroup], indices: Sequence[int], step: int, usage: Usage
    ) -> list[StepCompletion]:
        """Return the scored completions of groups that were sampled in the background, numbered by `indices`."""
        temperature = self.config.sampling.temperature_for(0, None)
        answers = [[cast("Completion", done.answer) for done in group.ordered()] for group in groups]
        with interruptible():
            scores = iter(self.scorer.score([group.row for group in groups], answers))
        return [
            score_completion(group.row, group.prompt, answer, next(scores), index, temperature, done.versions)
            for index, group, members in zip(indices, groups, answers, strict=True)
            for answer, done in zip(members, group.ordered(), strict=True)
        ]

    def finish(self, entered: Collection[int], version: int, step: int) -> dict[str, float]:
        """Return an empty dict, because groups are not buffered. `AsynchronousGroups` returns metrics here.

        entered: the positions of the groups that were trained on. version: the version of the weights.
        """
        return {}

    def evaluate(
        self, rows: Sequence[Row], positions: Sequence[int], samples: int, sampling: SamplingParams
    ) -> list[CompletionScore]:
        """Return `samples` correctness scores of each held-out row, in order.

        positions: the positions of the rows in the list of all held-out rows.
        """
        step = -1 - self.rollout.version
        _, completions = self.rollout.sample(rows, [sampling] * len(rows), step, positions, samples)
        with interruptible():
            scores = self.scorer.score(rows, completions, correctness_only=True)
        answered = [(row, done) for row, group in zip(rows, completions, strict=True) for done in group]
        chosen = random.Random(f"again{step}").sample(range(len(scores)), len(scores))
        # If possible, half of the kept completions are right and half are wrong.
        chosen = sorted(chosen, key=lambda index: scores[index].correct.passed)
        self.evaluated = [
            (_question(CORRECTNESS, row, done, self.rollout.encoder.decode(done.token_ids)), scores[index].correct)
            for index in {*chosen[: EVALUATED // 2], *chosen[-EVALUATED // 2 :]}
            for row, done in (answered[index],)
        ]
        return scores

    def send_weights(self, version: int) -> Mismatch | None:
        """Send the current weights to the sampler, and return the measurements of the probe."""
        return self.rollout.sync(version)

    def score_group(self, members: Sequence[StepCompletion], kind: str, k: int) -> GroupScore:
        """Return the numbers that decide whether a group enters a batch. kind: the kind of advantage."""
        return score_group([member.segment for member in members], kind, k)

    def compared_segments(self, completion: StepCompletion) -> Sequence[Segment]:
        """Return the segments of a completion that get an advantage. Segments of one group are compared with each
        other."""
        return [completion.segment]

    def trained_segments(
        self, batch: Sequence[StepCompletion], weighed: WeighedBatch
    ) -> tuple[list[Segment], WeighedBatch]:
        """Return all segments of a batch with advantages. `weighed` has the advantages of the compared segments."""
        return [completion.segment for completion in batch], weighed

    def forget_before(self, version: int) -> None:
        """Do nothing, because no groups are buffered."""

    def state(self) -> dict[str, Any]:
        """Return an empty state; the feed saves its state itself."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Do nothing, because there is no state."""

    def close(self) -> None:
        """End the processes that judge completions."""
        self.scorer.close()


def score_completion(
    row: Row,
    prompt: tuple[int, ...],
    completion: Completion,
    score: CompletionScore,
    group: int,
    temperature: float,
    versions: Sequence[tuple[int, int]],
) -> StepCompletion:
    """Return one completion of a step with its segment.

    versions: pairs of a version of the weights and the number of tokens that it sampled, in order.
    """
    segment = Segment(
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
    return StepCompletion(row, segment, score)


Bounds = tuple[float, float]
"""The lowest and the highest share of right completions in a batch."""


def score_group(segments: Sequence[Segment], kind: str, k: int) -> GroupScore:
    """Return the score of a group's judged completions. kind, k: as in `objective.advantages`.

    With `reinforce_pp`, which compares with the whole batch, every group with a judged completion teaches.
    """
    judged = [(segment.reward, segment.right) for segment in segments if segment.reward is not None]
    teaches = bool(judged)
    # Checked first, because by rounding the advantages of equal rewards may not be exactly 0.
    if kind != "reinforce_pp" and len(set(judged)) < 2:
        teaches = False
    elif kind != "reinforce_pp":
        rewards = torch.tensor([reward for reward, _ in judged], dtype=torch.float64)
        right = torch.tensor([is_right for _, is_right in judged])
        teaches = bool(advantages(kind, rewards, torch.zeros(len(judged), dtype=torch.int64), k, right).any())
    return GroupScore(sum(is_right for _, is_right in judged), len(judged), teaches)


def choose_groups(groups: Sequence[GroupScore], size: int, bounds: Bounds | None) -> list[int]:
    """Return the indices of the groups that enter a batch of `size` groups, in order.

    The first `size` groups that teach enter. If their share of right completions is outside of `bounds`, groups are
    exchanged one by one. The group with the most extreme share on that side leaves. Of the spare groups, the one enters
    that brings the share closest to the bounds.
    """
    teaching = [index for index, group in enumerate(groups) if group.teaches]
    entered, spare = teaching[:size], teaching[size:]
    if bounds is None:
        return entered

    def distance(indices: Sequence[int]) -> float:
        return _distance([groups[index] for index in indices], bounds)

    while entered and spare and distance(entered) > 0:
        sign = 1 if right_share([groups[index] for index in entered]) < bounds[0] else -1
        worst = min(entered, key=lambda index: (sign * groups[index].right_share, index))
        others = [index for index in entered if index != worst]
        best = min(spare, key=lambda index: (distance([*others, index]), index))
        if distance([*others, best]) >= distance(entered):
            break
        spare.remove(best)
        entered = [*others, best]
    return sorted(entered)


def count_missing_groups(groups: Sequence[GroupScore], size: int, bounds: Bounds | None) -> int:
    """Return the number of further groups to sample for a batch of `size` groups, at most `size`.

    These are the groups that the batch lacks, plus `size` times twice the distance of the share of right completions
    from its bounds. Example: 9 groups of 10 with a share .1 below the bounds -> 1 + 2 = 3.
    """
    entered = [groups[index] for index in choose_groups(groups, size, bounds)]
    distance = _distance(entered, bounds) if bounds and entered else 0.0
    return min(size, size - len(entered) + math.ceil(2 * distance * size))


def _distance(groups: Sequence[GroupScore], bounds: Bounds) -> float:
    """Return the distance of the share of right completions from its bounds, 0 inside of them."""
    share = right_share(groups)
    return max(bounds[0] - share, share - bounds[1], 0.0)


def right_share(groups: Sequence[GroupScore]) -> float:
    """Return the share of right completions among the judged completions of all groups; 0 if none was judged."""
    judged = sum(group.judged for group in groups)
    return sum(group.right for group in groups) / judged if judged else 0.0


# The columns of `completions/*.parquet`, described in docs/reference/rollouts.md.
COMPLETION_SCHEMA = pa.schema(
    [
        ("step", pa.int32()),
        ("id", pa.string()),
        ("group", pa.int32()),
        ("turn", pa.int32()),
        ("origin", pa.string()),
        ("version", pa.int32()),
        ("versions", pa.list_(pa.struct([("version", pa.int32()), ("tokens", pa.int32())]))),
        ("prompt", pa.string()),
        ("gold", pa.string()),
        ("completion", pa.string()),
        ("token_ids", pa.list_(pa.int32())),
        ("rollout_logprobs", pa.list_(pa.float32())),
        ("temperature", pa.float64()),
        ("truncated", pa.bool_()),
        ("score", pa.float64()),
        ("reason", pa.string()),
        ("extracted", pa.string()),
        ("reward", pa.float64()),
        ("reward_terms", pa.string()),
        ("advantage", pa.float64()),
        ("trained", pa.bool_()),
    ]
)


def write_completions(
    out_dir: Path,
    step: int,
    completions: Sequence[StepCompletion],
    terms: Sequence[Term],
    encoder: PromptEncoder,
    rank: int = 0,
) -> None:
    """Write a rank's completions of a step to completions/step-NNNNNN.parquet.

    A rank other than 0 writes to completions/step-NNNNNN.rank-R.parquet. Each rank has its own file, because gathering
    texts and tokens on one rank would be slow.
    """
    path = completions_path(out_dir, step, rank)
    path.parent.mkdir(exist_ok=True)
    records = (
        _record(step, completion, segment, terms, encoder)
        for completion in completions
        for segment in completion.parts or (completion.segment,)
    )
    with written_aside(path) as aside:
        write_rows(aside, records, COMPLETION_SCHEMA)


def completions_path(out_dir: Path, step: int, rank: int) -> Path:
    """Return the path of a rank's completions of a step."""
    suffix = f".rank-{rank}" if rank else ""
    return out_dir / "completions" / f"step-{step:06d}{suffix}.parquet"


def _record(
    step: int, completion: StepCompletion, segment: Segment, terms: Sequence[Term], encoder: PromptEncoder
) -> dict[str, Any]:
    row, score, correct = completion.row, completion.score, completion.score.correct
    # Example: {"length": {"score": 0.25, "reason": "partial", "added": -0.75}, ...}
    term_scores = {
        term.name: {"score": verdict.score, "reason": verdict.reason, "added": score.reward.parts[term.name]}
        for term, verdict in zip(terms, score.verdicts, strict=True)
    }
    return {
        "step": step,
        "id": row["id"],
        "group": segment.group,
        "turn": segment.turn,
        "origin": segment.origin,
        "version": segment.version,
        "versions": [{"version": version, "tokens": tokens} for version, tokens in segment.stretches],
        "prompt": row["prompt"],
        "gold": row["gold"],
        "completion": encoder.decode(segment.output_ids),
        "token_ids": list(segment.output_ids),
        "rollout_logprobs": list(segment.rollout_logprobs),
        "temperature": segment.temperature,
        "truncated": segment.truncated,
        "score": correct.score,
        "reason": str(correct.reason),
        "extracted": correct.extracted,
        "reward": score.reward.value if completion.parts else segment.reward,
        "reward_terms": dump_json(term_scores),
        "advantage": completion.advantage,
        "trained": completion.trained,
    }
