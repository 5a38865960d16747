"""Loads an encoder that returns a vector for each text: a model of transformers, or a user's function.

encode = load_text_encoder("intfloat/multilingual-e5-small")     # or a function: "path/to/encoder.py:encode"
encode(["Tom has 3 cars.", "Tom owns three cars."])  ->  an array of two unit vectors, shape [2, 384]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import numpy.typing as npt

from truegold.pipeline.sources.hub import quick_hub
from truegold.verifiers import ConfigError, SetupError
from truegold.verifiers.user_code import load_object, split_spelling

BATCH = 32
"""The number of texts that are encoded at a time."""
MAX_TOKENS = 512
"""The number of tokens of a text that are encoded. The rest is ignored."""

Vectors = npt.NDArray[np.float32]


def load_text_encoder(name: str) -> Callable[[Sequence[str]], Vectors]:
    """Load an encoder by its name on the Hugging Face hub, its folder, or its import string (`file.py:function`).

    A model's vector for a text is the mean of its last hidden states. Raises SetupError if the model cannot be loaded,
    and ConfigError if the import string does not name a function.
    """
    spelling = split_spelling(name)
    if spelling is not None:
        return _users_encoder(load_object(*spelling, f"encoder {name!r}"), name)
    try:
        import torch
        from transformers import AutoModel, AutoTokenizer
    except ImportError as error:
        raise SetupError("An encoder needs transformers and torch.", "pip install 'truegold[embed]'") from error
    try:
        with nullcontext() if Path(name).exists() else quick_hub():
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
        return _of_unit_length(np.concatenate([np.zeros((0, model.config.hidden_size), np.float32), *parts]))

    return encode


def _users_encoder(function: object, name: str) -> Callable[[Sequence[str]], Vectors]:
    if not callable(function):
        raise ConfigError(f"encoder {name!r} is not a function.", "It takes a list of texts and returns an array.")

    def encode(texts: Sequence[str]) -> Vectors:
        vectors = np.asarray(function(list(texts)), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ConfigError(
                f"encoder {name!r} returned an array of shape {vectors.shape} for {len(texts)} texts.",
                "It has to have a row for each text.",
            )
        return _of_unit_length(vectors)

    return encode


def _of_unit_length(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return unit
