"""Checkpoints of a training on disk: their parts, the one that counts, and room for the next.

    checkpoints/latest.json            {"tag": "step-000060", "step": 60}: a killed run goes on from there
    step-000060/trainer_state.pt       place in the data, guards, random states
    step-000060/model.safetensors      with config, tokenizer and generation_config: for `from_pretrained` and vLLM
    step-000060/deepspeed/             weights and optimizer of all ranks, of the newest one alone
    step-000000/trainer_state.pt       nothing else: its weights are the model's own, and its moments are 0

Each is written aside and renamed, so that a kill half-way leaves those before.
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
"""Names the checkpoint that counts."""
TAG_PREFIX = "step-"
"""DeepSpeed calls a checkpoint's name its tag."""
ASIDE = "writing"
"""The folder of a checkpoint that is not whole yet."""
TRAINER_STATE = "trainer_state.pt"
DEEPSPEED = "deepspeed"
"""The folder of weights and optimizer as DeepSpeed writes them, inside of a checkpoint's."""
CARD = "README.md"
"""Only weights that the user has asked for have one."""
CONFIG = "config.json"
"""The file that checkpoints with weights in Hugging Face's format have."""
ROOM = 2**20
"""Bytes that a checkpoint needs besides weights and optimizer."""
CUT_SHORT = re.compile(r"inline_container|unexpected pos|PytorchStreamWriter|iostream error|os error (?:28|122|27)")
"""Messages of torch and safetensors for a file that takes no more, in place of the system's error."""


def checkpoint_steps(folder: Path) -> list[int]:
    """Return the steps of a folder's checkpoints, in order."""
    return sorted(int(path.name.removeprefix(TAG_PREFIX)) for path in folder.glob(f"{TAG_PREFIX}*") if path.is_dir())


def step_folder(folder: Path, step: int) -> Path:
    """Return the folder of a step's checkpoint, such as step-000020."""
    return folder / f"{TAG_PREFIX}{step:06d}"


def latest_step(folder: Path) -> int | None:
    """Return the step of the checkpoint that counts, or None if there is none."""
    pointer = folder / LATEST
    return int(json.loads(pointer.read_text())["step"]) if pointer.exists() else None


def point_to(folder: Path, step: int) -> None:
    """Make a step's checkpoint the one that counts, and remove those of later steps."""
    tag = step_folder(folder, step).name
    write_whole(folder / LATEST, json.dumps({"tag": tag, "step": step}).encode())
    for later in checkpoint_steps(folder):
        if later > step:
            shutil.rmtree(step_folder(folder, later))


def asked_for(folder: Path) -> set[int]:
    """Return the steps whose weights the user has asked for."""
    return {step for step in checkpoint_steps(folder) if (step_folder(folder, step) / CARD).exists()}


def put_in_place(folder: Path, step: int, kept: Collection[int], *, counts: bool, keeps_optimizer: bool) -> None:
    """Give a checkpoint that was written aside its name, and drop what it takes the place of: checkpoints that are not
    to be `kept`, and the optimizers of the others, unless `keeps_optimizer`.

    counts: whether a killed run goes on from this one. Otherwise it still goes on from the one before.
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
    """Leave checkpoints their weights in Hugging Face's format alone, those that have them."""
    for old in checkpoint_steps(folder):
        taken = step_folder(folder, old)
        if old != besides and (taken / CONFIG).exists():
            shutil.rmtree(taken / DEEPSPEED, ignore_errors=True)


def make_room(folder: Path, needed: int, note: Callable[[str], None]) -> int:
    """Remove older checkpoints where the disk has no room for this many bytes, but neither the one that counts nor what
    the user has asked for; return the bytes that are free then."""
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
    """Return whether an error of a writer means that its disk is full, or takes no file so large."""
    is_too_large = isinstance(error, OSError) and error.errno == errno.EFBIG
    return is_too_large or is_full(error) or CUT_SHORT.search(str(error)) is not None


def no_room(folder: Path, step: int, needed: int, reason: str) -> SetupError:
    """Return the error of a checkpoint that cannot be written."""
    latest = latest_step(folder)
    goes_on = "begins anew" if latest is None else f"goes on from the checkpoint of step {latest}"
    return SetupError(
        f"The checkpoint of step {step} cannot be written: it takes {in_mb(needed)} in {folder}, and {reason}.",
        f"Free some space, and run the same command again: it {goes_on}.",
    )


def in_mb(size: int) -> str:
    """Return a size for people."""
    return f"{size / 1e6:,.1f} MB" if size < 1e9 else f"{size / 1e9:,.1f} GB"


def read_client(folder: Path, step: int) -> dict[str, Any]:
    """Return the parts of a checkpoint besides weights and optimizer: `state` and the random states of all ranks."""
    client: dict[str, Any] = torch.load(step_folder(folder, step) / TRAINER_STATE, weights_only=False)
    return client


@torch.no_grad()
def take_weights(engine: Any, causal_lm: Any, folder: Path) -> None:
    """Give a DeepSpeed engine the weights of a Hugging Face checkpoint; the optimizer's moments begin anew."""
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
    """Return the states of this rank's generators, on the host and on its GPU."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore_random_states(states: Mapping[str, Tensor]) -> None:
    """Set this rank's generators."""
    torch.set_rng_state(states["cpu"])
    if "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"])
