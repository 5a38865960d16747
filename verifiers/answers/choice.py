r"""Judges multiple-choice responses: a response is right if it commits to gold, the right option.

    Gold   Answer                                                                          Verdict
    C      \boxed{C}   Answer: (c)   选C   故选：C．   答案是Ｃ   "option C"                     match
    C      42   42.0   \frac{84}{2}, with info {"options": ["40", "41", "42"]}             match
    C      C. 42   C) forty-two   C, forty-two   42 (C)                                    match: the letter decides
    C      C. 41, with the same options                                                    hedged: another option
    C      A or C   \boxed{B, C}                                                           hedged
    AC     A, C   ca   C and A   选AC   A and C are right, B is wrong                       match: exactly these letters
    ①③     1, 3   A and C   ③①                                                             match

Gold is a letter A–Z (also `(B)`, `B.` or `B) text`), the text of one of `info["options"]`, or several letters: `A,C`,
`AC`, `["A", "C"]`. A text names an option if both are the same text, apart from blanks, case and markup, or the same
mathematics (`math.equivalent`). Options may begin with labels (`A. red`).

The response commits to an option in an announced form (`extract`), or in its first or last line (`extract.chosen`):
`Hence C is correct`, `the third option`, `The capital is Rome`, `No, there are more`.

Not covered: letters in prose (`as in C`), lists of all options, and partial credit for some of several right letters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from truegold.verifiers.answers.gold_words import truth_of
from truegold.verifiers.extract import Committed, final_part, last_line, names_gold, without_hidden
from truegold.verifiers.extract.chosen import (
    UNANNOUNCED,
    WRAPPER,
    chosen,
    committed_choice,
    letters_in,
    place_of,
    plain,
    texts_in,
)
from truegold.verifiers.extract.declared import behind, declared, is_taken_back
from truegold.verifiers.extract.judged import asks_for_wrong
from truegold.verifiers.extract.restated import affirms
from truegold.verifiers.extract.stated_values import PATTERNS
from truegold.verifiers.options import AnswerVerifier, BadOption, bad_option_verdict, switch_option, texts_option
from truegold.verifiers.verdict import NO_INFO, Reason, Verdict

MAX_ANSWER_CHARS = 2_000
"""Maximum length of an answer that is read, in characters. Long texts are slow to normalise."""

MAX_FORMULA_CHARS = 200
"""Maximum length of a text that is compared as mathematics, in characters. The comparison is slow."""

MAX_OPTIONS = 26
MAX_OPTION_CHARS = 10_000

_LABEL = re.compile(
    r"(?:the\s{1,3})?(?:correct\s{1,3})?(?:option|choice|answer|答案|[故应]?选[项择]?)\s{0,3}(?:is\s|[是为:])?\s{0,3}",
    re.IGNORECASE,
)
"""The words before a letter: `the correct answer is`, `option`, 故选."""
_LONE_LETTER = re.compile(r"\(?\s{0,3}([A-Za-z])\s{0,3}[).:]?")
"""A lone letter: `C`, `(c)`, `C.`, `C:`."""
_LETTER_AND_TEXT = re.compile(
    r"(?:\(([A-Za-z])\)|([A-Z])(?:[).:]|,(?=\s{1,3}(?:[a-z]{2}|[\d$\\]|[A-Z][a-z])))|([a-z])[).:](?=\s))\s{0,10}(\S.*)",
    re.DOTALL,
)
"""A letter with the text of its option: `C. forty-two`, `(c) 42`, `C, forty-two`."""
_ITS_LETTER = r"[(\[]?\s?(?:option\s|choice\s)?%s\s?[)\]]?"
"""A given letter (`%s`) within a text: `(C)`, `option C`."""
_AROUND_TEXT = " ,.:;()[]-–—"
"""Characters that are stripped from the text next to a letter."""
_JOIN = r"\s{0,3}(?:,|;|/|&|、|\bor\b|\band\b|或|和|\s)\s{0,3}(?:(?:or|and)\s{1,3})?"
"""Separators of several letters: a comma, "and", "or"."""
_SEVERAL = re.compile(rf"\(?[A-Z]\)?(?:{_JOIN}\(?[A-Z]\)?|\([A-Z]\)){{1,25}}")
"""Several letters: `A, C`, `A or C`, `(A)(C)`."""
_COMPACT = re.compile(r"[A-Z]{2,26}")
"""Several letters as one word: `AC`."""
_LETTER_BESIDE = re.compile(r"(?:^|[,;/]|\b(?:or|and))\s{0,3}\(?([A-Za-z])\)?\s{0,3}(?=$|[,;/)])")
"""A further letter in the text next to a letter: the `D` in `C or D`."""
_DIVISOR = re.compile(r"(?<=\d)[^,;\d]{0,20}/\s{0,3}[A-Z]\b")
"""The unit after a slash: the `C` of `5 N/C`."""
_SPACE_COMMAND = re.compile(r"\\[,;:!]")
_EITHER_BEFORE = re.compile(r"^(?:or|and|maybe|或)\s")
_EITHER = re.compile(r"\bor\b|/|或")
"""A sign that the text does not decide between letters."""
_A_LETTER = re.compile(r"(?<![A-Za-z])[A-Z](?![A-Za-z])")
_SET_JOIN = re.compile(r"[\s,;/&+、，；()\[\]{}]+|\b(?:and|und|et)\b|[和及与과와とや]|그리고")
"""Separators between the letters of a set."""
_AROUND_SET = re.compile(r"^both\s|\s?(?:only|alone|번|です|입니다)$", re.IGNORECASE)
"""Words around a set that are removed: "both A and C", "A and C only"."""
_BETWEEN_LABELLED = re.compile(r"[\s,;、，；]+(?:(?:and|und|et|[和与])\s{0,3})?(?=\(?[A-Z][).:]\s?\w)")
"""The separator in `A) two and C) four`."""
_NUMBERED = re.compile(r"(\d{1,2})[.번番]?")
_CIRCLED = {0x2460 + index: f" {index + 1} " for index in range(20)}
"""Replaces circled numbers by plain ones: ① -> 1."""
_SCRIPTS = {"ㄱㄴㄷㄹㅁㅂㅅ": r"[ㄱ-ㅎ]", "アイウエオカキク": r"[ァ-ヶー]"}
"""Maps letters of options in Korean and Japanese to a pattern of characters that must not stand next to them."""

_CHOOSING = re.compile(
    r"\b(?:option|choice|alternative|statement)\b|\b(?:first|second|third|fourth|fifth|last)\s(?:one|of)\b|选项|第[一二三四五]"
    r"|\b(?:[Oo]pci[oó]n|Antwort|r[eé]ponse|alternativa|вариант)\b|[✓✔☑✅]|\[[xX]\]",
    re.IGNORECASE,
)
"""Words and ticks that choose an option without its letter."""
_FORMULA_SIGN = re.compile(r"[\d\\^_=+*/<>°√π∞]")
"""A sign, digit or command that a formula may have."""
_COMMAND = re.compile(r"\\[A-Za-z]{1,30}")
_WORD = re.compile(r"[^\W\d_]{3,}")
_ANSWERS, _AFFIRMATIONS = (frozenset(PATTERNS[name]) for name in ("interjections", "affirmations"))
"""`_ANSWERS` are words for yes and no. `_AFFIRMATIONS` are the words for yes."""
_LABELS = "|".join(PATTERNS["answer_words"]) + (
    "|answers?|judge?ments?|verdict|label|conclusion|result|decision|assessment|evaluation|classification|choice|option"
    "|urteil|jugement|veredicto|вердикт|答案|判断|判定|结论|结果|选择|评价"
)
"""Nouns that may stand before an option: `judgement`, `result`."""
_OPENING = re.compile(
    rf"[#*_\s]*(?:(?:the\s)?(?:final\s)?(?:{_LABELS})(?:\sis)?\s?[:：][*_\s]*)?(?P<words>[^.:：\n。]+?)[*_]*(?:[.。]|$)",
    re.IGNORECASE,
)
"""The first words of a line, also after a label: `Judgement: Correct`."""
_LIST_MARKS = str.maketrans("[]\"'", "    ")
"""Replaces the brackets and quotes of a written list by blanks."""


@dataclass(frozen=True, slots=True)
class ChoiceVerifier(AnswerVerifier):
    """Judges answers to multiple-choice questions: whether a response commits to the right option.

    Settings in `info`: `options` are the texts of the options in the order of their letters. `multiple` (default false)
    says that gold is a set of letters, all of which are needed.
    """

    options: ClassVar[tuple[str, ...]] = ("options", "multiple")

    name: str = "choice"
    version: str = "8"

    def __call__(
        self, response: str, gold: str | None, *, problem: str | None = None, info: Mapping[str, Any] = NO_INFO
    ) -> Verdict:
        """Return the verdict on the option that the response names.

        The response may name no option. If the options are yes and no, it may answer by repeating the question as a
        statement.
        """
        try:
            verdict = self._judge(response, gold, info, problem)
        except BadOption as error:
            return bad_option_verdict(error)
        if verdict.score != 0.0 or verdict.evidence.get("answer") or not problem or "options" not in info:
            return verdict
        options = [option.casefold().strip(" .") for option in info["options"]]
        if len(options) != 2 or not _ANSWERS.issuperset(options) or len(_AFFIRMATIONS & set(options)) != 1:
            return verdict
        if (is_affirmed := affirms(problem, final_part(response))) is None:
            return verdict
        letter = "AB"[(options[0] in _AFFIRMATIONS) != is_affirmed]
        return AnswerVerifier.__call__(self, f"\\boxed{{{letter}}}", gold, info=info)

    def _judge(self, response: str, gold: str | None, info: Mapping[str, Any], problem: str | None = None) -> Verdict:
        multiple = switch_option(info, "multiple", False)
        options = _without_labels(texts_option(info, "options", (), MAX_OPTIONS, MAX_OPTION_CHARS))
        if gold is None or not gold.strip():
            return Verdict(None, Reason.GOLD_MISSING)
        gold_reading = _read_gold(gold, options, multiple)
        if gold_reading is None:
            among = f"one of the {len(options)} options" if options else "the letter of an option"
            error = f"gold is not {among}; if it is a value, use the verifier math"
            return Verdict(None, Reason.GOLD_UNPARSED, evidence={"gold": gold[:MAX_ANSWER_CHARS], "error": error})
        response = without_hidden(response if gold.isascii() else _in_latin(response, gold))
        multiple = multiple or len(gold_reading.letters) > 1
        if gold_reading.is_numbered:
            response = response.translate(_CIRCLED)
        committed = committed_choice(response, options, several=multiple, problem=problem)
        answer = _read(committed.text, options, multiple, gold_reading) if committed is not None else None
        is_announced = committed is not None and committed.form not in UNANNOUNCED
        if is_announced and answer is not None and not answer.letters and (choice := chosen(response, options)):
            committed, answer = choice, _read(choice.text, options, multiple)
        if committed is None and multiple:
            committed, answer = _bare_set(final_part(response), options, gold_reading)
        if not multiple and (committed is None or answer is None or not answer.letters or committed.form == "phrase"):
            committed, answer = _declared(response, problem, committed, is_announced) or (committed, answer)
        if options and not multiple and (answer is None or not answer.letters):
            committed, answer = _labelled(response, options) or (committed, answer)
        if committed is None or answer is None:
            is_unread = _mentions_option(last_line(final_part(response)), gold_reading, options)
            return Verdict(0.0, Reason.UNREAD if is_unread else Reason.NO_ANSWER)
        return _judge(gold_reading, answer, committed, options)

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        """Return a right response: the letters of gold in a box, or else its text."""
        letters = _read(gold, (), False).letters
        return f"\\boxed{{{', '.join(sorted(letters)) or gold}}}"


@dataclass(frozen=True, slots=True)
class _Reading:
    """The letters that a text names."""

    letters: frozenset[str]
    hedged: bool = False
    """Whether the text does not decide between the letters."""
    is_numbered: bool = False
    """Whether the letters are written as numbers: `1, 3`, `①③`."""

    def __str__(self) -> str:
        return "".join(sorted(self.letters))


def _declared(
    response: str, problem: str | None, committed: Committed | None, is_announced: bool
) -> tuple[Committed, _Reading] | None:
    """Return the option that a sentence declares right. If an answer is announced, only the text after it is read."""
    if problem is not None and asks_for_wrong(problem):
        return None
    text = final_part(response)
    if committed is not None and is_announced:
        text = text.rpartition("\\boxed")[2] if committed.form == "boxed" else behind(text, committed.text)
    letter = declared(text)
    return None if letter is None else (Committed(letter, "option"), _Reading(frozenset(letter)))


def _labelled(response: str, options: Sequence[str]) -> tuple[Committed, _Reading] | None:
    """Return the only option in words that opens a line: `Judgement: Correct`, `Correct. The sum holds.`"""
    keys = {_key(option): chr(ord("A") + index) for index, option in enumerate(options) if len(option) > 1}
    text = final_part(response)[:MAX_ANSWER_CHARS]
    openings = (opening for line in text.splitlines() if (opening := _OPENING.match(line)))
    letters = {keys[key]: words for opening in openings if (key := _key(words := opening["words"])) in keys}
    if any(is_taken_back(behind(text, words), words) for words in letters.values()):
        return None
    return (Committed("".join(letters), "first_line"), _Reading(frozenset(letters))) if len(letters) == 1 else None


def _judge(gold: _Reading, answer: _Reading, committed: Committed, options: Sequence[str]) -> Verdict:
    text = committed.text
    if len(text) > MAX_ANSWER_CHARS:
        limits = {"answer_chars": len(text), "limit": MAX_ANSWER_CHARS}
        return Verdict(0.0, Reason.UNREAD, text[:MAX_ANSWER_CHARS], limits)
    evidence = {"gold": str(gold), "answer": str(answer), "form": committed.form}
    if answer.hedged:
        return Verdict(0.0, Reason.HEDGED, text, evidence)
    if not answer.letters and (not options or _mentions_option(text, gold, options)):
        return Verdict(0.0, Reason.UNREAD, text, evidence)
    match = answer.letters == gold.letters
    return Verdict(float(match), Reason.MATCH if match else Reason.MISMATCH, text, evidence)


def _mentions_option(text: str, gold: _Reading, options: Sequence[str]) -> bool:
    """Say whether a text seems to choose an option: `Option #2 fits`, `the third one is right`, an option's text."""
    if names_gold(text, str(gold)) or _CHOOSING.search(text):
        return True
    key = _key(text)
    return any(len(option) > 1 and option in key for option in map(_key, options))


