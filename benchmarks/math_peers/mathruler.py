"""mathruler: the PRM800K grader with a reader of the last box, as many RL recipes use it."""

from __future__ import annotations

from typing import Any

from math_peers import Judgement


class Mathruler:
    """MathRuler's grader."""

    packages = ("mathruler", "sympy", "pylatexenc")

    def __init__(self) -> None:
        from mathruler.grader import extract_boxed_content, grade_answer

        self.grade: Any = grade_answer
        self.boxed: Any = extract_boxed_content

    def pair(self, gold: str, answer: str, options: list[str] | None) -> Judgement:
        """Judge an extracted answer."""
        return bool(self.grade(answer, gold)), ""

    def response(self, gold: str, response: str) -> Judgement:
        """Judge a whole response."""
        return bool(self.grade(self.boxed(response), gold)), ""
