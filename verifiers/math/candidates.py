r"""How many answers does one answer hold? Splitting at the top level, outside of all brackets.

    5 or 6          two candidates          x = 5           one, under the name x
    5, 6            two                     6 = 5           a chain of two
    1,234           one                     (5, 6)          one: a pair

Not covered: what the parts are worth.
"""

from __future__ import annotations

import itertools
import re

from truegold.verifiers.math.clean import TEXT_MARK

MAX_PARTS = 16
"""Parts of one list or chain that are looked at. Stops an answer that lists every number there is."""

MAX_NAME_CHARS = 40
"""Longer than this, what stands before `=` is an expression."""

_OPENERS, _CLOSERS = "([{", ")]}"
_SEPARATOR = re.compile(
    r"[,;、]|(?<![_^]\d)(?<=\d)\s+(?=\d)"  # `5 6` are two numbers, the 2 of `\log_2 8` belongs to the log
    rf"|(?<![A-Za-z\\])(?:or|and)(?![A-Za-z])|\\(?:lor|vee|land|wedge)(?![A-Za-z])|或者?|和|{TEXT_MARK}\s*(?:or|and)(?![A-Za-z])"
)
_GROUP_COMMA = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_LEADING = re.compile(r"(?:=|\\approx(?![A-Za-z]))\s*")
_EQUALS = re.compile(r"(?<![<>!:\\=])=(?!=)")
_NAME = re.compile(
    rf"(?:[A-Za-z]|\\[A-Za-z]+)(?:_(?:\w|\{{[^{{}}]{{1,20}}\}}))?'?(?:\([^()=]{{1,20}}\))?"  # x, \alpha_1, f(x)
    rf"|\|?[A-Z]{{2,4}}\|?|\\angle\s*[A-Z]{{1,3}}"  # a segment, an angle
    rf"|{TEXT_MARK}?\s*(?:[A-Za-z]+\s+){{0,5}}[A-Za-z]{{3,}}\s*"  # words
)
_NOT_ONE_VALUE = re.compile(
    r"\\(?:pm|mp|cup|cap|in|le|ge|ne|infty|begin|emptyset|mid|to|implies)(?![A-Za-z])|\\\{|[<>\[=|]"
)
_PLUS_MINUS = re.compile(r"\\(?:pm|mp)(?![A-Za-z])")
_WORDS = re.compile(r"[^\W\d_]+(?:[-' ,.;:!?]{1,2}[^\W\d_]+)*")
_A_WORD = re.compile(r"[A-Za-z]{3,}|^(?i:no)$|[\u0400-\u04ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")


def candidates(text: str) -> list[str]:
    """The parts of cleaned `text` between commas, semicolons, "or" and "and"."""
    return _split_at(text, _SEPARATOR, skip={m.start() for m in _GROUP_COMMA.finditer(text)})


def chain(text: str) -> list[str]:
    """The parts of cleaned `text` between equals signs, without a name in front."""
    parts = _split_at(text, _EQUALS)
    return parts[1:] if len(parts) > 1 and is_name(parts[0]) else parts


def without_name(text: str) -> str:
    """`x = 5` is 5. Anything that is not one name and one value stays as it is."""
    parts = _split_at(text, _EQUALS)
    value = parts[1] if len(parts) == 2 and is_name(parts[0]) else text
    leading = _LEADING.match(value)
    return value[leading.end() :] if leading else value


def is_name(text: str) -> bool:
    return len(text) <= MAX_NAME_CHARS and _NAME.fullmatch(text.strip(f" {TEXT_MARK}")) is not None


def is_letters(text: str) -> bool:
    """Nothing but letters and the marks of prose between them."""
    return _WORDS.fullmatch(" ".join(text.replace(TEXT_MARK, " ").split())) is not None


def is_plain_text(text: str) -> bool:
    """Words, not mathematics: `no solution` is, `xy` and `2x` are not."""
    return is_letters(text) and _A_WORD.search(text.replace(TEXT_MARK, " ").strip()) is not None


def is_one_value(text: str) -> bool:
    """Does cleaned `text` stand for one value: no list, tuple, set, interval, relation or sign to choose?"""
    wrapped = text[:1] in _OPENERS and text[-1:] in _CLOSERS
    return not wrapped and not _NOT_ONE_VALUE.search(text) and len(candidates(text)) == 1


def without_group_commas(text: str) -> str:
    """`1,000\\pi` is one value; only for text that is known not to be a list."""
    return _GROUP_COMMA.sub("", text)


def nesting(text: str) -> int:
    """The depth of the deepest bracket."""
    return max(_depths(text), default=0)


def leaves_sign_open(text: str) -> bool:
    return _PLUS_MINUS.search(text) is not None


def _split_at(text: str, separator: re.Pattern[str], skip: set[int] | None = None) -> list[str]:
    depths = _depths(text)
    parts, start = [], 0
    for match in separator.finditer(text):
        if depths[match.start()] <= 0 and match.start() not in (skip or ()):
            parts.append(text[start : match.start()])
            start = match.end()
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip(f" {TEXT_MARK}")]


def _depths(text: str) -> list[int]:
    return list(itertools.accumulate((c in _OPENERS) - (c in _CLOSERS) for c in text))