def _in_latin(text: str, gold: str) -> str:
    """Return the text with A, B, C in place of ㄱ, ㄴ, ㄷ or ア, イ, ウ, if gold is in that script."""
    letters = next((letters for letters in _SCRIPTS if any(map(gold.__contains__, letters))), None)
    if letters is None:
        return text
    pattern = rf"(?<!{_SCRIPTS[letters]})[{letters}](?!{_SCRIPTS[letters]})"
    return re.sub(pattern, lambda match: f" {chr(ord('A') + letters.index(match[0]))} ", text)


def _read_gold(gold: str, options: Sequence[str], multiple: bool) -> _Reading | None:
    """Return the letters of gold, or None if gold is not an option."""
    latin = _in_latin(gold, gold)
    reading = _read(latin, options, multiple)
    if not _options_named_by(latin, options):
        reading = _read_set(latin, options, numbered=True, is_gold=True) or reading
    count = len(options) or MAX_OPTIONS
    is_known = reading.letters and all(ord(letter) - ord("A") < count for letter in reading.letters)
    return reading if is_known and not reading.hedged else None


def gold_letters(gold: str, options: Sequence[str] = ()) -> str | None:
    """Return the letters of gold, such as `AC` for `["A", "C"]`, or None if gold is not an option."""
    reading = _read_gold(gold, _without_labels(options), multiple=False)
    return str(reading) if reading is not None else None


