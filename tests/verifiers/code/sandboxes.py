"""What tests of programs share: a program run in a tier, whether this machine gives that tier, sums to be read."""

import dataclasses
from functools import cache

import pytest

from truegold.verifiers.code.execution import Execution
from truegold.verifiers.code.limits import Limits
from truegold.verifiers.code.sandbox import Job, Kind, Sandbox, Tier, possible_tiers, sandbox

LIMITS = Limits(cpu_s=2.0, memory_mb=512, output_mb=1.0)


@cache
def _tiers() -> dict[Tier, str | None]:
    return possible_tiers()


def box_of(tier: Tier) -> Sandbox:
    if (why := _tiers()[tier]) is not None:
        pytest.skip(f"this machine does not give the tier {tier}: {why}")
    return sandbox(Kind(tier))


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
