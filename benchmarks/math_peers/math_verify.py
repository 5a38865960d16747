"""Math-Verify in its two common configurations: answers wrapped in a box, or in dollar signs. Timeouts as it ships.

In whole responses only the gold answer is wrapped; the response is read with the default extraction.
"""

from __future__ import annotations

import logging
from typing import Any

from math_peers import Judgement


class Boxed:
    """Math-Verify, with answers in a box."""

    packages: tuple[str, ...] = ("math-verify", "latex2sympy2_extended", "sympy", "antlr4-python3-runtime")
    wrapper = "\\boxed{%s}"

    def __init__(self) -> None:
        from math_verify import parse, verify

        logging.disable(logging.CRITICAL)
        self.parse: Any = parse
        self.verify: Any = verify

    def wrapped(self, answer: str) -> str:
        """Return the answer as the grader is to read it."""
        return self.wrapper.replace("%s", answer)

    def pair(self, gold: str, answer: str, options: list[str] | None) -> Judgement:
        """Judge an extracted answer."""
        return self.response(gold, self.wrapped(answer))

    def response(self, gold: str, response: str) -> Judgement:
        """Judge a whole response."""
        return bool(self.verify(self.parse(self.wrapped(gold)), self.parse(response))), ""


class Dollar(Boxed):
    """Math-Verify, with answers between dollar signs."""

    wrapper = "$%s$"
