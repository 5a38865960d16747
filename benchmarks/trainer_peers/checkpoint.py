"""The checkpoint that all trainers start from: SmolLM2-135M-Instruct, made so that no completion ends by itself.

Its end-of-sequence token becomes one that the model never learnt to write. What it would have ended with is sampled as
any other token, so all completions have the length that the setting allows.
"""

from __future__ import annotations

import json
from pathlib import Path

from truegold.pipeline.running.progress import NullProgress
from truegold.train.config.models import SmolLM2Model
from truegold.train.model.checkpoints import convert_smollm2

UNUSED = "<gh_stars>"
"""A special token of the vocabulary that stands in no text of its training."""


def make_checkpoint(work: Path) -> Path:
    """The checkpoint's folder, made on first use."""
    folder = work / "model" / "checkpoint"
    if not (folder / "made").exists():
        convert_smollm2({}, SmolLM2Model(dtype="float32"), folder.parent, NullProgress())
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
