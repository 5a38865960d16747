"""The threads that vLLM samples with on a CPU follow the cores that other work leaves."""

from __future__ import annotations

import os

import pytest

torch = pytest.importorskip("torch")

from truegold.pipeline.engines import vllm_local  # noqa: E402


@pytest.fixture(autouse=True)
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of threads that torch was told; nothing in the environment names one."""
    told: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", told.append)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    return told


def set_machine(
    monkeypatch: pytest.MonkeyPatch, cores: int, usable: int, lately: float = 0.0, now: float | None = 0.0
) -> None:
    """Pretend to a machine with such a load, of whose cores so many may be used."""
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(vllm_local, "usable_cores", lambda: usable)
    monkeypatch.setattr(os, "getloadavg", lambda: (lately, 0.0, 0.0))
    monkeypatch.setattr(vllm_local, "_wanting_to_run", lambda: now)


@pytest.mark.parametrize(
    ("cores", "usable", "lately", "now", "threads"),
    [
        (2, 2, 0.1, 0.2, 2),
        (2, 2, 11.0, 9.0, 1),
        (2, 2, 2.0, 0.0, 2),  # What this run did before is over.
        (2, 2, 0.2, 3.0, 2),  # A moment is no load.
        (2, 2, 1.0, 1.0, 1),
        (2, 2, 0.5, 0.5, 2),
        (2, 2, 0.6, 0.6, 1),
        (16, 16, 7.5, 8.0, 9),
        (64, 4, 30.0, 30.0, 4),  # A container may use 4 of 64.
        (64, 4, 62.0, 62.0, 2),
        (8, 8, 3.0, None, 5),  # Not Linux.
    ],
)
def test_threads_are_as_many_as_cores_are_free(
    monkeypatch: pytest.MonkeyPatch,
    chosen: list[int],
    cores: int,
    usable: int,
    lately: float,
    now: float | None,
    threads: int,
) -> None:
    set_machine(monkeypatch, cores, usable, lately, now)
    line = vllm_local._set_threads(None, beside_trainer=False)
    assert chosen == [threads]
    assert line.startswith(f"{threads} thread{'' if threads == 1 else 's'} on {usable} cores (other work keeps ")


def test_a_setting_counts_before_everything_else(monkeypatch: pytest.MonkeyPatch, chosen: list[int]) -> None:
    set_machine(monkeypatch, 8, 8, 8.0, 8.0)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "0-3")
    assert vllm_local._set_threads(6, beside_trainer=True) == "6 threads on 8 cores (engine.cpu_threads)"
    assert chosen == [6]


def test_what_the_environment_names_or_a_trainer_has_stays(monkeypatch: pytest.MonkeyPatch, chosen: list[int]) -> None:
    set_machine(monkeypatch, 8, 8, 8.0, 8.0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert vllm_local._set_threads(None, beside_trainer=True) == "3 threads on 8 cores"
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert vllm_local._set_threads(None, beside_trainer=False) == "3 threads on 8 cores (OMP_NUM_THREADS)"
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "0-3")
    assert vllm_local._set_threads(None, beside_trainer=False) == "the cores of VLLM_CPU_OMP_THREADS_BIND=0-3"
    assert chosen == []
