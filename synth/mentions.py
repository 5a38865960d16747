"""Finds where an output mentions something that only its context had: an earlier attempt, feedback, a hint, or who gave
it.

    "As the hint says, subtract last."                 the hint
    "My previous answer of 12 forgot the 5."           an attempt
    "根据反馈，应当先减去 5。"                              feedback
    "12+9=21. Wait, that is wrong: 12+8=20."           nothing: it corrects itself
    "We are told that Tom has 12 apples."              nothing: the problem tells it
    "The waiter gets the tip."                         nothing: the problem speaks of a tip
    "Okay, let me re-read the problem."                nothing: models begin like that

Words that the problem itself uses do not count as a mention. Talk of a correction ("this time", "not forgetting the 5")
counts only where the output has not derived anything yet that it could be about. The patterns stand in `mentions.toml`;
which of them a policy uses without any context is for `habits.py`.
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
    """Words of an output that speak of its context."""

    kind: str
    """`attempt` or `advice`."""
    words: str
    rule: str
    """The pattern that found them."""


Rule = tuple[str, re.Pattern[str]]
"""A kind and what is a mention of it."""


def _read_patterns(name: str) -> list[Rule]:
    """Return a section of mentions.toml; <NAME> in a pattern stands for its words."""
    return [
        (kind, re.compile(re.sub(r"<([A-Z]+)>", lambda match: _WORDS[match[1]], pattern)))
        for kind, pattern in _DATA["patterns"][name]
    ]


ANYWHERE = [*_read_patterns("always"), *_read_patterns("chinese")]
AT_THE_START = [*_read_patterns("at_the_start"), *_read_patterns("chinese_at_the_start")]
"""Mentions as long as nothing has been derived."""
IN_COMMENTS = _read_patterns("in_comments")
"""Mentions in the comments of a program."""
START_CHARS = 400
"""So far an output's start reaches at most: a model that thinks in words corrects itself without any formula."""
NATURAL = [re.compile(pattern) for pattern in _DATA["openings"]["natural"]]
"""Phrases with which models open a bare answer."""
_ENDED = re.compile(r"[.!?;:\n。！？；：]\s*$")


def find_mentions(output: str, problem: str, *, is_program: bool = False) -> list[Mention]:
    """Return what an output says of its context. Of a program the comments are looked at too."""
    text, known = normal(output), normal(problem)
    first_step = OPERATION.search(text)
    start = (text[: first_step.start()] if first_step else text)[:START_CHARS]
    leads_on = first_step is not None and start != "" and not _ENDED.search(start)
    for pattern in NATURAL:
        start = pattern.sub("", start)
    mentions = _search(ANYWHERE, text, known) + _search(AT_THE_START, start, known)
    if is_program:
        mentions += _search(IN_COMMENTS, text, known)
    # A last sentence that has no end leads to the first step.
    return mentions + find_openings(sentences(start)[:-1] if leads_on else sentences(start), known)


def _search(rules: Sequence[Rule], text: str, known: str) -> list[Mention]:
    return [
        Mention(kind, match[0], pattern.pattern)
        for kind, pattern in rules
        for match in pattern.finditer(text)
        # What the problem says itself needs no context; nor do its nouns, such as a tip or a reflection.
        if match[0] not in known and not _is_of_the_problem(match[0], known)
    ]


_NOUN = re.compile(rf"\b{_WORDS['ADVICE']}\b|\b{_WORDS['GIVER']}\b|提示|建议|反馈|说明|程序|代码|线索")


def _is_of_the_problem(mention: str, known: str) -> bool:
    nouns = _NOUN.findall(mention)
    return bool(nouns) and all(noun.rstrip("s") in known for noun in nouns)


PREAMBLE, PLANS, ABOUT_SOMEBODY = (
    re.compile(_DATA["openings"][name]) for name in ("preamble", "plans", "about_somebody")
)
"""Words of an opening sentence: those that say nothing of the problem, those that plan the next step, and those about a
person or something past."""
FEWEST_WORDS = 3
"""A sentence of fewer words says too little."""
_DIGIT = re.compile(r"[\d$\\]")


def find_openings(parts: Sequence[str], known: str) -> list[Mention]:
    """Return openings that mention an earlier text: sentences without a number, a formula or a word of the problem,
    which are about something else.

        "It was not accepted, hence a different route. 12+9=21 ..."     yes
        "The remark helps. 12+9=21 ..."                                   yes
        "I need to break it down. 12+9=21 ..."                            no: a plan
        "By Vieta's formulas, ..."                                        no: mathematics
        "Tom starts with what he had. 12+9=21 ..."                        no: it is about Tom

    parts: the sentences before the first step, in normal form; known: the problem.
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
