"""Finds gold in a response of one sentence that otherwise only repeats the words of the problem, in any language.

    problem                          response                             gold
    When did Ann Lee die?            Ann Lee died on 5 November 2022.     November 5, 2022: found
    Kdy zemřela Ann Lee?             Ann Lee zemřela 5. listopadu 2022.   5. listopadu 2022: found
    In which city was Ann Lee born?  Ann Lee was born in Oslo.            Oslo: found
    In which city was Ann Lee born?  Ann Lee was raised in Oslo.          Oslo: not found, the problem has no `raised`
    Who beat Ann Lee?                Ann Lee beat Tom.                    Tom: not found, the words have another order
    Who won, Ann or Tom?             Ann won and not Tom.                 Ann: not found, the problem names her

A sentence with a word that is neither in the problem nor in gold may deny or doubt gold. Such sentences are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from truegold.verifiers.extract.chosen import DENIED_BEFORE
from truegold.verifiers.extract.committed import final_part

MAX_SENTENCE_CHARS = 400
MAX_PROBLEM_CHARS = 2_000
MAX_DAY_WORDS = 5
"""Maximum number of words of a date."""
_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"(?<!\d)[.!?…]['\"”’)*]*\s+(?=[^\W\d_a-zà-ÿ])|[。！？?]|\n")
_LINKS = frozenset(
    "is was are were be been called named je jsou byl byla bylo byli nazývá jmenuje ist war sind waren heißt hieß "
    "est était es era fue son é foi era è fu jest był była było".split()
)
"""Words behind which a name at the end of a sentence is its predicate."""
_PLACE_WORDS = frozenset("in at on v ve na w we en à au a im am em no na nel nella".split())
"""Words before a place."""
_BOUNDS = frozenset("by from to as of do od z ze k von zu de da dal do".split())
"""Words before a date that is only the beginning or the end of a time."""
_ASKS_PLACE = re.compile(
    r"\b(?:where|in (?:which|what)|kde|v[e]? kter\w+|v jak\w+|na kter\w+|gdzie|w któr\w+|wo|in welche\w+|où"
    r"|dans quel\w*|dónde|en qué|onde|em que|dove|in quale)\b",
    re.IGNORECASE,
)
_PLAIN = (
    _LINKS
    | _PLACE_WORDS
    | frozenset(
        "the an of for from and by with did does do has had have that this it its his her their year on "
        "se si z ze do s k o roce roku dne den v der die das dem den des ein eine jahr am um von zu hat hatte "
        "le la les l de du des un une en année que qui a ont el los las del al lo año se y o os as do da dos das "
        "um uma ano".split()
    )
)
"""Words that say nothing by themselves."""
_PUNCTUATION = ".,;:!?…。，；：！？\"'“”‘’„«»*()[]"
"""Marks at the ends of a word that say nothing."""
_COMMON_LETTERS = 4
"""Number of letters at the start that the forms of a word share: `founded`, `foundation`."""


def restated_gold(response: str, gold: str, problem: str, is_same_day: Callable[[str], bool]) -> str | None:
    """Return the words of a response that are gold, if its only sentence otherwise repeats the problem, or else None.

    is_same_day: tells whether a text is the same day as gold.
    """
    text = final_part(response).strip()
    if len(text) > MAX_SENTENCE_CHARS or _SENTENCE_END.search(text) or DENIED_BEFORE.search(problem):
        return None
    words = list(_WORD.finditer(text))
    folded = [word[0].casefold() for word in words]
    asked = [word.casefold() for word in _WORD.findall(problem[:MAX_PROBLEM_CHARS])]
    gold_words = [word.casefold() for word in _WORD.findall(gold)]
    if set(gold_words) <= set(asked) or len(spans := _spans(text, words, folded, gold, is_same_day)) != 1:
        return None
    ((start, end),) = spans
    others = [word for word in (*folded[:start], *folded[end:]) if word not in _PLAIN]
    if not others or not all(any(_is_form(word, known) for known in asked) for word in others):
        return None
    lead = folded[start - 1] if start else ""
    is_dated = any(map(str.isdigit, gold)) and lead not in _BOUNDS
    is_predicate = lead in _LINKS and end == len(words)
    is_place = lead in _PLACE_WORDS and _ASKS_PLACE.search(problem) is not None
    if not (is_dated or is_predicate or is_place or _is_in_order(others, asked)):
        return None
    return text[words[start].start() : words[end - 1].end()]


def _spans(
    text: str,
    words: Sequence[re.Match[str]],
    folded: Sequence[str],
    gold: str,
    is_same_day: Callable[[str], bool],
) -> list[tuple[int, int]]:
    """Return the places of gold among the words of a sentence."""
    gold_words = [word.casefold() for word in _WORD.findall(gold)]
    count = len(gold_words)
    spans = [(i, i + count) for i in range(len(words) - count + 1) if list(folded[i : i + count]) == gold_words]
    if spans:
        if any(_bare(_unbroken(text, words[i].start(), words[j - 1].end())) != _bare(gold) for i, j in spans):
            return []
        return spans
    for length in range(MAX_DAY_WORDS, 1, -1):
        for i in range(len(words) - length + 1):
            span = text[words[i].start() : words[i + length - 1].end()]
            if any(map(str.isdigit, span)) and is_same_day(span):
                return [(i, i + length)]
    return []


def _unbroken(text: str, start: int, end: int) -> str:
    """Return a part of a text with what stands at its ends without a space: `-7 Btu/mole` for `7 Btu`."""
    before, behind = re.search(r"\S*$", text[:start]), re.match(r"\S*", text[end:])
    return f"{before[0] if before else ''}{text[start:end]}{behind[0] if behind else ''}"


def _bare(text: str) -> list[str]:
    """Return the words of a text without punctuation at their ends. Signs and other symbols stay: `-7`, `c++`."""
    return [bare for word in text.casefold().split() if (bare := word.strip(_PUNCTUATION))]


def _is_form(word: str, known: str) -> bool:
    """Tell whether two words are the same or forms of one: `died` and `die`, but no two numbers."""
    if word == known or word.isdigit() or known.isdigit():
        return word == known
    shared = min(len(word), len(known), _COMMON_LETTERS)
    return shared > 2 and word[:shared] == known[:shared]


def _is_in_order(others: Sequence[str], asked: Sequence[str]) -> bool:
    """Tell whether words occur in a problem in the same order."""
    rest = iter(asked)
    return all(any(_is_form(word, known) for known in rest) for word in others)