def _read_set(text: str, options: Sequence[str], *, numbered: bool, is_gold: bool = False) -> _Reading | None:
    """Return the letters of a set (`A, C and E`, `ACE`, `["a", "c"]`, texts of several options), or None.

    numbered: read `1, 3` and `①③` as letters too. is_gold: `text` is gold. Then letters without separators must be
    capitals in alphabetical order (`ACE`), because `BAD` may be a word, and a single number must be written as `②`.
    """
    if "/" in text and (not is_gold or any(map(str.isdigit, text))):
        return None
    if (labelled := _read_labelled(plain(text), options)) is not None:
        return labelled
    numbers = text.translate(_CIRCLED)
    words = _AROUND_SET.sub("", " ".join(plain(numbers if numbered else text).translate(_LIST_MARKS).split()))
    parts = [part.strip(".:") for part in _SET_JOIN.split(words) if part.strip(".:")]
    if len(parts) == 1 and _COMPACT.fullmatch(parts[0] if is_gold else parts[0].upper()):
        parts = list(parts[0])
        if is_gold and parts != sorted(parts):
            return None
    is_numbered = numbered and all(map(_NUMBERED.fullmatch, parts))
    if is_numbered:
        parts = [chr(ord("A") - 1 + min(int(part.rstrip(".번番")), MAX_OPTIONS + 1)) for part in parts]
    elif not all(len(part) == 1 and part.isascii() and part.isalpha() for part in parts):
        named = [_options_named_by(part, options) for part in _SET_JOIN.split(words) if part]
        parts = [letter for letters in named for letter in letters] if all(len(n) == 1 for n in named) else []
    letters = frozenset(part.upper() for part in parts)
    is_set = len(letters) > 1 or (is_numbered and (numbers != text or not is_gold))
    return _Reading(letters, is_numbered=is_numbered) if is_set and len(letters) == len(parts) else None


