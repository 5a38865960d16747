"""Log-probabilities are those of the model's own forward pass, whatever it does to logits after the head."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from architectures import CANNOT_BE_BUILT, served_types, tiny_causal_lm
from tables import rows
from torch import Tensor
from transformers import LlamaForCausalLM

from truegold.train.model.policy import OwnPath, PlainPath, PolicyModel
from truegold.train.model.segment import Segment, collate
from truegold.verifiers import SetupError

SAME = 1e-4

PLAIN = ("llama", "qwen3", "mistral", "gpt2", "opt", "qwen3_moe", "gemma")
TRANSFORMING = ("gemma2", "gemma3_text", "granite", "cohere", "granitemoe", "minicpm3")


def some_segments() -> list[Segment]:
    draw = random.Random(0)
    shapes = ((9, 14, 1.0), (3, 5, 0.7), (6, 1, 1.3))
    return [
        Segment(
            tuple(draw.randrange(2, 200) for _ in range(prompt)),
            tuple(draw.randrange(2, 200) for _ in range(output)),
            temperature=temperature,
        )
        for prompt, output, temperature in shapes
    ]


def transformers_logprobs(causal_lm: Any, segment: Segment) -> Tensor:
    """Return a segment's log-probabilities from the logits that transformers itself returns."""
    ids = torch.tensor([segment.prompt_ids + segment.output_ids])
    logits = causal_lm(ids, use_cache=False).logits[0, len(segment.prompt_ids) - 1 : -1] / segment.temperature
    return logits.log_softmax(-1).gather(1, torch.tensor(segment.output_ids).unsqueeze(1)).squeeze(1)


@torch.no_grad()
def largest_error(causal_lm: Any) -> float:
    """Return how far the trainer's log-probabilities are from transformers' own."""
    policy = PolicyModel(causal_lm)
    policy.match_logits()
    segments = some_segments()
    logprobs, _ = policy(collate([[segment] for segment in segments], pad_id=0))
    return max(
        float((row[: len(segment.output_ids)] - transformers_logprobs(causal_lm, segment)).abs().max())
        for row, segment in zip(logprobs, segments, strict=True)
    )


@rows("model_type", [*PLAIN, *TRANSFORMING])
def test_logprobs_of_an_architecture_are_those_of_transformers(model_type: str) -> None:
    assert largest_error(tiny_causal_lm(model_type)) < SAME


@pytest.mark.parametrize("model_type", TRANSFORMING)
def test_the_head_alone_gives_other_logprobs_where_a_family_transforms_its_logits(model_type: str) -> None:
    # Otherwise the test above would say nothing.
    causal_lm = tiny_causal_lm(model_type)
    segment = some_segments()[0]
    with torch.no_grad():
        by_head, _ = PolicyModel(causal_lm)(collate([[segment]], pad_id=0))
        assert (by_head[0] - transformers_logprobs(causal_lm, segment)).abs().max() > 100 * SAME


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("model_type", ["llama", "gemma2", "granite"])
def test_gradients_are_those_of_the_whole_model(model_type: str, apart: bool) -> None:
    causal_lm, segment = tiny_causal_lm(model_type), some_segments()[0]
    policy = PolicyModel(causal_lm)
    policy.match_logits()
    policy.head_apart = apart
    policy(collate([[segment]], pad_id=0))[0].sum().backward()
    gradients = {name: parameter.grad.clone() for name, parameter in causal_lm.named_parameters()}
    causal_lm.zero_grad()
    transformers_logprobs(causal_lm, segment).sum().backward()
    for name, parameter in causal_lm.named_parameters():
        assert torch.allclose(gradients[name], parameter.grad, atol=1e-4), name


def test_a_cap_that_small_logits_do_not_feel_is_kept() -> None:
    # A random model's logits are so small that Gemma's cap of 30 changes none; a trained one's are not.
    policy = PolicyModel(tiny_causal_lm("gemma2", final_logit_softcapping=30.0))
    policy.match_logits()
    assert isinstance(policy._path, OwnPath)
    hidden = 400 * torch.randn(4, 64, generator=torch.Generator().manual_seed(0))
    assert policy.head()(hidden).abs().max() <= 30.0


@pytest.mark.parametrize(("model_type", "path"), [("llama", PlainPath), ("gemma2", OwnPath), ("granite", OwnPath)])
def test_large_logits_in_bfloat16_are_no_reason_to_refuse_a_model(model_type: str, path: type) -> None:
    causal_lm = tiny_causal_lm(model_type, tie_word_embeddings=False, **LARGE.get(model_type, {})).to(torch.bfloat16)
    with torch.no_grad():
        causal_lm.get_output_embeddings().weight *= 60
    policy = PolicyModel(causal_lm)
    policy.match_logits()
    assert isinstance(policy._path, path)


LARGE: dict[str, dict[str, Any]] = {"gemma2": {"final_logit_softcapping": 30.0}, "granite": {"logits_scaling": 2.0}}
"""Transformations that leave logits as large as those of trained models."""


def test_models_without_a_transformation_call_the_head_alone() -> None:
    policy = PolicyModel(tiny_causal_lm("llama"))
    policy.match_logits()
    assert isinstance(policy._path, PlainPath)


class PromptBiasForCausalLM(LlamaForCausalLM):  # type: ignore[misc]
    """A model whose logits depend on more than the hidden states."""

    def forward(self, input_ids: Tensor, **arguments: Any) -> Any:
        output = super().forward(input_ids, **arguments)
        output.logits[..., 7] += input_ids.sum() / 50
        return output


def test_a_model_whose_logits_are_not_made_of_hidden_states_is_refused_by_name() -> None:
    causal_lm = PromptBiasForCausalLM(tiny_causal_lm("llama").config).eval()
    with pytest.raises(SetupError, match="PromptBiasForCausalLM cannot be trained"):
        PolicyModel(causal_lm).match_logits()


def test_a_model_that_shows_no_output_head_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    causal_lm = tiny_causal_lm("llama")
    monkeypatch.setattr(type(causal_lm), "get_output_embeddings", lambda self: None)
    with pytest.raises(SetupError, match="LlamaForCausalLM cannot be trained"):
        PolicyModel(causal_lm).match_logits()


@pytest.mark.long_run
@pytest.mark.filterwarnings("default")
def test_every_architecture_that_vllm_serves_is_right_or_refused_by_name() -> None:
    errors, not_built = {}, []
    for model_type in served_types():
        try:
            causal_lm = tiny_causal_lm(model_type)
        except Exception:
            not_built.append(model_type)
            continue
        try:
            errors[model_type] = largest_error(causal_lm)
        except SetupError as error:
            assert type(causal_lm).__name__ in error.message
    assert set(not_built) <= CANNOT_BE_BUILT.keys()
    assert len(errors) >= 98
    assert {model_type: error for model_type, error in errors.items() if not error < SAME} == {}
