"""The files of a local checkpoint: config.json, the tokenizer and the weights, as Hugging Face packages write them.

`check_checkpoint(Path("models/qwen"), "model.path: models/qwen")` raises an error of one line for a folder that lacks
one of them, before any stage runs. It reads only the beginning of each file of weights.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from truegold.verifiers import SetupError

INDICES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
"""The names of files that list the files of weights."""
WEIGHTS = ("model*.safetensors", "consolidated*.safetensors", "pytorch_model*.bin")
"""The patterns of the names of files of weights."""
TOKENIZERS = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "*.tiktoken",
    "tekken.json",
)
"""The patterns of the names of a tokenizer's files."""
POINTER = b"version https://git-lfs"
"""The beginning of a file that git-lfs has not downloaded."""


def check_checkpoint(folder: Path, label: str, *, weights: bool = True) -> None:
    """Raise SetupError if a folder is not a whole checkpoint. `label` begins the message.

    Without `weights`, only config.json and the tokenizer are needed, as for a model that is served elsewhere.
    """
    if not (folder / "config.json").exists():
        adapter = (folder / "adapter_config.json").exists()
        advice = "Merge the adapter into its model, and give the merged model." if adapter else WHOLE
        raise SetupError(f"{label} {'is a LoRA adapter: it ' if adapter else ''}has no config.json.", advice)
    settings = read_settings(folder / "config.json", label)
    if "model_type" not in settings:
        raise SetupError(f"{label}: its config.json names no model_type.", WHOLE)
    tokenizers = [file for pattern in TOKENIZERS for file in folder.glob(pattern)]
    if not tokenizers:
        raise SetupError(f"{label} has no tokenizer ({', '.join(TOKENIZERS[:3])}, ...).", WHOLE)
    files = list(_weight_files(folder, label)) if weights else []
    if weights and not files:
        raise SetupError(f"{label} has no weights ({', '.join(WEIGHTS)}).", WHOLE)
    for file in (*tokenizers, *files):
        _check_file(file, label)


WHOLE = "Give the folder of a whole Hugging Face checkpoint: config.json, tokenizer and weights."


def read_settings(path: Path, label: str) -> Mapping[str, Any]:
    """Return the object in a JSON file of a checkpoint. Raises SetupError if there is none."""
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SetupError(f"{label}: {path.name} is not JSON ({error}).", "Copy or download it again.") from None
    if not isinstance(settings, dict):
        raise SetupError(f"{label}: {path.name} is not a JSON object.", "Copy or download it again.")
    return settings


def _weight_files(folder: Path, label: str) -> Iterator[Path]:
    """Yield the files of weights. Raises SetupError if an index lists a file that does not exist."""
    index = next((folder / name for name in INDICES if (folder / name).exists()), None)
    if index is None:
        yield from sorted(file for pattern in WEIGHTS for file in folder.glob(pattern))
        return
    listed = sorted(set(read_settings(index, label).get("weight_map", {}).values()))
    if missing := [name for name in listed if not (folder / name).exists()]:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise SetupError(
            f"{label} lacks {missing[0]}{more} of {len(listed)} files of weights in {index.name}.",
            "Download the missing files.",
        )
    yield from (folder / name for name in listed)


def _check_file(file: Path, label: str) -> None:
    """Raise SetupError for a file that is empty, cut off, or was not downloaded."""
    with file.open("rb") as opened:
        start = opened.read(len(POINTER))
    if start == POINTER:
        raise SetupError(f"{label}: {file.name} is a pointer of git-lfs, not the file.", "Download it: git lfs pull")
    if not start:
        raise SetupError(f"{label}: {file.name} is empty.", "Copy or download it again.")
    if file.suffix != ".safetensors":
        return
    with suppress(ImportError):
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(file, framework="numpy"):
                pass
        except SafetensorError as error:
            raise SetupError(
                f"{label}: {file.name} is cut off or damaged ({error}).", "Copy or download it again."
            ) from None