def _bare_set(text: str, options: Sequence[str], gold: _Reading) -> tuple[Committed | None, _Reading | None]:
    """Read a first or last line that consists only of a set of letters."""
    for line, form in ((last_line(text), "last_line"), (text.partition("\n")[0].strip("*_# "), "first_line")):
        if len(line) > MAX_ANSWER_CHARS:
            continue
        if (several := _read_set(line, options, numbered=gold.is_numbered)) is not None:
            return Committed(line, form), several
    return None, None


def _read_labelled(text: str, options: Sequence[str]) -> _Reading | None:
    """Return the letters of `A) two and C) four`, hedged if a letter stands next to the text of another option."""
    labelled = [_LETTER_AND_TEXT.fullmatch(part) for part in _BETWEEN_LABELLED.split(text)]
    named = [(match[1] or match[2] or match[3], match[4].strip(_AROUND_TEXT)) for match in labelled if match]
    if len(named) < max(2, len(labelled)):
        return None
    readings = [_with_contradiction(letter.upper(), [words], options) for letter, words in named]
    letters = frozenset(letter for reading in readings for letter in reading.letters)
    return _Reading(letters, hedged=any(reading.hedged for reading in readings))


def _read(text: str, options: Sequence[str], multiple: bool, gold: _Reading | None = None) -> _Reading:
    """Return the letters that a text names: by letters, by texts of options, or by numbers if gold has numbers."""
    plain_text = plain(_SPACE_COMMAND.sub(" ", text))
    bare = _LONE_LETTER.fullmatch(plain_text)
    is_label = bare is not None and ord(bare[1].upper()) - ord("A") < (len(options) or MAX_OPTIONS)
    if not is_label and (same := _options_named_by(text, options)):
        return _Reading(frozenset(same), hedged=len(same) > 1)
    if (label := _LABEL.match(plain_text)) and label.end() < len(plain_text):
        plain_text = plain_text[label.end() :]
    if multiple or (gold is not None and gold.is_numbered):
        if several := _read_set(plain_text, options, numbered=gold is not None and gold.is_numbered):
            return several
        plain_text = " ".join(plain_text.translate(_LIST_MARKS).split())
    if _SEVERAL.fullmatch(plain_text):
        letters = frozenset(_A_LETTER.findall(plain_text))
        return _Reading(letters, hedged=len(letters) > 1 and (not multiple or bool(_EITHER.search(plain_text))))
    return _read_words(plain_text, text, options, multiple)


