"""Finds sentences in a problem's text about how answers are judged, in English or Chinese.

    "If there are several answers, print any of them."          several_answers
    "You can print each letter in any case."                    any_case
    "Print the indices in any order."                           any_order
    "... if its absolute error does not exceed 10^{-4}."        tolerance 1e-4
    "This is an interactive problem."                           interactive
    "Tags: constructive algorithms", "construct a tree"         constructs
    "如果有多组解，输出任意一组即可。"                                several_answers

The text is searched for fixed phrases, sentence by sentence. Not covered: texts that only imply such a statement, such
as "print a spanning tree" for several answers. `constructs` alone is weak evidence; it is used only for problems whose
worked solution fails.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

MAX_CHARS, MAX_SENTENCE = 200_000, 600
"""Maximum number of characters that are read of a text (MAX_CHARS) and of a sentence (MAX_SENTENCE)."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n\s*\n")
_NEGATED = re.compile(r"(?:\bnot|n't|\bnever|\bwithout|\bcannot)\W+(?:\w+\W+){0,2}$")
"""A negation before a phrase."""
_WORD = re.compile("@([a-z_]+)@")
"""A placeholder in `statement.toml` for an entry of its table `words`."""
_SMALL_NUMBER = re.compile(
    r"\b10\s*(?:\^|\*\*|<sup>)?\s*\{?\s*[-−–]\s*\{?\s*(?P<power>\d{1,2})\b"
    r"|\b1(?:\.0)?[eE][-−–](?P<exponent>\d{1,2})\b|\b0\.(?P<zeros>0{0,12})1\b"
)
"""A negative power of ten: `10^{-4}`, `1e-4`, `0.0001`."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The statements of a problem's text. A field of text is the first sentence with this statement, or None."""

    several_answers: str | None = None
    any_order: str | None = None
    order_of_output: str | None = None
    """The first sentence of `any_order` about the output. The others are about the input."""
    any_case: str | None = None
    interactive: str | None = None
    constructs: str | None = None
    tolerance: float | None = None
    """The allowed error of an answer."""
    tolerance_is_relative: bool = False
    """Whether the error may also be relative: 1e-4 of the expected number."""


@cache
def _patterns() -> dict[str, tuple[re.Pattern[str], ...]]:
    """Return the patterns of `statement.toml` by name, with the placeholders filled in."""
    phrases = tomllib.loads(files(__package__).joinpath("statement.toml").read_text(encoding="utf-8"))
    words: dict[str, str] = {}
    for name, text in phrases["words"].items():
        words[name] = _WORD.sub(lambda word: words[word[1]], text)
    return {
        name: tuple(re.compile(_WORD.sub(lambda word: words[word[1]], text), re.IGNORECASE) for text in texts)
        for name, texts in phrases["patterns"].items()
    }


def _says(topic: str, sentence: str) -> bool:
    return any(pattern.search(sentence) for pattern in _patterns()[topic])


def read_statement(text: str | None) -> Statement:
    """Return the statements of a problem's text, or an empty `Statement` without a text."""
    sentences: dict[str, str] = {}
    tolerance: float | None = None
    is_relative = False
    for sentence in _split(text or ""):
        if "several_answers" not in sentences and _allows_several(sentence):
            sentences["several_answers"] = sentence
        if _says("any_order", sentence):
            sentences.setdefault("any_order", sentence)
            if _says("about_output", sentence):
                sentences.setdefault("order_of_output", sentence)
        for topic in ("any_case", "constructs", "interactive"):
            if topic not in sentences and _says(topic, sentence):
                sentences[topic] = sentence
        if tolerance is None and _says("about_error", sentence):
            tolerance = _find_tolerance(sentence)
            is_relative = tolerance is not None and _says("relative", sentence)
    return Statement(tolerance=tolerance, tolerance_is_relative=is_relative, **sentences)


@lru_cache(maxsize=64)
def allowed_error(text: str) -> tuple[float, bool] | None:
    """Return the error that a problem's text allows and whether it may be relative, or None without such a sentence."""
    statement = read_statement(text)
    return None if statement.tolerance is None else (statement.tolerance, statement.tolerance_is_relative)


def _split(text: str) -> Iterator[str]:
    for part in _SENTENCE_END.split(text[:MAX_CHARS]):
        sentence = " ".join(part[: 2 * MAX_SENTENCE].split())
        if sentence:
            yield sentence[:MAX_SENTENCE]


def _allows_several(sentence: str) -> bool:
    matches = (pattern.search(sentence) for pattern in _patterns()["several_answers"])
    return any(match and not _NEGATED.search(sentence[: match.start()]) for match in matches)


def _find_tolerance(sentence: str) -> float | None:
    match = _SMALL_NUMBER.search(sentence)
    if match is None:
        return None
    power = int(match["power"] or match["exponent"] or len(match["zeros"]) + 1)
    return 10.0**-power if 1 <= power <= 15 else None
