"""Memory that nothing uses yet is not held."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from truegold.pipeline.engines.cpu_memory import discard, lazy_zeros  # noqa: E402

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")

SIZE = 256 * 2**20


def held_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def test_a_large_buffer_of_zeros_takes_memory_only_where_it_is_used() -> None:
    before = held_mib()
    with lazy_zeros():
        buffer = torch.zeros(SIZE, dtype=torch.int8, device="cpu")
    assert held_mib() - before < 16
    assert buffer.data_ptr() % 4096 == 0 and int(buffer[-1]) == 0
    buffer[: SIZE // 2] = 1
    assert held_mib() - before > 100
    discard(buffer.untyped_storage().data_ptr(), buffer.untyped_storage().nbytes())
    assert held_mib() - before < 16
    assert int(buffer[0]) == 0


def test_other_tensors_are_made_as_ever() -> None:
    zeros = torch.zeros
    with lazy_zeros():
        made = [torch.zeros(2**21), torch.zeros((2, 3), dtype=torch.int8), torch.zeros(3, 4, device="cpu")]
    assert torch.zeros is zeros
    assert [(tensor.dtype, tuple(tensor.shape)) for tensor in made] == [
        (torch.float32, (2**21,)),
        (torch.int8, (2, 3)),
        (torch.float32, (3, 4)),
    ]
