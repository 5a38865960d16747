"""evalscope's mathematics metric: Math-Verify without its alarms, each call in a forked child with a deadline."""

from __future__ import annotations

import sys
import types
from typing import Any

from math_peers import Judgement
from math_peers.installed import load


class Evalscope:
    """Evalscope's comparison of answers."""

    packages = ("evalscope", "math-verify", "sympy")

    def __init__(self) -> None:
        # Its only import from the rest of evalscope is an exception class, behind a tree of provider clients.
        stub: Any = types.ModuleType("evalscope.api.metric")
        stub.MetricUnavailableError = type("MetricUnavailableError", (Exception,), {})
        sys.modules["evalscope.api.metric"] = stub
        module = load("evalscope", "evalscope.metrics.math.parser", "evalscope", "evalscope.metrics", "evalscope.api")
        self.compare: Any = module.compare_answers

    def pair(self, gold: str, answer: str, options: list[str] | None) -> Judgement:
        """Judge an extracted answer."""
        return bool(self.compare(answer, gold, validate_reference=False).matched), ""

    def response(self, gold: str, response: str) -> Judgement:
        """Judge a whole response."""
        result = self.compare(response, gold, prediction_mode="output", validate_reference=False)
        return bool(result.matched), ""
