"""Keys and values of prompts, for the completions that follow them.

Neither cache changes when a layer runs a second time, so both go through gradient checkpointing, which Hugging Face
otherwise refuses to a cache.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer
from transformers.modeling_layers import GradientCheckpointingLayer

from truegold.train.model.logits import decoder_of


class PromptCache(DynamicCache):  # type: ignore[misc]
    """Keeps each layer's keys and values [Q, heads, P, head size] of its first run. No token comes before them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers_held: dict[int, tuple[Tensor, Tensor]] = {}

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Keep a layer's keys and values where it has none yet, and return those given."""
        self.layers_held.setdefault(layer_idx, (key_states, value_states))
        return key_states, value_states


class PrefixCache(DynamicCache):  # type: ignore[misc]
    """Puts the keys and values of each row's prompt before the row's own; keeps none."""

    def __init__(self, prompts: PromptCache, prompt_index: Tensor) -> None:
        """prompt_index: [B], the position of each row's prompt among those that ran with `prompts`."""
        super().__init__()
        self._layers_held = prompts.layers_held
        self._prompt_index = prompt_index
        self._length = prompts.layers_held[0][0].shape[-2]

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Return a layer's keys and values behind those of the prompts."""
        keys, values = (held[self._prompt_index] for held in self._layers_held[layer_idx])
        return torch.cat([keys, key_states], dim=-2), torch.cat([values, value_states], dim=-2)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the length of the prompts, padding included."""
        return self._length

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        """Return how many keys a query meets, and where they begin."""
        return self._length + query_length, 0


@torch.no_grad()
def keeps_whole_cache(causal_lm: Any) -> bool:
    """Return whether all that the model keeps of a prompt are keys and values of each of its tokens.

    A sliding window and recurrent layers keep less.
    """
    decoder = decoder_of(causal_lm)
    ids = torch.ones((1, 2), dtype=torch.int64, device=causal_lm.device)
    cache = getattr(decoder(input_ids=ids, use_cache=True), "past_key_values", None)
    return all(type(layer) is DynamicLayer for layer in getattr(cache, "layers", [None]))


def checkpoint_with_cache(causal_lm: Any) -> bool:
    """Let gradient checkpointing hand these caches to the layers. Returns whether the architecture can."""
    layers = [module for module in causal_lm.modules() if isinstance(module, GradientCheckpointingLayer)]
    for layer in layers:
        layer._can_checkpoint_with_cache = True
    return bool(layers) and hasattr(GradientCheckpointingLayer, "_can_checkpoint_with_cache")
