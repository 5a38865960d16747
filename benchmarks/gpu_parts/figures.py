"""What every part has in common: figures in JSON lines, the device, models of Qwen2.5's configurations."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

VOCABULARY = 151_936
QWEN = {
    "tiny": {"hidden": 64, "inner": 160, "layers": 2, "heads": 4, "kv": 2, "vocabulary": 512, "tied": True},
    "0.5b": {"hidden": 896, "inner": 4864, "layers": 24, "heads": 14, "kv": 2, "vocabulary": VOCABULARY, "tied": True},
    "1.5b": {"hidden": 1536, "inner": 8960, "layers": 28, "heads": 12, "kv": 2, "vocabulary": VOCABULARY, "tied": True},
    "3b": {"hidden": 2048, "inner": 11008, "layers": 36, "heads": 16, "kv": 2, "vocabulary": VOCABULARY, "tied": True},
    "7b": {"hidden": 3584, "inner": 18944, "layers": 28, "heads": 28, "kv": 4, "vocabulary": 152_064, "tied": False},
}
"""Qwen2.5's sizes."""


class Figures:
    """Appends figures to `folder`/figures.jsonl."""

    def __init__(self, folder: Path, part: str) -> None:
        self.path = folder / "figures.jsonl"
        self._part = part
        self._started = time.monotonic()

    def write(self, figure: str, **values: Any) -> None:
        """Write one figure."""
        line = {"part": self._part, "figure": figure, **values, "at_s": round(time.monotonic() - self._started, 2)}
        with self.path.open("a") as lines:
            lines.write(json.dumps(line, default=str) + "\n")

    @contextmanager
    def attempt(self, figure: str, **values: Any) -> Iterator[None]:
        """Write what is raised, with its traceback, in place of the figure, and go on."""
        try:
            yield
        except Exception as error:
            text = f"{type(error).__name__}: {error}"[:500]
            self.write(figure, **values, error=text, traceback=traceback.format_exc()[-4000:])


def device() -> torch.device:
    """Return the GPU, or the CPU where there is none."""
    import torch

    return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")


def machine() -> dict[str, Any]:
    """Return what a reader has to know of the machine."""
    import deepspeed
    import torch
    import transformers

    facts: dict[str, Any] = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "deepspeed": deepspeed.__version__,
        "cpus": os.cpu_count(),
    }
    if torch.cuda.is_available():
        card = torch.cuda.get_device_properties(0)
        facts |= {"card": card.name, "bytes": card.total_memory, "nccl": str(torch.cuda.nccl.version())}
    return facts


def qwen_config(size: str) -> Any:
    """Return the configuration of a Qwen2.5 of that size."""
    from transformers import Qwen2Config

    shape = QWEN[size]
    return Qwen2Config(
        vocab_size=shape["vocabulary"],
        hidden_size=shape["hidden"],
        intermediate_size=shape["inner"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        num_key_value_heads=shape["kv"],
        max_position_embeddings=32_768,
        tie_word_embeddings=shape["tied"],
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
    )


def random_qwen(size: str, dtype: torch.dtype, seed: int = 0) -> Any:
    """Return a random model of that size on the device, in that dtype."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    with device():
        return AutoModelForCausalLM.from_config(qwen_config(size), dtype=dtype)


def synchronize() -> None:
    """Wait until the GPU has done all that it was asked for."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def allocated() -> int:
    """Return the bytes of all tensors of this process on the GPU; 0 on the CPU."""
    import torch

    return torch.cuda.memory_allocated() if torch.cuda.is_available() else 0


def peak() -> int:
    """Return the largest `allocated` since `reset_peak`."""
    import torch

    return torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0


def reserved_peak() -> int:
    """Return the most that the allocator has taken from the GPU since `reset_peak`: what nvidia-smi shows but for the
    context."""
    import torch

    return torch.cuda.max_memory_reserved() if torch.cuda.is_available() else 0


def reset_peak() -> None:
    """Begin to measure peaks anew."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def give_back() -> None:
    """Collect garbage, and give what the allocator keeps back to the GPU."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
