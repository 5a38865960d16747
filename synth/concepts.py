"""Finds words in an output that mention its prompt's additional texts, such as feedback on an earlier attempt.

    output                                             mentions
    "As the hint says, subtract last."                 the hint
    "My previous answer of 12 forgot the 5."           an earlier attempt
    "根据反馈，应当先减去 5。"                              feedback
    "12+9=21. Wait, that is wrong: 12+8=20."           nothing: it corrects itself
    "We are told that Tom has 12 apples."              nothing: the problem says so
    "The waiter gets the tip."                         nothing: the problem is about a tip
    "Okay, let me re-read the problem."                nothing: models often begin like this

Words of the problem are not mentions. Some words, such as "this time" or "not forgetting the 5", are mentions only
before the first step of the derivation. Later they may be about a step. The patterns are in `mentions.toml`.

To compare texts, the module also finds sentences, words and concepts. Concepts are the meanings that advice often has:

    text                                          words                                concepts
    "Don't forget to take away the 5 he gave."    don't, forget, to, take, away, ...   forget, subtract
    "别忘了减去送出的5个。"                           别 忘 了 减 去 送 出 的 个                 forget, subtract
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from truegold.pipeline.near.terms import TERMS

_HIDDEN = re.compile(r"[\u00ad\u200b-\u200f\u2060\ufeff]")
"""Invisible characters: soft hyphens, zero-width spaces and joiners, byte order marks."""
_EMPHASIS = re.compile(r"[*_`~]+")
_WORD = re.compile(r"[a-z]+(?:['’][a-z]+)?|[\u3400-\u9fff]")
"""A word such as don't, or a single Chinese character."""
_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s+|(?<=[。！？；：])|\n+")
_LATEX_TEXT = re.compile(r"\\(?:text|mbox|textbf|textit|mathrm)\s*\{([^{}]*)\}")
"""A LaTeX command with text in braces, such as `\\text{apples}`."""
_LATEX_COMMAND = re.compile(r"\\[a-zA-Z]+")
HAN = re.compile(r"[\u3400-\u9fff]")
OPERATION = re.compile(
    r"[\d)}\]]\s*(?:[-+*/^=<>≤≥×÷·]|\\(?:times|cdot|div|pm|le|ge|neq))\s*[-\d({\[\\a-zA-Z$]"
    r"|=|\\d?frac\b|\\sqrt\b|\bdef \w+\(|\breturn\b|\d\s*(?:等于|乘以?|除以|减去?|加上?)"
    r"|\b\d[\d.,]*\s+(?:plus|minus|times|divided by|multiplied by|more than|less than)\b"
)
"""A step of a derivation, such as `9+4` or `3 times 4`."""


def normal(text: str) -> str:
    """Return a text in normal form: NFKC, lower case, without emphasis and invisible characters."""
    text = unicodedata.normalize("NFKC", _HIDDEN.sub("", text))
    return _EMPHASIS.sub("", _LATEX_TEXT.sub(r" \1 ", text)).replace("’", "'").casefold()


