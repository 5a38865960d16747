"""Groups of a step whose answers are dialogues with an environment.

A dialogue (an episode) is played to its end and judged. Then it is split into segments, each of which is trained on as
one sequence:

turns.credit  segments               reward of a segment                             compared with
equal         the fewest that the    the episode's reward                            the other episodes of the group
              template allows
turn          one for each turn      the turn's score, for the last turn plus the    the turns of the same number in the
                                     episode's reward                                group's other episodes
discounted    one for each turn      as for `turn`, plus discount^k times the value  the turns of the same number in the
                                     of the turn k turns later, for all later turns  group's other episodes
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any, cast

import torch

from truegold.pipeline.engines.base import Engine, SamplingParams
from truegold.pipeline.running.disk import read_whole_lines, write_whole
from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import RewardConfig
from truegold.train.config.turns import TurnsConfig
from truegold.train.grpo.batch_metrics import mean_metrics
from truegold.train.grpo.feed import GroupScore
from truegold.train.grpo.groups import (
    CompletionScore,
    CompletionScorer,
    RequestedGroup,
    SampledGroups,
    StepCompletion,
    compose_score,
    score_group,
)
from truegold.train.grpo.update import WeighedBatch
from truegold.train.model.distributed import gathered, rank
from truegold.train.model.ending import interruptible
from truegold.train.model.segment import Segment
from truegold.train.rollout.rollout import engine_deaths_reported
from truegold.train.rollout.sampler_child import Usage
from truegold.train.rollout.samplers import SamplerPool
from truegold.train.turns.episodes import Ending, EnvironmentFaults, Episode, EpisodeRunner, make_runner
from truegold.train.turns.template import TurnTemplate
from truegold.verifiers import Reason, Verdict

_LOG = logging.getLogger(__name__)

DRIFT_FILE = "drift.jsonl"
"""The file with examples of drift: turns whose text the tokenizer encodes into other tokens than the sampled ones."""
EXAMPLES = 3
"""The largest number of turns of one step that are written to `DRIFT_FILE`."""


@dataclass
class DialogueGroups(SampledGroups):
    """Groups of episodes, which are played when a step asks for them.

    A `StepCompletion` stands for an episode. Its parts are trained on.
    """

    template: TurnTemplate
    turns: TurnsConfig
    runner: EpisodeRunner | SamplerPool
    out_dir: Path
    metrics: list[dict[str, float]] = field(default_factory=list)
    """The metrics of this rank's episodes, in the current step so far."""
    has_named_close_error: bool = False
    """Whether the log has a warning about an environment that could not be closed. There is only one such warning."""

    def answer(self, rows: Sequence[Row], groups: Sequence[int], step: int) -> list[StepCompletion]:
        """Return a completion for each episode. The episodes of a row are adjacent."""
        return self._play(rows, groups, self.config.group_size, step, self.sampling_params(step, None))

    def score_finished(
        self, groups: Sequence[RequestedGroup], indices: Sequence[int], step: int, usage: Usage
    ) -> list[StepCompletion]:
        """Return a completion for each episode of groups that were played in the background."""
        episodes = [
            replace(cast("Episode", done.answer), group=index)
            for index, group in zip(indices, groups, strict=True)
            for done in group.ordered()
        ]
        waited_share = usage.environments_s / max(usage.stream_s, 1e-9)
        temperature = self.config.sampling.temperature_for(0, None)
        return self._judge(episodes, step, temperature, usage.faults, waited_share)

    def evaluate(
        self, rows: Sequence[Row], positions: Sequence[int], samples: int, sampling: SamplingParams
    ) -> list[CompletionScore]:
        """Return `samples` scores of each held-out row. The metrics of these episodes are discarded."""
        completions = self._play(rows, positions, samples, -1 - self.rollout.version, sampling)
        self.metrics.pop()
        return [completion.score for completion in completions]

    def finish(self, entered: Collection[int], version: int, step: int) -> dict[str, float]:
        """Return the metrics of the step's episodes, over all ranks."""
        measured, self.metrics = self.metrics, []
        return mean_metrics([metrics for metrics in chain(*gathered(measured)) if metrics])

    def score_group(self, members: Sequence[StepCompletion], kind: str, k: int) -> GroupScore:
        """Return the score that decides whether a group enters a batch.

        A group teaches if its episodes have advantages. With separate rewards of turns, it teaches if any turns have.
        """
        score = super().score_group(members, kind, k)
        if self.turns.credit == "equal":
            return score
        # Episodes with the same total reward may differ in their turns. Episodes with different rewards may have equal
        # turns.
        turns: dict[int, list[Segment]] = {}
        for segment in chain(*map(self.compared_segments, members)):
            turns.setdefault(segment.group, []).append(segment)
        return replace(score, teaches=any(score_group(segments, kind, k).teaches for segments in turns.values()))

    def compared_segments(self, completion: StepCompletion) -> Sequence[Segment]:
        """Return the segments that get an advantage: the whole episode with credit `equal`, else each of its turns.

        A segment is compared with the segments that have the same group number.
        """
        if self.turns.credit == "equal":
            return [completion.segment]
        return [replace(part, group=part.group * self.turns.max_turns + part.turn) for part in completion.parts]

    def trained_segments(
        self, batch: Sequence[StepCompletion], weighed: WeighedBatch
    ) -> tuple[list[Segment], WeighedBatch]:
        """Return all segments of a batch's episodes, and the batch's weights for each of them.

        weighed: the weights of the compared segments (`compared_segments`).
        """
        segments = list(chain.from_iterable(completion.parts for completion in batch))
        sizes = torch.tensor([len(completion.parts) for completion in batch], dtype=torch.int64)
        advantages, trained = weighed.advantages, weighed.trained
        if self.turns.credit == "equal":
            advantages, trained = advantages.repeat_interleave(sizes), trained.repeat_interleave(sizes)
        spread = replace(weighed, advantages=advantages, trained=trained)
        if self.turns.count == "segments":
            return segments, spread
        tokens = torch.tensor([float(completion.segment.sampled_tokens) for completion in batch])
        return segments, replace(spread, episode_tokens=tokens.repeat_interleave(sizes), episodes=len(batch))

    def _play(
        self, rows: Sequence[Row], groups: Sequence[int], size: int, step: int, sampling: SamplingParams
    ) -> list[StepCompletion]:
        episodes: Sequence[Episode] = [
            Episode(row, group, index) for row, group in zip(rows, groups, strict=True) for index in range(size)
        ]
        alone = nullcontext() if isinstance(self.runner, SamplerPool) else interruptible()
        with alone, engine_deaths_reported(step):
            episodes = self.runner.run(episodes, sampling, (self.config.seed, step), self.rollout.version)
        return self._judge(episodes, step, sampling.temperature, self.runner.faults, self.runner.waited_share)

    def _judge(
        self, episodes: Sequence[Episode], step: int, temperature: float, faults: EnvironmentFaults, waited_share: float
    ) -> list[StepCompletion]:
        self._keep_examples(episodes, step)
        self.metrics.append(episode_metrics(episodes, faults, waited_share))
        if faults.close_errors and not self.has_named_close_error:
            self.has_named_close_error = True
            _LOG.warning("An environment could not be closed (row %s)", faults.first_close_error)
        with interruptible():
            return score_episodes(episodes, self.scorer, self.turns, temperature)

    def _keep_examples(self, episodes: Sequence[Episode], step: int) -> None:
        """Append examples of turns whose text the tokenizer encodes into other tokens than the sampled ones.

        Only rank 0 writes, so that a resumed run can cut the file.
        """
        if rank() != 0:
            return
        drifts = [(episode, drift) for episode in episodes if episode.dialogue for drift in episode.dialogue.drifts]
        if not drifts:
            return
        tokenizer = self.template.tokenizer
        with (self.out_dir / DRIFT_FILE).open("a", encoding="utf-8") as file:
            for episode, drift in drifts[:EXAMPLES]:
                example = {
                    "step": step,
                    "id": episode.row["id"],
                    "turn": drift.turn,
                    "sampled": tokenizer.convert_ids_to_tokens(list(drift.held)),
                    "rendered": tokenizer.convert_ids_to_tokens(list(drift.rendered)),
                }
                file.write(json.dumps(example) + "\n")

    def restore(self, state: Mapping[str, Any]) -> None:
        """Remove the examples that the resumed run will write again."""
        path = self.out_dir / DRIFT_FILE
        if rank() != 0 or not path.exists():
            return
        # The step of an evaluation is negative: -1 minus the version of the weights.
        first, last = state["feed"]["step"], -state["weights_version"]
        kept = [record for record in read_whole_lines(path) if last <= record["step"] < first]
        write_whole(path, "".join(json.dumps(record) + "\n" for record in kept).encode())


