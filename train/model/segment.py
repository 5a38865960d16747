"""The training record, batches of it, and the records that synthesis hands over.

Token ids are kept as they were sampled; nothing is decoded and encoded again. Masks come from lengths, never from token
values: a pad token that is also the end-of-sequence token must not drop the end from the loss.
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
"""The source of a completion: the policy in training, its own reflection, a person, an earlier step."""
Versions = tuple[tuple[int, int], ...]
"""The stretches of sampled tokens, in order: (version of the weights, tokens that it has sampled)."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One completion to train on, with the prompt it answers: a whole answer, or one turn of a dialogue."""

    prompt_ids: tuple[int, ...]
    """The tokens of the prompt."""
    output_ids: tuple[int, ...]
    """The tokens of the completion, and in a dialogue the text between the completions of its turns."""
    rollout_logprobs: tuple[float, ...] = ()
    """The log-probabilities of output_ids under the policy at `version` and `temperature`; empty for text that no
    policy sampled, 0 where the policy did not sample a token."""
    sampled: tuple[bool, ...] = ()
    """Marks of the output_ids that the policy sampled itself; empty where it sampled all."""
    version: int = 0
    """The version of the weights that sampled it; the oldest, if there are several."""
    temperature: float = 1.0
    """The temperature at which it was sampled."""
    origin: Origin = "policy"
    reward: float | None = None
    """None if it could not be judged."""
    right: bool = False
    """Whether it passed its verifier."""
    group: int = 0
    """Completions of one prompt share it."""
    turn: int = 0
    """The turn of a dialogue that it begins with, from 0."""
    truncated: bool = False
    """Whether it was cut at max_tokens."""
    versions: Versions = ()
    """The stretches of the policy's own tokens, by version, where weights arrived while it was being sampled."""

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
    def stretches(self) -> Versions:
        """The stretches that the policy has written, also where it is all of one version."""
        return self.versions or ((self.version, self.sampled_tokens),)


@dataclass(frozen=True)
class Prefix:
    """The prompts that the segments of a batch share, right-padded."""

    input_ids: Int[Tensor, "prompts prompt_length"]
    attention_mask: Int[Tensor, "prompts prompt_length"]
    prompt_index: Int[Tensor, " batch"]
    """The position of each segment's prompt among all prompts."""

    def to(self, device: torch.device) -> Prefix:
        """Return the same prompts on a device."""
        return Prefix(self.input_ids.to(device), self.attention_mask.to(device), self.prompt_index.to(device))


@dataclass(frozen=True)
class SegmentBatch:
    """Segments in right-padded rows: one a row, or packed.

    With a prefix the prompts are in there, and rows hold output tokens alone, one segment each: attention_mask has the
    prompt's columns in front, and position_ids go on from the prompt.
    """

    input_ids: Int[Tensor, "rows length"]
    attention_mask: Int[Tensor, "rows attended_length"] | None
    """None if packed."""
    position_ids: Int[Tensor, "rows length"] | None
    """The positions in each segment of a row, from 0, by which the model tells the segments apart, or None if not
    packed."""
    rows: Int[Tensor, " batch"]
    """The row that each segment lies in."""
    starts: Int[Tensor, " batch"]
    """The position in its row at which each segment begins."""
    prompt_lengths: Int[Tensor, " batch"]
    targets: Int[Tensor, "batch seq"]
    """The output tokens."""
    mask: PerToken
    """1 on the output tokens that are the policy's own."""
    rollout_logprobs: PerToken
    """0 if there are none."""
    temperature: PerCompletion
    """Each segment's own."""
    prefix: Prefix | None = None

    def to(self, device: torch.device) -> SegmentBatch:
        """Return the same batch on a device."""
        tensors = {name: value.to(device) for name, value in vars(self).items() if value is not None}
        return replace(self, **tensors)


def collate(layout: Sequence[Sequence[Segment]], pad_id: int) -> SegmentBatch:
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
    """Return a batch's targets, mask and rollout log-probabilities."""
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


def shared_batches(segments: Sequence[Segment], tokens: int) -> Iterator[list[int]]:
    """Cut segments into micro-batches of at most `tokens` tokens, padding included, as indices of segments; a prompt is
    computed once for several of its completions.

    A group of 8 completions of 128 tokens on a prompt of 120 is 1,984 tokens when each carries its prompt, and 1,144
    when they share it. The prompts run through the model first; the completions then attend to their keys and values,
    through which gradients reach the prompt as before. Completions are padded to the longest in their micro-batch, so a
    group is cut if padding costs more than computing its prompt again.

    Those of one prompt are side by side. A single segment longer than `tokens` stands alone.
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
    """Return parts of groups, segments of one prompt that are computed together, none above `tokens`; longest first."""
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
    """Return the cut of a group that costs the fewest tokens: (start, end) of each part, of at most `max_tokens`.

    lengths: of the completions, longest first. A part costs its prompt and, for each member, the longest's tokens.
    """
    # For the first n completions: the least cost, and where the last part of that cut starts.
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
    """Count the tokens, padding included, of a batch made of these parts."""
    longest_prompt = max(len(segments[part[0]].prompt_ids) for part in parts)
    longest_output = max(len(segments[part[0]].output_ids) for part in parts)
    return len(parts) * longest_prompt + sum(map(len, parts)) * longest_output


def collate_shared(segments: Sequence[Segment], pad_id: int) -> SegmentBatch:
    """Put segments into one batch, in their order; neighbours with the same prompt share it."""
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
    # The mask tells what is trained on; the text between a dialogue's turns is read all the same.
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
    """A positive to train on, from the table that synthesis writes (`synth.records`).

    Its segment has the bare prompt, the sampled ids and, in place of rollout log-probabilities, those that the sampling
    engine had with the context in the prompt. They are never an old policy: that is computed by the training engine's
    own forward pass on the bare prompt, and the two together make the weight (`objective.weights`).
    """

    key: RowKey
    """The row that it answers."""
    segment: Segment
    trust: float
    """The weight of the positive compared with others, at most 1."""


def read_distilled(path: Path) -> list[DistilledPositive]:
    """Return the positives of a table, in its order."""
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
