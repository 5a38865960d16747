"""Prompts computed once for several completions: the same log-probabilities, entropies and gradients as apart."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from truegold.train.model.policy import PolicyModel, checkpoint_with_cache, keeps_whole_cache
from truegold.train.model.segment import Segment, SegmentBatch, collate, collate_shared, cut_group, shared_batches


def groups(lengths: list[list[int]], prompts: list[int]) -> list[Segment]:
    """One group of completions of these lengths for each prompt length, temperatures of all kinds."""
    draw = random.Random(0)
    return [
        Segment(prompt, tuple(draw.randrange(5, 256) for _ in range(size)), temperature=0.5 + draw.random())
        for output_lengths, length in zip(lengths, prompts, strict=True)
        for prompt in [tuple(draw.randrange(5, 256) for _ in range(length))]
        for size in output_lengths
    ]


SEGMENTS = groups([[5, 9, 1], [7, 7], [3]], [4, 11, 6])
# What an environment says between two turns is read, and has no log-probability of its own.
SEGMENTS[1] = replace(SEGMENTS[1], sampled=(True,) * 2 + (False,) * 4 + (True,) * 3)


@pytest.fixture
def policy(tiny_model: Path) -> PolicyModel:
    return PolicyModel(AutoModelForCausalLM.from_pretrained(str(tiny_model), dtype=torch.float32))


def test_log_probs_and_entropies_are_those_of_segments_apart(policy: PolicyModel) -> None:
    shared = collate_shared(SEGMENTS, pad_id=0)
    assert shared.prefix is not None
    assert shared.prefix.prompt_index.tolist() == [0, 0, 0, 1, 1, 2]
    shared_outputs = policy(shared)
    for index, segment in enumerate(SEGMENTS):
        size = len(segment.output_ids)
        for whole, alone in zip(shared_outputs, policy(collate([[segment]], pad_id=0)), strict=True):
            torch.testing.assert_close(whole[index, :size], alone[0], atol=1e-6, rtol=1e-5)
            assert not whole[index, size:].any()


@pytest.mark.parametrize("checkpointing", [False, True])
def test_gradients_are_those_of_segments_apart(policy: PolicyModel, checkpointing: bool) -> None:
    weights = torch.randn(len(SEGMENTS), 9, generator=torch.Generator().manual_seed(0))
    expected = gradients(policy, collate([[segment] for segment in SEGMENTS], pad_id=0), weights)
    if checkpointing:
        policy.causal_lm.gradient_checkpointing_enable()
        assert checkpoint_with_cache(policy.causal_lm)
    shared_gradients = gradients(policy.train(), collate_shared(SEGMENTS, pad_id=0), weights)
    for name, gradient in expected.items():
        torch.testing.assert_close(shared_gradients[name], gradient, atol=2e-5, rtol=1e-4)


def gradients(policy: PolicyModel, batch: SegmentBatch, weights: torch.Tensor) -> dict[str, torch.Tensor]:
    policy.zero_grad()
    logprobs, _ = policy(batch)
    (logprobs * weights).sum().backward()
    return {name: value.grad for name, value in policy.named_parameters() if value.grad is not None}


def test_gradient_checkpointing_keeps_less_of_shared_prompts(policy: PolicyModel) -> None:
    kept = []
    for checkpointing in (False, True):
        if checkpointing:
            policy.causal_lm.gradient_checkpointing_enable()
            assert checkpoint_with_cache(policy.causal_lm)
        sizes: list[int] = []

        def count(tensor: torch.Tensor, sizes: list[int] = sizes) -> torch.Tensor:
            sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            policy.train()(collate_shared(SEGMENTS, pad_id=0))
        kept.append(sum(sizes))
    assert kept[1] < kept[0] / 2


@pytest.mark.parametrize("tokens", [1, 24, 40, 1000])
def test_micro_batches_hold_every_segment_once_and_keep_to_their_size(tokens: int) -> None:
    batches = list(shared_batches(SEGMENTS, tokens))
    assert sorted(index for batch in batches for index in batch) == list(range(len(SEGMENTS)))
    for indices in batches:
        batch = collate_shared([SEGMENTS[index] for index in indices], pad_id=0)
        assert batch.prefix is not None
        assert len(indices) == 1 or batch.prefix.input_ids.numel() + batch.input_ids.numel() <= tokens


def test_a_group_is_cut_where_padding_would_cost_more_than_its_prompt() -> None:
    assert cut_group([8, 8, 8], 100, 1000) == [(0, 3)]
    assert cut_group([400, 390, 20, 10], 100, 1000) == [(0, 2), (2, 4)]
    assert cut_group([400, 20, 10], 5, 1000) == [(0, 1), (1, 2), (2, 3)]
    assert cut_group([8, 8, 8], 100, 120) == [(0, 1), (1, 3)]


def test_no_part_of_a_group_is_too_large_unless_it_is_a_single_completion() -> None:
    many = [replace(SEGMENTS[0], output_ids=tuple(range(5, 15))) for _ in range(20)]
    assert sorted(map(len, shared_batches(many, 34))) == [2, *[3] * 6]
    assert list(map(len, shared_batches(many, 5))) == [1] * 20


def test_a_model_with_a_sliding_window_keeps_less_than_the_whole_prompt(tiny_model: Path, policy: PolicyModel) -> None:
    assert keeps_whole_cache(policy.causal_lm)
    config = AutoConfig.for_model(
        "mistral", vocab_size=64, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, sliding_window=4,
    )  # fmt: skip
    assert not keeps_whole_cache(AutoModelForCausalLM.from_config(config))
