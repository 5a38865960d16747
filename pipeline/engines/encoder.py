"""Loads an encoder that makes a vector of each text: any model of transformers, its last hidden states averaged.

load_encoder("intfloat/multilingual-e5-small")(["Tom has 3 cars.", "Tom owns three cars."])  ->  two unit vectors
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from truegold.verifiers import SetupError

BATCH = 32
"""Texts that are encoded at a time."""
MAX_TOKENS = 512
"""Of a longer text only the beginning is encoded."""

Vectors = npt.NDArray[np.float32]


def load_encoder(name: str) -> Callable[[Sequence[str]], Vectors]:
    """Load an encoder by its name on the hub or its folder; a vector is the mean of the last hidden states."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    try:
        tokenizer, model = AutoTokenizer.from_pretrained(name), AutoModel.from_pretrained(name).eval()
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise SetupError(f"The encoder {name} cannot be loaded: {reason}", "Name a folder or a model.") from error
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    tokenizer.padding_side = "right"

    def encode(texts: Sequence[str]) -> Vectors:
        parts = []
        with torch.inference_mode():
            for start in range(0, len(texts), BATCH):
                batch = tokenizer(
                    list(texts[start : start + BATCH]),
                    padding=True,
                    truncation=True,
                    max_length=MAX_TOKENS,
                    return_tensors="pt",
                )
                states = model(**batch).last_hidden_state.float()
                mask = batch["attention_mask"].unsqueeze(-1)
                parts.append(((states * mask).sum(1) / mask.sum(1).clamp(min=1)).numpy())
        vectors = np.concatenate([np.zeros((0, model.config.hidden_size), np.float32), *parts])
        unit: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return unit

    return encode
