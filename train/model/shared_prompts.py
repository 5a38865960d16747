"""Micro-batches that compute a prompt once for several of its completions.

A group of 8 completions of 128 tokens on a prompt of 120 is 1,984 tokens when each carries its prompt, and 1,144 when
they share it. The prompts run through the model first; the completions then attend to their keys and values, through
which gradients reach the prompt as before. Completions are computed as wide as the longest beside them, so a group is
cut where that would cost more than computing its prompt again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from truegold.train.model.segment import Batch, Prefix, Segment, output_tensors


def shared_batches(segments: Sequence[Segment], tokens: int) -> Iterator[list[int]]:
    """Micro-batches of at most `tokens` tokens, padding included, as indices of segments, those of one prompt side by
    side. A single segment longer than `tokens` stands alone."""
    current: list[list[int]] = []
    for part in _parts(segments, tokens):
        if current and _cost(segments, [*current, part]) > tokens:
            yield [index for own in current for index in own]
            current = []
        current.append(part)
    if current:
        yield [index for own in current for index in own]


def _parts(segments: Sequence[Segment], tokens: int) -> list[list[int]]:
    """Segments of one prompt that are computed together, none of them above `tokens`; longest first."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, segment in enumerate(segments):
        groups.setdefault(segment.prompt_ids, []).append(index)
    parts = []
    for prompt, members in groups.items():
        members.sort(key=lambda index: -len(segments[index].output_ids))
        lengths = [len(segments[index].output_ids) for index in members]
        parts += [members[start:end] for start, end in cut(lengths, len(prompt), tokens)]
    return sorted(parts, key=lambda part: -segments[part[0]].length)


def cut(lengths: Sequence[int], prompt: int, most: int) -> list[tuple[int, int]]:
    """Where to cut a group for the fewest tokens: (start, end) of each part, of at most `most` tokens.

    lengths: of the completions, longest first. A part costs its prompt and, for each member, the longest's tokens.
    """
    best: list[tuple[int, int]] = [(0, 0)]  # of the first n completions: the cost, and where their last part starts
    for end in range(1, len(lengths) + 1):
        costs = [
            (best[start][0] + prompt + (end - start) * lengths[start], start)
            for start in range(end)
            if start == end - 1 or prompt + (end - start) * lengths[start] <= most
        ]
        best.append(min(costs))
    found: list[tuple[int, int]] = []
    end = len(lengths)
    while end:
        start = best[end][1]
        found.append((start, end))
        end = start
    return found[::-1]


def _cost(segments: Sequence[Segment], parts: Sequence[Sequence[int]]) -> int:
    prompt = max(len(segments[part[0]].prompt_ids) for part in parts)
    output = max(len(segments[part[0]].output_ids) for part in parts)
    return len(parts) * prompt + sum(map(len, parts)) * output


def collate_shared(segments: Sequence[Segment], pad_id: int) -> Batch:
    """The segments as one batch, in their order; neighbours with the same prompt share it."""
    prompts: list[tuple[int, ...]] = []
    of = []
    for segment in segments:
        if not prompts or prompts[-1] != segment.prompt_ids:
            prompts.append(segment.prompt_ids)
        of.append(len(prompts) - 1)
    shape = (len(prompts), max(map(len, prompts)))
    prefix_ids = torch.full(shape, pad_id, dtype=torch.int64)
    prefix_mask = torch.zeros(shape, dtype=torch.int64)
    for place, prompt in enumerate(prompts):
        prefix_ids[place, : len(prompt)] = torch.tensor(prompt)
        prefix_mask[place, : len(prompt)] = 1
    prompt_lengths = torch.tensor([len(segment.prompt_ids) for segment in segments])
    targets, mask, rollout = output_tensors(segments)
    return Batch(
        torch.where(mask > 0, targets, pad_id),
        torch.cat([prefix_mask[of], mask.long()], dim=1),
        prompt_lengths.unsqueeze(1) + torch.arange(targets.shape[1]),
        torch.arange(len(segments)),
        torch.zeros(len(segments), dtype=torch.int64),
        prompt_lengths,
        targets,
        mask,
        rollout,
        torch.tensor([segment.temperature for segment in segments]),
        Prefix(prefix_ids, prefix_mask, torch.tensor(of)),
    )
