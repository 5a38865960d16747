"""Segments (the training records of completions), batches of segments, and right completions from synthesis.

Token ids stay as they were sampled. They are never decoded and encoded again. Masks are computed from lengths, because
the padding token may also be the end-of-sequence token, which belongs to the loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from truegold.pipeline.tables.rows import RowKey, read_table, row_key
from truegold.synth.records import DistilledRow
from truegold.train.objective import PerCompletion, PerToken

Origin = Literal["policy", "reflection", "human", "replay"]
"""The origin of a completion: the policy in training, its own reflection, a person, or an earlier step."""
Versions = tuple[tuple[int, int], ...]
"""Pairs of a version of the weights and the number of tokens that it sampled, in the order of tokens."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A completion to train on, with its prompt: a whole answer, or one or more turns of a dialogue."""

    prompt_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    """The token ids of the completion. In a dialogue, text between the model's turns is included."""
    rollout_logprobs: tuple[float, ...] = ()
    """The log-probability (nats) of each output token under the policy that sampled it, at `temperature`. Tokens that
    were not sampled have 0. Empty for text that no policy sampled."""
    sampled: tuple[bool, ...] = ()
    """Whether the policy sampled each output token. Empty if all were sampled."""
    version: int = 0
    """The oldest version of the weights that sampled the completion."""
    temperature: float = 1.0
    origin: Origin = "policy"
    reward: float | None = None
    """The reward, or None if the completion could not be judged."""
    right: bool = False
    """Whether the completion passed its verifier."""
    group: int = 0
    """The number of the group, the same for all completions of a prompt."""
    turn: int = 0
    """The number of the segment's first turn in its dialogue, from 0."""
    truncated: bool = False
    """Whether the completion was cut at max_tokens."""
    versions: Versions = ()
    """The versions that sampled the tokens. Empty if one version sampled all of them."""

    @property
    def length(self) -> int:
        """The number of tokens of prompt and output together."""
        return len(self.prompt_ids) + len(self.output_ids)

    @property
    def sampled_tokens(self) -> int:
        """The number of output tokens that the policy sampled. Only these are trained on."""
        return sum(self.sampled) if self.sampled else len(self.output_ids)

    @property
    def token_versions(self) -> list[int]:
        """The version that sampled each output token. Tokens that were not sampled have the oldest version."""
        versions = [version for version, tokens in self.stretches for _ in range(tokens)]
        if not self.sampled:
            return versions
        sampling = iter(versions)
        return [next(sampling) if is_sampled else self.version for is_sampled in self.sampled]

    @property
    def stretches(self) -> Versions:
        """The versions with their numbers of sampled tokens. In contrast to `versions`, a single version is
        included."""
        return self.versions or ((self.version, self.sampled_tokens),)


@dataclass(frozen=True)
class Prefix:
    """The prompts that the segments of a batch share, right-padded."""

    input_ids: Int[Tensor, "prompts prompt_length"]
    attention_mask: Int[Tensor, "prompts prompt_length"]
    """1 on tokens, 0 on padding."""
    prompt_index: Int[Tensor, " batch"]
    """The index of each segment's prompt."""

    def to(self, device: torch.device) -> Prefix:
        """Return the same prompts on a device."""
        return Prefix(self.input_ids.to(device), self.attention_mask.to(device), self.prompt_index.to(device))


@dataclass(frozen=True)
class SegmentBatch:
    """Segments in right-padded rows, with one or several (packed) segments per row.

    With a prefix, prompts are only in the prefix, and each row has the output tokens of one segment. Then
    attention_mask begins with the columns of the prompt, and position_ids continue after the prompt.
    """

    input_ids: Int[Tensor, "rows length"]
    attention_mask: Int[Tensor, "rows attended_length"] | None
    """1 on tokens, 0 on padding; None if packed."""
    position_ids: Int[Tensor, "rows length"] | None
    """Positions from 0 in each segment of a packed row. They keep the segments of a row apart. None if rows have one
    segment and there is no prefix."""
    rows: Int[Tensor, " batch"]
    """The row of each segment."""
    starts: Int[Tensor, " batch"]
    """The position in its row at which each segment begins."""
    prompt_lengths: Int[Tensor, " batch"]
    """The number of prompt tokens of each segment."""
    targets: Int[Tensor, "batch seq"]
    """The ids of the output tokens, 0 on padding."""
    mask: PerToken
    """1 on output tokens that the policy sampled, else 0."""
    rollout_logprobs: PerToken
    """Log-probabilities (nats) of the output tokens at sampling, 0 where there are none."""
    temperature: PerCompletion
    """The temperature of each segment."""
    prefix: Prefix | None = None
    """The shared prompts, or None if rows contain the prompts."""

    def to(self, device: torch.device) -> SegmentBatch:
        """Return the same batch on a device."""
        tensors = {name: value.to(device) for name, value in vars(self).items() if value is not None}
        return replace(self, **tensors)


