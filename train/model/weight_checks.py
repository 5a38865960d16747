"""Checks that weights are what they should be: moving, finite, alike on all ranks, and exported as they are.

|change| of a weight .0002 at a rate of 4e-4       moved .5; 1e-7: 2.5e-4, hardly anything reaches the weights
an embedding is NaN that no batch has asked for    1 tensor is not finite
rank 0 holds the digest 81, rank 1 holds 93        1 rank has other weights
exported: down_proj of layer 1 is of zeros         refused, and taken away
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from truegold.train.model.distributed import from_first_rank, gathered, rank
from truegold.train.model.policy import load_causal_lm
from truegold.verifiers import GuardError

EXPORT = "export"
"""What the alarms call an exported checkpoint that is not the policy."""
NO_WEIGHT = 1e-12
"""A weight below this is as good as none."""
SAMPLE = 4096
"""So many values of each tensor are compared with those before an update."""
INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
SHOWN = 3
"""So many tensors are named that an export has wrong."""


@dataclass(frozen=True)
class WeightsState:
    """What is known of the trained weights of this rank, or of its share of them."""

    digest: int
    """It is another one once a weight is: the sum of all their bits, read as integers. Weights below `NO_WEIGHT` count
    as 0: a rate of 1e-30 moves them, and trains nothing."""
    spoilt: int
    """How many tensors are not finite."""
    sample: Tensor
    """Some values of each float32 tensor; of others none: bfloat16 rounds most small changes away for a while."""


@torch.no_grad()
def examine_weights(trained: Iterable[Tensor]) -> WeightsState:
    """Return the state of these parameters."""
    # Under ZeRO 3 a parameter is empty, and what a rank has of it is beside it.
    shares = [getattr(parameter, "ds_tensor", parameter).detach() for parameter in trained]
    if not shares:
        return WeightsState(0, 0, torch.empty(0))
    rounded = [share.masked_fill(share.abs() < NO_WEIGHT, 0) for share in shares]
    digests = [share.view(INTEGERS[share.element_size()]).sum(dtype=torch.int64) for share in rounded]
    spoilt = torch.stack([~share.sum(dtype=torch.float32).isfinite() for share in shares])
    values = [share.flatten()[:: max(1, share.numel() // SAMPLE)] for share in shares if share.dtype == torch.float32]
    return WeightsState(
        int(torch.stack(digests).sum()),
        int(spoilt.sum()),
        torch.cat([torch.empty(0), *(part.cpu() for part in values)]),
    )


def compare_weights(
    before: WeightsState, after: WeightsState, updates: Sequence[dict[str, float]], *, is_whole: bool
) -> dict[str, float]:
    """Return what an update has done to the weights, over all ranks, which call this together.

    weights_moved       the mean change of a weight, relative to the sum of the updates' learning rates, 1 at most;
                        in bfloat16 1 where any bit has changed
    weights_spoilt      tensors that are not finite, on the worst rank
    ranks_drifted       ranks that hold other weights than the first one

    is_whole: whether every rank holds all weights.
    """
    rate = sum(update["lr"] for update in updates)
    moved = float(after.digest != before.digest)
    if moved and rate and len(after.sample):
        moved = min(1.0, float((after.sample - before.sample).abs().mean()) / rate)
    ranks = gathered((moved, after.spoilt, after.digest))
    digests = [digest for *_, digest in ranks]
    return {
        "weights_moved": max(moved for moved, *_ in ranks),
        "weights_spoilt": float(max(spoilt for _, spoilt, _ in ranks)),
        "ranks_drifted": float(sum(digest != digests[0] for digest in digests)) if is_whole else 0.0,
    }


def check_export(folder: Path, tensors: Iterator[tuple[str, Tensor]], dtype: str) -> None:
    """Load the exported checkpoint as everybody would, and compare it with the weights in training; every rank calls
    this together.

    tensors: the weights in training, as `TrainingEngine.named_tensors` gives them. Raises GuardError where the two
    differ, with the folder taken away.
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
