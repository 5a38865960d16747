r"""Finds the value that a sentence states.

    Therefore, John has 5 apples left.                -> 5 apples
    The train covers $\frac{3}{4}$ of a mile.         -> $\frac{3}{4}$
    The total is 120 km after 2 hours.                -> 120 km: the value right after the last `is`, `=`, 是, ...
    Therefore x = 2 or x = 3.                         -> x = 2 or x = 3: for one gold answer this is a hedge
    5 + 6 = **11** apples for 2 children.             -> 11: bold text comes first
    There are 5 apples and they cost 6 dollars.       -> nothing: two clauses with a value
    She paid 3 for 2 apples.                          -> nothing: either value may be meant
    The answer is not 5.                              -> nothing

A value is a number, a term of numbers (`3/4`, `2√3`), a bracket with numbers, a relation (`x > 5`) or a formula between
dollars. Units are part of the value. Not covered: number words, and terms with letters outside of dollars. Sentences
that deny a value are handled in `denials`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

from truegold.verifiers.currencies import CODES, LONE_SIGNS, PREFIXED

PATTERNS: dict[str, list[str]] = tomllib.loads(files(__package__).joinpath("patterns.toml").read_text(encoding="utf-8"))
"""Alternatives of regular expressions, in named lists."""
ANY_OF = {name: "|".join(alternatives) for name, alternatives in PATTERNS.items()}
"""The alternatives of each list, joined by `|`."""

MAX_FORMULA_CHARS = 800
"""Maximum length of an inline formula. Stops lines with many unclosed formulas from taking quadratic time."""

MAX_LINE_CHARS = 2_000
"""Maximum length in characters of a line that states an answer. Stops patterns from running over lines of megabytes."""

MAX_PLAIN_WORDS = 2
"""Maximum number of words in an answer without a sentence: `12 square meters`. `John has 12 apples` is prose."""

MAX_RELATIVE_CHARS = 12
"""Maximum length in characters of a relative pronoun with its verb: `that is`, `which were`."""

MARKS = "*_` \t\r\n"
"""Marks of emphasis and blanks, which are stripped from answers."""

FORMULA = (
    rf"\$\$[^$]{{1,{MAX_FORMULA_CHARS}}}\$\$|\$(?![\s$])[^$\n]{{0,{MAX_FORMULA_CHARS}}}(?<!\s)\$(?!\d)"
    rf"|\$\s\\[A-Za-z][^$\n]{{1,{MAX_FORMULA_CHARS}}}\$"
    rf"|\\\((?:[^\\]|\\[^()]){{1,{MAX_FORMULA_CHARS}}}\\\)|\\\[(?:[^\\]|\\[^\[\]]){{1,{MAX_FORMULA_CHARS}}}\\\]"
)
"""A formula in LaTeX delimiters: `$...$`, `$$...$$`, `\\(...\\)`, `\\[...\\]`."""
_NUMERAL = r"(?<![\d.])(?:\d{1,3}(?:,\d{3}){1,20}(?!\d)(?:\.\d{1,40})?|\d{1,60}(?:\.\d{1,60})?|\.\d{1,40})(?!\d)"
_ROOT = rf"(?:√\(?{_NUMERAL}\)?|\bsqrt\([^()\n]{{1,40}}\))"
_ATOM = rf"(?:{_NUMERAL}(?:\\?[%°²³!]|[πi](?![^\W\d_])|{_ROOT})?|{_ROOT}|π|\bpi\b)"
"""A number, a root or π, with a sign after it: `5%`, `3²`, `2π`, `2√3`."""
CURRENCY = rf"(?:(?:(?<![A-Za-z])(?:{PREFIXED}))?\\?[{LONE_SIGNS}￥][ ]?|(?<![A-Za-z])(?:{CODES})[ ]?)?"
"""The optional sign or code of a currency before an amount: `US$`, `€`, `EUR`."""
_TERM = rf"(?:[-+−±](?=[\d√π.$(])[ ]?)?{CURRENCY}{_ATOM}(?:[ ]?(?:[-+−*/^×÷·]|(?<=\d):(?=\d))[ ]?{_ATOM}){{0,20}}"
"""A number or a term of numbers: `-5`, `3/4`, `$12`, `2:3`."""
_BRACKET = r"[(\[{][^()\[\]{}\n]{0,30}\d[^()\[\]{}\n]{0,60}[)\]}]"
"""A bracket with numbers: `(1, 2)`."""
_RELATION = rf"(?<![^\W\d_])[A-Za-z][ ]?(?:[<>]=?|[≤≥≠∈]|\\(?:neq?|[gl]eq?|[gl]t)(?![a-z]))[ ]?(?:{_TERM}|{_BRACKET})"
"""A relation of a letter and a number: `x > 5`, `x ∈ [1, 2]`."""
_LATEX = r"[^\s，。,]{0,40}\\(?:[A-Za-z]{2,20})[^\s，。]{0,200}"
"""A term with a LaTeX command outside of dollars."""
_COPULA = ANY_OF["copulas"]
_TOKEN = re.compile(
    rf"(?P<bold>\*\*[^*\n]{{1,200}}\*\*)|(?P<copula>{_COPULA})|(?P<formula>{FORMULA})"
    rf"|(?P<plain>{_RELATION}|{_BRACKET}(?!\d)|{_LATEX}|{_TERM})"
)
"""A piece of a sentence that matters: bold text, a copula, a formula or a plain value."""
_UNIT = re.compile(
    r"[ ]per[ ][a-zA-Z]{1,15}(?![\w(])"
    r"|[ ]?(?!(?:per|in|im|en|em|on|at|for|of|to|and|or|more|less|fewer|left|total|when|after|before|by|from|with|the"
    r"|an?|times|it|than|can|could|will|would|may|might|must|should|does|do|did|has|have|had|was|were|too|only|also|without"
    r"|not|no|because|since|but|whose|unless"
    r"|as|so|if|which|that|is|are|every|each|extra|additional|away|apart|long"
    r"|(?:Half|Quarter|Third|F(?:ou|if)r?th)[ ][A-Z]\w+)\b)"
    r"(?:(?:square|cubic|sq\.?|cu\.?)[ ])?"
    r"(?:[a-zA-Zµμ°Ω%][a-zA-Z²³]{0,20}(?:\^\{?[23]\}?)?(?:[ ](?:squared|cubed))?"
    r"(?:(?:/|[ ]per[ ](?:(?:square|cubic)[ ])?)[a-zA-Z]{1,15}(?:[ ](?:squared|cubed))?){0,2}(?![\w(])"
    r"|(?:平方|立方)?[一-鿿]{1,3}(?:每[一-鿿]{1,2})?(?=$|[，。；、．\s])|[一-鿿])"
)
"""The unit after a value: `km`, `dollars per hour`, `m/s^2`, 千米. The name `Half Moon` is not half a unit."""
_JOINING = re.compile(r"[ ]?(?:,[ ]?)?(or|and|,|;|、|或|和|oder|ou|und|et|или|и|y|o|e)[ ]?(?:[a-zA-Z][ ]?=[ ]?)?")
"""The words between two values of one answer: `or`, `and`, `, y =`."""
_NEXT_CLAUSE = re.compile(r"\b(?:and|or|but)\b|,(?!\d)|[;，；或和]")
"""The beginning of another clause or value."""
_NEGATION = re.compile(r"\b(?:not|never|neither|cannot)\b|n't|不是|并非")
_RELATIVE = re.compile(r"\b(?:that|which|who) (?:is|are|was|were)$")
"""The verb of a relative clause, which states no value: `the numbers that are even`."""
_CONDITION = re.compile(r",?\s(?:(?:when|where|if|for|at|with)\s\$?[A-Za-z]\s?=|(?:because|since)\s)")
"""A condition or reason after a value: `when n = 3`, `because ...`."""
_CLAUSE = re.compile(rf"[ ](?:{ANY_OF['clauses']})")
"""A clause that goes on after a value: `12 | with a total of $40`."""
_FOR_CASE = re.compile(rf"\W*(?:For|With|At|When|Setting|Taking|Using)\s\$?[A-Za-z]\s?=\s?{_NUMERAL}\$?,?\s")
"""A case before a statement: `For n = 5 the formula gives 12`."""
_LABELLED = re.compile(r"^[^\d:]*[^\W\d_]:\s(?=[^:]*$)")
"""A label before a value: `all that is needed: 5`."""
_VARIABLE = re.compile(r"(?:\$|\\\()\s*(?:[A-Za-z]|\\[a-z]{2,7})\s*(?:\$|\\\))")
"""A formula that is a single letter: `$n$`."""
_LABEL_BEFORE = re.compile(r"(?<![\w\\])[A-Za-z]\s?=\s?$")
"""The label right before a value: `x =`."""

_COMMAND = re.compile(r"\\(?:text|mathrm|textbf|mbox|begin|end)\{[a-z*]{0,12}|\\[A-Za-z]{1,30}")
_FORMULA = re.compile(FORMULA)
_WORD = re.compile(r"[^\W\d_一-鿿぀-ヿ가-힯]{3,}")
_CJK_WORDS = re.compile(r"[一-鿿぀-ヿ가-힯]{4}")
_PROSE = re.compile(ANY_OF["prose_words"], re.IGNORECASE)
"""Words that occur only in sentences."""
_HAS_VALUE = re.compile(r"\d|\$|\\[A-Za-z(\[]")

_CUES = frozenset(PATTERNS["cue_words"])
"""Words that may begin a denial, a doubt or a condition."""
_FRAMED_CUES = _CUES.union(PATTERNS["frame_words"])
"""`_CUES`, with words of sentences that mention a value without answering with it."""
_PLAIN = frozenset(PATTERNS["plain_words"])
"""Words that only announce a value."""
_CUE_WORD = re.compile(r"[^\W\d_]+")
_OTHER_SCRIPT = re.compile(r"[^\W\d_a-zA-Z]")


class _Token(NamedTuple):
    """A piece of a sentence. `kind` is the name of its group in `_TOKEN`."""

    kind: str
    start: int
    end: int


def stated(sentence: str) -> str | None:
    """Return the value that a sentence states: one value, or several with `or` or `and`.

    Return None if the sentence does not say which of its values is meant.
    """
    if (condition := _CONDITION.search(sentence)) and has_value(sentence[: condition.start()]):
        sentence = sentence[: condition.start()]
    if (case := _FOR_CASE.match(sentence)) and has_value(sentence[case.end() :]):
        sentence = sentence[case.end() :]
    tokens = list(_tokens(sentence))
    bold = [token for token in tokens if token.kind == "bold"]
    values = bold or [token for token in tokens if token.kind != "copula"]
    if not values:
        return None
    copulas = [token.end for token in tokens if token.kind == "copula" and token.end <= values[-1].start]
    if copulas and len(values) > 1:
        copulas = [
            end for end in copulas if not (sentence[end : end + 2].strip().isalpha() and _is_relative(sentence, end))
        ]
    if copulas and not bold:
        return _predicate(sentence, values, copulas[-1])
    first, last = _joined(sentence, values, len(values) - 1)
    texts = {sentence[value.start : value.end] for value in values[: first + 1]}
    return _excerpt(sentence, values[first], values[last]) if bold or len(texts) == 1 else None


def stated_first(text: str) -> str | None:
    """Return the value at the beginning of a text, before a clause: `12 with a total of $40`."""
    first = next(_tokens(text), None)
    if first is None or first.start or first.kind == "copula":
        return None
    end = _end_with_unit(text, first)
    if _CLAUSE.match(text, end) is None or _NEXT_CLAUSE.search(text, end) or _NEGATION.search(text, end):
        return None
    return text[:end]


def has_value(text: str) -> bool:
    """Tell whether `text` has a digit or a formula."""
    return bool(_HAS_VALUE.search(text))


def may_deny(text: str, *, framed: bool = True) -> bool:
    """Tell whether `text` has a word that may deny or doubt a value, or make it conditional.

    framed: include words of sentences that mention a value without answering with it.
    """
    return (
        not (_FRAMED_CUES if framed else _CUES).isdisjoint(_CUE_WORD.findall(text.casefold()))
        or any(map(text.__contains__, PATTERNS["cue_marks"]))
        or (not text.isascii() and _OTHER_SCRIPT.search(text) is not None)
    )


def is_plain(text: str) -> bool:
    """Tell whether a text only announces a value: `So the final answer is`."""
    return _PLAIN.issuperset(_CUE_WORD.findall(text.casefold()))


def only_announces(text: str) -> bool:
    """Tell whether a text only announces a value and has no word that may deny it."""
    return is_plain(text) and not may_deny(text)


def is_prose(text: str) -> bool:
    """Tell whether `text` is a sentence. A value with its unit is not."""
    return word_count(text) > MAX_PLAIN_WORDS or bool(_CJK_WORDS.search(text))


def is_expression(text: str, max_words: int) -> bool:
    """Tell whether `text` is an answer without a sentence around it, with `max_words` words at most."""
    plain = _without_formulas(text)
    return not _PROSE.search(plain) and not _CJK_WORDS.search(plain) and len(_WORD.findall(plain)) <= max_words


def word_count(text: str) -> int:
    """Return the number of words with three letters or more, outside of formulas."""
    return len(_WORD.findall(_without_formulas(text)))


def _without_formulas(text: str) -> str:
    return _COMMAND.sub(" ", _FORMULA.sub(" ", text))


def _tokens(sentence: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(sentence):
        kind, text = match.lastgroup or "", match.group()
        if (kind == "bold" and not has_value(text)) or (kind == "formula" and _VARIABLE.fullmatch(text)):
            # `**Answer:**` and `$n$` announce a value, but are not values.
            continue
        yield _Token(kind, match.start(), match.end())


def _predicate(sentence: str, values: list[_Token], start: int) -> str | None:
    """Return the value after the copula (`is`, `=`) that ends at `start`."""
    index = next(index for index, value in enumerate(values) if value.start >= start)
    if _NEGATION.search(sentence, start, values[index].start) or sentence.endswith("不是", 0, start):
        return None
    first, last = _joined(sentence, values, index)
    rest = _LABELLED.sub("", sentence[start:].strip(MARKS + ".。,，:："))
    if first == index and is_expression(rest, 1):
        # The expression may be too complex for `_TOKEN`, so all of it is taken.
        return rest
    if last + 1 < len(values) and _NEXT_CLAUSE.search(sentence, values[last].end, values[last + 1].start):
        return None
    return _excerpt(sentence, values[first], values[last])


def _joined(sentence: str, values: list[_Token], index: int) -> tuple[int, int]:
    """Return the indices of the first and the last value that `or` and `and` join to the value at `index`."""
    first = last = index
    while first > 0 and _JOINING.fullmatch(sentence[_end_with_unit(sentence, values[first - 1]) : values[first].start]):
        first -= 1
    for value in values[index + 1 :]:
        if not _JOINING.fullmatch(sentence[_end_with_unit(sentence, values[last]) : value.start]):
            break
        last += 1
    return first, last


def _end_with_unit(sentence: str, value: _Token) -> int:
    """Return the position after a value and its unit."""
    unit = _UNIT.match(sentence, value.end) if value.kind != "bold" else None
    return unit.end() if unit else value.end


def _is_relative(sentence: str, end: int) -> bool:
    """Tell whether a copula belongs to a relative clause: `the numbers that are even`, but not `which is 5`."""
    if not sentence[end : end + 2].strip().isalpha():
        return False
    return _RELATIVE.search(sentence, max(0, end - MAX_RELATIVE_CHARS), end) is not None


def _excerpt(sentence: str, first: _Token, last: _Token) -> str:
    """Return the text from one value to another, with the label before them and the unit after them."""
    start = first.start
    if first is not last and (label := _LABEL_BEFORE.search(sentence, 0, start)):
        start = label.start()
    text = sentence[start : _end_with_unit(sentence, last)].replace("**", "").strip()
    return (stated(text) or text) if first.kind == "bold" and is_prose(text) else text
