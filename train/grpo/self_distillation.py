"""Self-distillation: the policy that is shown another right completion of the group is its own teacher.

    a group of 4, the second and the third right
    completion   0   1   2   3
    is shown     1   2   1   1

How far the policy is from that teacher is added to the loss (`objective.self_distillation`), token by token, so that
also within a wrong completion it learns where it went wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.tables.rows import context_of
from truegold.train.grpo.batch_metrics import group_completions
from truegold.train.grpo.groups import StepCompletion
from truegold.train.model.segment import Segment


def self_teachers(
    completions: Sequence[StepCompletion], encoder: PromptEncoder, template: str, longest: int
) -> list[Segment | None]:
    """Return a teacher of each completion, in order: the same output after a prompt that shows another right one.

    None if no other completion of the group is right, and where the teacher's prompt and output have more than
    `longest` tokens. template: the teacher's prompt, with {prompt} and {solution}. The completions of a group are on
    one rank.
    """
    teachers: dict[int, Segment] = {}
    for group in group_completions(completions):
        right = [position for position, member in enumerate(group) if member.segment.right]
        prompts: dict[int, tuple[int, ...]] = {}
        """By the position of the completion that is shown."""
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
    """Return the next right position after a completion's own, else the first one before it, or None if it is alone."""
    later = [other for other in right if other > position]
    earlier = [other for other in right if other < position]
    return next(iter([*later, *earlier]), None)
