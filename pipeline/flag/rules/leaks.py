r"""Rules about what a prompt gives away: its answer, or its worked solution.

Some rows and their findings:

    "What is 6*7? The correct answer is 42."  gold "42"                  answer_in_prompt
    "... Put your answer in \boxed{}."        gold "42"                  nothing: no answer stands there
    "What is 6*7? Solution: 6*7 = 42, as each of the six ..."            solution_in_prompt
    "Find the general solution: $y'' + y = 0$"                           nothing: it is asked for
"""

from __future__ import annotations

import re

from truegold.pipeline.clean.leaks import announced_answers, gives_away
from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.flag.rules.prose import excerpt
from truegold.pipeline.rows import Row

MAX_PROMPT_CHARS = 50_000
"""Longer prompts are left alone. Keeps texts of megabytes from being searched."""
SHARED_CHARS = 50
"""Characters, blanks aside, that prompt and solution must share word for word. Solutions quote short parts of their
problems; a conclusion of this length is not in them by chance."""

_SOLUTION_MARK = re.compile(
    r"(?:^|\n|[.?!。？！]\s)[*#\s]{0,6}(?:(?:detailed|step[\s-]by[\s-]step|worked|sample|suggested)\s+)?"
    r"(?:solution|explanation|rationale|解答|解析|详解)[*\s]{0,4}[:：][*\s]{0,4}(?P<text>\S[\s\S]{40,})",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"=|\b(?:so|thus|therefore|hence|because|we\s+(?:get|have|find|obtain)|it\s+follows|answer)\b|所以|因此|故|答",
    re.IGNORECASE,
)
_FINAL_ANSWER = re.compile(r"####[^\n]*|\\boxed\s*\{[^{}]*\}")
_DRAWING = re.compile(r"\[asy\][\s\S]*?\[/asy\]")
_SENTENCE_GAP = re.compile(r"(?<=[.?!。？！])\s+|\n+")


@detector("answer_in_prompt", version="1")
def answer_in_prompt(row: Row) -> list[Finding]:
    """The prompt itself announces an answer, and that answer is gold."""
    gold, prompt = row["gold"], row["prompt"]
    if not gold or row["domain"] == "code" or len(prompt) > MAX_PROMPT_CHARS:
        return []
    for announced in announced_answers(prompt):
        if gives_away(announced, gold):
            return [Finding("answer_in_prompt", 0.9, {"says": excerpt(announced.text), "gold": gold[:200]})]
    return []


@detector("solution_in_prompt", version="1")
def solution_in_prompt(row: Row) -> list[Finding]:
    """A worked solution stands in the prompt, under a heading or with the conclusion of the row's solution."""
    prompt = row["prompt"]
    if row["domain"] == "code" or len(prompt) > MAX_PROMPT_CHARS:
        return []
    marked = _SOLUTION_MARK.search(prompt)
    if marked and _CONCLUDES.search(marked["text"]):
        return [Finding("solution_in_prompt", 0.9, {"begins": excerpt(marked["text"][:120])})]
    solution = row["solution"] or ""
    ending = _conclusion(solution)
    if len(ending) >= SHARED_CHARS and ending in _squeeze(prompt):
        return [Finding("solution_in_prompt", 0.9, {"shares": excerpt(solution)})]
    return []


def _conclusion(solution: str) -> str:
    """Return the last sentences of a solution, as many as make SHARED_CHARS, without its marked final answer."""
    text = _DRAWING.sub("", _FINAL_ANSWER.sub("", solution[-MAX_PROMPT_CHARS:]))
    ending = ""
    for sentence in reversed(_SENTENCE_GAP.split(text)):
        ending = _squeeze(sentence) + ending
        if len(ending) >= SHARED_CHARS:
            break
    return ending


def _squeeze(text: str) -> str:
    """Return a text without drawings and blanks."""
    return "".join(_DRAWING.sub("", text).split())
