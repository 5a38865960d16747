"""From finished episodes to what is trained on: their verdicts, the segments of their turns, and whose reward is whose.

credit        segments                        reward of a segment                   compared with
equal         as few as the template allows   the episode's                         the group's episodes
turn          one a turn                      the turn's; the last one's also the   the same turn of the group's
                                              episode's                             episodes
discounted    one a turn                      that, and discount^k of the turn      the same turn of the group's
                                              k turns later, added up               episodes
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import torch

from truegold.pipeline.engines.base import Completion
from truegold.train.config.reward import RewardConfig
from truegold.train.config.turns import TurnsConfig
from truegold.train.grpo.group_choice import score_group
from truegold.train.grpo.rewards import CompletionScore, CompletionScorer, StepCompletion
from truegold.train.grpo.update import WeighedBatch
from truegold.train.model.segment import Segment
from truegold.train.turns.episodes import FAILURES, Ending, EnvironmentFaults, Episode
from truegold.verifiers import Reason, Verdict, compose

MISTAKES = {Ending.DEADLINE: Reason.TIMEOUT, Ending.REPLY: Reason.LIMIT, Ending.ERROR: Reason.VERIFIER_ERROR}
"""Why an episode that its environment has spoilt could not be judged."""


def score_episodes(
    episodes: Sequence[Episode], scorer: CompletionScorer, turns: TurnsConfig, temperature: float
) -> list[StepCompletion]:
    """Return a completion for each episode, judged, with its segments as `parts`.

    An episode that ran out of turns or room has earned 0. Where an environment has no score, the row's verifier judges
    the last turn.
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
    # With turns there is no other term than correctness (`GrpoConfig`).
    composed = compose(reward.composition, (verdict,), reward.clip)
    segments = [] if episode.dialogue is None else [held.to_segment(temperature) for held in episode.dialogue.segments]
    parts = [
        replace(segment, reward=composed.value, right=verdict.passed, group=episode.group)
        for segment in segments
        if segment.output_ids
    ]
    total = composed.value
    if turns.credit != "equal":
        earned = turn_rewards(episode, composed.value, turns)
        parts = [replace(part, reward=earned[part.turn]) for part in parts]
        judged = [reward for reward in earned if reward is not None]
        if judged:
            total = judged[0] if turns.credit == "discounted" else sum(judged)
    whole = replace(_whole(parts, episode, temperature), reward=total, right=verdict.passed, group=episode.group)
    assert episode.ending is not None
    score = CompletionScore(composed, (verdict,), verdict)
    return StepCompletion(episode.row, whole, score, parts=tuple(parts), ending=episode.ending.value)


def _verdict(episode: Episode) -> Verdict:
    """Return the verdict that the end of an episode is."""
    ending = episode.ending
    evidence: dict[str, Any] = {"ending": str(ending), "turns": episode.turns}
    if ending in FAILURES:
        assert ending is not None
        return Verdict(None, MISTAKES[ending], None, {**evidence, "error": episode.error})
    if ending is not Ending.DONE or episode.score is None:
        return Verdict(0.0, Reason.NO_ANSWER, None, evidence)
    reason = {1.0: Reason.MATCH, 0.0: Reason.MISMATCH}.get(float(episode.score), Reason.PARTIAL)
    return Verdict(float(episode.score), reason, None, evidence)


def _whole(parts: Sequence[Segment], episode: Episode, temperature: float) -> Segment:
    """Return all that the policy has sampled in an episode as if it were one completion."""
    policy_tokens: list[tuple[int, float]] = []
    for part in parts:
        sampled = part.sampled or (True,) * len(part.output_ids)
        triples = zip(part.output_ids, part.rollout_logprobs, sampled, strict=True)
        policy_tokens += [(token, logprob) for token, logprob, is_sampled in triples if is_sampled]
    is_cut = episode.ending is Ending.ROOM or (episode.ending in (None, Ending.DONE) and _ends_cut(episode.last))
    return Segment(
        parts[0].prompt_ids if parts else (),
        tuple(token for token, _ in policy_tokens),
        tuple(logprob for _, logprob in policy_tokens),
        version=min((part.version for part in parts), default=0),
        temperature=temperature,
        truncated=is_cut,
    )


