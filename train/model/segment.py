"""The one training record, and batches of it.

Token ids are kept as they were sampled; nothing is decoded and encoded again. Masks come from lengths, never from token
values: a pad token that is also the end-of-sequence token must not drop the end from the loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

Origin = Literal["policy", "reflection", "human", "replay"]
"""Where a completion comes from: the policy in training, its own reflection, a person, an earlier step."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One completion to train on, with the prompt it answers: a whole answer, or one turn of a dialogue.

    rollout_logprobs: of output_ids, under the policy at `version` and `temperature`; empty for text no policy sampled.
    reward: None where it could not be judged. reward_terms: what each term added to it, by name. right: passed its
    verifier. group: completions of one prompt share it. turn: from 0. truncated: cut at max_tokens.
    """

    prompt_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    rollout_logprobs: tuple[float, ...] = ()
    version: int = 0
    temperature: float = 1.0
    origin: Origin = "policy"
    reward: float | None = None
    reward_terms: Mapping[str, float | None] = field(default_factory=dict)
    right: bool = False
    group: int = 0
    turn: int = 0
    truncated: bool = False

    @property
    def length(self) -> int:
        return len(self.prompt_ids) + len(self.output_ids)


@dataclass(frozen=True)
class Prefix:
    """Q prompts that segments share, right-padded. input_ids, attention_mask: [Q, P] int64. of: [B] int64, each
    segment's prompt."""

    input_ids: Tensor
    attention_mask: Tensor
    of: Tensor

    def to(self, device: torch.device) -> Prefix:
        return Prefix(self.input_ids.to(device), self.attention_mask.to(device), self.of.to(device))


@dataclass(frozen=True)
class Batch:
    """B segments in R right-padded rows of L tokens: one a row, or packed.

    input_ids: [R, L] int64. attention_mask: [R, L] int64, None where packed. position_ids: [R, L] int64, from 0 for
    each segment of a row, which is how the model tells them apart; None where not packed. rows, starts: [B] int64,
    where each segment lies. prompt_lengths: [B] int64. targets: [B, T] int64, the output tokens; mask: [B, T] float32,
    1 on them; rollout: [B, T] float32, their rollout log-probs (0 where there are none). temperature: [B] float32, each
    segment's own.

    With a prefix the prompts are in there, and rows hold output tokens alone, one segment each: attention_mask is
    [R, P + L], and position_ids go on from the prompt.
    """

    input_ids: Tensor
    attention_mask: Tensor | None
    position_ids: Tensor | None
    rows: Tensor
    starts: Tensor
    prompt_lengths: Tensor
    targets: Tensor
    mask: Tensor
    rollout: Tensor
    temperature: Tensor
    prefix: Prefix | None = None

    def to(self, device: torch.device) -> Batch:
        tensors = {name: value.to(device) for name, value in vars(self).items() if value is not None}
        return replace(self, **tensors)


def collate(layout: Sequence[Sequence[Segment]], pad_id: int) -> Batch:
    """Rows of segments as one batch, in their order, padded on the right."""
    segments = [segment for row in layout for segment in row]
    packed = len(segments) > len(layout)
    shape = (len(layout), max(sum(segment.length for segment in row) for row in layout))
    input_ids = torch.full(shape, pad_id, dtype=torch.int64)
    position_ids, attention_mask = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape, dtype=torch.int64)
    places = []
    for row, members in enumerate(layout):
        start = 0
        for segment in members:
            end = start + segment.length
            input_ids[row, start:end] = torch.tensor(segment.prompt_ids + segment.output_ids)
            position_ids[row, start:end] = torch.arange(segment.length)
            places.append((row, start))
            start = end
        attention_mask[row, :start] = 1
        position_ids[row, start:] = torch.arange(shape[1] - start)
    targets, mask, rollout = output_tensors(segments)
    rows, starts = torch.tensor(places).unbind(1)
    return Batch(
        input_ids,
        None if packed else attention_mask,
        position_ids if packed else None,
        rows,
        starts,
        torch.tensor([len(segment.prompt_ids) for segment in segments]),
        targets,
        mask,
        rollout,
        torch.tensor([segment.temperature for segment in segments]),
    )


def output_tensors(segments: Sequence[Segment]) -> tuple[Tensor, Tensor, Tensor]:
    """A batch's targets, mask and rollout, each [B, T]."""
    shape = (len(segments), max(len(segment.output_ids) for segment in segments))
    targets, mask, rollout = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape), torch.zeros(shape)
    for place, segment in enumerate(segments):
        size = len(segment.output_ids)
        targets[place, :size] = torch.tensor(segment.output_ids)
        mask[place, :size] = 1.0
        if segment.rollout_logprobs:
            rollout[place, :size] = torch.tensor(segment.rollout_logprobs)
    return targets, mask, rollout


def micro_batches(segments: Sequence[Segment], tokens: int, packed: bool = False) -> Iterator[list[list[int]]]:
    """Micro-batches of at most `tokens` tokens, padding included, as rows of indices of segments; one to a row, or
    packed to the length of the longest. Longest first, so that little is padded. A single segment longer than `tokens`
    stands alone."""
    order = sorted(range(len(segments)), key=lambda index: -segments[index].length)
    rows: list[list[int]] = []
    free: list[int] = []
    for index in order:
        length = segments[index].length
        row = next((place for place, room in enumerate(free) if packed and length <= room), None)
        if row is not None:
            rows[row].append(index)
            free[row] -= length
            continue
        if rows and segments[rows[0][0]].length * (len(rows) + 1) > tokens:
            yield rows
            rows, free = [], []
        rows.append([index])
        free.append(segments[rows[0][0]].length - length)
    if rows:
        yield rows
