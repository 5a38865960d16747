"""truegold itself. Multiple-choice rows hand their options over; nothing else is set."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from math_peers import Judgement


class Truegold:
    """truegold itself."""

    packages: tuple[str, ...] = ("truegold",)

    def __init__(self) -> None:
        from truegold.verifiers.math import MathVerifier, equivalent

        self.equivalent: Any = equivalent
        self.verifier: Any = MathVerifier()

    def pair(self, gold: str, answer: str, options: list[str] | None) -> Judgement:
        """Judge an extracted answer."""
        policy = {} if options is None else {"options": options}
        return self._judgement(self.equivalent(answer, gold=gold, **policy))

    def response(self, gold: str, response: str) -> Judgement:
        """Judge a whole response."""
        return self._judgement(self.verifier(response, gold))

    @staticmethod
    def _judgement(verdict: Any) -> Judgement:
        return (None if verdict.score is None else verdict.score == 1.0), str(verdict.reason)

    @staticmethod
    def source() -> str:
        """Digest of the verifiers' source: an installed working copy has one version number for many states."""
        import truegold.verifiers

        folder = Path(str(truegold.verifiers.__file__)).parent
        files = sorted(folder.rglob("*.py"))
        return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
