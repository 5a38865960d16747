"""lm-evaluation-harness: the graders of its tasks `minerva_math` (sympy's LaTeX parser) and `score` (robustness).

Minerva's task finds a response's answer only in the sentence that its few-shot prompt teaches ("Final Answer: The final
answer is ..."), which none of our responses has, so it judges pairs alone.
"""

from __future__ import annotations

from typing import Any

from math_peers import Judgement
from math_peers.installed import load


class Minerva:
    """The harness's grader of `minerva_math`."""

    packages = ("lm_eval", "sympy", "antlr4-python3-runtime")

    def __init__(self) -> None:
        bare = ("lm_eval", "lm_eval.tasks", "lm_eval.tasks.minerva_math")
        self.task: Any = load("lm_eval", "lm_eval.tasks.minerva_math.utils", *bare)

    def pair(self, gold: str, answer: str, options: list[str] | None) -> Judgement:
        """Judge an extracted answer."""
        normalize = self.task.normalize_final_answer
        return bool(self.task.is_equiv(normalize(answer), normalize(gold))), ""


class Score:
    """The harness's grader of `score`."""

    packages = ("lm_eval", "sympy", "antlr4-python3-runtime")

    def __init__(self) -> None:
        bare = ("lm_eval", "lm_eval.tasks", "lm_eval.tasks.score", "lm_eval.tasks.score.math")
        self.grader: Any = load("lm_eval", "lm_eval.tasks.score.math.math_grader", *bare)

    def pair(self, gold: str, answer: str, options: list[str] | None) -> Judgement:
        """Judge an extracted answer."""
        return bool(self.grader.math_equal(answer, gold)), ""

    def response(self, gold: str, response: str) -> Judgement:
        """Judge a whole response."""
        return bool(self.grader.math_equal(self.grader.extract_answer(response), gold)), ""
