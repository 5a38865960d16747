"""Splits a text into sentences and words, and finds its concepts: meanings that advice is often about.

"Don't forget to take away the 5 he gave."    sentence; words don't, forget, to, take, away, ...; forget, subtract
"别忘了减去送出的5个。"                           sentence; words 别 忘 了 减 去 送 出 的 个; forget, subtract
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_HIDDEN = re.compile(r"[\u00ad\u200b-\u200f\u2060\ufeff]")
"""Invisible characters: soft hyphens, zero-width spaces and joiners, byte order marks."""
_EMPHASIS = re.compile(r"[*_`~]+")
_WORD = re.compile(r"[a-z]+(?:['’][a-z]+)?|[\u3400-\u9fff]")
"""A word such as don't, or a single Chinese character."""
_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s+|(?<=[。！？；：])|\n+")
_LATEX_TEXT = re.compile(r"\\(?:text|mbox|textbf|textit|mathrm)\s*\{([^{}]*)\}")
"""A LaTeX command with text in braces, such as `text{apples}` after a backslash. The text is kept."""
_LATEX_COMMAND = re.compile(r"\\[a-zA-Z]+")
HAN = re.compile(r"[\u3400-\u9fff]")
OPERATION = re.compile(
    r"[\d)}\]]\s*(?:[-+*/^=<>≤≥×÷·]|\\(?:times|cdot|div|pm|le|ge|neq))\s*[-\d({\[\\a-zA-Z$]"
    r"|=|\\d?frac\b|\\sqrt\b|\bdef \w+\(|\breturn\b|\d\s*(?:等于|乘以?|除以|减去?|加上?)"
    r"|\b\d[\d.,]*\s+(?:plus|minus|times|divided by|multiplied by|more than|less than)\b"
)
"""A step of a derivation, such as `9+4` or `3 times 4`. Later words like "correct that" may be about such a step."""


def normal(text: str) -> str:
    """Return a text in normal form: NFKC, lower case, without emphasis and invisible characters."""
    text = unicodedata.normalize("NFKC", _HIDDEN.sub("", text))
    return _EMPHASIS.sub("", _LATEX_TEXT.sub(r" \1 ", text)).replace("’", "'").casefold()


def sentences(text: str) -> list[str]:
    """Return the sentences of a text. A line break also ends a sentence."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def words(text: str) -> list[str]:
    """Return the words of a text in normal form, with single Chinese characters, but without numbers and commands."""
    return _WORD.findall(_LATEX_COMMAND.sub(" ", text))


def runs(of_words: list[str], length: int) -> set[tuple[str, ...]]:
    """Return all runs of `length` words."""
    return {tuple(of_words[start : start + length]) for start in range(len(of_words) - length + 1)}


def content_stems(text: str) -> set[str]:
    """Return the meanings of a text in normal form: its concepts, and the stems of its other English words.

    Short words and words without meaning are skipped.
    """
    stems = {_stem(word) for word in words(text) if not HAN.match(word) and len(word) > 2 and word not in _IDLE}
    return concepts(text) | (stems - _concept_stems())


def concepts(text: str) -> set[str]:
    """Return the names of the concepts (`CONCEPTS`) in a text in normal form, in English or Chinese."""
    return {name for name, pattern in _concept_patterns() if pattern.search(text)}


def _stem(word: str) -> str:
    """Return a word without its ending: apples and apple are appl."""
    for ending in ("ingly", "edly", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


_DATA = tomllib.loads(files("truegold.synth").joinpath("concepts.toml").read_text("utf-8"))
_IDLE = frozenset(_DATA["idle"].split())
"""Words without meaning for a derivation, such as `because` and `answer`."""
CONCEPTS: Mapping[str, tuple[str, str]] = {name: tuple(words) for name, words in _DATA["concepts"].items()}
"""The concepts by name, such as `subtract`, each with its patterns in English and in Chinese."""


@cache
def _concept_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(rf"\b(?:{english})\b|{chinese}")) for name, (english, chinese) in CONCEPTS.items())


@cache
def _concept_stems() -> frozenset[str]:
    """Return the stems of words that stand for concepts. `content_stems` leaves them out, or they would count twice."""
    plain = re.compile(r"[a-z]{3,}")
    return frozenset(
        _stem(word) for english, _ in CONCEPTS.values() for word in plain.findall(english.replace("\\w", " "))
    )