def _read_words(text: str, written: str, options: Sequence[str], multiple: bool) -> _Reading:
    """Read a letter within words (`the answer is C`), the position of an option (`the third`), or its text.

    The reading is hedged if a letter stands next to the text of another option.
    """
    label = _LETTER_AND_TEXT.fullmatch(text)
    if (match := _LONE_LETTER.fullmatch(text) or label) is not None:
        letters = frozenset(next(filter(None, match.groups())).upper())
    else:
        letters = letters_in(written, len(options) or MAX_OPTIONS, announced=True)
    if not letters:
        letters = place_of(text, options) or texts_in(text, options)
    if len(letters) != 1 or (match is not None and label is None):
        return _Reading(letters, hedged=len(letters) > 1 and (not multiple or bool(_EITHER.search(text))))
    (letter,) = letters
    written = f"(?:{letter}|{letter.lower()}(?=[).:]))"
    before, after = ("", label[4]) if label else (*re.split(_ITS_LETTER % written, text, maxsplit=1), "")[:2]
    # A lone small letter before the text is an article: `a dog`.
    if len(before.strip()) == 1 and before.islower():
        before = ""
    parts = [before.strip(_AROUND_TEXT), after if label else after.strip(_AROUND_TEXT)]
    return _with_contradiction(letter, [_EITHER_BEFORE.sub("", part) for part in parts if part], options)


