r"""Prepares texts from the data for display: makes control characters visible, bounds the length, and finds maths.

A data row may contain any character. `visible("a\0b\x1b[2J")` returns "a␀b␛[2J", so that a reader sees the control
characters, and browsers and terminals do not execute them. Templates escape the text for HTML.
"""

from __future__ import annotations

import re

SHOWN_CHARS = 4_000
"""The maximum number of characters shown of a text. A page stays small even if prompts have megabytes."""

MATHS_PATTERN = (
    r"\$\$[\s\S]+?\$\$"
    r"|\\\[[\s\S]+?\\\]"
    r"|\\\([\s\S]+?\\\)"
    r"|(?<![\\$])\$(?![\s$])(?:[^$\\\n]|\\.)*?(?<![\s\\])\$(?![\d$])"
)
r"""Maths between $$..$$, \[..\], \(..\) or $..$. The pattern is used by Python and by the script of the page.

A non-space follows an opening dollar sign. A closing dollar sign follows a non-space, and no digit follows it. So "it
costs $5 and then $7" is not maths.
"""

_MATHS = re.compile(MATHS_PATTERN)

_BREAKS = "\n\t"
_REORDERING = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that change the direction of text. With them, a wrong answer could look like a right one."""

_SYMBOLS = {chr(code): chr(0x2400 + code) for code in range(32) if chr(code) not in _BREAKS}
"""The symbol that is shown for each control and direction character."""
_SYMBOLS |= dict.fromkeys([*map(chr, range(0x80, 0xA0)), *_REORDERING], "\ufffd")
_SYMBOLS["\x7f"] = "\u2421"
_TRANSLATION = str.maketrans(_SYMBOLS)
_INVISIBLE = re.compile(f"[{re.escape(''.join(_SYMBOLS))}]")


def visible(text: str) -> str:
    """Return the text with symbols for control and direction characters, except for line breaks and tabs."""
    text = text.replace("\r\n", "\n")
    # Searching first is ten times as fast as translating. Hardly any text has such characters.
    return text.translate(_TRANSLATION) if _INVISIBLE.search(text) else text


def cut(text: str, limit: int = SHOWN_CHARS) -> str:
    """Return the first `limit` characters of `text`, with a note on the number of missing characters."""
    return text if len(text) <= limit else f"{text[:limit]} … ({len(text) - limit:,} more characters)"


def has_maths(text: str) -> bool:
    """Return whether `text` has maths between delimiters."""
    return _MATHS.search(text) is not None
