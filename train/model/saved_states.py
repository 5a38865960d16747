"""Checkpoints of a training on disk: their parts, the checkpoint from which a killed run continues, and their removal.

    checkpoints/latest.json            {"tag": "step-000060", "step": 60}: a killed run continues from this checkpoint
    step-000060/trainer_state.pt       position in the data, state of the guards, random states
    step-000060/model.safetensors      with config, tokenizer and generation_config, for `from_pretrained` and vLLM
    step-000060/deepspeed/             weights and optimizer state of all ranks, only in the newest checkpoint
    step-000000/trainer_state.pt       the only file of step 0, whose weights are in the model's folder

A checkpoint is written into a temporary folder and then renamed. So a kill leaves the earlier checkpoints intact.
"""

from __future__ import annotations

import errno
import json
import re
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from truegold.pipeline.running.disk import is_full, write_whole
from truegold.train.model.policy import load_causal_lm
from truegold.verifiers import SetupError

LATEST = "latest.json"
"""The file that names the checkpoint from which a killed run continues."""
TAG_PREFIX = "step-"
"""The start of the name of a checkpoint, which DeepSpeed calls its tag."""
ASIDE = "writing"
"""The folder of a checkpoint while it is written."""
TRAINER_STATE = "trainer_state.pt"
"""The file with the state of a training, except weights and optimizer."""
DEEPSPEED = "deepspeed"
"""The folder, in a checkpoint, of weights and optimizer state in DeepSpeed's format."""
CARD = "README.md"
"""The model card, which only checkpoints of `save_every` have."""
CONFIG = "config.json"
"""A file that marks checkpoints with weights in Hugging Face's format."""
ROOM = 2**20
"""Bytes that a checkpoint needs in addition to weights and optimizer state."""
CUT_SHORT = re.compile(r"inline_container|unexpected pos|PytorchStreamWriter|iostream error|os error (?:28|122|27)")
"""Messages of torch and safetensors for a full disk, or for a file that is too large."""


def checkpoint_steps(folder: Path) -> list[int]:
    """Return the steps of all checkpoints in a folder, in ascending order."""
    return sorted(int(path.name.removeprefix(TAG_PREFIX)) for path in folder.glob(f"{TAG_PREFIX}*") if path.is_dir())


def step_folder(folder: Path, step: int) -> Path:
    """Return the folder of a step's checkpoint, such as step-000020."""
    return folder / f"{TAG_PREFIX}{step:06d}"


def latest_step(folder: Path) -> int | None:
    """Return the step of the checkpoint from which a killed run continues, or None if there is none."""
    pointer = folder / LATEST
    return int(json.loads(pointer.read_text())["step"]) if pointer.exists() else None


def point_to(folder: Path, step: int) -> None:
    """Make a killed run continue from the checkpoint of a step, and remove later checkpoints."""
    tag = step_folder(folder, step).name
    write_whole(folder / LATEST, json.dumps({"tag": tag, "step": step}).encode())
    for later in checkpoint_steps(folder):
        if later > step:
            shutil.rmtree(step_folder(folder, later))


def asked_for(folder: Path) -> set[int]:
    """Return the steps whose weights are kept for the user (`save_every`)."""
    return {step for step in checkpoint_steps(folder) if (step_folder(folder, step) / CARD).exists()}


def put_in_place(folder: Path, step: int, kept: Collection[int], *, counts: bool, keeps_optimizer: bool) -> None:
    """Rename a checkpoint that was written into the temporary folder, and remove older ones.

    Checkpoints that are not in `kept` are removed. Unless `keeps_optimizer`, the optimizer states of the kept ones are
    removed, too. counts: whether a killed run continues from this checkpoint. If not, it continues from the one before.
    """
    taken = step_folder(folder, step)
    shutil.rmtree(taken, ignore_errors=True)
    (folder / ASIDE).rename(taken)
    if counts:
        point_to(folder, step)
    latest = latest_step(folder)
    for old in checkpoint_steps(folder):
        if old not in {step, latest, *kept}:
            shutil.rmtree(step_folder(folder, old))
    if not keeps_optimizer:
        drop_optimizers(folder, besides=latest)


