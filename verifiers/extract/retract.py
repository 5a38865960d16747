r"""Answers that are taken back behind their announcement.

    Answer: 5? No: 6                           6
    The answer is 12? No, wait: 13.            13
    Answer: 15? Hmm, or 16?                    15 or 16: a hedge
    Answer: 7. Scratch that.                   nothing
    答案：5？不对，是6                           6
    Answer: 14? No: 15? No: 16                 16
    Answer: 5. No further step is needed.      5: nothing is taken back

Weak words take an answer back only where another value follows them at once; strong ones do so in any case. Not
covered: an answer that is taken back further down, which commits to what is announced there.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from truegold.verifiers.extract.values import MARKS, has_value, stated

MAX_TAIL_CHARS = 400
"""Only so much behind an announcement is searched."""

_STRONG = (
    r"scratch that|correction|i made (?:a|an) (?:mistake|error)|i mis(?:counted|read|calculated|added|understood"
    r"|took)"
    r"|(?:that|this)(?:['’]s| is| was) (?:wrong|incorrect|not (?:right|correct)|a mistake)"
    r"|(?:that|this|it) (?:can['’]t|cannot|can not) be (?:right|correct|true)|must be a (?:misprint|mistake|typo)"
    r"|(?:no|wait),? that(?:'s| is) (?:wrong|not)|不对|错了|更正|搞错|算错"
)
_WEAK = (
    r"no\s*[,.:;!—-]+|no(?=\s+[-\d$\\])|wait|hmm+|actually|oops|sorry|(?:it )?should (?:be|have been)|rather"
    r"|不[，,]|不是|应该是|应为"
)
_RETRACTION = re.compile(
    rf"(?:^|[\s?!.,;:…(（？。，—–-])(?:(?P<strong>{_STRONG})|(?P<weak>{_WEAK}))(?P<rest>.*)", re.IGNORECASE | re.DOTALL
)
_IS_STRONG = re.compile(rf"(?:^|[\s,.;!])(?:{_STRONG})", re.IGNORECASE)
_WITHDRAWN = re.compile(
    r"[\s$.。\\)\]!,;]{0,12}(?:(?:no|wait|hmm+|oops|actually),? )?"
    r"(?:scratch that|(?:that|this)(?:['’]s| is| was) (?:wrong|incorrect|not right)(?=\s*(?:[.!]|$|[,;]? (?:and"
    r"|but) I))|不对|错了)",
    re.IGNORECASE,
)
_PLAIN_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
"""A word outside of commands: `12 than 11` is no value."""
_WEAK_AGAIN = re.compile(
    rf"(?:[\s,.:;!…—–(（，。]|(?:{_WEAK}|{_STRONG}|it(?:'s| is)|the answer(?: is)?"
    r"|i (?:meant|mean)|make that|that|应该|答案|是|为))*",
    re.IGNORECASE,
)
_DOUBT = re.compile(r"\b(?:or|maybe|perhaps|possibly)\b|也许|可能|或", re.IGNORECASE)
_DOUBTED = re.compile(
    r"[?？]\s*(?:hmm+,?\s*)?(?:or|maybe|perhaps|possibly|或)\s*(?P<rest>.+)", re.IGNORECASE | re.DOTALL
)
_VALUE_FIRST = re.compile(r"[-+−±(\[{$\\√π¥€£]{0,3}\s?(?:\d|\\[a-z]|[a-z]\s?=)", re.IGNORECASE)


_MARKS = (
    "no", "wait", "hmm", "actually", "oops", "sorry", "should", "rather", "scratch", "correction", "mistake", "error",
    "wrong", "incorrect", "right", "correct", "i mis", "misprint", "typo",
    "maybe", "perhaps", "possibly", "or", "不", "错", "更正", "应", "或",
)  # fmt: skip
"""One of these stands in every retraction; looking for them is far quicker than the patterns."""


class Retraction(NamedTuple):
    """What comes of an answer that is taken back."""

    answer: str | None
    """The answer instead; None where none is named."""


def retraction(tail: str, answer: str | None) -> Retraction | None:
    """Return what the text behind an answer puts in its place; None where it takes nothing back."""
    tail = tail[:MAX_TAIL_CHARS]
    folded = tail.casefold()
    if not any(mark in folded for mark in _MARKS):
        return None
    doubted = _DOUBTED.search(tail)
    if doubted is not None and answer is not None and (other := _value_of(doubted["rest"])) is not None:
        return Retraction(f"{answer} or {other}")
    match = _RETRACTION.search(tail)
    if match is None:
        return None
    rest = match["rest"]
    follows = rest[_end_of_fillers(rest) :]
    value = _value_of(follows) if _VALUE_FIRST.match(follows) or match["strong"] else None
    if value is None:
        is_strong = match["strong"] or _IS_STRONG.search(rest) is not None
        return Retraction(None) if is_strong else None
    remainder = follows.partition(value)[2]
    later = retraction(remainder, value) if remainder else None
    if later is not None and _is_all(remainder, later):
        return later
    is_doubt = _DOUBT.search(rest[: len(rest) - len(follows)]) is not None
    return Retraction(f"{answer} or {value}" if is_doubt and answer else value)


def is_withdrawn(tail: str) -> bool:
    """Return whether the text behind an answer begins by taking it back, in the same paragraph or in the next."""
    return _WITHDRAWN.match(tail[:MAX_TAIL_CHARS]) is not None


def _is_all(remainder: str, later: Retraction) -> bool:
    """Tell whether a text does nothing but retract: `Scratch that.`, `No, 7.`, and not `No, 5 is excluded.`"""
    if later.answer is None:
        return True
    _, _, rest = remainder.rpartition(later.answer)
    return not rest.strip(MARKS + " ,.:;!)") and not _PLAIN_WORD.search(later.answer)


def _end_of_fillers(text: str) -> int:
    match = _WEAK_AGAIN.match(text)
    return match.end() if match is not None else 0


def _value_of(text: str) -> str | None:
    text = text.strip(MARKS + " ,.:;?!)）。？！")
    if not has_value(text):
        return None
    sentence = re.split(r"(?<=\d)[.?!。](?:\s|$)", text, maxsplit=1)[0]
    return stated(sentence) or sentence
