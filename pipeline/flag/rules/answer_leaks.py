r"""Finds prompts that contain their answer or their worked solution.

Some rows and their findings:

    "What is 6*7? The correct answer is 42."  gold "42"                  answer_in_prompt
    "... Put your answer in \boxed{}."        gold "42"                  no finding: there is no answer
    "What is 6*7? Solution: 6*7 = 42, as each of the six ..."            solution_in_prompt
    "Find the general solution: $y'' + y = 0$"                           no finding: the solution is asked for
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from truegold.pipeline.flag.rules.detector import Finding, any_of, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.announced_answers import AnnouncedAnswer, announced_answers, gives_away
from truegold.pipeline.text.prose import asks, ending
from truegold.verifiers.extract.listed_options import find_options

MAX_PROMPT_CHARS = 50_000
"""The maximum length of a prompt that is searched. Longer prompts are skipped."""
SHARED_CHARS = 50
"""The number of characters, without blanks, that prompt and solution must share. Solutions quote only short parts of
their problems. So a shared conclusion of this length is not a coincidence."""

_SOLUTION_MARK = re.compile(
    r"(?:^|\n|[.?!。？！]\s)[*#\s]{0,6}(?:(?:detailed|step[\s-]by[\s-]step|worked|sample|suggested)\s+)?"
    r"(?:solution|explanation|rationale|解答|解析|详解)[*\s]{0,4}[:：][*\s]{0,4}(?P<text>\S[\s\S]{40,})"
    r"|(?:[$.?!)\]]\s+(?-i:Solution)\s+(?=(?-i:[A-Z][a-z]))|\\(?:sub)*section\*?\{\s*solution\s*\})\s*(?P<behind>\S[\s\S]{40,})",
    re.IGNORECASE,
)
"""A heading with the text below it: "**Solution:** We ...", "\\section{Solution}", "$x$ Solution Let ..."."""
_EXAMPLE = re.compile(r"(?:^|\n|[.?!:]\s)\W{0,4}(?:(?:worked\s+|for\s+)?example\b|例(?:题|子|如|\s?\d))", re.IGNORECASE)
"""A heading of an example. A solution under it belongs to another problem."""
_CONCLUDES = re.compile(
    r"=|\b(?:so|thus|therefore|hence|because|we\s+(?:get|have|find|obtain)|it\s+follows|answer)\b|所以|因此|故|答",
    re.IGNORECASE,
)
"""Words and signs of a conclusion. A text without them is not a worked solution."""
_FINAL_ANSWER = re.compile(r"####[^\n]*|\\boxed\s*\{[^{}]*\}")
_DRAWING = re.compile(r"\[asy\][\s\S]*?\[/asy\]")
_SENTENCE_GAP = re.compile(r"(?<=[.?!。？！])\s+|\n+")

_STATED = re.compile(
    rf"\b(?:(?:the\s+)?{any_of('answer_names')}\b(?:\s+\w+){{0,3}}?\s*{any_of('is_words')}|{any_of('conclusions')})"
    r"\s*:?\s*(?:about\s+|exactly\s+|simply\s+)?(?P<value>[^\s()\[\]](?:[^()\[\]\n]{0,80}[^\s()\[\]])?)",
    re.IGNORECASE,
)
"""A stated value: "the answer is 42", "so it must be 42"."""
_CALLED = re.compile(
    r"\b(?:(?:final|correct|right|expected|true|known|reference)\s+(?:answer|result|output|value|solution|number|total|key)"
    r"|hint|answer\s+key|spoiler|the\s+(?:answer|key|result))\b[^.?!\n\d$\\]{0,40}?[\s:,(\"'“](?P<value>(?:[$\\\d]|[−-]\d)[^\n]{0,80})"
    r"|(?P<first>[$\\\d−-][^\s,;]{0,40})\s+(?:is|being|as)\s+(?:the\s+)?(?:final\s+|correct\s+|right\s+|true\s+)?answer\b",
    re.IGNORECASE,
)
"""A value called an answer: "correct answer: 42", "Hint: 42", "42 is the answer"."""
_COMMENT = re.compile(r"<!--\s*([^<>]{1,100}?)\s*-->")
_ASIDE = re.compile(r"[(\[（【]([^()\[\]（）【】\n]{1,100})[)\]）】]")
"""Text in brackets."""
_FORMAT = re.compile(rf"\b{any_of('format_words')}\b|\[asy\]|\\begin", re.IGNORECASE)
"""Signs of an instruction about the answer's form, or of a drawing."""
_MARKED = re.compile(r"\W*(?:boxed|fbox)\b|\s*####|\s*<!--")
"""Forms that only answers have, anywhere in a prompt."""
_CLAUSE_START = re.compile(r"[.?!。？！]\s|\n|[(（\[]")
_SUPPOSES = re.compile(rf"\b{any_of('suppositions')}\b|如果|若|假设|已知|当", re.IGNORECASE)
"""Words that introduce a premise, such as "if" or "suppose"."""


