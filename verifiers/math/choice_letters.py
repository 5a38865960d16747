r"""Compares answers with a gold that is the letter of an option.

The table shows answers, and the letters that they name:

    B    (B)    \text{B}    the correct answer is B         B
    B. forty-two    (B) 42                                  B
    42, if this is the text of option B                     B
    I first took A, so it is B    B is correct              B (`extract.chosen`)
    A or B    B, C                                          none, because the answer names several letters
    maybe B                                                 none, because the answer is in doubt

A small letter names an option if it is in brackets, `(b)`, or if the problem lists (a), (b), and so on. Gold may also
be a letter with its value, `\textbf{(C) } 42`: the letter or the value alone is right, `(C) 41` is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from truegold.verifiers.extract.chosen import LETTERS, letters_in
from truegold.verifiers.math.reading.normal import key_of, normal

SameText: TypeAlias = Callable[[str, str], bool]
"""Tells whether the normalised texts of an option and of an answer mean the same."""

_LETTERS = "ABCDEFGHIJ"
_TEXT_COMMAND = r"\\(?:text|mathrm|textbf|mathbf)\s*\{"
"""The start of a text command: `\\text{`."""
_LONE_LETTER = re.compile(
    rf"(?:{_TEXT_COMMAND}\s*)?\(?\s*(?:{_TEXT_COMMAND})?\s*\(?\s*([A-Za-z])\s*\)?\s*\}}?\s*\)?\s*\}}?"
)
r"""Matches `B`, `(B)`, `\text{B}`, `\text{(B)}`, `(\mathbf{B})`."""
_MAY_BEGIN_LETTER = frozenset(f"\\( {_LETTERS}")
"""First characters of a text that may be a letter."""
_LETTER_AND_TEXT = re.compile(rf"(?:{_TEXT_COMMAND}\s*)?\(?([A-Ja-j])(?:\)|\.|:(?=\s|\\))\s*(\S.*)", re.DOTALL)
"""Matches `B. forty-two`, `(B) 42`, `B: 42`."""
_LABEL = re.compile(r"(?:the\s+)?(?:correct\s+)?(?:option|choice|answer)\s*(?:is\s*)?[:：]?\s*", re.IGNORECASE)
"""Words before a letter: `option`, `the correct answer is`."""
_MARKUP = re.compile(r"\\[A-Za-z]+|[{}$]")
"""Matches `\\text`, `{`, `$`."""
_PROSE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}[\s}]*$")
"""A word at the end of a text."""
_SEVERAL_LETTERS = re.compile(
    r"(?:\b(?:or|and|maybe|perhaps|not)\b|[,/&=])\W*\b[A-J]\b(?!\w|')|\b[A-J]\b\W*(?:\b(?:or|and)\b|[/&=])\W*\b[A-J]\b"
)
"""Signs that an answer names several letters, or denies a letter: A or B, A/B, not B."""
MAX_HEAD_CHARS = 60
"""The number of characters at the start of an answer that are searched for several letters."""
MAX_CHOICE_CHARS = 400
"""The number of characters at the end of an answer that are searched for its letter."""
_CHOICE_AND_VALUE = re.compile(
    rf"(?P<wraps>(?:{_TEXT_COMMAND}\s*){{0,2}})\(?\s*(?P<letter>[{_LETTERS}])\s*(?:\)|[.:](?=[\s}}]))"
    r"(?P<value>(?:\s|\\[ ,;:]|\\quad|[~}]).*)",
    re.DOTALL,
)
r"""Matches `\textbf{(C) } 42`."""
_NAMED_LETTER = re.compile(rf"\(?(?<![A-Za-z\\])[{_LETTERS}](?![A-Za-z])\)?[.:]?")
"""A letter with its brackets or point: `(B)`, `B.`."""
_AROUND = " ,.:;()-"
"""Punctuation around the text of an option."""
_ANOTHER_LABEL = re.compile(rf"\([{_LETTERS}]\)")
"""Matches `(B)`."""
_SMALL = re.compile(rf"[\s$]*(?:{_TEXT_COMMAND})?(\()?(?:{_TEXT_COMMAND})?([a-j])(\))?[}}\s$.]*")
r"""A gold that is a small letter: `b`, `(b)`, `\text{(b)}`."""
MAX_SMALL_CHARS = 40
"""Maximum length in characters of a gold that is a small letter."""
_SMALL_LABEL = re.compile(
    rf"((?<![A-Za-z\d_^)}}\]])(?<![=+*/^-]\s)\((?:{_TEXT_COMMAND})?|\\boxed\{{\s?(?:{_TEXT_COMMAND})?)([a-j])(\}}?\)|\s?\}})"
)
r"""A small letter in a response: `(b)`, `\boxed{b}`."""
_GAP = re.compile(r"(?:\s|\\[ ,;:]|\\quad|[~:])+")
"""Blanks between a letter and its value."""


def small_choice(gold: str, problem: str | None) -> str | None:
    """Return B for a gold of `(b)`, and for `b` if the problem lists its options as a), b). Else return None."""
    if len(gold) > MAX_SMALL_CHARS or (match := _SMALL.fullmatch(gold)) is None:
        return None
    is_listed = problem is not None and all(label in problem for label in ("a)", "b)"))
    return match[2].upper() if match[3] or is_listed else None


def with_capital_labels(response: str) -> str:
    """Return the response with capital labels: `(B) text` for `(b) text`, and `\\boxed{B}` for `\\boxed{b}`."""
    return _SMALL_LABEL.sub(lambda match: f"{match[1]}{match[2].upper()}{match[3]}", response)


def choice_letter(gold_text: str) -> str | None:
    """Return the letter of an option if a normalised gold is one, or else None."""
    if gold_text[:1] == "[" and gold_text[2:] == "]":
        gold_text = gold_text[1]
    match = _LONE_LETTER.fullmatch(gold_text) if gold_text[:1] in _MAY_BEGIN_LETTER else None
    return match.group(1) if match is not None and match.group(1) in _LETTERS else None


def choice_and_value(text: str) -> tuple[str, str] | None:
    r"""Return the letter and the value of a normalised `(C) 42` or `\textbf{(C) } 42`. Return None for other texts."""
    match = _CHOICE_AND_VALUE.fullmatch(text) if text[:1] in _MAY_BEGIN_LETTER else None
    if match is None or _ANOTHER_LABEL.search(match["value"]):
        return None
    value = match["value"]
    for _ in range(match["wraps"].count("{")):
        value = _without_gap(value)
        value = value[1:] if value.startswith("}") else value.rstrip().removesuffix("}")
    value = _without_gap(value)
    return (match["letter"], value) if value and value[0] not in "^=+*/<>_}" else None


def _without_gap(text: str) -> str:
    gap = _GAP.match(text)
    return text[gap.end() :] if gap else text


def names_choice(letter: str, answer_text: str, options: tuple[str, ...], same: SameText) -> bool | None:
    """Tell whether a normalised answer names the option `letter`. Return None if it names no option.

    same: compares an option with the answer.
    """
    if label := _LABEL.match(answer_text):
        answer_text = answer_text[label.end() :] or answer_text
    lone_letter = _LONE_LETTER.fullmatch(answer_text)
    if lone_letter is not None and lone_letter.group(1) == letter:
        return True
    letter_and_text = _LETTER_AND_TEXT.fullmatch(answer_text)
    beside = letter_and_text[2].removeprefix("}") if letter_and_text is not None else ""
    other = letter_of_text(_without_markup(beside).strip(_AROUND), options, same) if beside and options else None
    if letter_and_text is not None and other not in (None, letter_and_text[1].upper()):
        return False
    # A letter may also be the text of an option: `c`, if the options are variables.
    by_text = letter_of_text(answer_text, options, same) if options else None
    if by_text is not None or lone_letter is not None:
        return (by_text or (lone_letter[1].upper() if lone_letter is not None else "")) == letter
    is_several = _SEVERAL_LETTERS.search(_MARKUP.sub(" ", answer_text[:MAX_HEAD_CHARS])) is not None
    if letter_and_text is not None:
        is_several = is_several or _ANOTHER_LABEL.search(beside) is not None
        return not is_several and letter_and_text[1].upper() == letter
    if letters := letters_in(answer_text[-MAX_CHOICE_CHARS:], len(options) or LETTERS, announced=True):
        rest = _NAMED_LETTER.sub(" ", answer_text, count=1).strip(_AROUND)
        return letters == {letter} and (not options or letter_of_text(rest, options, same) in (None, letter))
    return False if options or is_several else None


def _without_markup(text: str) -> str:
    """Return prose without its LaTeX: `orchestra` for `\\text{orchestra}`. Formulas are returned unchanged."""
    return " ".join(_MARKUP.sub(" ", text).split()) if _PROSE.search(text) else text


def letter_of_text(answer_text: str, options: tuple[str, ...], same: SameText) -> str | None:
    """Return the letter of the option that means the same as a normalised text, or None if not exactly one does."""
    keyed_texts = _normal_options(options)
    key = key_of(answer_text).casefold()
    indices = [index for index, (option_key, _) in enumerate(keyed_texts) if option_key == key]
    if not indices:
        # Reading an option is expensive. For an answer of a single letter, only options with this letter are read.
        required = key if len(key) == 1 and key.isalpha() else ""
        indices = [i for i, (k, text) in enumerate(keyed_texts) if text and required in k and same(text, answer_text)]
    return chr(ord("A") + indices[0]) if len(indices) == 1 else None


@lru_cache(maxsize=1_024)
def _normal_options(options: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the key and the normalised text of each option. Cached, because the completions of a group share them."""
    return [(key_of(text).casefold(), text) for text in map(normal, options)]
