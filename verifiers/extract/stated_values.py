r"""Reads the value that a sentence states, and sees where a sentence only names a value.

    Therefore, John has 5 apples left.                   5 apples
    The train covers $\frac{3}{4}$ of a mile.            $\frac{3}{4}$
    The total is 120 km after 2 hours.                   120 km: the first value after the last `is`, `=`, 是, ...
    Therefore x = 2 or x = 3.                            x = 2 or x = 3: for one gold answer this is a hedge
    5 + 6 = **11** apples for 2 children.                11: what is set in bold goes first
    There are 5 apples and they cost 6 dollars.          nothing: two clauses with a value each
    She paid 3 for 2 apples.                             nothing: two values, and no word which of them is meant
    The answer is not 5.                                 nothing

A value is a number, a term of numbers (`3/4`, `2√3`), a bracket with numbers, a relation (`x > 5`) or a formula between
dollars. Units stay on it. Not covered: number words, and terms with letters that no dollars surround.

Sentences that name a value and do not answer with it:

    The answer isn't 5.                                       denied
    答えは5ではない。                                           denied
    So 15 is incorrect.                                       denied
    Thus the probability is less than 7.                      denied: a bound; `at least 7` may answer
    There isn't enough information to find f(0).              withheld
    I tried 7 methods and none worked.                        withheld
    The answer is 12 if n is even, and 13 if n is odd.        withheld
    The answer is not 5 but 7.                                7 in the place of 5
    So 5 students did not pass.                               (nothing of these: the words deny something else)

A denial stands right beside the value: `is not 5`, `5 is wrong`. Not covered: denials at a distance, in languages that
are not listed, and doubt without a word for it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from itertools import islice
from typing import NamedTuple

PATTERNS: dict[str, list[str]] = tomllib.loads(files(__package__).joinpath("patterns.toml").read_text(encoding="utf-8"))
"""Alternatives of patterns, by what they tell."""
ANY_OF = {name: "|".join(alternatives) for name, alternatives in PATTERNS.items()}
"""The same, ready to stand in a pattern."""

MAX_FORMULA_CHARS = 800
"""The longest inline formula. Stops lines of opened formulas from being run through again and again."""

MAX_LINE_CHARS = 2_000
"""A longer line is no statement of an answer. Stops the phrase patterns being run over megabyte-long lines."""

MAX_PLAIN_WORDS = 2
"""With more words an answer stands in prose: `12 square meters` does not, `John has 12 apples` does."""

MARKS = "*_` \t\r\n"

FORMULA = (
    rf"\$\$[^$]{{1,{MAX_FORMULA_CHARS}}}\$\$|\$(?![\s$])[^$\n]{{0,{MAX_FORMULA_CHARS}}}(?<!\s)\$(?!\d)"
    rf"|\$\s\\[A-Za-z][^$\n]{{1,{MAX_FORMULA_CHARS}}}\$"
    rf"|\\\((?:[^\\]|\\[^()]){{1,{MAX_FORMULA_CHARS}}}\\\)|\\\[(?:[^\\]|\\[^\[\]]){{1,{MAX_FORMULA_CHARS}}}\\\]"
)
_NUMERAL = r"(?<![\d.])(?:\d{1,3}(?:,\d{3}){1,20}(?!\d)(?:\.\d{1,40})?|\d{1,60}(?:\.\d{1,60})?|\.\d{1,40})(?!\d)"
_ROOT = rf"(?:√\(?{_NUMERAL}\)?|\bsqrt\([^()\n]{{1,40}}\))"
_ATOM = rf"(?:{_NUMERAL}(?:\\?[%°²³!]|[πi](?![^\W\d_])|{_ROOT})?|{_ROOT}|π|\bpi\b)"
_TERM = rf"(?:[-+−±](?=[\d√π.$(])[ ]?)?[$€£¥￥]?{_ATOM}(?:[ ]?(?:[-+−*/^×÷·]|(?<=\d):(?=\d))[ ]?{_ATOM}){{0,20}}"
_BRACKET = r"[(\[{][^()\[\]{}\n]{0,30}\d[^()\[\]{}\n]{0,60}[)\]}]"
_RELATION = rf"(?<![^\W\d_])[A-Za-z][ ]?(?:[<>]=?|[≤≥≠∈])[ ]?(?:{_TERM}|{_BRACKET})"
_LATEX = r"[^\s，。,]{0,40}\\(?:[A-Za-z]{2,20})[^\s，。]{0,200}"
_COPULA = ANY_OF["copulas"]
_TOKEN = re.compile(
    rf"(?P<bold>\*\*[^*\n]{{1,200}}\*\*)|(?P<copula>{_COPULA})|(?P<formula>{FORMULA})"
    rf"|(?P<plain>{_RELATION}|{_BRACKET}(?!\d)|{_LATEX}|{_TERM})"
)
_UNIT = re.compile(
    r"[ ]?(?!(?:in|on|at|for|of|to|and|or|more|less|fewer|left|total|when|after|before|by|from|with|the|an?|times|than"
    r"|as|so|if|which|that|is|are|every|each|extra|additional|away|apart|long)\b)(?:(?:square|cubic|sq\.?|cu\.?)[ ])?"
    r"(?:[a-zA-Zµμ°Ω%][a-zA-Z²³]{0,20}(?:\^\{?[23]\}?)?(?:(?:/|[ ]per[ ])[a-zA-Z]{1,15})?(?![\w(])"
    r"|(?:平方|立方)?[一-鿿]{1,3}(?:每[一-鿿]{1,2})?(?=$|[，。；、．\s])|[一-鿿])"
)
_JOINING = re.compile(r"[ ]?(?:,[ ]?)?(or|and|,|;|、|或|和|oder|ou|und|et|или|и|y|o|e)[ ]?(?:[a-zA-Z][ ]?=[ ]?)?")
_NEXT_CLAUSE = re.compile(r"\b(?:and|or|but)\b|[,;，；或和]")
_NEGATION = re.compile(r"\b(?:not|never|neither|cannot)\b|n't|不是|并非")
_CONDITION = re.compile(r",?\s(?:(?:when|where|if|for|at|with)\s\$?[A-Za-z]\s?=|(?:because|since)\s)")
_VARIABLE = re.compile(r"(?:\$|\\\()\s*(?:[A-Za-z]|\\[a-z]{2,7})\s*(?:\$|\\\))")
_LABEL_BEFORE = re.compile(r"(?<![\w\\])[A-Za-z]\s?=\s?$")

_COMMAND = re.compile(r"\\(?:text|mathrm|textbf|mbox|begin|end)\{[a-z*]{0,12}|\\[A-Za-z]{1,30}")
_FORMULA = re.compile(FORMULA)
_WORD = re.compile(r"[^\W\d_一-鿿぀-ヿ가-힯]{3,}")
_CJK_WORDS = re.compile(r"[一-鿿぀-ヿ가-힯]{4}")
_PROSE = re.compile(ANY_OF["prose_words"], re.IGNORECASE)
_HAS_VALUE = re.compile(r"\d|\$|\\[A-Za-z(\[]")

MAX_NUMBERS = 8
"""Numbers of a line that are looked at."""
_NOT = r"(?:\bnot|n['’]t|\bnever|\bcannot)"
_MARKUP = r"[\s$\\(\[*_]{0,6}"
"""What may stand between a word and a formula."""
_NO_BOUND = re.compile(r"(?:\b(?:no|not|never|cannot)|n['’]t) (?:be )?(?:\w+ )?than\W*$", re.IGNORECASE)
_CONDITIONAL = re.compile(
    r"\d\S{0,3} if\b[^.]*\d[^.]*\b(?:if|otherwise)\b|\b(?:answer|result|value) depends on\b", re.IGNORECASE
)
_RESIGNED = re.compile(ANY_OF["resigned"], re.IGNORECASE)
"""A value behind one of these is a guess."""
_VALUE_BEHIND = re.compile(r"[,;:，；：—]|\b(?:yet|but)\b")
_DIGITS = rf"{_MARKUP}[-+−]?\d[\d.,/]{{0,20}}{_MARKUP}"
_DENIAL = rf"(?:{_NOT}|\bno (?:es|son)|\bnão(?: é)?|\bnon(?: è)?|\bnicht|\bpas|\bне|不是|并非|並非)"
_INSTEAD = r"(?:but(?: rather)?|rather,?|it is|it['’]s|sino|sondern|mais|mas?|e sim|а|而是)\s?,?\s?(?:it is|it['’]s)?"
_CONTRAST = re.compile(
    rf"{_DENIAL}\s?{_DIGITS}\s?[,;，；]?\s?{_INSTEAD}\s?(?P<instead>{_DIGITS}[^\s\d,，]{{0,12}})[\s.。!$]*$"
    rf"|{_DIGITS}[^\s\d、]{{0,3}}?(?:ではなく(?:て)?|じゃなくて|(?:가|이) 아니라)[、,]?\s?"
    rf"(?P<eastern>{_DIGITS}(?!.{{0,8}}(?:ない|ません|아니|아닙)).{{0,12}}?)$",
    re.IGNORECASE,
)
_TURNED_DOWN = re.compile(
    r"\s?,?\s(?:(?:and|but) not|rather than|instead of)\s(?=[$\\(*]{0,4}[-\d√])|[，,]?而(?:不是|非)"
)
_FIGURES = re.compile(r"(?<![\d.,])[-−]?\d")
_UP_TO_FIGURES = re.compile(r".*(?:\d[%)\]]{0,2}|[$}])", re.DOTALL)
_CLAUSE_BREAK = re.compile(r"[,;，；]|\b(?:but|yet)\b")


class _Token(NamedTuple):
    kind: str
    start: int
    end: int


def stated(sentence: str) -> str | None:
    """Return the value that a sentence states, or the values joined by `or` or `and`; None where that is left open."""
    if (condition := _CONDITION.search(sentence)) and has_value(sentence[: condition.start()]):
        sentence = sentence[: condition.start()]
    tokens = list(_tokens(sentence))
    bold = [token for token in tokens if token.kind == "bold"]
    values = bold or [token for token in tokens if token.kind != "copula"]
    if not values:
        return None
    copulas = [token.end for token in tokens if token.kind == "copula" and token.end <= values[-1].start]
    if copulas and not bold:
        return _predicate(sentence, values, copulas[-1])
    first, last = _joined(sentence, values, len(values) - 1)
    texts = {sentence[value.start : value.end] for value in values[: first + 1]}
    return _excerpt(sentence, values[first], values[last]) if bold or len(texts) == 1 else None


def has_value(text: str) -> bool:
    """Tell whether a number or a formula stands in `text`."""
    return bool(_HAS_VALUE.search(text))


def is_prose(text: str) -> bool:
    """Tell whether a value in `text` has a sentence around it."""
    return word_count(text) > MAX_PLAIN_WORDS or bool(_CJK_WORDS.search(text))


def is_expression(text: str, max_words: int) -> bool:
    """Tell whether `text` is an answer alone, in no sentence."""
    plain = _without_formulas(text)
    return not _PROSE.search(plain) and not _CJK_WORDS.search(plain) and len(_WORD.findall(plain)) <= max_words


def word_count(text: str) -> int:
    """Count the words of three letters and more, outside of formulas."""
    return len(_WORD.findall(_without_formulas(text)))


def _without_formulas(text: str) -> str:
    return _COMMAND.sub(" ", _FORMULA.sub(" ", text))


def _tokens(sentence: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(sentence):
        kind, text = match.lastgroup or "", match.group()
        if (kind == "bold" and not has_value(text)) or (kind == "formula" and _VARIABLE.fullmatch(text)):
            # `**Answer:**` and `$n$` name a value and are none.
            continue
        yield _Token(kind, match.start(), match.end())


def _predicate(sentence: str, values: list[_Token], start: int) -> str | None:
    """Return the value after the copula that ends at `start`."""
    index = next(index for index, value in enumerate(values) if value.start >= start)
    if _NEGATION.search(sentence, start, values[index].start) or sentence.endswith("不是", 0, start):
        return None
    first, last = _joined(sentence, values, index)
    rest = sentence[start:].strip(MARKS + ".。,，:：")
    if first == index and is_expression(rest, 1):
        # The grammar of an expression may be beyond the patterns of values, so it is taken whole.
        return rest
    if last + 1 < len(values) and _NEXT_CLAUSE.search(sentence, values[last].end, values[last + 1].start):
        return None
    return _excerpt(sentence, values[first], values[last])


def _joined(sentence: str, values: list[_Token], index: int) -> tuple[int, int]:
    """Return the first and the last index of the values that connectives join to the one at `index`."""
    first = last = index
    while first > 0 and _JOINING.fullmatch(sentence[_end_with_unit(sentence, values[first - 1]) : values[first].start]):
        first -= 1
    for value in values[index + 1 :]:
        if not _JOINING.fullmatch(sentence[_end_with_unit(sentence, values[last]) : value.start]):
            break
        last += 1
    return first, last


def _end_with_unit(sentence: str, value: _Token) -> int:
    unit = _UNIT.match(sentence, value.end) if value.kind != "bold" else None
    return unit.end() if unit else value.end


def _excerpt(sentence: str, first: _Token, last: _Token) -> str:
    start = first.start
    if first is not last and (label := _LABEL_BEFORE.search(sentence, 0, start)):
        start = label.start()
    text = sentence[start : _end_with_unit(sentence, last)].replace("**", "").strip()
    return (stated(text) or text) if first.kind == "bold" and is_prose(text) else text


def _any_of(name: str, behind: str = "") -> re.Pattern[str]:
    """Return a pattern that finds one of several alternatives."""
    return re.compile(rf"(?:{ANY_OF[name]}){behind}", re.IGNORECASE | re.DOTALL)


_DENIED_BEFORE = _any_of("denied_before", behind=rf"{_MARKUP}$")
"""What denies the value that follows it at once."""

_DENIED_BEHIND = _any_of("denied_behind")
"""What denies the value that stands before it."""

_EMBEDDING = _any_of("embedding")
"""What denies the clause that follows it, or puts it into another mouth."""

_BOUND = _any_of("bound", behind=rf"{_MARKUP}$")

_WITHHELD = _any_of("withheld")
"""What says that there is no answer."""


def contrasted(sentence: str) -> str | None:
    """Return the value that a sentence puts in the place of one that it denies: `not 5 but 7` -> `7`; else None."""
    match = _CONTRAST.search(sentence)
    return (match["instead"] or match["eastern"]).strip() if match is not None else None


def preferred(sentence: str) -> str:
    """Return a sentence without the value that it turns down: `15 rather than 14` -> `15`."""
    match = _TURNED_DOWN.search(sentence)
    return sentence[: match.start()] if match is not None and match.start() else sentence


def is_withheld(sentence: str) -> bool:
    """Return whether a sentence says that it has no answer; `r is not given, yet the ratio is 5` has one."""
    if _RESIGNED.search(sentence):
        return True
    return any(not _gives_value(sentence[match.end() :]) for match in _WITHHELD.finditer(sentence))


def _gives_value(rest: str) -> bool:
    clause = _VALUE_BEHIND.search(rest)
    return clause is not None and has_value(rest[clause.end() :])


def is_conditional(sentence: str) -> bool:
    """Return whether a sentence gives one value on a condition and another otherwise."""
    return _CONDITIONAL.search(sentence) is not None


def is_attributed(lead: str) -> bool:
    """Return whether the words before a value say that another holds it, or that it is not believed."""
    return _EMBEDDING.search(_CLAUSE_BREAK.split(lead)[-1]) is not None


def is_denied(sentence: str, value: str, *, first: bool = False) -> bool:
    """Return whether the words beside a value deny it, or make it a mere bound.

    first: whether its first occurrence counts, as behind an announcement, or its last one.
    """
    # Words behind the figures may have been taken for a unit: `4 does`.
    figures = _UP_TO_FIGURES.match(value)
    value = figures[0] if figures else value
    if not (starts := _occurrences(sentence, value)):
        return False
    start = starts[0] if first else starts[-1]
    before, after = sentence[:start], sentence[start + len(value) :]
    if _BOUND.search(before):
        return _NO_BOUND.search(before) is None
    is_refused = _DENIED_BEFORE.search(before) or _DENIED_BEHIND.search(after)
    return is_refused is not None or is_attributed(before)


def denies_a_number(text: str) -> bool:
    """Return whether a number in a text is denied by the words right before it."""
    figures = islice(_FIGURES.finditer(text), MAX_NUMBERS)
    return any(_DENIED_BEFORE.search(text[: match.start()]) for match in figures)


def is_link_denied(link: str) -> bool:
    """Return whether the words that announce an answer end with a denial: `la respuesta no es`."""
    return _DENIED_BEFORE.search(link) is not None


def _occurrences(sentence: str, value: str) -> list[int]:
    """Return where a value stands that is no part of a longer number."""
    pattern = re.escape(value)
    if value[:1].isdigit():
        pattern = rf"(?<![\d−-])(?<!\d[.,]){pattern}"
    if value[-1:].isdigit():
        pattern = rf"{pattern}(?![.,]?\d)"
    return [match.start() for match in re.finditer(pattern, sentence)]
