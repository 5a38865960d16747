r"""Judges multiple choice: does the response commit to the gold option?

    gold C     \boxed{C}   Answer: (c)   选C   故选：C．   答案是Ｃ   "option C"            match
    gold C     42, with info {"options": ["40", "41", "42"]}; 42.0, \frac{84}{2} as well     match
    gold C     C. 42   C) forty-two   C, forty-two   42 (C)                                match: the letter decides
    gold C     C. 41, with the options above                                              hedged: letter against text
    gold C     A or C   \boxed{B, C}                                                      hedged
    gold AC    A, C   AC   C and A, with info {"multiple": true}                          match: all of them, no other

Gold is a letter A–Z, also as `(B)`, `B.` or `B) text`, or the text of one of `info["options"]`; with `multiple` several
letters. A text is an option's where they are the same text, blanks, case and markup aside, or the same mathematics
(`math.equivalent`). Options may carry their own labels (`A. red`). The response commits in any of the forms of
`extract`, by `option C` or 选C in its last line, or by a last line that is a letter alone.

A letter that stands somewhere in prose and shares of several right letters are not covered.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from truegold.verifiers.extract import (
    MAX_LINE_CHARS,
    Committed,
    committed_answer,
    final_part,
    last_line,
    names_gold,
)
from truegold.verifiers.options import AnswerVerifier, switch_option, texts_option
from truegold.verifiers.verdict import Reason, Verdict

MAX_ANSWER_CHARS = 2_000
"""A longer answer is not a choice. Stops text made to be slow to normalise."""

MAX_FORMULA_CHARS = 200
"""Longer texts are compared as texts only. Stops a formula of a page being read once for each option."""

MAX_OPTIONS = 26
MAX_OPTION_CHARS = 10_000

_NOT_FOLDED = ("<super>", "<sub>", "<fraction>")
"""Compatibility forms that mean something: 5² is not 52."""

_WRAPPER = re.compile(r"\\(?:text|textbf|mathrm|mathbf|boxed|fbox)\s{0,3}(?=\{)")
_LABEL = re.compile(
    r"(?:the\s{1,3})?(?:correct\s{1,3})?(?:option|choice|answer|答案|[故应]?选[项择]?)\s{0,3}(?:is\s|[是为:])?\s{0,3}",
    re.IGNORECASE,
)
"""`the correct answer is C`, `option C`, 故选C: the words before the letter."""
_LONE_LETTER = re.compile(r"\(?\s{0,3}([A-Za-z])\s{0,3}[).:]?")
"""C, (c), C., `C:`."""
_LETTER_AND_TEXT = re.compile(
    r"(?:\(([A-Za-z])\)|([A-Z])(?:[).:]|,(?=\s{1,3}(?:[a-z]{2}|[\d$\\]|[A-Z][a-z])))|([a-z])[).:](?=\s))\s{0,10}(\S.*)",
    re.DOTALL,
)
"""C. forty-two, (c) 42, `C, forty-two`."""
_TEXT_AND_LETTER = re.compile(r"(\S.{0,200}?),?\s{1,3}(?:which\s{1,3}is\s{1,3})?(?:option\s{0,3})?\(([A-Z])\)")
"""42 (C), `42, which is option (C)`."""
_LETTER_AND_REASON = re.compile(
    r"\(?([A-Z])\)?\s{0,3},?(?:\s{1,3}(?:because|since|as|not|rather\s{1,3}than|instead\s{1,3}of)\b"
    r"|\s{0,3}(?:因为|而?不[选是]|选?项?(?:是)?正确)).*",
    re.DOTALL,
)
"""`C because ...`, `C, not B`, C正确."""
_JOIN = r"\s{0,3}(?:,|;|/|&|、|\bor\b|\band\b|或|和|\s)\s{0,3}(?:(?:or|and)\s{1,3})?"
_SEVERAL = re.compile(rf"\(?[A-Z]\)?(?:{_JOIN}\(?[A-Z]\)?|\([A-Z]\)){{1,25}}")
"""`A, C`, `A or C`, (A)(C)."""
_COMPACT = re.compile(r"[A-Z]{2,26}")
"""AC."""
_EITHER = re.compile(r"\bor\b|/|或")
_ANOTHER_LABEL = re.compile(r"(?:[,;/或和]|\bor\b|\band\b)\s{0,3}(?:option\s{0,3})?\(?([A-Z])(?:[).:]|$)")
"""A second choice behind the text of the first: `C. 42 or D.`"""
_A_LETTER = re.compile(r"(?<![A-Za-z])[A-Z](?![A-Za-z])")

_CHOOSING = re.compile(
    r"\b(?:option|choice|alternative|statement)\b|\b(?:first|second|third|fourth|fifth|last)\s(?:one|of)\b|选项|第[一二三四五]"
    r"|\b(?:[Oo]pci[oó]n|Antwort|r[eé]ponse|alternativa|вариант)\b|[✓✔☑✅]|\[[xX]\]",
    re.IGNORECASE,
)
"""Words and ticks by which an option is named without its letter."""
_CLAUSE_END = re.compile(r"[;。!]|\.\s|,\s{0,3}(?!\(?[A-Z]\)?(?:\W|$))|\b(?:so|but|therefore|hence)\b|所以|因此")
_SECOND_THOUGHT = re.compile(r"\b(?:or|maybe|perhaps)\b[^A-Za-z]*\(?([A-J])\b")
"""`C. 42, or maybe D`."""
_NEGATION = re.compile(
    r"\b(?:not|never|neither|nor|cannot|wrong|incorrect|false|except)\b|n't\b|eliminat|exclud|rul(?:e|ed|ing) out"
    r"|不|错|排除|非",
    re.IGNORECASE,
)
_INSTEAD = re.compile(
    r"\b(?:is|are|was)(?: not|n['’]t) [^,.;]{1,40}?,? but (?:rather )?([^,.;]{1,40}?)\.?$"
    r"|不是[^,。]{1,20},?而是([^,。]{1,20})。?$"
)
"""`it is not B but C`, 不是B,而是C."""
_WRONG_ONE_IS = re.compile(r"(?:不|错误|有误)[^，。A-Z]{0,20}的(?:一项|选项)?(?:是|为|有):?\s{0,3}\(?([A-Z])\)?\W*$")
"""不正确的一项是C: a question for the wrong one of the options is answered with a denial."""
_ENGLISH_NAME = re.compile(r"\b(?:option|choice)\s{1,3}(?:is\s{1,3})?(\(?[A-Z]\)?)(?![A-Za-z'])", re.IGNORECASE)
_CHINESE_NAME = re.compile(
    r"(?:选[项择]?|答案)\s{0,3}】?\s{0,3}[是为:]?\s{0,3}(\(?[A-Z]\)?(?:\s{0,3}[、,和或]?\s{0,3}\(?[A-Z]\)?){0,25})(?![A-Za-z])"
)

_FORMULA_SIGN = re.compile(r"[\d\\^_=+*/<>°√π∞]")
_COMMAND = re.compile(r"\\[A-Za-z]{1,30}")
_WORD = re.compile(r"[^\W\d_]{3,}")
_UNANNOUNCED = ("whole_response", "last_line", "conclusion")
"""Forms by which an answer is found where none is announced; letters are looked for first."""

_LIST_MARKS = str.maketrans("[]\"'", "    ")


@dataclass(frozen=True, slots=True)
class ChoiceVerifier(AnswerVerifier):
    """Judges multiple choice: is the option that the response commits to gold?

    Reads from `info`: `options`, the texts of the options in the order of their letters, and `multiple` (false): gold
    is one or more letters, and all of them are needed.
    """

    options: ClassVar[tuple[str, ...]] = ("options", "multiple")

    name: str = "choice"
    version: str = "4"

    def _judge(self, response: str, gold: str | None, info: Mapping[str, Any]) -> Verdict:
        multiple = switch_option(info, "multiple", False)
        options = _without_labels(texts_option(info, "options", (), MAX_OPTIONS, MAX_OPTION_CHARS))
        if gold is None or not gold.strip():
            return Verdict(None, Reason.GOLD_MISSING)
        gold_reading = _read(gold, options, multiple)
        is_known = not options or all(ord(letter) - ord("A") < len(options) for letter in gold_reading.letters)
        if gold_reading.hedged or not gold_reading.letters or not is_known:
            return Verdict(None, Reason.GOLD_UNPARSED, evidence={"gold": gold[:MAX_ANSWER_CHARS]})
        committed = _committed_choice(response, multiple)
        if committed is None:
            is_unread = _mentions_option(last_line(final_part(response)), gold_reading, options)
            return Verdict(0.0, Reason.UNREAD if is_unread else Reason.NO_ANSWER)
        return _judge(gold_reading, committed, options, multiple)

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        """The gold's letters in a box, or the text that it is."""
        letters = _read(gold, (), False).letters
        return f"\\boxed{{{', '.join(sorted(letters)) or gold}}}"


