"""The optimizer's states leave the GPU while vLLM samples on it: moments, master weights and sums of gradients.

    states = OptimizerStates(deepspeed_engine)
    states.leave()        to page-locked memory of the host, which is taken once; sums of gradients are dropped
    states.come_back()    bit for bit, and sums of gradients as zeros

Storages are emptied and filled again, as FSDP does with weights, so that tensors and all views of them stay what they
are, at ZeRO 0 to 3. DeepSpeed's own `offload_states` puts other tensors in their place: it has no such method at ZeRO 1
in bfloat16, where views in `_hp_mapping` would keep the memory, and it refuses torch's AdamW at ZeRO 3.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch
from torch import Tensor

SMALLEST = 4096
"""Storages of fewer bytes stay, such as AdamW's counts of steps."""
CHUNK = 2**28
"""Memory of the host is taken in pieces of this many bytes: torch rounds what it page-locks up to a power of two."""
GRADIENTS = ("grad", "ipg_bucket")
"""Parts of the names under which DeepSpeed keeps gradients and buffers for them: worthless between two steps."""


@dataclass
class HostMemory:
    """Bytes of the host in chunks, page-locked where they go to and from a GPU."""

    is_page_locked: bool
    chunks: list[Tensor] = field(default_factory=list)

    def reserve(self, size: int) -> None:
        """Have room for this many bytes from now on."""
        while len(self.chunks) * CHUNK < size:
            self.chunks.append(torch.empty(CHUNK, dtype=torch.uint8, pin_memory=self.is_page_locked))

    def pieces(self, start: int, size: int) -> Iterator[tuple[Tensor, slice]]:
        """Yield the parts of [start, start + size), with the part of the `size` bytes that each of them holds."""
        done = 0
        while done < size:
            chunk, offset = divmod(start + done, CHUNK)
            length = min(size - done, CHUNK - offset)
            yield self.chunks[chunk][offset : offset + length], slice(done, done + length)
            done += length


@dataclass(frozen=True)
class _Away:
    """A storage that is empty for now."""

    storage: torch.UntypedStorage
    size: int
    start: int | None
    """The position of its bytes in the host's memory, or None if they were dropped."""


class OptimizerStates:
    """The states of a DeepSpeed engine's optimizer. Each rank moves its own."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._device: torch.device = engine.device
        self._host = HostMemory(self._device.type == "cuda")
        self._away: list[_Away] = []

    @property
    def are_away(self) -> bool:
        """Whether they are in the host's memory."""
        return bool(self._away)

    def leave(self) -> None:
        """Move the states to the host. What they took of the GPU is the driver's again."""
        if self._away:
            return
        planned, end = [], 0
        for storage, is_gradient in self._storages():
            size = storage.nbytes()
            planned.append(_Away(storage, size, None if is_gradient else end))
            end += 0 if is_gradient else size
        self._host.reserve(end)
        for away in planned:
            if away.start is not None:
                values = _bytes_of(away.storage)
                for piece, part in self._host.pieces(away.start, away.size):
                    piece.copy_(values[part], non_blocking=True)
        self._finish()
        for away in planned:
            away.storage.resize_(0)
        self._away = planned
        return_memory()

    def come_back(self) -> None:
        """Undo `leave`. Where the GPU has no room for all, those that are back stay, and it may be called again."""
        while self._away:
            away = self._away[-1]
            away.storage.resize_(away.size)
            values = _bytes_of(away.storage)
            if away.start is None:
                values.zero_()
            else:
                for piece, part in self._host.pieces(away.start, away.size):
                    values[part].copy_(piece, non_blocking=True)
            self._away.pop()
        self._finish()

    def _finish(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def _storages(self) -> list[tuple[torch.UntypedStorage, bool]]:
        """Return the storages of all states on this device, with whether gradients alone are in there. The model's own
        weights are left out."""
        module = self._engine.module
        weights = chain(module.parameters(), module.buffers())
        # Under ZeRO 3 a weight is empty, and the rank's share of it is in `ds_tensor`.
        shares = chain.from_iterable((weight, getattr(weight, "ds_tensor", weight)) for weight in weights)
        kept = {share.untyped_storage()._cdata for share in shares}
        storages: dict[int, tuple[torch.UntypedStorage, bool]] = {}
        for name, tensor in _tensors(self._engine.optimizer, "", set()):
            storage = tensor.untyped_storage()
            is_ours = tensor.device == self._device and storage._cdata not in kept
            if is_ours and storage.nbytes() >= SMALLEST and storage.resizable():
                _, were_gradients = storages.get(storage._cdata, (storage, True))
                is_gradient = any(part in name for part in GRADIENTS)
                storages[storage._cdata] = storage, were_gradients and is_gradient
        return list(storages.values())


def return_memory() -> None:
    """Give the driver back what torch's allocator keeps of a GPU: vLLM and NCCL take theirs past it."""
    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()


def _tensors(holder: Any, name: str, seen: set[int]) -> Iterator[tuple[str, Tensor]]:
    """Yield all tensors that an optimizer holds, through lists, dictionaries and objects of DeepSpeed, with the names
    of the attributes that lead to them: `.optimizer.state.exp_avg`."""
    if id(holder) in seen:
        return
    seen.add(id(holder))
    if isinstance(holder, Tensor):
        yield name, holder
    elif isinstance(holder, Mapping):
        for key, value in holder.items():
            yield from _tensors(key, name, seen)
            yield from _tensors(value, f"{name}.{key}" if isinstance(key, str) else name, seen)
    elif isinstance(holder, list | tuple | set):
        for value in holder:
            yield from _tensors(value, name, seen)
    elif isinstance(holder, torch.optim.Optimizer) or (
        type(holder).__module__.startswith("deepspeed.") and not isinstance(holder, torch.nn.Module)
    ):
        for attribute, value in getattr(holder, "__dict__", {}).items():
            yield from _tensors(value, f"{name}.{attribute}", seen)


def _bytes_of(storage: torch.UntypedStorage) -> Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
