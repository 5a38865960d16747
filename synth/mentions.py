"""Finds mentions of an earlier attempt, feedback, a hint, or the person who gave it in an output.

    "As the hint says, subtract last."                 the hint
    "My previous answer of 12 forgot the 5."           an attempt
    "根据反馈，应当先减去 5。"                              feedback
    "12+9=21. Wait, that is wrong: 12+8=20."           nothing: it corrects itself
    "We are told that Tom has 12 apples."              nothing: the problem says so
    "The waiter gets the tip."                         nothing: the problem is about a tip
    "Okay, let me re-read the problem."                nothing: models often begin like this

Words of the problem do not count as a mention. Talk of a correction ("this time", "not forgetting the 5") counts only
before the first step of the derivation. Later words may be about such a step. The patterns are in `mentions.toml`.
Patterns that a policy matches without any context are excluded by `habits.py`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from truegold.pipeline.near.terms import TERMS
from truegold.synth.concepts import HAN, OPERATION, content_stems, normal, runs, sentences, words

_DATA = tomllib.loads(files("truegold.synth").joinpath("mentions.toml").read_text("utf-8"))
_WORDS: Mapping[str, str] = _DATA["words"]


class Mention(NamedTuple):
    """Words of an output that mention its context."""

    kind: str
    """`attempt` or `advice`."""
    words: str
    rule: str
    """The pattern that found the words."""


Rule = tuple[str, re.Pattern[str]]
"""The kind of a mention, and its pattern."""


def _read_patterns(name: str) -> list[Rule]:
    """Return a section of mentions.toml. <NAME> in a pattern is replaced by the words of that name."""
    return [
        (kind, re.compile(re.sub(r"<([A-Z]+)>", lambda match: _WORDS[match[1]], pattern)))
        for kind, pattern in _DATA["patterns"][name]
    ]


ANYWHERE = [*_read_patterns("always"), *_read_patterns("chinese")]
"""Patterns of mentions in all of an output."""
AT_THE_START = [*_read_patterns("at_the_start"), *_read_patterns("chinese_at_the_start")]
"""Patterns of mentions before the first step of the derivation."""
IN_COMMENTS = _read_patterns("in_comments")
"""Patterns of mentions in the comments of a program."""
START_CHARS = 400
"""Maximum length of an output's beginning in characters. Later, a derivation in words may have begun."""
NATURAL = [re.compile(pattern) for pattern in _DATA["openings"]["natural"]]
"""Phrases that often open an answer to a bare prompt."""
_ENDED = re.compile(r"[.!?;:\n。！？；：]\s*$")


def find_mentions(output: str, problem: str, *, is_program: bool = False) -> list[Mention]:
    """Return the mentions of its context in an output. For programs, comments are searched too."""
    text, known = normal(output), normal(problem)
    first_step = OPERATION.search(text)
    start = (text[: first_step.start()] if first_step else text)[:START_CHARS]
    leads_on = first_step is not None and start != "" and not _ENDED.search(start)
    for pattern in NATURAL:
        start = pattern.sub("", start)
    mentions = _search(ANYWHERE, text, known) + _search(AT_THE_START, start, known)
    if is_program:
        mentions += _search(IN_COMMENTS, text, known)
    # A last sentence without an end leads to the first step and is not an opening.
    return mentions + find_openings(sentences(start)[:-1] if leads_on else sentences(start), known)


def _search(rules: Sequence[Rule], text: str, known: str) -> list[Mention]:
    return [
        Mention(kind, match[0], pattern.pattern)
        for kind, pattern in rules
        for match in pattern.finditer(text)
        # Words and nouns of the problem, such as a tip or a reflection, are not mentions.
        if match[0] not in known and not _is_of_the_problem(match[0], known)
    ]


_NOUN = re.compile(rf"\b{_WORDS['ADVICE']}\b|\b{_WORDS['GIVER']}\b|提示|建议|反馈|说明|程序|代码|线索")
"""Nouns that may be mentions or things of the problem."""


def _is_of_the_problem(mention: str, known: str) -> bool:
    nouns = _NOUN.findall(mention)
    return bool(nouns) and all(noun.rstrip("s") in known for noun in nouns)


PREAMBLE, PLANS, ABOUT_SOMEBODY = (
    re.compile(_DATA["openings"][name]) for name in ("preamble", "plans", "about_somebody")
)
"""Words of opening sentences: empty talk, plans for the next step, and statements about a person or the past."""
FEWEST_WORDS = 3
"""Minimum number of words of a sentence that is judged."""
_DIGIT = re.compile(r"[\d$\\]")


def find_openings(parts: Sequence[str], known: str) -> list[Mention]:
    """Return opening sentences that mention an earlier text.

    They have no number, no formula and no word of the problem, and speak of something else than the next step.

        "It was not accepted, hence a different route. 12+9=21 ..."     yes
        "The remark helps. 12+9=21 ..."                                   yes
        "I need to break it down. 12+9=21 ..."                            no: a plan
        "By Vieta's formulas, ..."                                        no: mathematics
        "Tom starts with what he had. 12+9=21 ..."                        no: it is about Tom

    parts: the sentences before the first step, in normal form. known: the problem in normal form.
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
