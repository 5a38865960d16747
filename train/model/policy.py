"""The policy as the trainer sees it: a causal language model whose forward gives log-probabilities of output tokens.

    log-probabilities, entropies = Policy(load_causal_lm(folder, "bfloat16"))(batch)      both [B, T]

The full [B, L, V] logits are never held: hidden states of the output positions alone go through the output head, a
chunk of tokens at a time, recomputed in the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from truegold.pipeline.engines.chat import ChatEncoder
from truegold.train.config.models import OptimizerConfig
from truegold.train.model.logits import Head, LogitPath, PlainPath, choose_path, decoder_of
from truegold.train.model.prefix_cache import PrefixCache, PromptCache
from truegold.train.model.segment import Batch, Prefix, Segment, collate, micro_batches
from truegold.verifiers import SetupError

LOGIT_CHUNK = {"cuda": 4096 * 4096, "cpu": 2048 * 2048}
"""Logits computed at a time (tokens x vocabulary): 64 MiB in float32, or 16, of which some five copies are held. A GPU
needs many tokens at a time to be busy, a CPU few."""


def load_causal_lm(model: Path, dtype: str) -> Any:
    """Load the checkpoint in folder `model`. Raises SetupError where it is none."""
    from transformers import AutoModelForCausalLM

    try:
        return AutoModelForCausalLM.from_pretrained(str(model), dtype=getattr(torch, dtype))
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise SetupError(f"{model} cannot be loaded as a causal language model: {reason}") from error


def pad_id(encoder: ChatEncoder) -> int:
    """Return a token id to pad with. Any valid one will do: masks come from lengths."""
    return int(encoder.tokenizer.pad_token_id or encoder.stop_token_ids[0])


class Policy(nn.Module):
    """Wraps a Hugging Face causal language model with a base `model` and an `lm_head`."""

    head_apart = False
    """Whether to compute with the head's weights instead of calling it. Under ZeRO 3 every call of a module is a
    collective operation, and ranks have different numbers of chunks."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.causal_lm = model
        self._path: LogitPath = PlainPath(model)

    def match_logits(self) -> None:
        """Compute logits from hidden states as the model itself does from now on (`logits`).

        Raises SetupError where its architecture is one whose log-probabilities would be wrong. Under ZeRO 3 it comes
        before the weights are sharded.
        """

        def logprobs(path: LogitPath, sequences: Sequence[Sequence[int]]) -> list[Tensor]:
            self._path = path
            segments = [Segment((ids[0],), tuple(ids[1:])) for ids in sequences]
            values, _ = self(collate([[segment] for segment in segments], pad_id=0).to(self.causal_lm.device))
            return [row[: len(segment.output_ids)] for row, segment in zip(values, segments, strict=True)]

        self._path = choose_path(self.causal_lm, logprobs)

    def head(self, apart: bool = False) -> Head:
        """Return what computes logits from hidden states, before any temperature.

        apart: whether to multiply by the output head's weights instead of calling it.
        """
        return self._path.head(apart or self.head_apart)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the log-probability of each output token given all before it, and the entropy of that distribution.

        Both [B, T] float32, 0 where the mask is 0; both of the softmax at each segment's own temperature. The entropy
        carries no gradient.
        """
        is_output = batch.mask.bool()
        hidden = self._hidden(batch) if batch.prefix is None else self._hidden_shared(batch, batch.prefix)
        # The states of other positions are let go before the logits take their memory.
        hidden = hidden[is_output]
        temperature = batch.temperature.unsqueeze(1).expand_as(batch.mask)
        flat_inputs = (hidden, batch.targets[is_output], temperature[is_output])
        head = self.head()
        chunk = max(1, LOGIT_CHUNK[hidden.device.type] // self.causal_lm.get_output_embeddings().weight.shape[0])
        pieces = [
            self._chunk(head, *(flat[start : start + chunk] for flat in flat_inputs))
            for start in range(0, len(hidden), chunk)
        ]
        logprobs = torch.zeros_like(batch.mask)
        entropy = torch.zeros_like(logprobs)
        logprobs[is_output] = torch.cat([piece[0] for piece in pieces])
        entropy[is_output] = torch.cat([piece[1] for piece in pieces])
        return logprobs, entropy

    def _hidden(self, batch: Batch) -> Tensor:
        """Return the hidden state that each output token is drawn from [B, T, H]; anything where the mask is 0."""
        hidden: Tensor = decoder_of(self.causal_lm)(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            position_ids=batch.position_ids,
            use_cache=False,
        ).last_hidden_state
        steps = torch.arange(batch.targets.shape[1], device=hidden.device)
        positions = (batch.starts + batch.prompt_lengths).unsqueeze(1) - 1 + steps
        drawn_from: Tensor = hidden[batch.rows.unsqueeze(1), positions.clamp(max=hidden.shape[1] - 1)]
        return drawn_from

    def _hidden_shared(self, batch: Batch, prefix: Prefix) -> Tensor:
        """Return the same, with each prompt computed once. Gradients reach it through its keys and values."""
        decoder = decoder_of(self.causal_lm)
        prompt_cache = PromptCache()
        prompts = decoder(
            input_ids=prefix.input_ids,
            attention_mask=prefix.attention_mask,
            past_key_values=prompt_cache,
            use_cache=True,
        )
        outputs = decoder(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            position_ids=batch.position_ids,
            past_key_values=PrefixCache(prompt_cache, prefix.prompt_index),
            use_cache=True,
        ).last_hidden_state
        first = prompts.last_hidden_state[prefix.prompt_index, batch.prompt_lengths - 1]
        return torch.cat([first.unsqueeze(1), outputs[:, :-1]], dim=1)

    def _chunk(self, head: Head, hidden: Tensor, targets: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
        if not torch.is_grad_enabled():
            return _token_logprobs(head, hidden, targets, temperature)
        logprobs, entropy = checkpoint(_token_logprobs, head, hidden, targets, temperature, use_reentrant=False)
        return logprobs, entropy


def _token_logprobs(head: Head, hidden: Tensor, targets: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    """Return log-probabilities [N] of `targets` [N] and entropies [N], in float32, from hidden states [N, H] at
    temperatures [N]."""
    logits = head(hidden).float() / temperature.unsqueeze(1)
    logsumexp = torch.logsumexp(logits, dim=-1)
    logprobs = logits.gather(1, targets.unsqueeze(1)).squeeze(1) - logsumexp
    with torch.no_grad():
        entropy = logsumexp - (torch.softmax(logits, dim=-1) * logits).sum(dim=-1)
    return logprobs, entropy


@torch.no_grad()
def measure(
    policy: Callable[[Batch], tuple[Tensor, Tensor]],
    segments: Sequence[Segment],
    batches: Iterable[tuple[list[int], Batch]],
) -> list[tuple[Tensor, Tensor]]:
    """Return each segment's log-probabilities and entropies, [its length] float32 on the CPU, without gradients.

    batches: micro-batches with the indices of their segments.
    """
    measured: list[tuple[Tensor, Tensor]] = [(torch.empty(0), torch.empty(0))] * len(segments)
    for indices, batch in batches:
        logprobs, entropy = (values.cpu() for values in policy(batch))
        for row, index in enumerate(indices):
            length = len(segments[index].output_ids)
            measured[index] = logprobs[row, :length], entropy[row, :length]
    return measured


class FrozenPolicy:
    """The checkpoint in folder `model`, whole on every rank and never trained: the reference of the KL penalty."""

    def __init__(self, model: Path, config: OptimizerConfig, device: torch.device) -> None:
        self._policy = Policy(load_causal_lm(model, config.dtype)).to(device).eval()
        self._policy.match_logits()
        self._max_tokens = config.micro_batch_tokens
        self._device = device

    def logprobs(self, segments: Sequence[Segment]) -> list[Tensor]:
        """Return log-probabilities as `TrainingEngine.logprobs` does; ranks need not call it together."""
        batches = (
            (
                [index for row in layout for index in row],
                collate([[segments[index] for index in row] for row in layout], pad_id=0).to(self._device),
            )
            for layout in micro_batches(segments, self._max_tokens)
        )
        return [logprobs for logprobs, _ in measure(self._policy, segments, batches)]
