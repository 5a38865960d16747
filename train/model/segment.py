"""The training record, and batches of it.

Token ids are kept as they were sampled; nothing is decoded and encoded again. Masks come from lengths, never from token
values: a pad token that is also the end-of-sequence token must not drop the end from the loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

Origin = Literal["policy", "reflection", "human", "replay"]
"""Where a completion comes from: the policy in training, its own reflection, a person, an earlier step."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One completion to train on, with the prompt it answers: a whole answer, or one turn of a dialogue."""

    prompt_ids: tuple[int, ...]
    """The tokens of the prompt."""
    output_ids: tuple[int, ...]
    """The tokens of the completion, and in a dialogue what stands between the completions of its turns."""
    rollout_logprobs: tuple[float, ...] = ()
    """Of output_ids, under the policy at `version` and `temperature`; empty for text that no policy sampled, 0 where
    the policy did not sample a token."""
    sampled: tuple[bool, ...] = ()
    """Which of output_ids are the policy's own; empty where all are."""
    version: int = 0
    """The version of the weights that sampled it; the oldest, where there are several."""
    temperature: float = 1.0
    """The temperature at which it was sampled."""
    origin: Origin = "policy"
    reward: float | None = None
    """None where it could not be judged."""
    right: bool = False
    """Whether it passed its verifier."""
    group: int = 0
    """Completions of one prompt share it."""
    turn: int = 0
    """The turn of a dialogue that it begins with, from 0."""
    truncated: bool = False
    """Whether it was cut at max_tokens."""
    versions: tuple[tuple[int, int], ...] = ()
    """Where weights arrived while it was being sampled: version and number of tokens of each stretch of what is the
    policy's own, in order."""

    @property
    def length(self) -> int:
        """Tokens of the prompt and the output together."""
        return len(self.prompt_ids) + len(self.output_ids)

    @property
    def sampled_tokens(self) -> int:
        """The output tokens that are the policy's own, which are what is trained on."""
        return sum(self.sampled) if self.sampled else len(self.output_ids)

    @property
    def token_versions(self) -> list[int]:
        """The version that sampled each output token; the oldest where a token is not the policy's own."""
        versions = [version for version, tokens in self.stretches for _ in range(tokens)]
        if not self.sampled:
            return versions
        sampling = iter(versions)
        return [next(sampling) if is_sampled else self.version for is_sampled in self.sampled]

    @property
    def stretches(self) -> tuple[tuple[int, int], ...]:
        """Version and number of tokens of each stretch of what is the policy's own, in order."""
        return self.versions or ((self.version, self.sampled_tokens),)


@dataclass(frozen=True)
class Prefix:
    """Q prompts that the B segments of a batch share, right-padded to P tokens."""

    input_ids: Tensor
    """[Q, P] int64."""
    attention_mask: Tensor
    """[Q, P] int64."""
    prompt_index: Tensor
    """[B] int64: the position of each segment's prompt among the Q."""

    def to(self, device: torch.device) -> Prefix:
        """Return the same prompts on a device."""
        return Prefix(self.input_ids.to(device), self.attention_mask.to(device), self.prompt_index.to(device))


@dataclass(frozen=True)
class Batch:
    """B segments in R right-padded rows of L tokens: one a row, or packed.

    With a prefix the prompts are in there, and rows hold output tokens alone, one segment each: attention_mask is
    [R, P + L], and position_ids go on from the prompt.
    """

    input_ids: Tensor
    """[R, L] int64."""
    attention_mask: Tensor | None
    """[R, L] int64, None where packed."""
    position_ids: Tensor | None
    """[R, L] int64, from 0 for each segment of a row, which is how the model tells them apart; None where not
    packed."""
    rows: Tensor
    """[B] int64: the row that each segment lies in."""
    starts: Tensor
    """[B] int64: where in its row each segment begins."""
    prompt_lengths: Tensor
    """[B] int64."""
    targets: Tensor
    """[B, T] int64: the output tokens."""
    mask: Tensor
    """[B, T] float32: 1 on the output tokens that are the policy's own."""
    rollout_logprobs: Tensor
    """[B, T] float32: 0 where there are none."""
    temperature: Tensor
    """[B] float32: each segment's own."""
    prefix: Prefix | None = None

    def to(self, device: torch.device) -> Batch:
        """Return the same batch on a device."""
        tensors = {name: value.to(device) for name, value in vars(self).items() if value is not None}
        return replace(self, **tensors)


def collate(layout: Sequence[Sequence[Segment]], pad_id: int) -> Batch:
    """Put rows of segments into one batch, in their order, padded on the right."""
    segments = [segment for row in layout for segment in row]
    packed = len(segments) > len(layout)
    shape = (len(layout), max(sum(segment.length for segment in row) for row in layout))
    input_ids = torch.full(shape, pad_id, dtype=torch.int64)
    position_ids, attention_mask = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape, dtype=torch.int64)
    origins = []
    for row, members in enumerate(layout):
        start = 0
        for segment in members:
            end = start + segment.length
            input_ids[row, start:end] = torch.tensor(segment.prompt_ids + segment.output_ids)
            position_ids[row, start:end] = torch.arange(segment.length)
            origins.append((row, start))
            start = end
        attention_mask[row, :start] = 1
        position_ids[row, start:] = torch.arange(shape[1] - start)
    targets, mask, rollout_logprobs = output_tensors(segments)
    rows, starts = torch.tensor(origins).unbind(1)
    return Batch(
        input_ids,
        None if packed else attention_mask,
        position_ids if packed else None,
        rows,
        starts,
        torch.tensor([len(segment.prompt_ids) for segment in segments]),
        targets,
        mask,
        rollout_logprobs,
        torch.tensor([segment.temperature for segment in segments]),
    )


def output_tensors(segments: Sequence[Segment]) -> tuple[Tensor, Tensor, Tensor]:
    """Return a batch's targets, mask and rollout log-probabilities, each [B, T]."""
    shape = (len(segments), max(len(segment.output_ids) for segment in segments))
    targets, mask, rollout_logprobs = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape), torch.zeros(shape)
    for index, segment in enumerate(segments):
        size = len(segment.output_ids)
        targets[index, :size] = torch.tensor(segment.output_ids)
        mask[index, :size] = torch.tensor(segment.sampled or 1.0, dtype=torch.float32)
        if segment.rollout_logprobs:
            rollout_logprobs[index, :size] = torch.tensor(segment.rollout_logprobs)
    return targets, mask, rollout_logprobs


def micro_batches(segments: Sequence[Segment], tokens: int, packed: bool = False) -> Iterator[list[list[int]]]:
    """Cut segments into micro-batches of at most `tokens` tokens, padding included, as rows of indices of segments.

    Rows hold one segment each, or are packed to the length of the longest. Longest first, so that little is padded. A
    single segment longer than `tokens` stands alone.
    """
    order = sorted(range(len(segments)), key=lambda index: -segments[index].length)
    rows: list[list[int]] = []
    free_tokens: list[int] = []
    for index in order:
        length = segments[index].length
        row = next((row for row, free in enumerate(free_tokens) if packed and length <= free), None)
        if row is not None:
            rows[row].append(index)
            free_tokens[row] -= length
            continue
        if rows and segments[rows[0][0]].length * (len(rows) + 1) > tokens:
            yield rows
            rows, free_tokens = [], []
        rows.append([index])
        free_tokens.append(segments[rows[0][0]].length - length)
    if rows:
        yield rows
