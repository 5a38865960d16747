"""Measures how far log-probabilities in bfloat16 are from those in float32, and from themselves in other layouts.

Weights are random, so that their distributions are flat; logits divided by a temperature below 1 stand for the peaked
distributions of trained models. Ids are drawn from what float32 gives at that temperature, as a policy's samples are.
With `path` in the environment variable TRUEGOLD_MODEL a trained checkpoint is measured as well.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from truegold.train.model import policy as policy_module
from truegold.train.model.policy import PolicyModel
from truegold.train.model.segment import Segment, SegmentBatch, collate, collate_shared

from .figures import Figures, device, give_back, machine, random_qwen

TEMPERATURES = (1.0, 0.3, 0.2, 0.1)
ROWS, PROMPT, OUTPUT = 8, 64, 448


def run(figures: Figures) -> None:
    """Write all figures of this part."""
    figures.write("machine", **machine())
    is_gpu = torch.cuda.is_available()
    for size in ("0.5b", "1.5b") if is_gpu else ("tiny",):
        with figures.attempt("noise", size=size):
            exact = random_qwen(size, torch.float32)
            _measure(figures, size, exact, 8 if is_gpu else 2)
            del exact
        give_back()
    path = os.environ.get("TRUEGOLD_MODEL")
    if path:
        with figures.attempt("noise", size=path):
            exact = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).to(device())
            _measure(figures, path.rstrip("/").rsplit("/", 1)[-1], exact, 2)


@torch.no_grad()
def _measure(figures: Figures, size: str, causal_lm: Any, rows: int) -> None:
    exact = PolicyModel(causal_lm).eval()
    exact.match_logits()
    rounded = PolicyModel(type(causal_lm)(causal_lm.config)).to(device(), torch.bfloat16).eval()
    rounded.load_state_dict(exact.state_dict())
    rounded.match_logits()
    generator = torch.Generator().manual_seed(0)
    vocabulary = causal_lm.config.vocab_size
    ids = torch.randint(3, vocabulary, (rows, PROMPT + OUTPUT), generator=generator)
    # Two prompts, so that they can be shared.
    ids[: rows // 2, :PROMPT] = ids[0, :PROMPT].clone()
    ids[rows // 2 :, :PROMPT] = ids[-1, :PROMPT].clone()
    segments = [Segment(tuple(row[:PROMPT].tolist()), tuple(row[PROMPT:].tolist())) for row in ids]
    batches = {"rows": collate([[segment] for segment in segments], 0), "shared": collate_shared(segments, 0)}
    batches = {name: batch.to(device()) for name, batch in batches.items()}
    for temperature in TEMPERATURES:
        targets = _sample(exact, batches["rows"], temperature)
        drawn = {
            name: replace(batch, targets=targets, temperature=torch.full_like(batch.temperature, temperature))
            for name, batch in batches.items()
        }
        reference, entropy = exact(drawn["rows"])
        base = rounded(drawn["rows"])[0]
        others = {
            "bfloat16 against float32": (base, reference),
            "float32, prompts shared": (exact(drawn["shared"])[0], reference),
            "bfloat16, prompts shared": (rounded(drawn["shared"])[0], base),
            "bfloat16, a row at a time": (_row_by_row(rounded, drawn["rows"]), base),
            "bfloat16, larger chunks": (_in_chunks(rounded, drawn["rows"], 1 << 28), base),
        }
        for name, (values, others_values) in others.items():
            figures.write(
                "noise",
                size=size,
                temperature=temperature,
                entropy=float(entropy.mean()),
                compared=name,
                **_describe((values - others_values).double().flatten()),
            )


def _describe(delta: Tensor) -> dict[str, float]:
    ratio = delta.exp()
    return {
        "mean_abs": float(delta.abs().mean()),
        "q99": float(delta.abs().quantile(0.99)),
        "largest": float(delta.abs().max()),
        "k3": float((torch.expm1(delta) - delta).mean()),
        "outside": float(((ratio < 0.8) | (ratio > 1.28)).double().mean()),
    }


def _sample(policy: PolicyModel, batch: SegmentBatch, temperature: float) -> Tensor:
    """Draw a token at each output position from what the model gives behind the tokens before it."""
    drawn = []
    for row in range(len(batch.input_ids)):
        logits = policy.causal_lm(input_ids=batch.input_ids[row : row + 1], use_cache=False).logits
        distribution = (logits[0, PROMPT - 1 : -1].float() / temperature).softmax(-1)
        drawn.append(torch.multinomial(distribution, 1).squeeze(1))
    return torch.stack(drawn)


def _row_by_row(policy: PolicyModel, batch: SegmentBatch) -> Tensor:
    rows = []
    for row in range(len(batch.input_ids)):
        part = slice(row, row + 1)
        assert batch.attention_mask is not None
        rows.append(
            policy(
                replace(
                    batch,
                    input_ids=batch.input_ids[part],
                    attention_mask=batch.attention_mask[part],
                    rows=torch.zeros_like(batch.rows[part]),
                    **{
                        name: getattr(batch, name)[part]
                        for name in "starts prompt_lengths targets mask rollout_logprobs temperature".split()
                    },
                )
            )[0]
        )
    return torch.cat(rows)


def _in_chunks(policy: PolicyModel, batch: SegmentBatch, chunk: int) -> Tensor:
    chunks, policy_module.LOGIT_CHUNK = policy_module.LOGIT_CHUNK, dict.fromkeys(("cuda", "cpu"), chunk)
    try:
        logprobs: Tensor = policy(batch)[0]
    finally:
        policy_module.LOGIT_CHUNK = chunks
    return logprobs
