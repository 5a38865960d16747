"""The one training record, and batches of it.

Token ids are kept as they were sampled; nothing is decoded and encoded again. Masks come from lengths, never from token
values: a pad token that is also the end-of-sequence token must not drop the end from the loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

Origin = Literal["policy", "reflection", "human", "replay"]
"""Where a completion comes from: the policy in training, its own reflection, a person, an earlier step."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One completion to train on, with the prompt it answers: a whole answer, or one turn of a dialogue.

    rollout_logprobs: of output_ids, under the policy at `version` and `temperature`; empty for text no policy sampled.
    reward: None where it could not be judged. reward_terms: what each term added to it, by name. group: completions of
    one prompt share it. turn: from 0. truncated: cut at max_tokens.
    """

    prompt_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    rollout_logprobs: tuple[float, ...] = ()
    version: int = 0
    temperature: float = 1.0
    origin: Origin = "policy"
    reward: float | None = None
    reward_terms: Mapping[str, float | None] = field(default_factory=dict)
    group: int = 0
    turn: int = 0
    truncated: bool = False

    @property
    def length(self) -> int:
        return len(self.prompt_ids) + len(self.output_ids)


@dataclass(frozen=True)
class Batch:
    """Right-padded segments.

    input_ids, attention_mask: [B, L] int64. prompt_lengths: [B] int64. mask: [B, T] float32, 1 on output tokens;
    targets: [B, T] int64, the output tokens; rollout: [B, T] float32, their rollout log-probs (0 where there are none).
    temperature: [B] float32, each segment's own.
    """

    input_ids: Tensor
    attention_mask: Tensor
    prompt_lengths: Tensor
    targets: Tensor
    mask: Tensor
    rollout: Tensor
    temperature: Tensor

    def to(self, device: torch.device) -> Batch:
        return Batch(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))


def collate(segments: Sequence[Segment], pad_id: int) -> Batch:
    """Pad segments on the right into one batch."""
    rows = len(segments)
    length = max(segment.length for segment in segments)
    outputs = max(len(segment.output_ids) for segment in segments)
    input_ids = torch.full((rows, length), pad_id, dtype=torch.int64)
    attention_mask = torch.zeros((rows, length), dtype=torch.int64)
    targets = torch.zeros((rows, outputs), dtype=torch.int64)
    mask = torch.zeros((rows, outputs))
    rollout = torch.zeros((rows, outputs))
    for place, segment in enumerate(segments):
        ids = torch.tensor(segment.prompt_ids + segment.output_ids)
        size = len(segment.output_ids)
        input_ids[place, : len(ids)] = ids
        attention_mask[place, : len(ids)] = 1
        targets[place, :size] = ids[len(segment.prompt_ids) :]
        mask[place, :size] = 1.0
        if segment.rollout_logprobs:
            rollout[place, :size] = torch.tensor(segment.rollout_logprobs)
    prompt_lengths = torch.tensor([len(segment.prompt_ids) for segment in segments])
    temperature = torch.tensor([segment.temperature for segment in segments])
    return Batch(input_ids, attention_mask, prompt_lengths, targets, mask, rollout, temperature)


def micro_batches(segments: Sequence[Segment], tokens: int) -> Iterator[list[int]]:
    """Indices of segments in micro-batches of at most `tokens` tokens, padding included, longest first so that
    little is padded. A single segment longer than that stands alone."""
    order = sorted(range(len(segments)), key=lambda index: -segments[index].length)
    current: list[int] = []
    for index in order:
        if current and segments[current[0]].length * (len(current) + 1) > tokens:
            yield current
            current = []
        current.append(index)
    if current:
        yield current
