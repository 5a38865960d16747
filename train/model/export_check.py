"""Comparison of an exported checkpoint with the trained policy. A checkpoint that differs is removed, with an error.

The comparison finds, for example, a tensor of zeros, a truncated file, or the weights of an earlier step.
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
"""The name, in alarms, of an exported checkpoint that differs from the policy."""
SHOWN = 3
"""The largest number of differing tensors that an error names."""


def check_export(folder: Path, tensors: Iterator[tuple[str, Tensor]], dtype: str) -> None:
    """Load an exported checkpoint with transformers and compare it with the weights in training.

    All ranks call this together. tensors: the weights in training, from `TrainingEngine.named_tensors`. dtype: the
    checkpoint's dtype. Raises GuardError if the two differ, and removes the folder.
    """
    is_first = rank() == 0
    exported, reason = _read_export(folder, dtype) if is_first else ({}, None)
    wrong: list[str] = []
    for name, tensor in tensors:
        if is_first and reason is None and not _is_same(tensor, exported.get(name)):
            wrong.append(name)
    if wrong:
        more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        reason = f"{', '.join(wrong[:SHOWN])}{more} differ from the training's weights, or are not finite"
    refuse_export(folder, reason)


def refuse_export(folder: Path, reason: str | None) -> None:
    """Remove an exported checkpoint and raise GuardError on all ranks, if `reason` is not None on rank 0."""
    reason = from_first_rank(reason)
    if reason is None:
        return
    if rank() == 0:
        shutil.rmtree(folder, ignore_errors=True)
    raise GuardError(
        f"The exported checkpoint is not the policy that was trained: {reason}. It was removed.",
        "Check the disk and other writers of this folder; the same command exports again from the last checkpoint.",
        EXPORT,
    )


def _read_export(folder: Path, dtype: str) -> tuple[dict[str, Tensor], str | None]:
    """Return the weights of a checkpoint by name, output head included, and the reason if it cannot be loaded."""
    try:
        loaded: Any = load_causal_lm(folder, dtype)
    except Exception as error:
        return {}, f"it cannot be loaded ({str(error).strip().splitlines()[0][:200]})"
    head = {"lm_head.weight": loaded.get_output_embeddings().weight}
    return {**head, **dict(loaded.named_parameters())}, None


def _is_same(trained: Tensor, exported: Tensor | None) -> bool:
    if exported is None or exported.shape != trained.shape:
        return False
    return bool(trained.isfinite().all()) and torch.equal(exported.to(trained.dtype), trained.detach().cpu())
