"""Golds that are the letter of a choice, `C`, `(C)`, `\\text{C}`, and the answers that name it.

C    c    (C)    C. 42    C) the cat    E: a score above 90    option C    42, where 42 is the text of C
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from truegold.verifiers.math.reading.normal import key_of, normal

_TEXT_COMMAND = r"\\(?:text|mathrm|textbf|mathbf)\s*\{"
_LETTER = re.compile(rf"(?:{_TEXT_COMMAND}\s*)?\(?\s*(?:{_TEXT_COMMAND})?\s*\(?\s*([A-Za-z])\s*\)?\s*\}}?\s*\)?\s*\}}?")
_MAY_BEGIN_LETTER = frozenset("\\( ABCDEFGHIJ")
_LETTER_AND_TEXT = re.compile(rf"(?:{_TEXT_COMMAND}\s*)?\(?([A-Ja-j])(?:\)|\.|:(?=\s|\\))\s*(\S.*)", re.DOTALL)
_LABEL = re.compile(r"(?:the\s+)?(?:correct\s+)?(?:option|choice|answer)\s*(?:is\s*)?[:：]?\s*", re.IGNORECASE)
_MARKUP = re.compile(r"\\[A-Za-z]+|[{}$]")
_SEVERAL_LETTERS = re.compile(
    r"(?:\b(?:or|and|maybe|perhaps|not)\b|[,/&=])\W*\b[A-J]\b(?!\w|')|\b[A-J]\b\W*(?:\b(?:or|and)\b|[/&=])\W*\b[A-J]\b",
)
"""What tells that an answer names several letters, or takes its letter back."""

MAX_HEAD_CHARS = 60
"""How far into an answer its letters are looked for. Behind that, `or` belongs to the text of the choice."""

MIN_PROSE_WORDS = 2
MAX_PROSE_CHARS = 400
"""Only the end of a long answer says what it commits to."""

_CLAUSE_END = re.compile(
    r"[.;,:，。；：！!?？()（）]|\b(?:because|since|so|therefore|thus|hence|but|which|although|donc|also|luego|daher|sondern|sino|mais|et)\b"
    r"|因此|所以|因为|故",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(?:not|never|cannot|wrong|incorrect|except|neither|nor|non|pas|nicht|kein|не|nie)\b|n't\b|不|错|排除",
    re.IGNORECASE,
)
_NAMED_LETTER = re.compile(r"(?<![\w'])(?:[B-HJ]|A(?!\s+[a-zà-ÿ]))(?![\w'])|(?<![\w'])A(?=\s+(?:is|works|are)\b)")
"""A letter that is no article and no pronoun."""
_ANNOUNCING = re.compile(
    r"\b(?:is|be|are|it's|that's|answers?|option|choice|correct|works|choose|pick|select|est|ist|lautet|es|é|è|sono|to|je)\b"
    r"|[—–=选是为は]|은|는|ответ|هو|هي|उत्तर|উত্তর|cevap|yanıt",
    re.IGNORECASE,
)
_UNSURE = re.compile(r"\b(?:or|maybe|perhaps|possibly|either|both)\b|可能|或", re.IGNORECASE)

SameText: TypeAlias = Callable[[str, str], bool]


def choice_letter(gold_text: str) -> str | None:
    """Return the letter that a normal gold is, or None."""
    match = _LETTER.fullmatch(gold_text) if gold_text[:1] in _MAY_BEGIN_LETTER else None
    return match.group(1) if match is not None and match.group(1) in "ABCDEFGHIJ" else None


def names_choice(  # noqa: PLR0911, one for each way of naming
    letter: str, answer_text: str, options: tuple[str, ...], same: SameText
) -> bool | None:
    """Tell whether a normal answer names the choice; None where it names no choice at all.

    `same` compares the normal text of an option with that of the answer.
    """
    if label := _LABEL.match(answer_text):
        answer_text = answer_text[label.end() :] or answer_text
    lone_letter = _LETTER.fullmatch(answer_text)
    if lone_letter is not None:
        answer_letter = lone_letter.group(1).upper()
        if options and answer_letter != letter and (by_text := _letter_of_text(answer_text, options, same)) is not None:
            return by_text == letter
        return answer_letter == letter
    if options and (by_text := _letter_of_text(answer_text, options, same)) is not None:
        return by_text == letter
    in_prose = letter_in_prose(answer_text)
    if in_prose is not None:
        return in_prose == letter
    if _SEVERAL_LETTERS.search(_MARKUP.sub(" ", answer_text[:MAX_HEAD_CHARS])):
        return False
    letter_and_text = _LETTER_AND_TEXT.fullmatch(answer_text)
    if letter_and_text is not None:
        return letter_and_text.group(1).upper() == letter
    return False if options else None


def letter_in_prose(answer_text: str) -> str | None:
    """Return the only letter that the last clause names which names one and denies none; None where that is open."""
    plain = _MARKUP.sub(" ", answer_text[-MAX_PROSE_CHARS:])
    if len(plain.split()) < MIN_PROSE_WORDS or _UNSURE.search(plain) is not None:
        return None
    clauses = [clause for clause in _CLAUSE_END.split(plain) if _DENIAL.search(clause) is None]
    naming = [clause for clause in clauses if _NAMED_LETTER.search(clause) is not None]
    if not naming:
        return None
    # `A, B` names two letters; `I first took A, so it is B` says which of the two it means.
    is_announced = _ANNOUNCING.search(naming[-1]) is not None
    letters = set(_NAMED_LETTER.findall(naming[-1] if is_announced else " ".join(naming)))
    return letters.pop() if len(letters) == 1 and (is_announced or len(naming[-1].split()) == 1) else None


def _letter_of_text(answer_text: str, options: tuple[str, ...], same: SameText) -> str | None:
    """Return the letter of the only option that says the same."""
    keyed_texts = _normal_options(options)
    key = key_of(answer_text).casefold()
    indices = [index for index, (option_key, _) in enumerate(keyed_texts) if option_key == key]
    if not indices:
        # Reading an option is dear, and none without its letter is the same as a lone letter.
        letter = key if len(key) == 1 and key.isalpha() else ""
        indices = [i for i, (k, text) in enumerate(keyed_texts) if text and letter in k and same(text, answer_text)]
    return chr(ord("A") + indices[0]) if len(indices) == 1 else None


@lru_cache(maxsize=1_024)
def _normal_options(options: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return keys and normal texts; they are cached, because each completion of a group has the same options."""
    return [(key_of(text).casefold(), text) for text in map(normal, options)]