def make_dialogue_groups(plain: SampledGroups, turns: TurnsConfig, out_dir: Path) -> DialogueGroups:
    """Return the source of a training's groups of episodes, with the settings of `plain`.

    Raises ConfigError if the environment cannot be created.
    """
    encoder, engine = plain.rollout.encoder, plain.rollout.engine
    streaming = cast("Engine", engine)
    runner = make_runner(streaming, encoder.tokenizer, encoder.stop_token_ids, plain.config.chat.system, turns)
    # Samplers in the background play episodes themselves.
    played_by = engine if isinstance(engine, SamplerPool) else runner
    same = {each.name: getattr(plain, each.name) for each in fields(plain) if each.init and each.name != "template"}
    return DialogueGroups(**same, template=runner.template, turns=turns, runner=played_by, out_dir=out_dir)


MISTAKES = {Ending.DEADLINE: Reason.TIMEOUT, Ending.REPLY: Reason.LIMIT, Ending.ERROR: Reason.VERIFIER_ERROR}
"""Endings that are faults of the environment -> the reason of the verdict. Such episodes are not judged."""


def score_episodes(
    episodes: Sequence[Episode], scorer: CompletionScorer, turns: TurnsConfig, temperature: float
) -> list[StepCompletion]:
    """Return a judged completion for each episode, with its segments as `parts`.

    An episode that ran out of turns or of context is scored 0. If the environment gave no score, the row's verifier
    judges the last turn.
    """
    unscored = [episode for episode in episodes if episode.ending is Ending.DONE and episode.score is None]
    lasts = [[episode.last] if episode.last is not None else [] for episode in unscored]
    judged = iter(scorer.score([episode.row for episode in unscored], lasts))
    verdicts = {id(episode): next(judged).correct for episode in unscored if episode.last is not None}
    return [_completion(episode, verdicts.get(id(episode)), scorer.config, turns, temperature) for episode in episodes]


