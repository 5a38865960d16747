"""The policy as the trainer sees it: a causal language model whose forward gives log-probabilities of output tokens.

The full [B, L, V] logits are never held: hidden states of the output positions alone go through the output head, a
chunk of tokens at a time, recomputed in the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.utils.checkpoint import checkpoint

from truegold.train.model.prefix_cache import PrefixCache, PromptCache
from truegold.train.model.segment import Batch, Prefix

LOGIT_CHUNK = 4096 * 4096
"""Logits computed at a time (tokens x vocabulary): 64 MiB in float32, of which some five copies are held."""


Head = Callable[[Tensor], Tensor]


class Policy(nn.Module):
    """Wraps a Hugging Face causal language model with a base `model` and an `lm_head`.

    head_apart: compute with the head's weights instead of calling it. Under ZeRO 3 every call of a module is a
    collective operation, and ranks have different numbers of chunks.
    """

    head_apart = False

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.causal_lm = model

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Log-probability of each output token given all before it, and the entropy of each of those distributions.

        Both [B, T] float32, 0 where the mask is 0; both of the softmax at each segment's own temperature. The entropy
        carries no gradient.
        """
        chosen = batch.mask.bool()
        flat_hidden = (self._hidden(batch) if batch.prefix is None else self._hidden_shared(batch, batch.prefix))[
            chosen
        ]
        flat_targets = batch.targets[chosen]
        flat_temperature = batch.temperature.unsqueeze(1).expand_as(batch.mask)[chosen]
        head = self.causal_lm.get_output_embeddings()
        weight, bias = head.weight, getattr(head, "bias", None)
        project: Head = (lambda hidden: linear(hidden, weight, bias)) if self.head_apart else head
        chunk = max(1, LOGIT_CHUNK // weight.shape[0])
        pieces = [
            self._chunk(project, *(flat[at : at + chunk] for flat in (flat_hidden, flat_targets, flat_temperature)))
            for at in range(0, flat_targets.shape[0], chunk)
        ]
        logprobs = torch.zeros_like(batch.mask)
        entropy = torch.zeros_like(logprobs)
        logprobs[chosen] = torch.cat([piece[0] for piece in pieces])
        entropy[chosen] = torch.cat([piece[1] for piece in pieces])
        return logprobs, entropy

    def _hidden(self, batch: Batch) -> Tensor:
        """[B, T, H]: the hidden state that each output token is drawn from; anything where the mask is 0."""
        hidden: Tensor = self.causal_lm.get_decoder()(
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
        """The same, with each prompt computed once. Gradients reach it through the keys and values that it leaves."""
        decoder = self.causal_lm.get_decoder()
        written = PromptCache()
        prompts = decoder(
            input_ids=prefix.input_ids, attention_mask=prefix.attention_mask, past_key_values=written, use_cache=True
        )
        outputs = decoder(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            position_ids=batch.position_ids,
            past_key_values=PrefixCache(written, prefix.of),
            use_cache=True,
        ).last_hidden_state
        first = prompts.last_hidden_state[prefix.of, batch.prompt_lengths - 1]
        return torch.cat([first.unsqueeze(1), outputs[:, :-1]], dim=1)

    def _chunk(self, head: Head, hidden: Tensor, targets: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
        if torch.is_grad_enabled():
            result: tuple[Tensor, Tensor] = checkpoint(
                token_logprobs, head, hidden, targets, temperature, use_reentrant=False
            )
            return result
        return token_logprobs(head, hidden, targets, temperature)


def token_logprobs(head: Head, hidden: Tensor, targets: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities [N] of `targets` [N] and entropies [N] from hidden states [N, H] at temperatures [N], in
    float32."""
    logits = head(hidden).float() / temperature.unsqueeze(1)
    logsumexp = torch.logsumexp(logits, dim=-1)
    logprobs = logits.gather(1, targets.unsqueeze(1)).squeeze(1) - logsumexp
    with torch.no_grad():
        entropy = logsumexp - (torch.softmax(logits, dim=-1) * logits).sum(dim=-1)
    return logprobs, entropy