def _remarks(prompt: str, gold: str) -> Iterator[AnnouncedAnswer]:
    """Yield values that are stated after the question or in brackets: "(it's 42)", "How many? 42"."""
    last = re.split(r"(?<=[.?!。？！])\s", prompt.rstrip())[-1]
    if last != prompt.strip():
        yield AnnouncedAnswer(last, last)
    head, question, tail = prompt.rpartition("?" if "?" in prompt else "？")
    if question and tail.strip() and not _FORMAT.search(tail):
        yield AnnouncedAnswer(tail, tail.strip(" \n()[]=#*:->→"))
        for match in _STATED.finditer(tail):
            yield AnnouncedAnswer(match[0], match["value"])
        if tail.rstrip(" .!)\n").endswith((f" {gold}", f"${gold}$")):
            yield AnnouncedAnswer(tail, gold)
    for comment in _COMMENT.finditer(prompt):
        yield AnnouncedAnswer(comment[0], comment[1])
    for aside in _ASIDE.finditer(head + question):
        for match in _STATED.finditer(aside[1]):
            if not _FORMAT.search(aside[1]):
                yield AnnouncedAnswer(aside[0], match["value"])
    for match in _CALLED.finditer(prompt):
        # "The result" may be a quantity in a passage, if a question follows.
        if match[0].casefold().startswith(("the result", "the key")) and asks(prompt[match.start("value") :]):
            continue
        yield AnnouncedAnswer(
            match[0], re.split(r"[\s)\]\"'”](?![\d])", match["value"] or match["first"])[0].rstrip(",.;")
        )
    first = re.match(rf"\W{{0,3}}{re.escape(gold)}\s*(?:[\])|:](?=\s)|\n|--|-\s|→)", prompt)
    is_row = prompt.split("\n", 1)[0].count("|") > 1
    if first and not is_row and len(gold) > 1 and not prompt.lstrip()[:1].isalpha():
        yield AnnouncedAnswer(first[0], gold)


def _is_premise(announced: AnnouncedAnswer, prompt: str) -> bool:
    """Return True if the announced answer is a premise or is asked for: "If the answer is 50, what is x?"."""
    if _MARKED.match(announced.text):
        return False
    start = prompt.find(announced.text)
    before = _CLAUSE_START.split(prompt[:start])[-1] if start > 0 else ""
    return bool(_SUPPOSES.search(before))


@detector("answer_in_prompt", version="5", languages=("en", "zh"))
def answer_in_prompt(row: Row) -> list[Finding]:
    """Find a prompt that announces an answer equal to the gold."""
    gold, prompt = row["gold"], row["prompt"]
    if not gold or row["domain"] == "code" or len(prompt) > MAX_PROMPT_CHARS:
        return []
    # A gold that names an option is always in the prompt.
    if row.get("verifier") == "choice" or (len(gold) == 1 and gold.isalpha()):
        return []
    # The right answer is always among the options, in brackets or after the question.
    remarks = _remarks(prompt, gold) if find_options(prompt) is None else ()
    for announced in chain(announced_answers(prompt), remarks):
        if gives_away(announced, gold) and not _is_premise(announced, prompt):
            return [Finding("answer_in_prompt", evidence={"says": ending(announced.text), "gold": gold[:200]})]
    return []


@detector("solution_in_prompt", version="3")
def solution_in_prompt(row: Row) -> list[Finding]:
    """Find a worked solution in the prompt: under a heading, or with the conclusion of the row's own solution."""
    prompt = row["prompt"]
    if row["domain"] == "code" or len(prompt) > MAX_PROMPT_CHARS:
        return []
    marked = _SOLUTION_MARK.search(prompt)
    is_example = marked is not None and _EXAMPLE.search(prompt, 0, marked.start()) is not None
    text = (marked["text"] or marked["behind"]) if marked else ""
    if text and not is_example and _CONCLUDES.search(text):
        return [Finding("solution_in_prompt", evidence={"begins": ending(text[:120])})]
    solution = row["solution"] or ""
    conclusion = _conclusion(solution)
    if len(conclusion) >= SHARED_CHARS and conclusion in _squeeze(prompt):
        return [Finding("solution_in_prompt", evidence={"shares": ending(solution)})]
    return []


def _conclusion(solution: str) -> str:
    """Return the last sentences of a solution, at least SHARED_CHARS long, without its marked final answer."""
    text = _DRAWING.sub("", _FINAL_ANSWER.sub("", solution[-MAX_PROMPT_CHARS:]))
    conclusion = ""
    for sentence in reversed(_SENTENCE_GAP.split(text)):
        conclusion = _squeeze(sentence) + conclusion
        if len(conclusion) >= SHARED_CHARS:
            break
    return conclusion


def _squeeze(text: str) -> str:
    return "".join(_DRAWING.sub("", text).split())
