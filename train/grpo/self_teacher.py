"""The policy as its own teacher: the same completions behind a prompt that shows another one which is right.

    a group of 4, the second and the third right
    completion 0 is judged by the policy that sees completion 1, completion 1 by the one that sees 2, 2 by 1, 3 by 1

How far the policy is from that teacher is added to the loss (`objective.self_distillation`), token by token, so that
also within a wrong completion it is told where it went wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from truegold.pipeline.engines.chat import PromptEncoder
from truegold.train.grpo.batch_metrics import group_completions
from truegold.train.grpo.rewards import StepCompletion
from truegold.train.model.segment import Segment


def self_teachers(
    completions: Sequence[StepCompletion], encoder: PromptEncoder, template: str, longest: int
) -> list[Segment | None]:
    """Return for each completion the same output behind the teacher's prompt, in order.

    It is None where no other completion of the group is right, and where prompt and output would have more than
    `longest` tokens. The completions of a group are on one rank.
    """
    teachers: dict[int, Segment] = {}
    for group in group_completions(completions):
        right = [member for member in group if member.segment.right]
        prompts: dict[int, tuple[int, ...]] = {}
        for position, member in enumerate(group):
            shown = next((other for other in right if group.index(other) > position), None)
            shown = shown or next((other for other in right if other is not member), None)
            if shown is None:
                continue
            if id(shown) not in prompts:
                solution = encoder.decode(shown.segment.output_ids)
                question = template.replace("{prompt}", member.row["prompt"]).replace("{solution}", solution)
                prompts[id(shown)] = tuple(encoder.encode(question))
            teacher = replace(member.segment, prompt_ids=prompts[id(shown)])
            if teacher.length <= longest:
                teachers[id(member)] = teacher
    return [teachers.get(id(completion)) for completion in completions]
