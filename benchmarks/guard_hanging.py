"""A verifier that never answers, for `guard_faults`."""

from __future__ import annotations

import time

from truegold.verifiers import verifier


@verifier
def hang(response: str, gold: str) -> bool:
    """Wait for ever."""
    while True:
        time.sleep(60)