def drop_optimizers(folder: Path, besides: int | None = None) -> None:
    """Remove DeepSpeed's part of checkpoints that also have weights in Hugging Face's format, except for step
    `besides`."""
    for old in checkpoint_steps(folder):
        taken = step_folder(folder, old)
        if old != besides and (taken / CONFIG).exists():
            shutil.rmtree(taken / DEEPSPEED, ignore_errors=True)


def make_room(folder: Path, needed: int, note: Callable[[str], None]) -> int:
    """Remove older checkpoints until the disk has `needed` free bytes, and return the number of free bytes.

    The checkpoint from which a killed run continues and checkpoints of `save_every` are never removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / ASIDE, ignore_errors=True)
    spared = {latest_step(folder), *asked_for(folder)}
    for old in [step for step in checkpoint_steps(folder) if step not in spared]:
        if shutil.disk_usage(folder).free >= needed:
            break
        shutil.rmtree(step_folder(folder, old))
        note(f"the checkpoint of step {old} was removed: the disk of {folder} is nearly full")
    return shutil.disk_usage(folder).free


def is_cut_short(error: Exception) -> bool:
    """Return whether an error means that the disk is full or does not allow a file of this size."""
    is_too_large = isinstance(error, OSError) and error.errno == errno.EFBIG
    return is_too_large or is_full(error) or CUT_SHORT.search(str(error)) is not None


def no_room(folder: Path, step: int, needed: int, reason: str) -> SetupError:
    """Return the error for a checkpoint that cannot be written. reason: the end of its message."""
    latest = latest_step(folder)
    goes_on = "starts from the beginning" if latest is None else f"continues from the checkpoint of step {latest}"
    return SetupError(
        f"The checkpoint of step {step} cannot be written: it needs {in_mb(needed)} in {folder}, but {reason}.",
        f"Free some space, and run the same command again: it {goes_on}.",
    )


def in_mb(size: int) -> str:
    """Return a size in bytes as text: "12.5 MB", "3.1 GB"."""
    return f"{size / 1e6:,.1f} MB" if size < 1e9 else f"{size / 1e9:,.1f} GB"


def read_client(folder: Path, step: int) -> dict[str, Any]:
    """Return a checkpoint's `state`, and its random states of all ranks as `random`."""
    client: dict[str, Any] = torch.load(step_folder(folder, step) / TRAINER_STATE, weights_only=False)
    return client


@torch.no_grad()
def take_weights(engine: Any, causal_lm: Any, folder: Path) -> None:
    """Load the weights of a Hugging Face checkpoint into a DeepSpeed engine, and set the optimizer's moments to 0."""
    import deepspeed

    parameters = dict(causal_lm.named_parameters())
    dtype = str(next(iter(parameters.values())).dtype).removeprefix("torch.")
    weights = dict(load_causal_lm(folder, dtype).named_parameters())
    is_sharded = engine.zero_optimization_partition_weights()
    for name, parameter in parameters.items():
        with deepspeed.zero.GatheredParameters([parameter], modifier_rank=0, enabled=is_sharded):
            if parameter.numel():
                parameter.copy_(weights[name])
    optimizer = engine.optimizer
    if hasattr(optimizer, "refresh_fp32_params"):
        optimizer.refresh_fp32_params()
    for moments in getattr(optimizer, "optimizer", optimizer).state.values():
        for value in moments.values():
            value.zero_()


def generator_states() -> dict[str, Tensor]:
    """Return the states of this rank's random generators, of the CPU and of its GPU."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore_random_states(states: Mapping[str, Tensor]) -> None:
    """Set this rank's random generators to saved states."""
    torch.set_rng_state(states["cpu"])
    if "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"])
