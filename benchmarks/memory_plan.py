"""Prints the table of docs/how-to/fit-into-memory.md: settings with which RL fits, by the number and memory of GPUs.

    python benchmarks/memory_plan.py

Shapes are those of Qwen2.5. Nothing is measured: all cells are the plan's estimates.
"""

from __future__ import annotations

from transformers import Qwen2Config

from truegold.train.config.grpo import GrpoConfig
from truegold.train.model.memory_plan import GB, ModelShape, nearest

FIELDS = (
    *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
    *("vocab_size", "tie_word_embeddings"),
)
SIZES = {
    "0.5 B": (896, 4864, 24, 14, 2, 151936, True),
    "1.5 B": (1536, 8960, 28, 12, 2, 151936, True),
    "3 B": (2048, 11008, 36, 16, 2, 151936, True),
    "7 B": (3584, 18944, 28, 28, 4, 152064, False),
    "14 B": (5120, 13824, 48, 40, 8, 152064, False),
    "32 B": (5120, 27648, 64, 40, 8, 152064, False),
}
LETTERS = {
    "engine.gpu_memory_utilization": "u{:g}",
    "engine.sleep": "s",
    "optimizer.micro_batch_tokens": "m{}",
    "optimizer.gradient_checkpointing": "c",
    "optimizer.zero_stage": "z{}",
    "optimizer.offload": "o",
    "optimizer.lora": "l",
}
"""How a cell writes a setting."""
MEMORIES, COUNTS = (24, 48, 80), (1, 2, 4, 8)


def _cell(shape: ModelShape, gpus: int, memory: int) -> str:
    config = GrpoConfig.model_validate({"launch": {"ranks": gpus}})
    changes = nearest(shape, config, gpus, memory * GB, gpus)
    if changes is None:
        return "-"
    return " ".join(LETTERS[name].format(value) for name, value in changes.items()) or "default"


def _main() -> None:
    print(f"| model | GPUs | {' | '.join(f'{memory} GB' for memory in MEMORIES)} |\n|---|---|{'---|' * len(MEMORIES)}")
    for size, values in SIZES.items():
        shape = ModelShape.from_architecture(Qwen2Config(**dict(zip(FIELDS, values, strict=True)), dtype="bfloat16"))
        for gpus in COUNTS:
            cells = " | ".join(_cell(shape, gpus, memory) for memory in MEMORIES)
            print(f"| {size if gpus == 1 else ''} | {gpus} | {cells} |")


if __name__ == "__main__":
    _main()
