"""The contract as one assertion, for the tests of your own verifier.

from truegold.verifiers.audit.pytest_helper import assert_contract

def test_my_verifier_keeps_the_contract():
    assert_contract("my_package/checks.py:unit_price", golds=["2.50 USD/kg"])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truegold.verifiers.audit.contract import DETERMINISTIC, check
from truegold.verifiers.audit.probe import DEFAULT_CPU_S, DEFAULT_MEMORY_BYTES, DEFAULT_WALL_S
from truegold.verifiers.verdict import Verifier


def assert_contract(
    verifier: Verifier | str,
    *,
    golds: Sequence[str] = (),
    info: Mapping[str, Any] | None = None,
    cpu_s: float = DEFAULT_CPU_S,
    wall_s: float = DEFAULT_WALL_S,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> None:
    """Raise AssertionError with every broken line of the contract and its findings; the arguments are those of `check`.

    Where no gold fits the verifier nothing could be checked, and that counts as broken as well: give `golds`.
    """
    __tracebackhide__ = True  # Pytest then shows the caller's line.
    contract = check(verifier, golds=golds, info=info, cpu_s=cpu_s, wall_s=wall_s, memory_bytes=memory_bytes)
    broken = [line for line in contract if line.ok is False or (line.ok is None and line.name == DETERMINISTIC)]
    if broken:
        lines = [f"{verifier!r} breaks {len(broken)} of {len(contract)} lines of the contract:"]
        for line in broken:
            lines.append(f"  {line.name}: {line.detail}")
            lines += [f"    {finding}" for finding in line.findings]
        raise AssertionError("\n".join(lines))
