"""Finds where an output speaks of what only its context had: an earlier attempt, feedback, a hint, or who gave it.

    "As the hint says, subtract last."                 the hint
    "My previous answer of 12 forgot the 5."           an attempt
    "根据反馈，应当先减去 5。"                              feedback
    "12+9=21. Wait, that is wrong: 12+8=20."           nothing: it corrects itself
    "We are told that Tom has 12 apples."              nothing: the problem tells it
    "The waiter gets the tip."                         nothing: the problem speaks of a tip

Words that the problem itself uses are no mention. Talk of a correction ("this time", "instead of adding") counts only
where the output has not derived anything yet that it could be about. The patterns stand in `mentions.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files

from truegold.pipeline.near.terms import TERMS
from truegold.synth.concepts import HAN, OPERATION, content_stems, normal, runs, sentences, words

_DATA = tomllib.loads(files("truegold.synth").joinpath("mentions.toml").read_text("utf-8"))
_WORDS: Mapping[str, str] = _DATA["words"]


def _read_patterns(name: str) -> list[tuple[str, str]]:
    """Return a section of mentions.toml as pairs of a kind and a pattern; <NAME> in a pattern stands for its words."""
    return [
        (kind, re.sub(r"<([A-Z]+)>", lambda match: _WORDS[match[1]], pattern))
        for kind, pattern in _DATA["patterns"][name]
    ]


ANYWHERE = [*_read_patterns("always"), *_read_patterns("chinese")]
AT_THE_START = [*_read_patterns("at_the_start"), *_read_patterns("chinese_at_the_start")]
"""Mentions as long as nothing has been derived."""
IN_COMMENTS = _read_patterns("in_comments")
"""Mentions in the comments of a program."""
_ENDED = re.compile(r"[.!?;:\n。！？；：]\s*$")


def find_mentions(output: str, problem: str, *, is_program: bool = False) -> list[tuple[str, str]]:
    """Return what an output says of its context, as pairs of a kind (`attempt`, `advice`) and the words. Of a program
    the comments are looked at too."""
    text, known = normal(output), normal(problem)
    first_step = OPERATION.search(text)
    start = text[: first_step.start()] if first_step else text
    mentions = _search(ANYWHERE, text, known)
    if is_program:
        mentions += _search(IN_COMMENTS, text, known)
    mentions += _search(AT_THE_START, start, known)
    if first_step and start and not _ENDED.search(start):
        # The last sentence leads to the first step.
        start = "\n".join(sentences(start)[:-1])
    return mentions or find_openings(start, known)


def _search(patterns: Sequence[tuple[str, str]], text: str, known: str) -> list[tuple[str, str]]:
    return [
        (kind, match[0])
        for kind, pattern in patterns
        for match in re.finditer(pattern, text)
        # What the problem says itself needs no context; nor do its nouns, such as a tip or a reflection.
        if match[0] not in known and not _is_of_the_problem(match[0], known)
    ]


_NOUN = re.compile(rf"\b{_WORDS['ADVICE']}\b|\b{_WORDS['GIVER']}\b|提示|建议|反馈|说明|程序|代码|线索")


def _is_of_the_problem(mention: str, known: str) -> bool:
    nouns = _NOUN.findall(mention)
    return bool(nouns) and all(noun.rstrip("s") in known for noun in nouns)


PREAMBLE, OPENERS, ABOUT_SOMEBODY = (
    re.compile(_DATA["openings"][name]) for name in ("preamble", "openers", "about_somebody")
)
"""What an opening sentence speaks of that says nothing of the problem; sentences with which solutions open anyway; and
words of somebody or of something past. A sentence with such words, and with none of mathematics or of the problem,
speaks of something else: of 6,000 real solutions 5 open with one."""
FEWEST_WORDS = 3
"""A sentence of fewer words says too little."""
_DIGIT = re.compile(r"[\d$\\]")


def find_openings(start: str, known: str) -> list[tuple[str, str]]:
    """Return openings that speak of what went before: sentences without a number, a formula or a word of the problem,
    which are about something else.

        "It was not accepted, hence a different route. 12+9=21 ..."     yes
        "The remark helps. 12+9=21 ..."                                   yes
        "Let's break it down step by step. 12+9=21 ..."                   no: solutions open that way
        "By Vieta's formulas, ..."                                        no: mathematics
        "Tom starts with what he had. 12+9=21 ..."                        no: it is about Tom

    start: what stands before the first step, in normal form; known: the problem.
    """
    known_stems, known_runs = content_stems(known), runs(HAN.findall(known), 2)
    if not known_stems and not known_runs:
        return []
    mentions = []
    for part in sentences(start):
        is_of_problem = content_stems(part) & known_stems or runs(HAN.findall(part), 2) & known_runs
        if _DIGIT.search(part) or is_of_problem or OPENERS.search(part):
            continue
        match = PREAMBLE.search(part)
        if match is None and len(words(part)) >= FEWEST_WORDS and TERMS.keys().isdisjoint(words(part)):
            match = ABOUT_SOMEBODY.search(part)
        if match is not None and match[0] not in known:
            mentions.append(("attempt", match[0]))
    return mentions