@dataclass(frozen=True, slots=True)
class _Reading:
    """The letters that a text names."""

    letters: frozenset[str]
    hedged: bool = False
    """Whether it leaves open which of them it means."""

    def __str__(self) -> str:
        return "".join(sorted(self.letters))


def _judge(gold: _Reading, committed: Committed, options: Sequence[str], multiple: bool) -> Verdict:
    text = committed.text
    if len(text) > MAX_ANSWER_CHARS:
        limits = {"answer_chars": len(text), "limit": MAX_ANSWER_CHARS}
        return Verdict(0.0, Reason.UNREAD, text[:MAX_ANSWER_CHARS], limits)
    answer = _read(text, options, multiple)
    evidence = {"gold": str(gold), "answer": str(answer), "form": committed.form}
    if answer.hedged:
        return Verdict(0.0, Reason.HEDGED, text, evidence)
    if not answer.letters and (not options or _mentions_option(text, gold, options)):
        return Verdict(0.0, Reason.UNREAD, text, evidence)
    match = answer.letters == gold.letters
    return Verdict(float(match), Reason.MATCH if match else Reason.MISMATCH, text, evidence)


def _mentions_option(text: str, gold: _Reading, options: Sequence[str]) -> bool:
    """Tell whether words seem to choose an option: `Option #2 fits`, `the third one is right`, an option's own text."""
    if names_gold(text, str(gold)) or _CHOOSING.search(text):
        return True
    key = _key(text)
    return any(len(option) > 1 and option in key for option in map(_key, options))


