"""Learning from right completions of the same problem: by self-distillation, or from completions that `synth` made.

In self-distillation the teacher is the policy itself, with another right completion of the group in its prompt:

    a group of 4 completions, of which 1 and 2 are right
    completion                             0   1   2   3
    shown in the prompt of its teacher     1   2   1   1

The divergence of the policy from the teacher is added to the loss at each token (`objective.self_distillation`). So the
policy also learns which tokens of a completion were wrong.

Distilled positives (right completions made by the stage `synth`) are off-policy members of groups. Example: a group of
8 sampled completions, all wrong, and one distilled positive of its row.

    mean and standard deviation of the 8 rewards are 0   the 8 have advantage 0, the positive has max_advantage
    the row's expected pass rate is .02                  this advantage is multiplied by strength (1 - .02 / zero_at)

Mean and standard deviation are taken over the sampled members alone (LUFFY, arXiv 2504.14945). The positive would give
the samples of a group that is all wrong negative advantages, although the policy did not sample it. The factor (lambda)
falls to 0 as the row's expected pass rate rises to `zero_at`. A policy that passes can learn from its own samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev

import torch
from torch import Tensor

from truegold.pipeline.engines.chat import PromptEncoder, encode_row
from truegold.pipeline.tables.rows import Row, RowKey, context_of, row_key
from truegold.train.config.objective import DistilledConfig, ObjectiveConfig
from truegold.train.grpo.batch_metrics import group_completions
from truegold.train.grpo.groups import StepCompletion
from truegold.train.grpo.update import WeighedBatch
from truegold.train.model.segment import DistilledPositive, Segment, read_distilled


def self_teachers(
    completions: Sequence[StepCompletion], encoder: PromptEncoder, template: str, longest: int
) -> list[Segment | None]:
    """Return the teacher's segment for each completion: the same output after a prompt with another right completion.

    A teacher is None if no other completion of the group is right, or if its prompt and output have more than `longest`
    tokens. completions: whole groups. template: the teacher's prompt, with {prompt} and {solution}.
    """
    teachers: dict[int, Segment] = {}
    for group in group_completions(completions):
        right = [position for position, member in enumerate(group) if member.segment.right]
        prompts: dict[int, tuple[int, ...]] = {}
        """The teacher's prompts, by the position of the shown completion."""
        for position, member in enumerate(group):
            shown = _other_right(right, position)
            if shown is None:
                continue
            if shown not in prompts:
                solution = encoder.decode(group[shown].segment.output_ids)
                question = template.replace("{prompt}", member.row["prompt"]).replace("{solution}", solution)
                prompts[shown] = tuple(encoder.encode(question, context_of(member.row)))
            teacher = replace(member.segment, prompt_ids=prompts[shown])
            if teacher.length <= longest:
                teachers[id(member)] = teacher
    return [teachers.get(id(completion)) for completion in completions]


def _other_right(right: Sequence[int], position: int) -> int | None:
    """Return the next position in `right` after `position`. After the last one, return the first. None if there is no
    other."""
    later = [other for other in right if other > position]
    earlier = [other for other in right if other < position]
    return next(iter([*later, *earlier]), None)


SPREAD_FLOOR = 1e-4
"""Added to the standard deviation of a group, as in GRPO."""


@dataclass(frozen=True)
class Member:
    """A distilled positive that joins a group."""

    segment: Segment
    advantage: float
    """The advantage over the group's sampled members (`relative_advantage`), times lambda and the positive's trust."""


class Distilled:
    """The distilled positives of all rows, from which each step's groups get members."""

    def __init__(self, positives: Sequence[DistilledPositive], config: DistilledConfig) -> None:
        self._config = config
        self._by_row: dict[RowKey, list[DistilledPositive]] = {}
        for positive in positives:
            self._by_row.setdefault(positive.key, []).append(positive)

    def members(
        self, completions: Sequence[StepCompletion], pass_rates: Mapping[int, float], step: int
    ) -> list[Member]:
        """Return the positives that join the groups of these completions, with their advantages.

        completions: whole groups. pass_rates: the expected pass rates of their rows, by group.
        """
        members = []
        for group in group_completions(completions):
            positives = self._by_row.get(row_key(group[0].row))
            if positives is None:
                continue
            index = group[0].segment.group
            strength = self.strength(pass_rates[index])
            advantage = relative_advantage([done.segment for done in group], self._config.max_advantage)
            if not strength or not advantage:
                continue
            # The positives of a row take turns: step 0 begins with the first one, step 1 with the second.
            for turn in range(min(self._config.per_group, len(positives))):
                positive = positives[(step + turn) % len(positives)]
                segment = replace(positive.segment, group=index)
                members.append(Member(segment, strength * positive.trust * advantage))
        return members

    def strength(self, pass_rate: float) -> float:
        """Return lambda for a row with this expected pass rate."""
        return self._config.strength * max(0.0, 1 - pass_rate / self._config.zero_at)


def relative_advantage(sampled: Sequence[Segment], max_advantage: float) -> float:
    """Return the advantage of a right completion over a group's sampled ones, at most `max_advantage`.

    It is (1 - mean) / (std + 1e-4). Mean and standard deviation are over the judged members: 1 for right, 0 for wrong.
    Returns 0 if no member was judged.
    """
    right = [float(segment.right) for segment in sampled if segment.reward is not None]
    if not right:
        return 0.0
    spread = stdev(right) if len(right) > 1 else 0.0
    return min((1 - fmean(right)) / (spread + SPREAD_FLOOR), max_advantage)


def load_distilled(
    path: Path | None, encoder: PromptEncoder, rows: Sequence[Row], objective: ObjectiveConfig
) -> tuple[Distilled | None, dict[str, int]]:
    """Return the positives of the training rows, and the number of skipped positives by reason.

    Positives of other rows are skipped. A positive whose prompt has other token ids than the row's was made with
    another chat template, and is skipped, too. Returns None without a table (`path`).
    """
    if path is None:
        return None, {}
    prompts = {row_key(row): encode_row(encoder, row) for row in rows}
    kept: list[DistilledPositive] = []
    skipped: Counter[str] = Counter()
    for positive in read_distilled(path):
        prompt = prompts.get(positive.key)
        if prompt is None:
            skipped["skip:distilled_of_no_row"] += 1
        elif tuple(prompt) != positive.segment.prompt_ids:
            skipped["skip:distilled_other_prompt"] += 1
        else:
            kept.append(positive)
    return Distilled(kept, objective.distilled), dict(skipped)


def join(
    segments: Sequence[Segment], weighed: WeighedBatch, members: Sequence[Member]
) -> tuple[list[Segment], WeighedBatch]:
    """Return a batch with the positives appended. The advantages of the sampled segments do not change.

    Each positive counts as one sequence, even if the sampled segments are parts of episodes.
    """
    joined = torch.arange(len(segments) + len(members)) >= len(segments)
    advantages: Tensor = torch.cat([weighed.advantages, torch.tensor([member.advantage for member in members])])
    trained = torch.cat([weighed.trained, torch.ones(len(members), dtype=torch.bool)])
    batch = replace(weighed, advantages=advantages, trained=trained, distilled=joined)
    if weighed.episode_tokens is not None:
        tokens = torch.tensor([float(member.segment.sampled_tokens) for member in members])
        batch = replace(batch, episode_tokens=torch.cat([weighed.episode_tokens, tokens]))
    return [*segments, *(member.segment for member in members)], batch
