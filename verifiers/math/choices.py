"""Gold is the letter of a choice: `C`, `(C)`, `\\text{C}`. What answers name it?

C    c    (C)    C. 42    C) the cat    E: a score above 90    option C    42, where 42 is the text of C
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from truegold.verifiers.math.reading.normal import key_of, normal

_LETTER = re.compile(
    r"(?:\\(?:text|mathrm|textbf|mathbf)\s*\{\s*)?\(?\s*(?:\\(?:text|mathrm|textbf|mathbf)\s*\{)?\s*\(?\s*([A-Za-z])\s*\)?\s*\}?\s*\)?\s*\}?"
)
_WITH_TEXT = re.compile(
    r"(?:\\(?:text|mathrm|textbf|mathbf)\s*\{\s*)?\(?([A-Ja-j])(?:\)|\.|:(?=\s|\\))\s*(\S.*)", re.DOTALL
)
_LABEL = re.compile(r"(?:the\s+)?(?:correct\s+)?(?:option|choice|answer)\s*(?:is\s*)?[:：]?\s*", re.IGNORECASE)
_MARKUP = re.compile(r"\\[A-Za-z]+|[{}$]")
_ANOTHER = re.compile(
    r"(?:\b(?:or|and|maybe|perhaps|not)\b|[,/&=])\W*\b[A-J]\b(?!\w|')|\b[A-J]\b\W*(?:\b(?:or|and)\b|[/&=])\W*\b[A-J]\b",
)
"""An answer that names several letters, or takes its letter back."""

MAX_HEAD_CHARS = 60
"""Where an answer names its letters. Behind that, `or` belongs to the text of the choice."""


def choice_letter(gold: str) -> str | None:
    """The letter that normal `gold` is, or None."""
    match = _LETTER.fullmatch(gold)
    return match.group(1) if match is not None and match.group(1) in "ABCDEFGHIJ" else None


def same_choice(letter: str, answer: str, options: tuple[str, ...], same: Callable[[str, str], bool]) -> bool | None:
    """Does normal `answer` name the choice? None where it is no choice at all. `same` compares two normal texts."""
    if label := _LABEL.match(answer):
        answer = answer[label.end() :] or answer
    named = _LETTER.fullmatch(answer)
    if named is not None:
        given = named.group(1)
        if options and given.upper() != letter and (by_text := _by_text(answer, options, same)) is not None:
            return by_text == letter
        return given.upper() == letter
    if options and (by_text := _by_text(answer, options, same)) is not None:
        return by_text == letter
    both = _WITH_TEXT.fullmatch(answer)
    if _ANOTHER.search(_MARKUP.sub(" ", answer[:MAX_HEAD_CHARS])):
        return False
    if both is not None:
        return both.group(1).upper() == letter
    return False if options else None


def _by_text(answer: str, options: tuple[str, ...], same: Callable[[str, str], bool]) -> str | None:
    """The one letter whose option says the same."""
    texts = _normal_options(options)
    key = key_of(answer).casefold()
    found = [i for i, text in enumerate(texts) if key_of(text).casefold() == key]
    if not found:
        found = [i for i, text in enumerate(texts) if text and same(text, answer)]
    return chr(ord("A") + found[0]) if len(found) == 1 else None


@lru_cache(maxsize=1_024)
def _normal_options(options: tuple[str, ...]) -> list[str]:
    """Remembered: the options are the same for each completion of a group."""
    return [normal(option) for option in options]