def _committed_choice(response: str, multiple: bool) -> Committed | None:
    """Return what the response commits to: an announced answer, a letter of the last line, or any other."""
    committed = committed_answer(response, several=multiple)
    if committed is not None and committed.form not in _UNANNOUNCED:
        return committed
    line = _plain(last_line(final_part(response))[:MAX_LINE_CHARS])
    if _LONE_LETTER.fullmatch(line) or _SEVERAL.fullmatch(line):
        return Committed(line, "last_line")
    if wrong_one := _WRONG_ONE_IS.search(line):
        return Committed(wrong_one[1], "option")
    # Every letter that the line names counts, so that two of them are seen as two. What it names in order to deny, it
    # does not commit to.
    clauses = [clause for clause in _CLAUSE_END.split(line) if not _NEGATION.search(clause)]
    if named := [
        name for clause in clauses for names in (_ENGLISH_NAME, _CHINESE_NAME) for name in names.findall(clause)
    ]:
        return Committed(", ".join(dict.fromkeys(named)), "option")
    instead = _INSTEAD.search(line)
    return Committed((instead[1] or instead[2]).strip(), "option") if instead else committed


def _read(text: str, options: Sequence[str], multiple: bool) -> _Reading:
    """Return the letters that `text` names, as letters or by the texts of options."""
    plain = _plain(text)
    bare = _LONE_LETTER.fullmatch(plain)
    is_label = bare is not None and ord(bare[1].upper()) - ord("A") < (len(options) or MAX_OPTIONS)
    if not is_label and (same := _options_named_by(text, options)):
        return _Reading(frozenset(same), hedged=len(same) > 1)
    if (label := _LABEL.match(plain)) and label.end() < len(plain):
        plain = plain[label.end() :]
    if multiple:
        plain = " ".join(plain.translate(_LIST_MARKS).split())
        if _COMPACT.fullmatch(plain) and len(set(plain)) == len(plain):
            return _Reading(frozenset(plain))
    if _SEVERAL.fullmatch(plain):
        letters = frozenset(_A_LETTER.findall(plain))
        return _Reading(letters, hedged=len(letters) > 1 and (not multiple or bool(_EITHER.search(plain))))
    return _read_letter_with_text(plain, options)