def _completion(
    episode: Episode, verdict: Verdict | None, reward: RewardConfig, turns: TurnsConfig, temperature: float
) -> StepCompletion:
    verdict = _verdict(episode) if verdict is None else verdict
    # With turns, correctness is the only term of the reward (`GrpoConfig`).
    score = compose_score(reward.composition, (verdict,), reward.clip)
    total = score.reward.value
    segments = [] if episode.dialogue is None else [held.to_segment(temperature) for held in episode.dialogue.segments]
    parts = [
        replace(segment, reward=total, right=verdict.passed, group=episode.group)
        for segment in segments
        if segment.output_ids
    ]
    if turns.credit != "equal":
        earned = turn_rewards(episode, total, turns)
        parts = [replace(part, reward=earned[part.turn]) for part in parts]
        judged = [reward for reward in earned if reward is not None]
        if judged:
            total = judged[0] if turns.credit == "discounted" else sum(judged)
    whole = replace(_whole(parts, episode, temperature), reward=total, right=verdict.passed, group=episode.group)
    assert episode.ending is not None
    return StepCompletion(episode.row, whole, score, parts=tuple(parts), ending=episode.ending.value)


def _verdict(episode: Episode) -> Verdict:
    """Return the verdict that follows from an episode's ending and the environment's score."""
    ending = episode.ending
    evidence: dict[str, Any] = {"ending": str(ending), "turns": episode.turns}
    if ending in MISTAKES:
        return Verdict(None, MISTAKES[ending], None, {**evidence, "error": episode.error})
    if ending is not Ending.DONE or episode.score is None:
        return Verdict(0.0, Reason.NO_ANSWER, None, evidence)
    reason = {1.0: Reason.MATCH, 0.0: Reason.MISMATCH}.get(float(episode.score), Reason.PARTIAL)
    return Verdict(float(episode.score), reason, None, evidence)


