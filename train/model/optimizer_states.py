"""Optimizer states that are moved to host memory while vLLM samples on the GPU.

    states = OptimizerStates(deepspeed_engine)
    states.leave()        moves moments and master weights to page-locked host memory, and drops sums of gradients
    states.come_back()    moves them back bit for bit; sums of gradients are zeros

Storages are resized to 0 and back, as FSDP does with weights. So tensors and all views of them stay valid, at ZeRO 0 to
3. DeepSpeed's own method `offload_states` replaces tensors. It is not used here, because it does not work at ZeRO 1 in
bfloat16, and refuses torch's AdamW at ZeRO 3. (At ZeRO 1 in bfloat16, views in `_hp_mapping` keep the old tensors, so
replacing tensors frees no memory.)
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
"""Storages of fewer bytes, such as AdamW's counts of steps, are not moved."""
CHUNK = 2**28
"""The size in bytes of a chunk of host memory. Torch rounds page-locked memory up to a power of two."""
GRADIENTS = ("grad", "ipg_bucket")
"""Parts of the attribute names of DeepSpeed's gradients and their buffers. These are not needed between two steps."""


@dataclass
class HostMemory:
    """Host memory in chunks of `CHUNK` bytes, page-locked for copies to and from a GPU."""

    is_page_locked: bool
    chunks: list[Tensor] = field(default_factory=list)

    def reserve(self, size: int) -> None:
        """Allocate at least `size` bytes in all."""
        while len(self.chunks) * CHUNK < size:
            self.chunks.append(torch.empty(CHUNK, dtype=torch.uint8, pin_memory=self.is_page_locked))

    def pieces(self, start: int, size: int) -> Iterator[tuple[Tensor, slice]]:
        """Yield the pieces of memory for the bytes [start, start + size), each with its slice of the `size` bytes."""
        done = 0
        while done < size:
            chunk, offset = divmod(start + done, CHUNK)
            length = min(size - done, CHUNK - offset)
            yield self.chunks[chunk][offset : offset + length], slice(done, done + length)
            done += length


@dataclass(frozen=True)
class _Away:
    """A storage whose bytes were moved to host memory."""

    storage: torch.UntypedStorage
    size: int
    """The size of the storage in bytes."""
    start: int | None
    """The position of the bytes in host memory, or None if they were dropped."""


class OptimizerStates:
    """The optimizer states of a DeepSpeed engine. Each rank moves its own states."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._device: torch.device = engine.device
        self._host = HostMemory(self._device.type == "cuda")
        self._away: list[_Away] = []

    @property
    def are_away(self) -> bool:
        """Whether the states are in host memory."""
        return bool(self._away)

    def leave(self) -> None:
        """Move the states to host memory, and return their GPU memory to the driver."""
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
        """Move the states back to the GPU. If the GPU has too little memory, call again later for the remaining
        states."""
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
        """Wait for all copies."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def _storages(self) -> list[tuple[torch.UntypedStorage, bool]]:
        """Return the storages of all states on this device, and for each whether it has only gradients.

        The model's weights are not included.
        """
        module = self._engine.module
        weights = chain(module.parameters(), module.buffers())
        # Under ZeRO 3 a weight is empty. The rank's share is in its `ds_tensor`.
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
    """Return unused GPU memory from torch's allocator to the driver, from which vLLM and NCCL take theirs."""
    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()


def _tensors(holder: Any, name: str, seen: set[int]) -> Iterator[tuple[str, Tensor]]:
    """Yield all tensors of an optimizer with their paths, such as `.optimizer.state.exp_avg`.

    Lists, dictionaries and objects of DeepSpeed are searched recursively. seen: ids of objects that were searched.
    """
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
    """Return a view of a storage as uint8 [bytes]."""
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
