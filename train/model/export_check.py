"""Compares an exported checkpoint with the policy that was trained.

exported: down_proj of layer 1 is of zeros        refused, and taken away
a file is cut, or has the weights of step 0       refused, and taken away
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from truegold.train.model.distributed import from_first_rank, rank
from truegold.train.model.policy import load_causal_lm
from truegold.verifiers import GuardError

EXPORT = "export"
"""The alarms' name for an exported checkpoint that is not the policy."""
SHOWN = 3
"""Tensors that are named of those that an export has wrong."""


def check_export(folder: Path, tensors: Iterator[tuple[str, Tensor]], dtype: str) -> None:
    """Load the exported checkpoint as everybody would, and compare it with the weights in training; every rank calls
    this together.

    tensors: the weights in training, as `TrainingEngine.named_tensors` gives them. Raises GuardError if the two differ,
    with the folder taken away.
    """
    is_first = rank() == 0
    exported, reason = _read_export(folder, dtype) if is_first else ({}, None)
    wrong: list[str] = []
    for name, tensor in tensors:
        if is_first and reason is None and not _is_same(tensor, exported.get(name)):
            wrong.append(name)
    if wrong:
        more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        reason = f"{', '.join(wrong[:SHOWN])}{more} are not those of the training, or not finite"
    refuse_export(folder, reason)


def refuse_export(folder: Path, reason: str | None) -> None:
    """Take an exported checkpoint away, and raise GuardError on every rank, where the first rank has a reason."""
    reason = from_first_rank(reason)
    if reason is None:
        return
    if rank() == 0:
        shutil.rmtree(folder, ignore_errors=True)
    raise GuardError(
        f"The exported checkpoint is not the policy that was trained: {reason}. It was taken away.",
        "Look at the disk and at what writes the checkpoint; the same command exports again from the last checkpoint.",
        EXPORT,
    )


def _read_export(folder: Path, dtype: str) -> tuple[dict[str, Tensor], str | None]:
    """Return the weights of a checkpoint by name, its output head's among them; or why it cannot be loaded."""
    try:
        loaded: Any = load_causal_lm(folder, dtype)
    except Exception as error:
        return {}, f"it cannot be loaded ({str(error).strip().splitlines()[0][:200]})"
    head = {"lm_head.weight": loaded.get_output_embeddings().weight}
    return {**head, **dict(loaded.named_parameters())}, None


def _is_same(trained: Tensor, exported: Tensor | None) -> bool:
    """Say whether a tensor was exported as it is, and can be used."""
    if exported is None or exported.shape != trained.shape:
        return False
    return bool(trained.isfinite().all()) and torch.equal(exported.to(trained.dtype), trained.detach().cpu())
