"""What tests of programs share: a program run in a tier, whether this machine gives that tier, sums to be read."""

import dataclasses
import subprocess
import sys
from functools import cache

import pytest

from truegold.verifiers.sandbox import Job, Sandbox, Tier, possible_tiers, sandbox
from truegold.verifiers.sandbox.execution import Execution, Limits
from truegold.verifiers.sandbox.pool import Kind

ENTER_NAMESPACES = """
import ctypes, os
libc, uid, gid = ctypes.CDLL(None), os.geteuid(), os.getegid()
user, mount, pid, net, ipc, uts = 0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000
assert libc.unshare(user | mount | pid | net | ipc | uts) == 0
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)
assert libc.mount(b"none", b"/", None, ctypes.c_ulong(16384 | (1 << 18)), None) == 0
assert libc.mount(b"x", b"/mnt", b"tmpfs", ctypes.c_ulong(0), None) == 0
"""
"""What a kernel, or the container around it, has to allow for the tier `full`. It shares nothing with the sandbox."""

LIMITS = Limits(cpu_s=2.0, memory_mb=512, output_mb=1.0)


@cache
def _tiers() -> dict[Tier, str | None]:
    return possible_tiers()


def box_of(tier: Tier) -> Sandbox:
    if (why := _tiers()[tier]) is not None:
        if tier is Tier.FULL and _kernel_gives_namespaces():
            pytest.fail(f"this machine gives namespaces, and programs could not have the tier {tier}: {why}")
        pytest.skip(f"this machine does not give the tier {tier}: {why}")
    return sandbox(Kind(tier))


@cache
def _kernel_gives_namespaces() -> bool:
    """Whether a plain process may enter the namespaces of the tier `full` and mount there."""
    return (
        subprocess.run([sys.executable, "-P", "-c", ENTER_NAMESPACES], capture_output=True, check=False).returncode == 0
    )


def run(box: Sandbox, source: str, stdin: bytes = b"", **limits: float) -> Execution:
    return box.run(Job("main", source.encode(), dataclasses.replace(LIMITS, **limits), stdin))


STDIO = {
    "type": "stdio",
    "cases": [
        {"input": "3\n4\n", "output": "7\n"},
        {"input": "10\n-3\n", "output": "7\n"},
        {"input": "0\n0\n", "output": "0\n"},
    ],
}
"""Tests of a program that adds up two lines."""


def fenced(program: str, language: str = "python") -> str:
    """Return a response with the program in a fence."""
    return f"Here it is.\n```{language}\n{program}\n```\nDone."