def _whole(parts: Sequence[Segment], episode: Episode, temperature: float) -> Segment:
    """Return all tokens that the policy sampled in an episode, as one segment."""
    policy_tokens: list[tuple[int, float]] = []
    for part in parts:
        sampled = part.sampled or (True,) * len(part.output_ids)
        triples = zip(part.output_ids, part.rollout_logprobs, sampled, strict=True)
        policy_tokens += [(token, logprob) for token, logprob, is_sampled in triples if is_sampled]
    ends_cut = episode.last is not None and episode.last.finish_reason == "length"
    is_cut = episode.ending is Ending.ROOM or (episode.ending in (None, Ending.DONE) and ends_cut)
    return Segment(
        parts[0].prompt_ids if parts else (),
        tuple(token for token, _ in policy_tokens),
        tuple(logprob for _, logprob in policy_tokens),
        version=min((part.version for part in parts), default=0),
        temperature=temperature,
        truncated=is_cut,
    )


def turn_rewards(episode: Episode, final: float | None, config: TurnsConfig) -> list[float | None]:
    """Return the reward of each turn, or None for all turns if the episode could not be judged.

    final: the reward of the episode, which is added to the last turn's score.
    """
    if final is None:
        return [None] * episode.turns
    earned = [score or 0.0 for score in episode.turn_scores]
    earned += [0.0] * (episode.turns - len(earned))
    earned[-1:] = [value + final for value in earned[-1:]]
    if config.credit == "turn":
        return list(earned)
    later = 0.0
    rewards: list[float | None] = []
    for value in reversed(earned):
        later = value + config.discount * later
        rewards.append(later)
    return rewards[::-1]


def episode_metrics(
    episodes: Sequence[Episode], faults: EnvironmentFaults, waited_share: float = 0.0
) -> dict[str, float]:
    """Return the metrics of one rank's episodes: endings, lengths, faults, and breaks of the token sequence.

    A break is a turn for which the template or tokenizer renders the earlier turns differently from the sampled tokens.
    """
    if not episodes:
        return {}
    count = len(episodes)
    endings = Counter(episode.ending for episode in episodes)
    dialogues = [episode.dialogue for episode in episodes if episode.dialogue is not None]
    breaks = Counter(reason for dialogue in dialogues for reason in dialogue.breaks)
    turns = sum(dialogue.turns for dialogue in dialogues)
    # Steps of mock environments with a recorded answer, and without one.
    steps = {name: sum(episode.step_counts.get(name, 0) for episode in episodes) for name in ("recorded", "missed")}
    answered = sum(steps.values())
    return {
        **({"mock_real_steps": steps["recorded"] / answered} if answered else {}),
        **{f"ending/{ending.value}": endings[ending] / count for ending in Ending},
        "turns": turns / count,
        "segments": sum(len(dialogue.segments) for dialogue in dialogues) / count,
        **{f"{reason}_turns": breaks[reason] / max(turns, 1) for reason in ("edited", "escaped", "drifted")},
        "escaped_messages": sum(episode.escaped for episode in episodes) / count,
        "lost_threads": float(faults.lost_threads),
        "close_errors": float(faults.close_errors),
        "environment_wait": waited_share,
    }
