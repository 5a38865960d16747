"""CPU seconds and memory of processes and what they started, by the kernel (Linux; elsewhere live children count 0)."""

from __future__ import annotations

import os
import resource
from pathlib import Path

PROC = Path("/proc")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def reaped_s() -> float:
    """Of this process's children that have ended and been waited for, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def live_children_s(pid: int) -> float:
    """Of the living descendants of `pid`, with those that they have waited for themselves."""
    table = _table()
    return sum(table[process_id][1] for process_id in _family(pid, table) - {pid})


def family_of(pid: int) -> set[int]:
    """`pid` and its living descendants."""
    return _family(pid, _table())


def tree_s(pid: int) -> float:
    """Of process `pid` and everything that it has started."""
    stat_of_root = _stat(pid)
    return (stat_of_root[1] if stat_of_root else 0.0) + live_children_s(pid)


def shared_out_mb(pids: set[int]) -> float:
    """Memory of processes, of which each page counts once, shared out among all that have it (PSS)."""
    total = 0
    for pid in pids:
        try:
            text = (PROC / str(pid) / "smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total / 1024


def _table() -> dict[int, tuple[int, float]]:
    return {process_id: stat for process_id in _pids() if (stat := _stat(process_id))}


def _family(pid: int, table: dict[int, tuple[int, float]]) -> set[int]:
    family, grown = {pid}, True
    while grown:
        born = {process_id for process_id, (parent, _) in table.items() if parent in family} - family
        family |= born
        grown = bool(born)
    return family


def _pids() -> list[int]:
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()] if PROC.is_dir() else []


def _stat(pid: int) -> tuple[int, float] | None:
    """Parent and CPU seconds (waited-for children among them); nothing of a process that has just gone."""
    try:
        text = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()
    return int(fields[1]), sum(map(int, fields[11:15])) * TICK_S
