"""Self-distillation: the teacher is the policy itself with another right completion of the group in its prompt.

    a group of 4 completions, of which 1 and 2 are right
    completion                             0   1   2   3
    shown in the prompt of its teacher     1   2   1   1

The divergence of the policy from the teacher is added to the loss at each token (`objective.self_distillation`). So the
policy also learns which tokens of a wrong completion were wrong.
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
    """Return the teacher's segment for each completion: the same output after a prompt with another right completion.

    It is None if no other completion of the group is right, or if the teacher's prompt and output have more than
    `longest` tokens. completions: whole groups. template: the teacher's prompt, with {prompt} and {solution}.
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
    """Return the next position in `right` after `position`, else the first one before it, or None if there is none."""
    later = [other for other in right if other > position]
    earlier = [other for other in right if other < position]
    return next(iter([*later, *earlier]), None)
