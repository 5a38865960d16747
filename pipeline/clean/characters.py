r"""Characters: what cannot be seen, what is encoded in several ways, blanks and line ends.

    "\ufeffHow  many\u00a0apples?\r\n\r\n\r\n\r\nGive a number. \n"   ->   "How  many apples?\n\nGive a number."

Every function takes time linear in the text, also for a megabyte of blanks, and changes nothing the second time.
"""

from __future__ import annotations

import re
import unicodedata

_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
_OTHER_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
# Full-width punctuation stays, since it is how Chinese and Japanese are written.
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


def drop_control_characters(text: str) -> str:
    """Return the text without control characters, except for tabs and whatever ends a line."""
    return text if text.isprintable() else _CONTROL.sub("", text)


def unify_encoding(text: str) -> str:
    """Return the text in NFC, with ASCII for full-width letters and digits and without idle invisible characters."""
    if text.isascii():
        return text
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text)).translate(_FULL_WIDTH)
    # An accent composes with its letter only when the invisible character between them is gone, so NFC comes again.
    return unicodedata.normalize("NFC", _STRAY_JOINER.sub("", text))


def simplify_whitespace(text: str) -> str:
    """Return the text with line feeds, ordinary blanks, at most one empty line, and none at its ends."""
    text = _LINE_ENDS.sub("\n", text)
    if not text.isascii():
        text = _OTHER_SPACES.sub(" ", text)
    if " \n" in text or "\t\n" in text:
        # The regular expression "[ \t]+\n" would take quadratic time on a long run of blanks.
        text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    return _EMPTY_LINES.sub("\n\n", text).strip(" \t\n")