def _ends_cut(last: Completion | None) -> bool:
    return last is not None and last.finish_reason == "length"


def turn_rewards(episode: Episode, final: float | None, config: TurnsConfig) -> list[float | None]:
    """Return the reward of each turn, all None where the episode could not be judged."""
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


def segments_to_weigh(batch: Sequence[StepCompletion], config: TurnsConfig) -> tuple[list[Segment], list[int]]:
    """Return the segments whose rewards are compared, and how many of them each completion has.

    With the credit `equal` that is one for each episode, else one for each turn: those of one number are a group.
    """
    if config.credit == "equal":
        return [completion.segment for completion in batch], [1] * len(batch)
    segments = [replace(part, group=part.group * config.max_turns + part.turn) for each in batch for part in each.parts]
    return segments, [len(completion.parts) for completion in batch]


def any_turn_teaches(members: Sequence[StepCompletion], config: TurnsConfig, kind: str, k: int) -> bool:
    """Return whether the segments of any turn of a group's episodes have advantages of `kind` against each other."""
    turns: dict[int, list[Segment]] = {}
    for segment in segments_to_weigh(members, config)[0]:
        turns.setdefault(segment.group, []).append(segment)
    for segments in turns.values():
        judged = [(segment.reward, segment.right) for segment in segments if segment.reward is not None]
        rewards, right = [reward for reward, _ in judged], [is_right for _, is_right in judged]
        if score_group(rewards, right, kind, k).teaches:
            return True
    return False


def spread_advantages(
    batch: Sequence[StepCompletion], weighed: WeighedBatch, config: TurnsConfig
) -> tuple[list[Segment], WeighedBatch]:
    """Return all segments of a batch's episodes, and what each weighs: by what `segments_to_weigh` was weighed as."""
    segments = list(chain.from_iterable(completion.parts for completion in batch))
    sizes = torch.tensor([len(completion.parts) for completion in batch], dtype=torch.int64)
    advantages, trained = weighed.advantages, weighed.trained
    if config.credit == "equal":
        advantages, trained = advantages.repeat_interleave(sizes), trained.repeat_interleave(sizes)
    spread = replace(weighed, advantages=advantages, trained=trained)
    if config.count == "segments":
        return segments, spread
    tokens = torch.tensor([float(completion.segment.sampled_tokens) for completion in batch])
    return segments, replace(spread, episode_tokens=tokens.repeat_interleave(sizes), episodes=len(batch))


def episode_metrics(
    episodes: Sequence[Episode], faults: EnvironmentFaults, waited_share: float = 0.0
) -> dict[str, float]:
    """Return what is measured of the episodes of one rank: how they end, how long they are, and what the template and
    the tokenizer do to their past."""
    if not episodes:
        return {}
    count = len(episodes)
    endings = Counter(episode.ending for episode in episodes)
    dialogues = [episode.dialogue for episode in episodes if episode.dialogue is not None]
    breaks = Counter(reason for dialogue in dialogues for reason in dialogue.breaks)
    turns = sum(dialogue.turns for dialogue in dialogues)
    return {
        **_mock_metrics(episodes),
        **{f"ending/{ending.value}": endings[ending] / count for ending in Ending},
        "turns": turns / count,
        "segments": sum(len(dialogue.segments) for dialogue in dialogues) / count,
        "edited_turns": breaks["edited"] / max(turns, 1),
        "escaped_turns": breaks["escaped"] / max(turns, 1),
        "drifted_turns": breaks["drifted"] / max(turns, 1),
        "escaped_messages": sum(episode.escaped for episode in episodes) / count,
        "lost_threads": float(faults.lost_threads),
        "close_errors": float(faults.close_errors),
        "environment_wait": waited_share,
    }


def _mock_metrics(episodes: Sequence[Episode]) -> dict[str, float]:
    """Return the share of steps that recorded environments answered as it was recorded; nothing of other ones."""
    steps: Counter[str] = Counter()
    for episode in episodes:
        steps.update(episode.step_counts)
    answered = steps["recorded"] + steps["missed"]
    return {"mock_real_steps": steps["recorded"] / answered} if answered else {}
