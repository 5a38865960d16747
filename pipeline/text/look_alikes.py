"""Cyrillic and Greek letters that look like Latin ones, and their replacement in words of mixed scripts.

"a triаngle", with a Cyrillic а           ->  "a triangle"
"Сonsider", with a Cyrillic С             ->  "Consider"
"2πr", "ΔABC", "cos α", "треугольник"     unchanged
"""

from __future__ import annotations

import re

CYRILLIC = {
    pair[0]: pair[1]
    for pair in (
        "аa еe оo рp сc уy хx іi јj ѕs һh ԁd ԛq ԝw кk АA ВB ЕE КK МM НH ОO РP СC ТT ХX УY ІI ЈJ ЅS ԌG ԚQ ԜW"
    ).split()
}
"""Cyrillic letters, each with the Latin letter that it looks like."""
GREEK = {
    pair[0]: pair[1] for pair in "οo αa ρp ιi κk υu χx νv τt ηn γy ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX".split()
}
"""Greek letters, each with the Latin letter that it looks like. Most are symbols in mathematics, so they are replaced
only for comparisons, not in texts."""
_TO_LATIN = str.maketrans(CYRILLIC)
_HAS_CYRILLIC = re.compile("[\u0400-\u052f]")
_MIXED_WORD = re.compile(r"(?=[A-Za-z]*[\u0400-\u052f])(?=[\u0400-\u052f]*[A-Za-z])[A-Za-z\u0400-\u052f]+")
"""A word with letters of both scripts."""


def replace_look_alikes(text: str) -> str:
    """Return the text with Cyrillic letters replaced in words that mix both scripts.

    A word is unchanged if one of its Cyrillic letters does not look like a Latin one.
    """
    if text.isascii() or not _HAS_CYRILLIC.search(text):
        return text
    return _MIXED_WORD.sub(_to_latin, text)


def _to_latin(match: re.Match[str]) -> str:
    latin = match[0].translate(_TO_LATIN)
    return latin if latin.isascii() else match[0]
