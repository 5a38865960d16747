"""Finds gold in a response of one sentence whose other words all come from the problem, in any language.

    Problem                          Response                             Gold and result
    When did Ann Lee die?            Ann Lee died on 5 November 2022.     November 5, 2022: found
    Kdy zemřela Ann Lee?             Ann Lee zemřela 5. listopadu 2022.   5. listopadu 2022: found
    In which city was Ann Lee born?  Ann Lee was born in Oslo.            Oslo: found
    In which city was Ann Lee born?  Ann Lee was raised in Oslo.          Oslo: not found, the problem has no `raised`
    Who beat Ann Lee?                Tom beat Ann Lee.                    Tom: found in place of the question word
    Who beat Ann Lee?                Ann Lee beat Tom.                    Tom: not found, the words have another order
    Who won, Ann or Tom?             Ann won and not Tom.                 Ann: not found, the problem names her
    What kind of angle is formed?    Right angle                          right: found before a noun of the question
    Ann's son left. When did she go? Ann left on 5 November 2022.         not found, the question has no `left`

A sentence is not read if it has a word or sign that neither the question nor gold has, since it may deny gold. A
sentence that leaves out a later word of the question is not read either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile
from operator import eq

from truegold.verifiers.extract.chosen import DENIED_BEFORE
from truegold.verifiers.extract.committed import final_part

MAX_SENTENCE_CHARS = 400
MAX_PROBLEM_CHARS = 2_000
MAX_DAY_WORDS = 5
"""Maximum number of words of a date."""
MAX_ASKING_WORDS = 2
"""Maximum number of words in a phrase such as `which city`."""
MAX_NOUN_WORDS = 3
MAX_NOUN_DISTANCE = 8
"""Maximum number of words between `which` and the end of its noun: `which of the following lymph nodes`."""
MAX_CASED_LETTERS = 3
"""Maximum length of a gold that is compared with its case: `Co` is not `CO`."""
_QUESTION = re.compile(r"(?:[^.?？!\n]|\.(?!\s)){1,600}[?？]")
_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"(?<!\d)[.!?…]['\"”’)*]*\s+(?=[^\W\d_a-zà-ÿ])|[。！？?]|\n")
_LINKS = frozenset(
    "is was are were be been called named je jsou byl byla bylo byli nazývá jmenuje ist war sind waren heißt hieß "
    "est était es era fue son é foi era è fu jest był była było".split()
)
"""Words after which a name at the end of a sentence is its predicate."""
_PLACE_WORDS = frozenset("in at on v ve na w we en à au a im am em no na nel nella".split())
"""Words before a place."""
_BOUNDS = frozenset("by from to as of for do od z ze k von zu de da dal".split())
"""Words before a date that begins or ends a period: `until`, `from`."""
_AUXILIARIES = frozenset("did does do is was are were has have had can could will would should may might".split())
_CONJUNCTIONS = frozenset("a o y e i u and or und et".split())
_ASKS_OBJECT = frozenset("whom wen wem koho komu kým čím kogo кого кому кем a à an con de by to with".split())
"""First words of a phrase that asks for an object."""
_WHO = frozenset("who whose kdo wer qui quién quem chi kto кто".split())
"""Question words that stand alone."""
_ASKS_PLACE = re.compile(
    r"\b(?:where|in (?:which|what)|kde|v[e]? kter\w+|v jak\w+|na kter\w+|gdzie|w któr\w+|wo|in welche\w+|où"
    r"|dans quel\w*|dónde|en qué|onde|em que|dove|in quale)\b",
    re.IGNORECASE,
)
_PLAIN = (
    _LINKS
    | (_PLACE_WORDS - {"no"})
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
_SIGN = re.compile(rf"(?<!\w)[-–—]|[-–—](?!\w)|[^\w\s{re.escape(_PUNCTUATION)}–—-]")
"""A sign that may change what a sentence says: `~~Oslo~~`, `- 5`, `❌`."""
_BESIDE = re.compile(r"\S*\n\S*")
_DAY = re.compile(r"\d{1,2}\W{1,2}(?:[^\W\d]{1,2}\s)?[^\W\d]{3,}\W{1,2}(?:[^\W\d]{1,2}\s)?\d{4}")
"""A day with its year in any language: `5. listopadu 2022`, `5 de mayo de 2022`."""
_COMMON_LETTERS = 4
"""Number of letters at the start that the forms of a word share: `died`, `dies`."""
_ENDING_LETTERS = 3
"""Maximum number of letters after the common ones (`_COMMON_LETTERS`) in each form of a word."""


def restated_gold(response: str, gold: str, problem: str, is_same_day: Callable[[str], bool]) -> str | None:
    """Return the words for gold in a response of one sentence whose other words repeat the problem. Otherwise None.

    is_same_day: tells whether a text is the same day as gold.
    """
    text = final_part(response).strip()
    if len(text) > MAX_SENTENCE_CHARS or _SENTENCE_END.search(text) or DENIED_BEFORE.search(problem):
        return None
    words = list(_WORD.finditer(text))
    folded = [word[0].casefold() for word in words]
    gold_words = [word.casefold() for word in _WORD.findall(gold)]
    if set(gold_words) <= {word.casefold() for word in _WORD.findall(problem[-MAX_PROBLEM_CHARS:])}:
        return None
    if len(spans := _spans(text, words, folded, gold, is_same_day)) != 1:
        return None
    ((start, end),) = spans
    first, last = words[start].start(), words[end - 1].end()
    if _SIGN.search(_BESIDE.sub(" ", f"{text[:first]}\n{text[last:]}")) or folded[0] in _AUXILIARIES:
        return None
    if len(gold) <= MAX_CASED_LETTERS and text[first:last] not in gold:
        return None
    is_day = is_same_day(text[first:last]) or _DAY.fullmatch(text[first:last]) is not None
    is_found = _is_answer(folded, start, end, problem, is_day=is_day)
    return text[first:last] if is_found else None


def _is_answer(folded: Sequence[str], start: int, end: int, problem: str, *, is_day: bool) -> bool:
    """Tell whether the words from `start` to `end` of a sentence answer the only question of a problem."""
    questions = _QUESTION.findall(problem[-MAX_PROBLEM_CHARS:])
    if len(questions) > 1:
        return False
    question = questions[0] if questions else problem[-MAX_PROBLEM_CHARS:]
    asked = [word.casefold() for word in _WORD.findall(question)]
    before, behind, has_digits = folded[:start], folded[end:], any(any(map(str.isdigit, w)) for w in folded[start:end])
    if has_digits and not is_day:
        return False
    if _replaces_phrase(before, behind, asked) or (not before and _is_noun_of(behind, asked)):
        return True
    others = [word for word in (*before, *behind) if word not in _PLAIN]
    lead, follow = before[-1] if before else "", behind[0] if behind else ""
    if not others or follow in _CONJUNCTIONS or any(map(str.isdigit, lead + follow)):
        return False
    covered = [word in _PLAIN or any(_is_form(word, other) for other in others) for word in asked]
    known = [i for i, word in enumerate(asked) if word not in _PLAIN and covered[i]]
    if not known or not all(covered[known[0] :]) or not all(any(_is_form(o, word) for word in asked) for o in others):
        return False
    is_predicate = lead in _LINKS and not behind
    is_place = lead in _PLACE_WORDS and _ASKS_PLACE.search(question) is not None
    return (is_day and lead not in _BOUNDS) or is_predicate or is_place


def _replaces_phrase(before: Sequence[str], behind: Sequence[str], asked: Sequence[str]) -> bool:
    """Tell whether a sentence is a question with gold in place of `who` or `which city`."""
    phrase = asked[len(before) : len(asked) - len(behind)]
    if not (before or behind) or not 1 <= len(phrase) <= MAX_ASKING_WORDS:
        return False
    if (
        phrase[0] in _ASKS_OBJECT
        or not (_AUXILIARIES | _WHO).isdisjoint(phrase[1:])
        or (phrase[0] in _WHO and phrase[1:])
    ):
        return False
    return list(before) == asked[: len(before)] and list(behind) == asked[len(asked) - len(behind) :]


def _is_noun_of(behind: Sequence[str], asked: Sequence[str]) -> bool:
    """Tell whether the words after gold are the noun of a question: `lymph nodes` of `which lymph nodes`."""
    count, starts = len(behind), [i for i, word in enumerate(asked) if word in ("which", "what")]
    if not starts or not 1 <= count <= MAX_NOUN_WORDS or not _PLAIN.isdisjoint(behind) or not _WHO.isdisjoint(asked):
        return False
    near = asked[starts[0] : starts[0] + MAX_NOUN_DISTANCE]
    return any(list(behind) == near[i : i + count] for i in range(len(near) - count + 1))


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
            is_whole = _bare(_unbroken(text, words[i].start(), words[i + length - 1].end())) == _bare(span)
            if is_whole and any(map(str.isdigit, span)) and is_same_day(span):
                return [(i, i + length)]
    return []


def _unbroken(text: str, start: int, end: int) -> str:
    """Return a part of a text, extended to the next spaces: `-7 Btu/mole` for `7 Btu`."""
    before, behind = re.search(r"\S*$", text[:start]), re.match(r"\S*", text[end:])
    return f"{before[0] if before else ''}{text[start:end]}{behind[0] if behind else ''}"


def _bare(text: str) -> list[str]:
    """Return the words of a text without punctuation at their ends. Signs and other symbols stay: `-7`, `c++`."""
    return [bare for word in text.casefold().split() if (bare := word.strip(_PUNCTUATION))]


def _is_form(word: str, known: str) -> bool:
    """Tell whether two words are equal or forms of one word: `died` and `die`. Numbers have to be equal."""
    if word == known or word.isdigit() or known.isdigit():
        return word == known
    shared = sum(1 for _ in takewhile(bool, map(eq, word, known)))
    longer, shorter = max(len(word), len(known)), min(len(word), len(known))
    return shared >= min(shorter, _COMMON_LETTERS) > 2 and longer - shared <= _ENDING_LETTERS
