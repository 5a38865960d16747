"""The cores that a process may use: those of its affinity, and as many as the quotas of its control groups leave."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from truegold.verifiers.sandbox import child_process
from truegold.verifiers.sandbox.child_process import cpu_quota, usable_cores


def quota(tmp_path: Path, membership: str, **files: str) -> float:
    """Return the quota of a process in such groups, with files named as `path__to__file`."""
    (tmp_path / "cgroup").write_text(membership)
    for name, text in files.items():
        path = tmp_path / "groups" / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return cpu_quota(tmp_path / "cgroup", tmp_path / "groups")


def test_version_2_says_it_in_one_file(tmp_path: Path) -> None:
    assert quota(tmp_path, "0::/\n", cpu_dot_max="150000 100000\n") == 1.5


def test_the_narrowest_group_above_a_process_counts(tmp_path: Path) -> None:
    files = {"pods__cpu_dot_max": "300000 100000\n", "pods__a__cpu_dot_max": "max 100000\n"}
    assert quota(tmp_path, "0::/pods/a\n", **files) == 3
    assert quota(tmp_path, "0::/pods/a\n", pods__a__cpu_dot_max="200000 100000\n") == 2
    assert quota(tmp_path, "0::/pods/b\n") == 3


def test_a_container_that_sees_its_own_group_as_the_root_has_the_quota_of_that(tmp_path: Path) -> None:
    assert quota(tmp_path, "0::/docker/of/the/host\n", cpu_dot_max="50000 100000\n") == 0.5


def test_version_1_says_it_in_two_files(tmp_path: Path) -> None:
    files = {"cpu__a__cpu_dot_cfs_quota_us": "250000\n", "cpu__a__cpu_dot_cfs_period_us": "50000\n"}
    membership = "9:memory:/b\n4:cpu,cpuacct:/a\n0::/\n"
    assert quota(tmp_path, membership, **files) == 5
    assert quota(tmp_path, membership, cpu__a__cpu_dot_cfs_quota_us="-1\n") == math.inf


def test_without_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path / "cgroup", tmp_path) == math.inf
    assert quota(tmp_path, "3:cpuset:/\n") == math.inf


@pytest.mark.parametrize(("left", "cores"), [(math.inf, 8), (2.5, 3), (2.0, 2), (0.1, 1), (64.0, 8)])
def test_a_part_of_a_core_counts_as_one(monkeypatch: pytest.MonkeyPatch, left: float, cores: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(child_process, "cpu_quota", lambda: left)
    assert usable_cores() == cores
