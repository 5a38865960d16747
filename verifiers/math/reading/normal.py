r"""Gives what is typeset in many ways one spelling: the first step for gold and answer alike.

    ２π√３，（１，２）      2\pi \usqrt 3,(1,2)        full-width forms, Unicode mathematics, every script's digits
    <tab>imes, \\frac      \times , \frac             escapes that a program has damaged on the way
    $\dfrac{1}{2}$.        \dfrac{1}{2}               what only says that here is a formula
    **5**, \boxed{5}       5

The outcome is text again: nothing here knows about values. Not covered: macros.

Other countries and other authors write numbers, sets and units otherwise (`with_usual_marks`, `with_usual_notation`):

    12.345,67   1.000.000   2{,}75         12345.67   1000000   2.75
    1'234'567   ,5                         1234567   0.5
    98 degrees Fahrenheit                  98 fahrenheit
    20^\circ\text{C}                       20\text{ celsius}
    \frac{1}{3} (approximately 0.333)      \frac{1}{3} \approx 0.333
    (1, 2                                  (1, 2), where the text is one bracket that was never closed
    (-oo, 1) U (2, oo)                     (-oo, 1) \cup (2, oo)
    x \ne 1, x \ne 2                       \mathbb{R} \setminus \{1, 2\}
    x | 1 < x < 4                          \{x \mid 1 < x < 4\}
    3\mathrm{i}   7'4"                     3i   7'4''
    1 +/- 2   x \in \mathbf{R}   25 sq. cm  1 \pm 2   x \in \mathbb{R}   25 square cm
    9 \frac{\text{m}}{\text{s}^2}          9 \text{m}/\text{s}^2

Not covered: `3,5` and `1,234`, which may be a list and a number with thousands (`answers.other_readings`).

Binomial coefficients and number bases have spellings that no command of LaTeX has (`with_counts`):

    {}_{12}C_5   ^{12}C_5   {n \choose k}   5 \text{ choose } 2   C^3_{12}        \binom{12}{5} ...
    101 base 2   777 (base 8)   231_{\text{five}}   101 in binary                  101_{2} ...

`12C5` and `C(12, 5)` may be a product and a point: they are another reading (`answers.other_readings`).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from truegold.verifiers.math.policy import CACHED_READINGS, charge, remembered
from truegold.verifiers.math.reading.chinese_phrases import with_chinese_numbers
from truegold.verifiers.math.reading.numbered_parts import with_numbered_parts
from truegold.verifiers.math.reading.phrases import with_usual_phrases
from truegold.verifiers.math.reading.spoken_numbers import with_spoken_numbers
from truegold.verifiers.math.reading.typesetting import (
    answer_in_json,
    matching_brace,
    with_balanced_braces,
    with_escapes_decoded,
    with_matrix_environments,
    without_dress,
)
from truegold.verifiers.math.vocabulary import COMMANDS, DAMAGED, HTML, SIGNS
from truegold.verifiers.written_numbers import BELOW_HUNDRED

_INDEX = r"(?:\{\s*(\w{1,8})\s*\}|(\w))"
_LETTER = r"(?:\\(?:mathrm|text|rm|mathbf)\s*)?\{?\s*([CP])\s*\}?"
_PRESCRIPT = re.compile(rf"(?:\{{\s*\}}|\\,)?\s*[_^]\s*{_INDEX}\s*{_LETTER}\s*_\s*{_INDEX}")
_SWAPPED = re.compile(r"(?<![A-Za-z\\])([CAP])\s*\^\s*(?:\{\s*(\d{1,4})\s*\}|(\d))\s*_\s*(?:\{\s*(\d{1,4})\s*\}|(\d))")
_BRACED_CHOOSE = re.compile(r"\{([^{}]{1,40})\\choose([^{}]{1,40})\}")
_CHOOSE = re.compile(
    r"(?<![\w}])(\d{1,4}|[A-Za-z])\s*(?:\\text\{\s*choose\s*\}|\\choose(?![A-Za-z])|choose)\s*(\d{1,4}|[A-Za-z])(?!\w)"
)
_COUNT_CALL = re.compile(
    r"(?<![A-Za-z\\])(?:([CP])\s*\(\s*(\w{1,6})\s*,\s*(\w{1,6})\s*\)|(?<!\d)(\d{1,4})\s?([CP])\s?(\d{1,4})(?!\d))"
)

_BASE_NAMES = {"binary": 2, "octal": 8, "decimal": 10, "hexadecimal": 16}
_BASE_WORDS = "|".join(word for word, value in BELOW_HUNDRED.items() if 2 <= value <= 20)
_NUMERAL = r"\(?([0-9][0-9A-Fa-f]{0,60})\)?"
_WORDED_BASE = re.compile(
    rf"{_NUMERAL}\s*\(?(?:\\text\s*\{{\s*\(?)?\s*(?:(?:in|to)\s+)?"
    rf"(?:(?:the\s+)?base[-\s]*\}}?\s*(?:(\d{{1,2}})|({_BASE_WORDS}))|({'|'.join(_BASE_NAMES)}))\s*\)?\s*\}}?\s*\)?",
    re.IGNORECASE,
)
_WORDED_DIGITS = re.compile(r"\\(?:text|mathrm)\s*\{\s*([0-9A-F]{1,40})\s*\}(?=\s*_)")
_WORDED_SUBSCRIPT = re.compile(
    rf"_\s*\{{?\s*\\(?:text|mathrm)\s*\{{\s*(?:base\s+)?({_BASE_WORDS}|\d{{1,2}})\s*\}}\s*\}}?"
    rf"|_\s*\{{\s*({_BASE_WORDS})\s*\}}"
)

_THOUSANDS_AND_COMMA = re.compile(r"^([+-]?\d{1,3}(?:\.\d{3})+),(\d{1,9})(?![\d,])")
"""At the start of the text only: in brackets the comma separates."""
_THOUSANDS = re.compile(r"^([+-]?\d{1,3}(?:\.\d{3}){2,})(?![\d.])")
_APOSTROPHES = re.compile(r"[+-]?\d{1,3}(?:'\d{3})+(?:\.\d+)?", re.ASCII)
_LEADING_COMMA = re.compile(r"^,(?=\d{1,9}$)")
_DEGREES_OF_SCALE = re.compile(r"\bdegrees?\s+(?=(?:celsius|fahrenheit|kelvin)\b)", re.IGNORECASE)
_BRACED_COMMA = re.compile(r"(?<![\d},])(\d{1,9})\{,\}(\d{1,2}|\d{4,9})(?!\d|\{,\})")
_TEMPERATURE = re.compile(r"\^\s*\{?\s*\\circ\s*\}?\s*(?:\\(?:text|mathrm)\s*\{\s*([CF])\s*\}|([CF])(?![A-Za-z]))")
_SCALES = {"C": r"\text{ celsius}", "F": r"\text{ fahrenheit}"}
MAX_APPROXIMATION_CHARS = 120
"""So much of the end is searched for an approximation."""
_APPROXIMATION = re.compile(
    r"(?<=[\w})])\s*[,;]?\s*(?:\\q?quad\s*)?(?:\\text\s*\{\s*)?\(?\s*(?:or\s+)?(?:approximately|approx\.?|about)\s*\}?\s*"
    r"(-?\d[\d,]{0,20}(?:\.\d{1,40})?)\s*(?:\\text\s*\{\s*)?\)?\s*\}?$"
)
_REPEATED = re.compile(r"(\d{0,20}\.\d{0,6}?)(\d{2,6})(\2{1,10})(\d{0,5})(?:\.\.\.|\\[lc]?dots)")
_INCH_MARK = re.compile(r"(\d)\s*\"$")
_UPRIGHT_CONSTANT = re.compile(r"\\mathrm\s*\{\s*([ie])\s*\}")
_VALUE = r"(-?(?:\d{1,6}(?:\.\d{1,6})?|\\frac\{\d{1,4}\}\{\d{1,4}\}))"
_UNEQUAL = re.compile(
    rf"([a-z])\s*\\neq?\s*{_VALUE}\s*(?:,|\\text\s*\{{\s*(?:and|,)\s*\}}|and)\s*(?:\1\s*\\neq?\s*)?{_VALUE}"
)
_BARE_SET = re.compile(r"([a-z])\s*(?:\||\\mid(?![A-Za-z]))\s*([^|]+)")
_RELATION = re.compile(r"[<>=]|\\(?:le|ge|ne|in)q?(?![A-Za-z])")
_UNION = re.compile(r"(?<=[)\]}])\s*(?:U|\\text\s*\{\s*U\s*\})\s*(?=[(\[{\]]|\\left|\\\{)")
_UNION_IN_WORDS = re.compile(r"(?<=[)\]])\s*(?:\\text\s*\{\s*(?:and|or)\s*\}|and|or)\s*(?=[(\[]|\\left)")
_UNBOUNDED = re.compile(r"\\infty|\binf(?:inity|ty)?\b|\boo\b")
_BOLD_SET = re.compile(r"(\\in\s*)\\(?:mathbf|boldsymbol|mathrm|bf)\s*\{\s*([RZNQC])\s*\}")
_POWERS = {"sq": "square", "cu": "cubic"}
_SHORT_UNIT = re.compile(r"\b(sq|cu)\.(?=\s*[a-z])")
_UNIT_IN_FRACTION = r"\s*\{\s*(\\(?:text|mathrm)\s*\{\s*[A-Za-z]{1,12}\s*\}(?:\s*\^\s*(?:\d|\{\s*\d\s*\}))?)\s*\}"
_FRACTION_OF_UNITS = re.compile(rf"\\[dt]?frac{_UNIT_IN_FRACTION}{_UNIT_IN_FRACTION}")
MAX_BOXES = 4
"""So many boxes around each other are taken off. Stops two thousand of them, each searched for its end."""
MAX_ENDING_CHARS = 64
"""Only so much of the end is taken off. Stops pages of full stops, each of which would be tried as its beginning."""
MAX_RESPELLED_CHARS = 4_000
"""A longer text is not read as it stands, so its spelling is left alone. Stops patterns from being run over pages."""
DOLLAR = "\ue001"
"""An amount's dollar sign, once the dollar signs around formulas are gone."""
THIN = "\u2009"
"""Any small space: the ones that group digits."""
_SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ⁽⁾ˣ"
_SUBSCRIPT = "₀₁₂₃₄₅₆₇₈₉₊₋ₙᵢ₍₎ₓ"
_PLAIN_SCRIPT = "0123456789+-ni()x"
_FROM_SUPERSCRIPT = str.maketrans(_SUPERSCRIPT, _PLAIN_SCRIPT)
_FROM_SUBSCRIPT = str.maketrans(_SUBSCRIPT, _PLAIN_SCRIPT)
_SUPERSCRIPTS = re.compile(f"[{_SUPERSCRIPT}]+")
_SUBSCRIPTS = re.compile(f"[{_SUBSCRIPT}]+")
_TRANSLATE = str.maketrans(SIGNS)
_VULGAR_FRACTION = re.compile("[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒]")
_CIRCLED_NUMBERS = re.compile("[①-⑳][①-⑳,、 ]*")
_HAN_CONNECTIVE = re.compile("或者|或|以及|和|与|與|及|且")
_DAMAGED = [(re.compile(pattern), rf"\\{letter}") for letter, pattern in DAMAGED.items()]
_DOUBLED = re.compile(r"(?<!\\)\\\\(?=([A-Za-z]{2,20}))")
_HTML = [(re.compile(pattern, re.IGNORECASE), plain) for pattern, plain in HTML.items()]
_DELIMITERS = re.compile(r"(?<!\\)\\[()\[\]]|\$\$")
_ENDING = re.compile(r"(?:\\[,;:! ](?![A-Za-z])|\s|(?<!\\right)(?<!\\left)(?<!\\)(?<!\.)[.,;:?]|(?<!\\)\\\\)+$")
_STARTING = re.compile(r"^(?:\\[,;:! ](?![A-Za-z])|\s|[,;:.](?!\d))+")
_PLAIN = re.compile(r"-?(?:\d+(?:\.\d+)?|\d+/\d+|\\frac\{\d+\}\{\d+\}|[A-Za-z])", re.ASCII)
"""The commonest answers have only one spelling."""
_MAY_END = frozenset(".,;:?\\!")
_MAY_START = frozenset("\\,;:.")
_LONG_BLANK = re.compile(r"\s{3,}")
"""Every pattern that begins with blanks would try each of them as its beginning."""
_LOOKS = (
    (r"\left(", "("), (r"\right)", ")"), (r"\left[", "["), (r"\right]", "]"), (r"\left\{", r"\{"),
    (r"\right\}", r"\}"), (r"\dfrac", r"\frac"),
)  # fmt: skip
_DIVIDING_BLANK = re.compile(r"[\w.] +[\w.]|\n")
REMEMBERED_LOOKS = 2_048
_WORDED = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2}")
"""What all phrases have besides the `h` of `3h20`: two letters that are no command."""
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{")
_CHARS_A_STEP = 10
"""How many characters are brought into normal form in one step."""


def with_counts(text: str) -> str:
    r"""Return the text with binomial coefficients as `\binom`, and bases as subscripts."""
    if "_" in text and ("C" in text or "P" in text or "A" in text):
        text = _PRESCRIPT.sub(lambda m: _count(m[3], m[1] or m[2], m[4] or m[5]), text)
        text = _SWAPPED.sub(lambda m: f"{m[1]}_{{{m[4] or m[5]}}}^{{{m[2] or m[3]}}}", text)
    if "choose" in text:
        text = _BRACED_CHOOSE.sub(r"\\binom{\1}{\2}", text)
        text = _CHOOSE.sub(r"\\binom{\1}{\2}", text)
    if "_" in text and "{" in text:
        text = _WORDED_DIGITS.sub(r"\1", text)
        text = _WORDED_SUBSCRIPT.sub(lambda m: f"_{{{_base(m[1] or m[2])}}}", text)
    may_name_base = "ase" in text or "BASE" in text or "binary" in text or "decimal" in text or "octal" in text
    if may_name_base and (worded := _WORDED_BASE.fullmatch(text)) is not None:
        base = worded[2] or BELOW_HUNDRED.get((worded[3] or "").lower()) or _BASE_NAMES[worded[4].lower()]
        return f"{worded[1]}_{{{base}}}"
    return text


def with_calls_as_counts(text: str) -> str:
    """Return `12C5` and `C(12, 5)` as binomial coefficients."""
    return _COUNT_CALL.sub(lambda m: _count(m[1] or m[5], m[2] or m[4], m[3] or m[6]), text)


def _count(letter: str, total: str, chosen: str) -> str:
    return f"\\binom{{{total}}}{{{chosen}}}" if letter == "C" else f" perm({total}, {chosen})"


def _base(word: str) -> int:
    return int(word) if word.isdigit() else BELOW_HUNDRED[word.lower()]


def _repeating(match: re.Match[str]) -> str:
    """Return 0.\\overline{63} for 0.636363...; what follows the last whole block has to begin one."""
    head, block, _, tail = match.groups()
    return rf"{head}\overline{{{block}}}" if block.startswith(tail) and len(set(block)) > 1 else match[0]


def with_usual_notation(text: str) -> str:
    """Return the text with sets, signs and units in the notation that the lexer knows."""
    if "U" in text and (")" in text or "]" in text or "}" in text):
        text = _UNION.sub(r" \\cup ", text)
    may_be_unbounded = ("inf" in text or "oo" in text) and ("nd" in text or "or" in text)
    if may_be_unbounded and (")" in text or "]" in text) and _UNBOUNDED.search(text):
        text = _UNION_IN_WORDS.sub(r" \\cup ", text)
    if "\\ne" in text and (unequal := _UNEQUAL.fullmatch(text)) is not None:
        return rf"\mathbb{{R}} \setminus \{{{unequal[2]}, {unequal[3]}\}}"
    if ("|" in text or "\\mid" in text) and (bare := _BARE_SET.fullmatch(text)) is not None:
        is_condition = re.search(rf"(?<![A-Za-z\\]){bare[1]}(?![A-Za-z])", bare[2]) and _RELATION.search(bare[2])
        return rf"\{{{bare[1]} \mid {bare[2]}\}}" if is_condition else text
    if "'" in text and _APOSTROPHES.fullmatch(text) is not None:
        return text.replace("'", "")
    if "degree" in text or "per cent" in text:
        text = _DEGREES_OF_SCALE.sub("", text).replace("per cent", "percent")
    if text.endswith('"'):
        text = _INCH_MARK.sub(r"\1''", text)
    if "\\mathrm" in text:
        text = _UPRIGHT_CONSTANT.sub(r"\1", text)
    if "/-" in text:
        text = text.replace("+/-", r" \pm ")
    if "\\in" in text:
        text = _BOLD_SET.sub(r"\1\\mathbb{\2}", text)
    if "sq." in text or "cu." in text:
        text = _SHORT_UNIT.sub(lambda m: _POWERS[m[1]], text)
    if "frac" in text and ("\\text" in text or "\\mathrm" in text):
        text = _FRACTION_OF_UNITS.sub(r"\1/\2", text)
    return text


def with_usual_marks(text: str) -> str:
    """Return the text with the marks that the lexer knows."""
    ending = text[-MAX_APPROXIMATION_CHARS:]
    if ("appro" in ending or "about" in ending) and (stated := _APPROXIMATION.search(ending)) is not None:
        text = text[: len(text) - len(ending) + stated.start()] + rf" \approx {stated[1]}"
    if "," in text and "." in text:
        text = _THOUSANDS_AND_COMMA.sub(lambda m: f"{m[1].replace('.', '')}.{m[2]}", text)
    if text[:1] == ",":
        text = _LEADING_COMMA.sub("0.", text)
    if "{,}" in text:
        text = _BRACED_COMMA.sub(r"\1.\2", text)
    if "..." in text or "dots" in text:
        text = _REPEATED.sub(_repeating, text)
    if text.count(".") > 1:
        text = _THOUSANDS.sub(lambda m: m[1].replace(".", ""), text)
    if "circ" in text:
        text = _TEMPERATURE.sub(lambda m: _SCALES[m[1] or m[2]], text)
    if text.startswith("(") and text.count("(") == text.count(")") + 1 and "]" not in text and "\\infty" not in text:
        text += ")"
    return text


def normal_text(text: str) -> str:
    """Return the normal text of an answer, whose price is charged."""
    charge(len(text) // _CHARS_A_STEP)
    return normal(text)


normal_gold = remembered(CACHED_READINGS)(normal_text)
"""Returns the normal text of a gold, which is remembered: golds repeat, once for each completion of a group."""


def normal(text: str) -> str:
    """Return `text` in ASCII LaTeX as far as it is mathematics, without what surrounds a formula."""
    if _PLAIN.fullmatch(text) is not None:
        return text
    if "{" in text and ":" in text and (stated := answer_in_json(text.strip())) is not None:
        text = stated
    if "\\u" in text:
        text = with_escapes_decoded(text)
    if not (is_ascii := text.isascii()):
        text = _in_ascii(text)
    if not text.isprintable():
        for pattern, repaired in _DAMAGED:
            text = pattern.sub(repaired, text)
        text = "".join(c if c.isprintable() or c.isspace() else " " for c in text)
    if "\\\\" in text:
        # `\\frac` was escaped twice; `\\x` may begin a row.
        text = _DOUBLED.sub(lambda m: "\\" if m[1] in COMMANDS else m[0], text)
    if "<" in text or "&" in text:
        for pattern, plain in _HTML:
            text = pattern.sub(plain, text)
    text = _unwrapped(text)
    if "   " in text or not (text.isascii() and text.isprintable()):
        text = _LONG_BLANK.sub(lambda m: "\n\n" if m[0].count("\n") > 1 else " ", text)
    return text if len(text) > MAX_RESPELLED_CHARS else _as_formula(text, is_ascii)


def _as_formula(text: str, is_ascii: bool) -> str:
    """Return the text with the spellings that the reader does not know rewritten."""
    if "\\" in text or "}" in text or "^" in text:
        plain = with_matrix_environments(with_balanced_braces(without_dress(text)))
        text = plain if plain == text else _unwrapped(plain)
    elif text.endswith(("]", "])")):
        text = with_matrix_environments(text)
    if "," in text or "." in text or "(" in text or "circ" in text or "appro" in text or "about" in text:
        text = with_usual_marks(text)
    if not text.isalnum():
        text = with_usual_notation(text)
    if not is_ascii:
        text = with_chinese_numbers(text)
    if text.startswith("{") and ("|" in text or "\\mid" in text) and matching_brace(text, 0) == len(text) - 1:
        # A set that somebody wrote without backslashes.
        text = f"\\{{{text[1:-1]}\\}}"
    if ")" in text or "art" in text:
        text = with_numbered_parts(text)
    text = with_counts(text)
    if is_ascii and "h" not in text and _WORDED.search(text) is None:
        return text
    is_one_word = is_ascii and " " not in text and "-" not in text
    if is_one_word:
        return with_usual_phrases(text) if text[:1].isdigit() and text[-1:].isalpha() else text
    return with_spoken_numbers(with_usual_phrases(text))


def _unwrapped(text: str) -> str:
    """Return `text` without formula delimiters, boxes around everything, emphasis and final punctuation."""
    text = _strip(text)
    if text.startswith("**") and text.endswith("**") and len(text) > 4:
        text = _strip(text[2:-2])
    if "$" not in text and "\\" not in text:
        return text
    if "$" in text:
        text = text.replace("US$", "$").replace(r"US\$", r"\$").replace(r"\$", DOLLAR)
    if "$$" in text or "\\(" in text or "\\)" in text or "\\[" in text or "\\]" in text:
        text = _DELIMITERS.sub(" ", text)
    if "$" in text:
        text = text.replace("$", " " if text.count("$") % 2 == 0 else DOLLAR)
    text = _strip(text)
    for _ in range(MAX_BOXES):
        box = _BOX.match(text) if text.startswith(("\\b", "\\f")) else None
        if box is None:
            break
        closing = matching_brace(text, box.end() - 1)
        if 0 <= closing < len(text) - 1:
            break
        # A box that was cut off has no closing brace.
        text = _strip(text[box.end() : closing] if closing > 0 else text[box.end() :])
    return text


def key_of(text: str) -> str:
    """Return a key that two normal texts share when they differ only in blanks that mean nothing."""
    return " ".join(text.split()) if " " in text or not text.isprintable() else text


def same_but_for_looks(text: str, other: str) -> bool:
    """Tell whether two normal texts differ only in the size of brackets and fractions, and in blanks beside marks."""
    may_differ_so = "\\left" in text or "\\left" in other or "\\dfrac" in text or "\\dfrac" in other
    may_differ_so = may_differ_so or text.count(" ") != other.count(" ")
    return may_differ_so and _without_looks(text) == _without_looks(other)


@lru_cache(maxsize=REMEMBERED_LOOKS)
def _without_looks(text: str) -> str:
    if "\\" in text:
        for written, plain in _LOOKS:
            text = text.replace(written, plain)
    return text if " " not in text or _DIVIDING_BLANK.search(text) is not None else text.replace(" ", "")


def _strip(text: str) -> str:
    if (text := text.strip()) and (text[-1] in _MAY_END or text[-2:-1] == "\\"):
        ending = _ENDING.search(text, max(len(text) - MAX_ENDING_CHARS, 0))
        text = text[: ending.start()].strip() if ending else text
    if text and text[0] in _MAY_START and not (text[0] == "\\" and text[1:2].isalpha()):
        text = _STARTING.sub("", text).strip()
    return text


def _in_ascii(text: str) -> str:
    text = _SUPERSCRIPTS.sub(lambda m: "^{" + m.group().translate(_FROM_SUPERSCRIPT) + "}", text)
    text = _SUBSCRIPTS.sub(lambda m: "_{" + m.group().translate(_FROM_SUBSCRIPT) + "}", text)
    text = _VULGAR_FRACTION.sub(_as_command, text)
    text = _CIRCLED_NUMBERS.sub(_as_list, text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_TRANSLATE))
    text = text.translate(_TRANSLATE)
    text = _HAN_CONNECTIVE.sub(lambda m: r"\text{ or }" if m.group().startswith("或") else r"\text{ and }", text)
    return "".join(str(unicodedata.decimal(c)) if not c.isascii() and c.isdecimal() else c for c in text)


def _as_command(match: re.Match[str]) -> str:
    above, _, below = unicodedata.normalize("NFKC", match.group()).partition("⁄")
    return rf"\frac{{{above}}}{{{below}}}"


def _as_list(match: re.Match[str]) -> str:
    return ", ".join(unicodedata.normalize("NFKC", c) for c in match.group() if c not in ",、 ")
