"""Gives back what vLLM's CPU build holds between rollouts. Run inside its worker, by `collective_rpc`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from truegold.pipeline.engines.host_memory import discard

if TYPE_CHECKING:
    from torch import Tensor

LARGE = 2**20
"""Bytes of a tensor from which its pages are given back."""


def release_cache(worker: Any) -> None:
    """Empty the key-value cache."""
    _discard(worker.model_runner.kv_caches)


def release_weights(worker: Any) -> None:
    """Drop the weights: `reload_weights` has to follow before anything is generated, and brings back all of it.

    Linear layers hold theirs in the closure that multiplies by them, packed; what is left in tensors is written over in
    place when it is reloaded.
    """
    model = worker.get_model()
    for module in model.modules():
        if hasattr(module, "cpu_linear"):
            module.cpu_linear = _asleep
    _discard(model.parameters())


def _discard(tensors: Iterable[Tensor]) -> None:
    storages = (tensor.untyped_storage() for tensor in tensors)  # several may share one
    for address, size in {(storage.data_ptr(), storage.nbytes()) for storage in storages}:
        if size >= LARGE:
            discard(address, size)


def _asleep(*_: Any) -> Any:
    raise RuntimeError("The engine sleeps: it has no weights until update_weights.")