def collate(layout: Sequence[Sequence[Segment]], pad_id: int) -> SegmentBatch:
    """Return a batch with these rows of segments, in their order. pad_id: the token id of padding, on the right."""
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
    return SegmentBatch(
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


def output_tensors(segments: Sequence[Segment]) -> tuple[Int[Tensor, "batch seq"], PerToken, PerToken]:
    """Return the targets, mask and rollout log-probabilities of a batch, as in `SegmentBatch`."""
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
    """Yield micro-batches of at most `tokens` tokens, padding included. Each is a list of rows of segment indices.

    A row has one segment. If `packed`, a row has several, up to the length of the longest segment. Segments are sorted,
    the longest first, to save padding. A segment longer than `tokens` is a micro-batch by itself.
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


def shared_batches(segments: Sequence[Segment], tokens: int) -> Iterator[list[int]]:
    """Yield micro-batches of at most `tokens` tokens, padding included, in which completions share their prompts.

    Each is a list of segment indices, in which the completions of a prompt are adjacent. For example, 8 completions of
    128 tokens after a prompt of 120 tokens have 1,984 tokens with the prompt repeated, and 1,144 with a shared prompt.

    The model computes the prompts first. Then the completions attend to the prompts' keys and values. Gradients reach
    the prompts through these. Completions are padded to the longest one of their micro-batch. So a group is split if
    padding costs more than computing its prompt again. A segment longer than `tokens` is a micro-batch by itself.
    """
    batch: list[list[int]] = []
    for part in _cut_groups(segments, tokens):
        if batch and _count_tokens(segments, [*batch, part]) > tokens:
            yield list(chain(*batch))
            batch = []
        batch.append(part)
    if batch:
        yield list(chain(*batch))


def _cut_groups(segments: Sequence[Segment], tokens: int) -> list[list[int]]:
    """Return lists of segments of one prompt that are computed together, of at most `tokens` tokens, longest first."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, segment in enumerate(segments):
        groups.setdefault(segment.prompt_ids, []).append(index)
    parts = []
    for prompt, members in groups.items():
        members.sort(key=lambda index: -len(segments[index].output_ids))
        lengths = [len(segments[index].output_ids) for index in members]
        parts += [members[start:end] for start, end in cut_group(lengths, len(prompt), tokens)]
    return sorted(parts, key=lambda part: -segments[part[0]].length)


def cut_group(lengths: Sequence[int], prompt_length: int, max_tokens: int) -> list[tuple[int, int]]:
    """Return the cheapest split of a group into parts of at most `max_tokens` tokens, as (start, end) of each part.

    A part costs the tokens of the prompt, plus the tokens of its longest completion for each completion. lengths: the
    numbers of tokens of the completions, in descending order.
    """
    # Entry n is for the first n completions: the smallest number of tokens, and the start of the last part.
    cheapest: list[tuple[int, int]] = [(0, 0)]
    for end in range(1, len(lengths) + 1):
        costs = [
            (cheapest[start][0] + prompt_length + (end - start) * lengths[start], start)
            for start in range(end)
            if start == end - 1 or prompt_length + (end - start) * lengths[start] <= max_tokens
        ]
        cheapest.append(min(costs))
    parts: list[tuple[int, int]] = []
    end = len(lengths)
    while end:
        start = cheapest[end][1]
        parts.append((start, end))
        end = start
    return parts[::-1]


def _count_tokens(segments: Sequence[Segment], parts: Sequence[Sequence[int]]) -> int:
    """Return the number of tokens, padding included, of a batch of these parts."""
    longest_prompt = max(len(segments[part[0]].prompt_ids) for part in parts)
    longest_output = max(len(segments[part[0]].output_ids) for part in parts)
    return len(parts) * longest_prompt + sum(map(len, parts)) * longest_output


def collate_shared(segments: Sequence[Segment], pad_id: int) -> SegmentBatch:
    """Return a batch of segments, in their order. Neighbours with the same prompt share it."""
    prompts: list[tuple[int, ...]] = []
    prompt_index = []
    for segment in segments:
        if not prompts or prompts[-1] != segment.prompt_ids:
            prompts.append(segment.prompt_ids)
        prompt_index.append(len(prompts) - 1)
    shape = (len(prompts), max(map(len, prompts)))
    prefix_ids = torch.full(shape, pad_id, dtype=torch.int64)
    prefix_mask = torch.zeros(shape, dtype=torch.int64)
    for row, prompt in enumerate(prompts):
        prefix_ids[row, : len(prompt)] = torch.tensor(prompt)
        prefix_mask[row, : len(prompt)] = 1
    prompt_lengths = torch.tensor([len(segment.prompt_ids) for segment in segments])
    targets, mask, rollout_logprobs = output_tensors(segments)
    lengths = torch.tensor([len(segment.output_ids) for segment in segments])
    # The attention mask includes text between turns. `mask` leaves this text out of the loss.
    is_output = torch.arange(targets.shape[1]) < lengths.unsqueeze(1)
    return SegmentBatch(
        torch.where(is_output, targets, pad_id),
        torch.cat([prefix_mask[prompt_index], is_output.long()], dim=1),
        prompt_lengths.unsqueeze(1) + torch.arange(targets.shape[1]),
        torch.arange(len(segments)),
        torch.zeros(len(segments), dtype=torch.int64),
        prompt_lengths,
        targets,
        mask,
        rollout_logprobs,
        torch.tensor([segment.temperature for segment in segments]),
        Prefix(prefix_ids, prefix_mask, torch.tensor(prompt_index)),
    )


@dataclass(frozen=True)
class DistilledPositive:
    """A right completion that was sampled with an added context, from the table of synthesis (`synth.records`).

    The segment has the bare prompt and the sampled ids. Its rollout log-probabilities come from the sampling engine
    with the context in the prompt. The old policy is that of the training engine on the bare prompt. The ratio of both
    is the weight of a token (`objective.distillation_weights`).
    """

    key: RowKey
    """The key of the row that the completion answers."""
    segment: Segment
    trust: float
    """The weight of the positive compared with other positives, at most 1."""


def read_distilled(path: Path) -> list[DistilledPositive]:
    """Return the distilled positives of a table, in its order."""
    return [
        DistilledPositive(
            row_key(record),
            Segment(
                prompt_ids=tuple(record["prompt_ids"]),
                output_ids=tuple(record["output_ids"]),
                rollout_logprobs=tuple(record["context_logprobs"]),
                temperature=record["temperature"],
                origin="reflection",
                reward=1.0,
                right=True,
            ),
            record["trust"],
        )
        for record in read_table(path, DistilledRow)
    ]