def _with_contradiction(letter: str, parts: Sequence[str], options: Sequence[str]) -> _Reading:
    """Return the letter, and any other options that the texts next to it name. With others, the reading is hedged."""
    index = ord(letter) - ord("A")
    others: set[str] = set()
    for part in parts:
        if index >= len(options) or not _is_same(part, options[index]):
            beside = _LETTER_BESIDE.findall(_DIVISOR.sub("", part))
            others |= {name.upper() for name in beside} | _options_named_by(part, options)
    others -= {letter, *(name for name in others if options and ord(name) - ord("A") >= len(options))}
    return _Reading(frozenset({letter, *others}), hedged=bool(others))


def _options_named_by(text: str, options: Sequence[str]) -> set[str]:
    """Return the letters of the options with this text, or else with the same mathematics."""
    same_text = [index for index, option in enumerate(options) if _key(option) == _key(text)]
    same = same_text or [index for index, option in enumerate(options) if _is_same(text, option)]
    return {chr(ord("A") + index) for index in same}


def _is_same(text: str, option: str) -> bool:
    if _key(text) == _key(option):
        return True
    if (truth := truth_of(text)) is not None and (other := truth_of(option)) is not None:
        return (truth in ("yes", "true")) == (other in ("yes", "true"))
    from truegold.verifiers.math import equivalent

    return _is_formula(text) and _is_formula(option) and equivalent(text, gold=option).passed


def _is_formula(text: str) -> bool:
    """Say whether a text can be compared as mathematics; one word, such as a unit, is allowed."""
    return (
        len(text) <= MAX_FORMULA_CHARS
        and _FORMULA_SIGN.search(text) is not None
        and len(_WORD.findall(_COMMAND.sub(" ", WRAPPER.sub("", text)))) <= 1
    )


def _key(text: str) -> str:
    return "".join(plain(text).casefold().split()).rstrip(".。;；") or text


def _without_labels(options: Sequence[str]) -> list[str]:
    """Return options without labels, `["A. red", "B. blue"]` -> `["red", "blue"]`; unchanged if a label is missing."""
    labelled = [_LETTER_AND_TEXT.fullmatch(option.strip()) for option in options]
    labels = [(match[1] or match[2] or match[3]).upper() if match else "" for match in labelled]
    if labels != [chr(ord("A") + index) for index in range(len(options))]:
        return list(options)
    return [match[4] for match in labelled if match]
