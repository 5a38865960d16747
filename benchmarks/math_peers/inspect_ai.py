"""inspect_ai's scorer `math()`, as an evaluation calls it: an answer to compare is a completion that boxes it.

It raises where it cannot parse the gold answer, and leaves the sample unscored where that takes too long: both count as
"could not judge".
"""

from __future__ import annotations

import asyncio
import types
from typing import Any

from math_peers import Judgement


class InspectAI:
    """Inspect's scorer for mathematics."""

    packages = ("inspect_ai", "latex2sympy2_extended", "sympy", "antlr4-python3-runtime")

    def __init__(self) -> None:
        from inspect_ai.scorer import Target
        from inspect_ai.scorer import math as math_scorer

        self.target: Any = Target
        self.scorer: Any = math_scorer()
        self.loop = asyncio.new_event_loop()

    def pair(self, gold: str, answer: str, options: list[str] | None) -> Judgement:
        """Judge an extracted answer."""
        return self.response(gold, f"\\boxed{{{answer}}}")

    def response(self, gold: str, response: str) -> Judgement:
        """Judge a whole response."""
        state = types.SimpleNamespace(output=types.SimpleNamespace(completion=response))
        score = self.loop.run_until_complete(self.scorer(state, self.target(gold)))
        return {"C": True, "I": False}.get(score.value), ""
