r"""Prepares a text from the data to be shown: made visible, cut to a bounded length, searched for maths.

A data row may hold anything. `visible("a\0b\x1b[2J")` gives "a␀b␛[2J": a reader sees that something is there, and
neither a browser nor a terminal acts on it. Escaping for HTML is the template's business.
"""

from __future__ import annotations

import re

SHOWN_CHARS = 4_000
"""The characters a page shows of one text: 500 megabyte-long prompts must not make a page that no browser opens."""

MATHS_PATTERN = (
    r"\$\$[\s\S]+?\$\$"
    r"|\\\[[\s\S]+?\\\]"
    r"|\\\([\s\S]+?\\\)"
    r"|(?<![\\$])\$(?![\s$])(?:[^$\\\n]|\\.)*?(?<![\s\\])\$(?![\d$])"
)
r"""Maths between $$..$$, \[..\], \(..\) or $..$; Python and the page's script both read this pattern.

A dollar sign opens only before a non-space and closes only after a non-space and not before a digit, so that "it costs
$5 and then $7" stays what it is.
"""

_MATHS = re.compile(MATHS_PATTERN)

_BREAKS = "\n\t"
_REORDERING = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that turn the text around them, and could make a wrong answer read as a right one."""

_SYMBOLS = {chr(code): chr(0x2400 + code) for code in range(32) if chr(code) not in _BREAKS}
_SYMBOLS |= dict.fromkeys([*map(chr, range(0x80, 0xA0)), *_REORDERING], "\ufffd")
_SYMBOLS["\x7f"] = "\u2421"
_TRANSLATION = str.maketrans(_SYMBOLS)
_INVISIBLE = re.compile(f"[{re.escape(''.join(_SYMBOLS))}]")


def visible(text: str) -> str:
    """Return the text with symbols for control and reordering characters; line breaks and tabs stay."""
    text = text.replace("\r\n", "\n")
    # Hardly any text has one of them, and to search is ten times as fast as to translate.
    return text.translate(_TRANSLATION) if _INVISIBLE.search(text) else text


def cut(text: str, limit: int = SHOWN_CHARS) -> str:
    """Return the start of `text`, saying how much is missing."""
    return text if len(text) <= limit else f"{text[:limit]} … ({len(text) - limit:,} more characters)"


def has_maths(text: str) -> bool:
    """Return whether any part of `text` stands between maths delimiters."""
    return _MATHS.search(text) is not None
