"""Cases that stand in the problem's text together with their outputs.

    prompt "... Input\\n3\\n1 2 3\\nOutput\\n6 ...", case {"input": "3\\n1 2 3\\n", "output": "6\\n"}      leaked
    prompt "... >>> add(3, 4)\\n    7", case add(3, 4) == 7                                           leaked
    prompt "... n is at most 3 ...", case {"input": "3", "output": "6"}                               not leaked

A program's input has to stand there token for token, and its output within `NEAR_TOKENS` after it; a call's arguments
have to stand there in order, and its result within `NEAR_CHARS` after them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from truegold.verifiers.audit.suites.known_cases import KnownCase

MAX_PROMPT_CHARS = 200_000
"""The part of a prompt that is read. Stops prompts of megabytes from taking long."""
MAX_OCCURRENCES = 50
"""Occurrences of an input that are looked at. Stops an input like `1` from being compared at every 1 of a long text."""

NEAR_TOKENS = 12
"""The words that may stand between a program's input and its output."""
NEAR_CHARS = 60
"""The characters that may stand between a call's arguments and its result."""
_STOPS = ".,;:"
_SPACE = re.compile(r"[ \t\r\f\v]+")


def leaked_cases(cases: Sequence[KnownCase], prompt: str, printed: bool) -> list[int]:
    """Return the indexes of the cases that stand in the prompt. printed: whether programs print, and are not called."""
    text = prompt[:MAX_PROMPT_CHARS]
    if printed:
        words = _Words(text.replace("`", " "))
        return [index for index, case in enumerate(cases) if words.show(case)]
    squeezed = _squeeze(text)
    return [index for index, case in enumerate(cases) if _shows_call(squeezed, case)]


def mentions(prompt: str, name: str) -> bool:
    """Whether the prompt has the name as a word."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", prompt[:MAX_PROMPT_CHARS]) is not None


class _Words:
    """A text as words with one blank between them, and which of them begin a line."""

    def __init__(self, text: str) -> None:
        lines = [" ".join(line.split()) for line in text.splitlines()]
        lines = [line for line in lines if line]
        self._text = f" {' '.join(lines)} "
        self._starts = set(accumulate((len(line) + 1 for line in lines), initial=0))

    def show(self, case: KnownCase) -> bool:
        """Whether the case's input stands in the text, with its output soon after it."""
        case_input, output = " ".join(case.input.split()), " ".join(case.output.split())
        if not case_input or not output:
            return False
        blank = -1
        for _ in range(MAX_OCCURRENCES):
            blank = self._text.find(f" {case_input}", blank + 1)
            if blank < 0:
                return False
            if self._begins_input(blank) and self._is_followed_by(output, blank + len(case_input) + 1):
                return True
        return False

    def _begins_input(self, blank: int) -> bool:
        """Whether no number stands before the blank on its line, which would belong to the same input."""
        before = self._text[max(0, blank - NEAR_CHARS) : blank]
        return blank in self._starts or not before.rpartition(" ")[2].isdigit()

    def _is_followed_by(self, output: str, end: int) -> bool:
        """Whether the output comes soon after `end`; a number right after it would belong to the same input."""
        text = self._text
        blank = end + (text[end] in _STOPS)
        if text[blank] != " ":
            return False
        for skipped in range(NEAR_TOKENS + 1):
            start = blank + 1
            if text.startswith(output, start) and text[start + len(output)] in f" {_STOPS}":
                return True
            blank = text.find(" ", start)
            if blank < 0 or (skipped == 0 and text[start:blank].isdigit()):
                return False
        return False


def _shows_call(text: str, case: KnownCase) -> bool:
    """Whether a squeezed text names the case's arguments, with its result soon after them."""
    arguments, output = _squeeze(case.input), _squeeze(case.output)
    if not arguments:
        return False
    start = -1
    for _ in range(MAX_OCCURRENCES):
        start = _find_whole(text, arguments, start + 1)
        if start < 0:
            return False
        end = start + len(arguments)
        # A call or an example names its arguments: `(3,4)`, `Input: 3`, `n = 3`.
        named = text[start - 1 : start] in ("(", "=", ":", ",") and text[end : end + 1] in (")", ",", "\n", "]", "")
        if named and 0 <= _find_whole(text[end:], output, 0) <= NEAR_CHARS:
            return True
    return False


def _squeeze(text: str) -> str:
    return _SPACE.sub("", text).replace('"', "'").casefold()


def _find_whole(text: str, needle: str, start: int) -> int:
    """Return where the needle stands, not as part of a longer word or number; -1 where it does not."""
    start = text.find(needle, start)
    while start >= 0:
        end = start + len(needle)
        # A point before a digit continues a number such as 1.5, and is no full stop.
        has_decimals = text[end : end + 1] == "." and text[end + 1 : end + 2].isdigit()
        if not has_decimals and not (
            _are_one_word(needle[0], text[start - 1 : start]) or _are_one_word(needle[-1], text[end : end + 1])
        ):
            return start
        start = text.find(needle, start + 1)
    return -1


def _are_one_word(end: str, neighbour: str) -> bool:
    return end.isalnum() and neighbour.isalnum()
