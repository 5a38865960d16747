"""Micro-batches that compute a prompt once for several of its completions.

A group of 8 completions of 128 tokens on a prompt of 120 is 1,984 tokens when each carries its prompt, and 1,144 when
they share it. The prompts run through the model first; the completions then attend to their keys and values, through
which gradients reach the prompt as before. Completions are computed as wide as the longest beside them, so a group is
cut where that would cost more than computing its prompt again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import torch

from truegold.train.model.segment import Batch, Prefix, Segment, output_tensors


def shared_batches(segments: Sequence[Segment], tokens: int) -> Iterator[list[int]]:
    """Cut segments into micro-batches of at most `tokens` tokens, padding included, as indices of segments.

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


def collate_shared(segments: Sequence[Segment], pad_id: int) -> Batch:
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
    # The mask tells what is trained on; what stands between a dialogue's turns is read all the same.
    is_output = torch.arange(targets.shape[1]) < lengths.unsqueeze(1)
    return Batch(
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