def sentences(text: str) -> list[str]:
    """Return the sentences of a text. A line break also ends a sentence."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def words(text: str) -> list[str]:
    """Return the words and Chinese characters of a text in normal form, without numbers and LaTeX commands."""
    return _WORD.findall(_LATEX_COMMAND.sub(" ", text))


def runs(of_words: list[str], length: int) -> set[tuple[str, ...]]:
    """Return all sequences of `length` consecutive words."""
    return {tuple(of_words[start : start + length]) for start in range(len(of_words) - length + 1)}


def content_stems(text: str) -> set[str]:
    """Return the concepts of a text in normal form, and the stems of its other English words.

    Short words are skipped, and words like `because` (`idle` in concepts.toml).
    """
    stems = {_stem(word) for word in words(text) if not HAN.match(word) and len(word) > 2 and word not in _IDLE}
    return concepts(text) | (stems - _concept_stems())


def concepts(text: str) -> set[str]:
    """Return the names of the concepts (`CONCEPTS`) in a text in normal form, in English or Chinese."""
    return {name for name, pattern in _concept_patterns() if pattern.search(text)}


def _stem(word: str) -> str:
    """Return a word without its ending: `apples` and `apple` give `appl`."""
    for ending in ("ingly", "edly", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


_DATA = tomllib.loads(files("truegold.synth").joinpath("concepts.toml").read_text("utf-8"))
_IDLE = frozenset(_DATA["idle"].split())
"""Words that say nothing about a derivation, such as `because` and `answer`."""
CONCEPTS: Mapping[str, tuple[str, str]] = {name: tuple(words) for name, words in _DATA["concepts"].items()}
"""The patterns in English and in Chinese of each concept, such as `subtract`."""


@cache
def _concept_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(rf"\b(?:{english})\b|{chinese}")) for name, (english, chinese) in CONCEPTS.items())


@cache
def _concept_stems() -> frozenset[str]:
    """Return the stems of words for concepts. `content_stems` leaves them out, so they are not counted twice."""
    plain = re.compile(r"[a-z]{3,}")
    return frozenset(
        _stem(word) for english, _ in CONCEPTS.values() for word in plain.findall(english.replace("\\w", " "))
    )


_MENTIONS = tomllib.loads(files("truegold.synth").joinpath("mentions.toml").read_text("utf-8"))
_WORDS: Mapping[str, str] = _MENTIONS["words"]


class Mention(NamedTuple):
    """Words of an output that mention an additional text of its prompt."""

    kind: str
    """`attempt` or `advice`."""
    words: str
    rule: str
    """The pattern that found the words."""


Rule = tuple[str, re.Pattern[str]]
"""The kind of a mention, and its pattern."""


def _read_patterns(name: str) -> list[Rule]:
    """Return the patterns in a section of mentions.toml. `<NAME>` in a pattern stands for the words of that name."""
    return [
        (kind, re.compile(re.sub(r"<([A-Z]+)>", lambda match: _WORDS[match[1]], pattern)))
        for kind, pattern in _MENTIONS["patterns"][name]
    ]


ANYWHERE = [*_read_patterns("always"), *_read_patterns("chinese")]
"""Patterns of mentions anywhere in an output."""
AT_THE_START = [*_read_patterns("at_the_start"), *_read_patterns("chinese_at_the_start")]
"""Patterns that are mentions only before the first step of the derivation."""
IN_COMMENTS = _read_patterns("in_comments")
"""Patterns of mentions in the comments of a program."""
START_CHARS = 400
"""The maximum number of characters of the start of an output. A derivation in words may follow."""
NATURAL = [re.compile(pattern) for pattern in _MENTIONS["openings"]["natural"]]
"""Phrases with which models often begin an answer to a problem alone."""
_ENDED = re.compile(r"[.!?;:\n。！？；：]\s*$")


def find_mentions(output: str, problem: str, *, is_program: bool = False) -> list[Mention]:
    """Return the mentions in an output of additional texts in its prompt. For programs, comments are searched, too."""
    text, known = normal(output), normal(problem)
    first_step = OPERATION.search(text)
    start = (text[: first_step.start()] if first_step else text)[:START_CHARS]
    leads_on = first_step is not None and start != "" and not _ENDED.search(start)
    for pattern in NATURAL:
        start = pattern.sub("", start)
    mentions = _search(ANYWHERE, text, known) + _search(AT_THE_START, start, known)
    if is_program:
        mentions += _search(IN_COMMENTS, text, known)
    # A last sentence without an end leads to the first step. It is not an opening.
    return mentions + find_openings(sentences(start)[:-1] if leads_on else sentences(start), known)


def _search(rules: Sequence[Rule], text: str, known: str) -> list[Mention]:
    return [
        Mention(kind, match[0], pattern.pattern)
        for kind, pattern in rules
        for match in pattern.finditer(text)
        # Words of the problem, such as a tip or a reflection, are not mentions.
        if match[0] not in known and not _is_of_the_problem(match[0], known)
    ]


_NOUN = re.compile(rf"\b{_WORDS['ADVICE']}\b|\b{_WORDS['GIVER']}\b|提示|建议|反馈|说明|程序|代码|线索")
"""Nouns that may be mentions, or may be things in the problem."""


def _is_of_the_problem(mention: str, known: str) -> bool:
    nouns = _NOUN.findall(mention)
    return bool(nouns) and all(noun.rstrip("s") in known for noun in nouns)


PREAMBLE, PLANS, ABOUT_SOMEBODY = (
    re.compile(_MENTIONS["openings"][name]) for name in ("preamble", "plans", "about_somebody")
)
"""Patterns for opening sentences: empty talk, plans for the next step, and statements about a person or the past."""
FEWEST_WORDS = 3
"""A sentence with fewer words is not judged."""
_DIGIT = re.compile(r"[\d$\\]")


def find_openings(parts: Sequence[str], known: str) -> list[Mention]:
    """Return the opening sentences that mention an earlier text.

    Such a sentence has no number, no formula and no word of the problem. It is not about the next step either:

        "It was not accepted, hence a different route. 12+9=21 ..."     mention
        "The remark helps. 12+9=21 ..."                                   mention
        "I need to break it down. 12+9=21 ..."                            no mention, but a plan
        "By Vieta's formulas, ..."                                        no mention, but mathematics
        "Tom starts with what he had. 12+9=21 ..."                        no mention, but about Tom

    `parts` are the sentences before the first step, and `known` is the problem, both in normal form.
    """
    known_stems, known_runs = content_stems(known), runs(HAN.findall(known), 2)
    if not known_stems and not known_runs:
        return []
    mentions = []
    for part in parts:
        if _DIGIT.search(part) or content_stems(part) & known_stems or runs(HAN.findall(part), 2) & known_runs:
            continue
        match = PREAMBLE.search(part)
        if match is None and not PLANS.search(part) and len(words(part)) >= FEWEST_WORDS:
            match = ABOUT_SOMEBODY.search(part) if TERMS.keys().isdisjoint(words(part)) else None
        if match is not None and match[0] not in known:
            mentions.append(Mention("attempt", match[0], match.re.pattern))
    return mentions
