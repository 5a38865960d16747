"""The checkpoints that all trainers start from, made so that no completion ends by itself: SmolLM2-135M-Instruct, and
the tiny model with random weights.

The end-of-sequence token becomes one that the model never writes: SmolLM2 has never learnt it, and the tiny model gets
weights that keep its logit 20 below the others. What would have ended a completion is sampled as any other token, so
all completions have the length that the setting allows.
"""

from __future__ import annotations

import json
from pathlib import Path

from truegold.pipeline.running.progress import NullProgress
from truegold.train.config.models import SmolLM2Model, TinyModel
from truegold.train.model.checkpoints import build_tiny, convert_smollm2

UNUSED = "<gh_stars>"
"""A special token of SmolLM2's vocabulary that stands in no text of its training."""
POSITIONS = 512
"""The longest prompt plus completion of the tiny model."""


def make_checkpoint(work: Path, model: str, problems: Path) -> Path:
    """The checkpoint's folder, made on first use. problems: what the tiny model's tokenizer is trained on."""
    parent = work / "models" / model
    folder = parent / "checkpoint"
    if not (folder / "made").exists():
        if model == "tiny":
            parent.mkdir(parents=True, exist_ok=True)
            lines = [json.loads(line) for line in problems.read_text().splitlines()[:2000]]
            texts = [{"prompt": line["question"], "completion": line["answer"]} for line in lines]
            (parent / "texts.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
            build_tiny({"texts": parent / "texts.jsonl"}, TinyModel(max_positions=POSITIONS), parent, NullProgress())
            keep_low(folder)
        else:
            convert_smollm2({}, SmolLM2Model(dtype="float32"), parent, NullProgress())
            without_end(folder)
        (folder / "made").write_text("")
    return folder


def without_end(folder: Path) -> None:
    """Name `UNUSED` the end-of-sequence token, everywhere."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    unused = tokenizer.convert_tokens_to_ids(UNUSED)
    tokenizer.eos_token = UNUSED
    tokenizer.pad_token = UNUSED
    tokenizer.save_pretrained(str(folder))
    for name in ("config.json", "generation_config.json"):
        path = folder / name
        if path.exists():
            path.write_text(json.dumps(json.loads(path.read_text()) | {"eos_token_id": unused, "pad_token_id": unused}))


def keep_low(folder: Path) -> None:
    """Give the tiny model weights that never lead to its end-of-sequence token: the first dimension of the residual
    stream is the same at every position, and the token's embedding points against it."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(str(folder))
    with torch.no_grad():
        embeddings = model.get_input_embeddings().weight
        embeddings[:, 0] = 1.0
        embeddings[model.config.eos_token_id, 0] = -1.0
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight[0] = 0.0
            layer.mlp.down_proj.weight[0] = 0.0
    model.save_pretrained(str(folder))
