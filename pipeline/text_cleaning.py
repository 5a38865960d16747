r"""Cleans one text, step by step, so that every change can be told with its reason.

    "\ufeffQuestion 3: How  many\u00a0apples?\r\n\r\n\r\n\r\nGive a number. \n"

becomes `"How  many apples?\n\nGive a number."` in three steps: unicode (the byte order mark), whitespace (the no-break
space, CRLF, the empty lines, the ends), boilerplate ("Question 3: ").

Every step takes time linear in the text, also for a megabyte of blanks, and cleaning twice changes nothing more. Code
is left alone but for CRLF and NUL: its indentation and its strings are its meaning.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from truegold.pipeline.config import CleanConfig
from truegold.verifiers import ConfigError

END_SPAN = 200
"""How far from the end boilerplate is looked for: a user's pattern must not be tried at every place of a long text."""

_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
_OTHER_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
# Full-width digits and letters only: full-width punctuation is how Chinese and Japanese are written.
_FULL_WIDTH = {
    code: code - 0xFEE0
    for first, last in ((0xFF10, 0xFF19), (0xFF21, 0xFF3A), (0xFF41, 0xFF5A))
    for code in range(first, last + 1)
}
_EMPTY_LINES = re.compile(r"\n{3,}")

# Zero-width (non-)joiners carry meaning between letters of Arabic, Indic and kindred scripts, and glue emoji together.
_JOINS = (
    "\u0590-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\u1900-\u1cff\ua840-\uabff\ufb1d-\ufdff\ufe70-\ufefc"
    "\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\ufe0f"
    "\U00010a00-\U00011fff\U0001e900-\U0001e95f\U0001f000-\U0001faff\U000e0020-\U000e007f"
)
_STRAY_JOINER = re.compile(f"(?<![{_JOINS}])[\u200c\u200d]|[\u200c\u200d](?![{_JOINS}])")


@dataclass(frozen=True, slots=True)
class Edit:
    """One step that changed a text."""

    reason: str
    before: str
    after: str


def clean_prose(text: str) -> Iterator[Edit]:
    """The edits that clean a text; none where it is clean."""
    yield from _steps(text, (("control_characters", _drop_control), ("unicode", _unicode), ("whitespace", _whitespace)))


def clean_code(text: str) -> Iterator[Edit]:
    """The edits that a program or a prompt made of code gets."""
    yield from _steps(
        text,
        (
            ("control_characters", lambda value: value.replace("\x00", "")),
            ("whitespace", lambda value: value.replace("\r\n", "\n")),
        ),
    )


def _steps(text: str, steps: tuple[tuple[str, Callable[[str], str]], ...]) -> Iterator[Edit]:
    for reason, step in steps:
        after = step(text)
        if after != text:
            yield Edit(reason, text, after)
            text = after


def _drop_control(text: str) -> str:
    return _CONTROL.sub("", text)


def _unicode(text: str) -> str:
    if text.isascii():
        return text
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text)).translate(_FULL_WIDTH)
    # Once more: an accent composes with its letter only when the invisible character between them is gone.
    return unicodedata.normalize("NFC", _STRAY_JOINER.sub("", text))


def _whitespace(text: str) -> str:
    text = _LINE_ENDS.sub("\n", text)
    if not text.isascii():
        text = _OTHER_SPACES.sub(" ", text)
    if " \n" in text or "\t\n" in text:
        # Not a regular expression: "[ \t]+\n" takes quadratic time on a long run of blanks.
        text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    return _EMPTY_LINES.sub("\n\n", text).strip(" \t\n")


class Boilerplate:
    """Cuts configured phrases off a prompt's ends."""

    def __init__(self, config: CleanConfig) -> None:
        self._minimum = config.min_prompt_chars
        self._starts = [_compile(pattern, "boilerplate", "{}") for pattern in config.boilerplate]
        self._ends = [_compile(pattern, "boilerplate_end", r"(?:{})\s*\Z") for pattern in config.boilerplate_end]

    def cut(self, text: str) -> str:
        """`text` without boilerplate, cut as often as there is some and as long as enough of a prompt remains."""
        while (shorter := self._once(text)) is not None:
            text = shorter
        return text

    def _once(self, text: str) -> str | None:
        for pattern in self._starts:
            match = pattern.match(text)
            if match and match.end() and len(rest := text[match.end() :].lstrip(" \t\n")) >= self._minimum:
                return rest
        for pattern in self._ends:
            match = pattern.search(text, max(0, len(text) - END_SPAN))
            if match and match[0] and len(rest := text[: match.start()].rstrip(" \t\n")) >= self._minimum:
                return rest
        return None


def _compile(pattern: str, field: str, frame: str) -> re.Pattern[str]:
    try:
        re.compile(pattern)
        return re.compile(frame.replace("{}", pattern), re.IGNORECASE)
    except re.error as error:
        raise ConfigError(f"clean.{field}: the pattern {pattern!r} is invalid: {error}.") from None
