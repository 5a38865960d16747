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

from truegold.verifiers.code.vet.known_cases import KnownCase

MAX_PROMPT_CHARS = 200_000
MAX_PLACES = 50
"""Places of an input that are looked at. Stops an input like `1` from being looked for at every 1 of a long text."""

NEAR_TOKENS = 12
NEAR_CHARS = 60
_STOPS = ".,;:"
_SPACE = re.compile(r"[ \t\r\f\v]+")


def leaked(cases: Sequence[KnownCase], prompt: str, printed: bool) -> list[int]:
    """The numbers of the cases that stand in the prompt. printed: programs that read and print, not calls."""
    text = prompt[:MAX_PROMPT_CHARS]
    if printed:
        shown = _Tokens(text.replace("`", " "))
        return [number for number, case in enumerate(cases) if shown.has(case)]
    squeezed = _squeezed(text)
    return [number for number, case in enumerate(cases) if _called(case, squeezed)]


def mentions(prompt: str, name: str) -> bool:
    """Whether the prompt has the name as a word."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", prompt[:MAX_PROMPT_CHARS]) is not None


class _Tokens:
    """A text as words with one blank between them, and which of them begin a line."""

    def __init__(self, text: str) -> None:
        lines = [" ".join(line.split()) for line in text.splitlines()]
        lines = [line for line in lines if line]
        self._text = f" {' '.join(lines)} "
        self._starts = set(accumulate((len(line) + 1 for line in lines), initial=0))

    def has(self, case: KnownCase) -> bool:
        given, output = " ".join(case.input.split()), " ".join(case.output.split())
        if not given or not output:
            return False
        at = -1
        for _ in range(MAX_PLACES):
            at = self._text.find(f" {given}", at + 1)
            if at < 0:
                return False
            if self._is_whole(at) and self._followed(at + len(given) + 1, output):
                return True
        return False

    def _is_whole(self, at: int) -> bool:
        """Whether a number before it is not a part of the same input."""
        return at in self._starts or not self._text[max(0, at - NEAR_CHARS) : at].rpartition(" ")[2].isdigit()

    def _followed(self, end: int, output: str) -> bool:
        """Whether the output comes soon, with words or nothing between them."""
        text = self._text
        place = end + (text[end] in _STOPS)
        if text[place] != " ":
            return False
        for skipped in range(NEAR_TOKENS + 1):
            after = place + len(output) + 1
            if text.startswith(output, place + 1) and text[after] in f" {_STOPS}":
                return True
            place, word = text.find(" ", place + 1), place + 1
            if place < 0 or (skipped == 0 and text[word:place].isdigit()):
                return False
        return False


def _called(case: KnownCase, text: str) -> bool:
    given, output = _squeezed(case.input), _squeezed(case.output)
    if not given:
        return False
    at = -1
    for _ in range(MAX_PLACES):
        at = _find(text, given, at + 1)
        if at < 0:
            return False
        after = at + len(given)
        # A call or an example names its arguments: `(3,4)`, `Input: 3`, `n = 3`.
        named = text[at - 1 : at] in ("(", "=", ":", ",") and text[after : after + 1] in (")", ",", "\n", "]", "")
        if named and 0 <= _find(text[after:], output, 0) <= NEAR_CHARS:
            return True
    return False


def _squeezed(text: str) -> str:
    return _SPACE.sub("", text).replace('"', "'").casefold()


def _find(text: str, needle: str, start: int) -> int:
    """Where the needle stands, not as part of a longer word or number; -1 where it does not."""
    at = text.find(needle, start)
    while at >= 0:
        end = at + len(needle)
        goes_on = text[end : end + 1] == "." and text[end + 1 : end + 2].isdigit()  # 1.5, and no full stop
        if not (_joins(needle[0], text[at - 1 : at]) or _joins(needle[-1], text[end : end + 1]) or goes_on):
            return at
        at = text.find(needle, at + 1)
    return -1


def _joins(end: str, neighbour: str) -> bool:
    return end.isalnum() and neighbour.isalnum()