def _read_letter_with_text(plain: str, options: Sequence[str]) -> _Reading:
    """One letter, alone or beside a text; a text that is another option's contradicts it."""
    if match := _LONE_LETTER.fullmatch(plain) or _LETTER_AND_REASON.fullmatch(plain):
        return _Reading(frozenset(match.group(1).upper()))
    if match := _LETTER_AND_TEXT.fullmatch(plain):
        letter = (match.group(1) or match.group(2) or match.group(3)).upper()
        text = match.group(4)
    elif match := _TEXT_AND_LETTER.fullmatch(plain):
        text, letter = match.groups()
        if _NEGATION.search(text):
            return _Reading(frozenset())
        if _A_LETTER.search(text):
            return _Reading(frozenset({letter, *_A_LETTER.findall(text)}), hedged=True)
    else:
        return _Reading(frozenset())
    option_index = ord(letter) - ord("A")
    others = {*_ANOTHER_LABEL.findall(text), *_SECOND_THOUGHT.findall(text)} - {letter}
    if option_index >= len(options) or not _is_same(text, options[option_index]):
        others |= _options_named_by(text, options) - {letter}
    return _Reading(frozenset({letter, *others}), hedged=bool(others))


def _options_named_by(text: str, options: Sequence[str]) -> set[str]:
    """Return the letters of the options whose text this is; the same text goes before the same mathematics."""
    same_text = [index for index, option in enumerate(options) if _key(option) == _key(text)]
    same = same_text or [index for index, option in enumerate(options) if _is_same(text, option)]
    return {chr(ord("A") + index) for index in same}


def _is_same(text: str, option: str) -> bool:
    if _key(text) == _key(option):
        return True
    from truegold.verifiers.math import equivalent

    return _is_formula(text) and _is_formula(option) and equivalent(text, gold=option).passed


def _is_formula(text: str) -> bool:
    """Whether a mathematical comparison can be asked about it; a unit's word is no prose."""
    return (
        len(text) <= MAX_FORMULA_CHARS
        and _FORMULA_SIGN.search(text) is not None
        and len(_WORD.findall(_COMMAND.sub(" ", _WRAPPER.sub("", text)))) <= 1
    )


def _key(text: str) -> str:
    return "".join(_plain(text).casefold().split())


def _without_labels(options: Sequence[str]) -> list[str]:
    """`["A. red", "B. blue"]` as `["red", "blue"]`; as they are where not all of them are labelled."""
    labelled = [_LETTER_AND_TEXT.fullmatch(option.strip()) for option in options]
    labels = [(match[1] or match[2] or match[3]).upper() if match else "" for match in labelled]
    if labels != [chr(ord("A") + index) for index in range(len(options))]:
        return list(options)
    return [match[4] for match in labelled if match]


def _plain(text: str) -> str:
    """Drop markup, maths delimiters and runs of blanks; make full-width and circled letters ordinary ones."""
    text = "".join(map(_fold, text[:MAX_ANSWER_CHARS]))
    text = _WRAPPER.sub("", text).replace("$", " ").replace("{", " ").replace("}", " ").replace("\\", " ")
    return " ".join(text.split()).strip("*_`。 ")


def _fold(character: str) -> str:
    if character < "\u0080" or unicodedata.decomposition(character).startswith(_NOT_FOLDED):
        return character
    return unicodedata.normalize("NFKC", character)
