"""verl's three rule-based mathematics rewards. A bare answer is graded as a completion that boxes it."""

from __future__ import annotations

import sys
import types
from typing import Any

from math_peers import Judgement
from math_peers.installed import load


class Reward:
    """A reward function of verl, which reads answers in a box."""

    packages: tuple[str, ...] = ("verl",)
    module = ""

    def __init__(self) -> None:
        bare = ("verl", "verl.utils", "verl.utils.reward_score")
        self.reward: Any = load("verl", f"verl.utils.reward_score.{self.module}", *bare)

    def pair(self, gold: str, answer: str, options: list[str] | None) -> Judgement:
        """Judge an extracted answer."""
        return self.response(gold, f"\\boxed{{{answer}}}")

    def response(self, gold: str, response: str) -> Judgement:
        """Judge a whole response."""
        raise NotImplementedError


class MathReward(Reward):
    """verl's `math_reward`."""

    module = "math_reward"

    def response(self, gold: str, response: str) -> Judgement:
        """Judge a whole response."""
        return self.reward.compute_score(response, gold) == 1.0, ""


class Dapo(Reward):
    """verl's `math_dapo`."""

    module = "math_dapo"

    def pair(self, gold: str, answer: str, options: list[str] | None) -> Judgement:
        """Judge an extracted answer."""
        return self.response(gold, f"Answer: {answer}")

    def response(self, gold: str, response: str) -> Judgement:
        """Judge a whole response."""
        return bool(self.reward.compute_score(response, gold)["acc"]), ""


class Prime(Reward):
    """verl's `prime_math`."""

    packages = ("verl", "sympy", "pylatexenc")
    module = "prime_math"

    def __init__(self) -> None:
        # Its timeout decorator stands in a file that also imports a metric class, and with it torch.
        stub: Any = types.ModuleType("verl.utils.metric")
        stub.Metric = object
        sys.modules["verl.utils.metric"] = stub
        super().__init__()

    def response(self, gold: str, response: str) -> Judgement:
        """Judge a whole response."""
        return bool(self.reward.compute_score(response, gold)[0]), ""
