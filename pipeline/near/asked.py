"""Reads which quantity a question asks for, and decides whether two questions ask for different quantities.

a question                        asks for   another question                    asks for    opposed?
"... How many cars are left?"     left       "... How many cars did he sell?"    gone        yes
"... What is its area?"           area       "... What is its perimeter?"        perimeter   yes
"... How long did it take?"       time       "... How much time did it take?"    (unknown)   no

A rewording may leave a quantity unnamed, but hardly ever names another one. Of 967 labelled pairs of the same problem,
none is opposed. Of 241 pairs of different problems, 18 are opposed.

Rows of a reading set share a passage, a table or a statute, and differ only in their questions. In these rows each word
of the question and each option counts (`ask_otherwise`):

    "<table> ... What is owed to members of Peel?"   "<table> ... What is owed by members of Peel?"   another problem

Each word also counts if a problem points to a text elsewhere ("See question 30 for the passage."). That text cannot be
compared.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from importlib.resources import files

from truegold.pipeline.text.prose import asks, points_elsewhere
from truegold.verifiers.extract.listed_options import option_texts

CONTEXT_CHARS = 300
"""The minimum number of characters in a shared context: the common beginning and end of two texts."""
CONTEXT_SHARE = 0.8
"""The minimum share of the longer text that a shared context covers."""
CONTEXT_LINES = 4
"""The minimum number of equal lines that make a shared context, such as a table, above a different last line."""
OPTION_CHARS = 15
"""The minimum length of options that are compared as texts. Shorter options are numbers and names."""
SAME_OPTION = 0.8
"""The minimum similarity of two options with one meaning: "within three months", "within 3 months"."""
SAME_WORD = 0.5
"""The minimum similarity of two words that may replace each other. "starts" and "started" pass, "quartz" and "glass"
fail."""
CONTENT_CHARS = 4
"""The minimum length of a word that carries meaning. Shorter words are articles and the like."""

_QUESTION = re.compile(r"[^.!?。！？]*[?？]|[^.!?。！？]+[.。]?\s*$")
"""A sentence that ends in a question mark, or the last sentence of a text: "Find the area."."""
_ASKED: Mapping[str, Mapping[str, list[str]]] = tomllib.loads(
    files(__package__).joinpath("asked_quantities.toml").read_text("utf-8")
)
"""Patterns of the quantities that may be asked for, in English and in Chinese: table -> quantity -> patterns."""
_WORD = re.compile(r"[^\W_]+")
_SENTENCE_START = re.compile(r".*(?:[.!?。！？؟।]\s*|\n)", re.DOTALL)
"""A text up to the start of its last sentence."""
_ORDERING_WORDS = frozenset(
    "find determine compute calculate evaluate please what is are the a an value of tell state".split()
)
"""Words that introduce a question and do not change its meaning: "Find the", "What is the value of the"."""


def asked_quantities(text: str, *tables: str) -> frozenset[str]:
    """Return the quantities that the last question of a text asks for: "What is its area?" gives `{"area"}`.

    Only quantities of the named tables of `asked_quantities.toml` are found. `area` is in the table `decisive`.
    """
    sentences = _QUESTION.findall(text)
    # Only the last clause asks. An earlier clause may state a comparison: 米娅比艾玛小 (Mia is younger than Emma).
    question = re.split(r"[，；]", sentences[-1] if sentences else text)[-1].lower()
    return frozenset(
        kind
        for table in tables
        for kind, patterns in _ASKED[table].items()
        if any(re.search(pattern, question) for pattern in patterns)
    )


def are_opposed(left: str, right: str) -> bool:
    """Return whether each of two questions asks for a quantity that the other question does not ask for.

    Two questions are also opposed if one asks what stays ("are left") and the other asks what goes ("did he sell").
    """
    here, there = (asked_quantities(text, "decisive", "further") for text in (left, right))
    if here - there and there - here:
        return True
    stay_here, stay_there = (bool(asked_quantities(text, "stays")) for text in (left, right))
    go_here, go_there = (bool(asked_quantities(text, "goes")) for text in (left, right))
    return (stay_here and go_there and not go_here and not stay_there) or (
        stay_there and go_here and not go_there and not stay_here
    )


def ask_otherwise(left: str, right: str) -> bool:
    """Return whether two texts ask different questions about one context, or offer different options."""
    if points_elsewhere(left) or points_elsewhere(right):
        return _asked_words(left) != _asked_words(right)
    above, last = zip(*(text.strip().rpartition("\n")[::2] for text in (left, right)), strict=True)
    if above[0] == above[1] and above[0].count("\n") + 1 >= CONTEXT_LINES:
        asked = [_asked_words(line) for line in last]
        return asked[0] != asked[1] and all(asked)
    left, right = (" ".join(text.replace("\n", " \n ").split(" ")) for text in (left, right))
    start = _count_shared(left, right)
    end = _count_shared(left[start:][::-1], right[start:][::-1])
    longer = max(len(left), len(right))
    if start + end >= max(CONTEXT_CHARS, CONTEXT_SHARE * longer):
        opening = _SENTENCE_START.match(left[:start])
        start = opening.end() if opening else 0
        closing = re.search(r"[.!?。！？؟।\n]", left[len(left) - end :])
        end -= closing.start() if closing else end
        questions = [text[start : len(text) - end].strip() for text in (left, right)]
        words = [_asked_words(text) for text in questions]
        is_marked = closing is not None and closing[0] in "?？؟"
        return words[0] != words[1] and (is_marked or all(map(asks, questions)))
    return _choose_otherwise(option_texts(left), option_texts(right))


def _choose_otherwise(here: tuple[str, ...], there: tuple[str, ...]) -> bool:
    if not here or not there:
        return False
    if _share_no_word(here, there) or min(map(len, here + there)) < OPTION_CHARS:
        return _share_no_word(here, there)
    return not all(any(_say_the_same(option, other) for other in there) for option in here)


def _share_no_word(here: Iterable[str], there: Iterable[str]) -> bool:
    """Return whether two lists of options have no word in common, and no option has a digit or a formula."""
    words = [set(_WORD.findall(" ".join(options).casefold())) for options in (here, there)]
    return all(words) and words[0].isdisjoint(words[1]) and not re.search(r"[\d$\\]", "".join((*here, *there)))


def _asked_words(question: str) -> list[str]:
    return [word for word in _WORD.findall(question.casefold()) if word not in _ORDERING_WORDS]


def _count_shared(left: str, right: str) -> int:
    """Return the length of the common beginning of two texts."""
    differing = (index for index, (here, there) in enumerate(zip(left, right, strict=False)) if here != there)
    return next(differing, min(len(left), len(right)))


def _say_the_same(option: str, other: str) -> bool:
    if _alike(option, other) < SAME_OPTION:
        return False
    words = [
        [word for word in _WORD.findall(text.casefold()) if len(word) >= CONTENT_CHARS] for text in (option, other)
    ]
    exchanged = [[word for word in words[side] if word not in words[1 - side]] for side in (0, 1)]
    return not (len(exchanged[0]) == len(exchanged[1]) == 1 and _alike(exchanged[0][0], exchanged[1][0]) < SAME_WORD)


def _alike(left: str, right: str) -> float:
    return SequenceMatcher(None, left, right, autojunk=False).ratio()
