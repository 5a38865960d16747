r"""Rewrites notation of different countries and authors in the notation that the lexer reads.

Marks (`with_usual_marks`):

    12.345,67   1.000.000   2{,}75      -> 12345.67   1000000   2.75
    ,5   0.636363...                    -> 0.5   0.\overline{63}
    20^\circ\text{C}                    -> 20\text{ celsius}
    \frac{1}{3} (approximately 0.333)   -> \frac{1}{3} \approx 0.333
    (1, 2                               -> (1, 2)     only the last bracket may be missing

Sets, signs and units (`with_usual_signs`):

    (-oo, 1) U (2, oo)                  -> (-oo, 1) \cup (2, oo)
    x \ne 1, x \ne 2                    -> \mathbb{R} \setminus \{1, 2\}
    x | 1 < x < 4                       -> \{x \mid 1 < x < 4\}
    1'234'567   3\mathrm{i}   7'4"      -> 1234567   3i   7'4''
    1 +/- 2   x \in \mathbf{R}          -> 1 \pm 2   x \in \mathbb{R}
    25 sq. cm   98 degrees Fahrenheit   -> 25 square cm   98 Fahrenheit
    \frac{\text{m}}{\text{s}^2}         -> \text{m}/\text{s}^2

Binomial coefficients and number bases (`with_usual_counts`):

    {}_{12}C_5   ^{12}C_5   12 choose 5 -> \binom{12}{5}
    C^3_{12}                            -> C_{12}^{3}
    101 base 2   101 in binary          -> 101_{2}
    777 (base 8)   231_{\text{five}}    -> 777_{8}   231_{5}

Not covered: notation with two meanings, such as `3,5`, `1,234`, `12C5` and `C(12, 5)` (`other_readings`).
"""

from __future__ import annotations

import re

from truegold.verifiers.written_numbers import BELOW_HUNDRED

_THOUSANDS_AND_COMMA = re.compile(r"^([+-]?\d{1,3}(?:\.\d{3})+),(\d{1,9})(?![\d,])")
"""Matches `12.345,67`, only at the start of the text, because the comma may separate items in brackets."""
_THOUSANDS = re.compile(r"^([+-]?\d{1,3}(?:\.\d{3}){2,})(?![\d.])")
"""Matches `1.000.000`. A number with one point, 1.000, is a decimal."""
_LEADING_COMMA = re.compile(r"^,(?=\d{1,9}$)")
"""Matches the comma of `,5`."""
_BRACED_COMMA = re.compile(r"(?<![\d},])(\d{1,9})\{,\}(\d{1,2}|\d{4,9})(?!\d|\{,\})")
"""Matches `2{,}75`. Before three digits, as in 2{,}750, the comma groups thousands."""
_REPEATED = re.compile(r"(\d{0,20}\.\d{0,6}?)(\d{2,6})(\2{1,10})(\d{0,5})(?:\.\.\.|\\[lc]?dots)")
r"""Matches `0.636363...` and `0.63636\ldots`."""
_THREE_POINTS = re.compile(r"(?<=[+,*])\s?\.\.\.(?=\s?(?:[+,*]|$))")
"""The points of 1 + 2 + ... + n, but not those of a sentence."""
_TEMPERATURE = re.compile(r"\^\s*\{?\s*\\circ\s*\}?\s*(?:\\(?:text|mathrm)\s*\{\s*([CF])\s*\}|([CF])(?![A-Za-z]))")
r"""The ^\circ\text{C} of 20^\circ\text{C}, and ^\circ C."""
_SCALES = {"C": r"\text{ celsius}", "F": r"\text{ fahrenheit}"}
"""Maps a letter after a degree sign to the name of its scale."""
MAX_APPROXIMATION_CHARS = 120
"""The number of characters at the end of a text that are searched for an approximation."""
_APPROXIMATION = re.compile(
    r"(?<=[\w})])\s*[,;]?\s*(?:\\q?quad\s*)?(?:\\text\s*\{\s*)?\(?\s*(?:or\s+)?(?:approximately|approx\.?|about)\s*\}?\s*"
    r"(-?\d[\d,]{0,20}(?:\.\d{1,40})?)\s*(?:\\text\s*\{\s*)?\)?\s*\}?$"
)
"""An approximation after an exact value: `(approximately 0.333)`, `, or about 0.333`."""

_OTHER_FORM = re.compile(r"(?<=[\w%})])\s*\(\s*(?:or|i\.?e\.?,?|equivalently,?|that is,?|=)\s+([^()]{1,60})\)$")
"""The same value in another form: `0.144 (or 14.4%)`."""

MAY_HOLD_SIGNS = re.compile(r"[U|'\"\\]|divi|multiple|inf|oo|deg|\b(?:per cent|por c|yüz)|/-|sq\.|cu\.")
"""A quick test: `with_usual_signs` changes only texts with one of these marks."""
_PERCENT_IN_WORDS = re.compile(r"\bpor cien(?:to)?\b|\bpor cento\b|\byüzde\s+(\d[\d.,]{0,20})")
"""Matches `37 por ciento`, `yüzde 37`."""
_UNION = re.compile(r"(?<=[)\]}])\s*(?:U|\\text\s*\{\s*U\s*\})\s*(?=[(\[{\]]|\\left|\\\{)")
"""The U of (-oo, 1) U (2, oo)."""
_UNION_IN_WORDS = re.compile(r"(?<=[)\]])\s*(?:\\text\s*\{\s*(?:and|or)\s*\}|and|or)\s*(?=[(\[]|\\left)")
"""The `or` of (-oo, 1) or (2, oo)."""
_UNBOUNDED = re.compile(r"\\infty|\binf(?:inity|ty)?\b|\boo\b")
"""An infinity, which shows that brackets are intervals rather than points."""
_VALUE = r"(-?(?:\d{1,6}(?:\.\d{1,6})?|\\frac\{\d{1,4}\}\{\d{1,4}\}))"
_UNEQUAL = re.compile(
    rf"([a-z])\s*\\neq?\s*{_VALUE}\s*(?:,|\\text\s*\{{\s*(?:and|,)\s*\}}|and)\s*(?:\1\s*\\neq?\s*)?{_VALUE}"
)
r"""Matches `x \ne 1, x \ne 2` and `x \ne 1, 2`."""
_BARE_SET = re.compile(r"([a-z])\s*(?:\||\\mid(?![A-Za-z]))\s*([^|]+)")
"""Matches `x | 1 < x < 4`, with a relation after the bar. Without one, the bar means `divides`: 3 | 6."""
_DIVISIBLE = re.compile(
    r"(?:(\d{1,9})\s*(?:\||\\mid(?![A-Za-z])|divides|\\text\s*\{\s*divides\s*\})\s*([a-z])"
    r"|([a-z]) is (?:divisible by|a multiple of) (\d{1,9}))"
)
r"""Matches `3 \mid n`, `3 divides n`, `n is divisible by 3`."""
_RELATION = re.compile(r"[<>=]|\\(?:le|ge|ne|in)q?(?![A-Za-z])")
"""A relation in the condition of a set."""
_BOLD_SET = re.compile(r"(\\in\s*)\\(?:mathbf|boldsymbol|mathrm|bf)\s*\{\s*([RZNQC])\s*\}")
r"""Matches `x \in \mathbf{R}`."""
_QUOTIENT = re.compile(r"\\mathbb\s*\{?Z\}?\s*/\s*(\d{1,6}|[a-z])\s*\\mathbb\s*\{?Z\}?")
r"""Matches `\mathbb{Z}/2\mathbb{Z}`, which becomes \mathbb{Z}_2."""
_APOSTROPHES = re.compile(r"[+-]?\d{1,3}(?:'\d{3})+(?:\.\d+)?", re.ASCII)
"""Matches `1'234'567`."""
_INCH_MARK = re.compile(r"(\d)\s*\"$")
"""The quotation mark of 7'4" for inches."""
_UPRIGHT_CONSTANT = re.compile(r"\\mathrm\s*\{\s*([ie])\s*\}")
r"""The constants \mathrm{i} and \mathrm{e}."""
_DEGREES_OF_SCALE = re.compile(r"\bdeg(?:rees?)?\s+(?=(?:celsius|fahrenheit|kelvin)\b)", re.IGNORECASE)
"""The word `degrees` in 98 degrees Fahrenheit."""
_DEGREES_OF_LETTER = re.compile(r"\bdeg(?:rees?)?\s+([CF])\b")
"""The words `degrees C` in 20 degrees C."""
_POWERS = {"sq": "square", "cu": "cubic"}
"""Maps an abbreviation to its word before a unit."""
_SHORT_UNIT = re.compile(r"\b(sq|cu)\.(?=\s*[a-z])")
"""The `sq.` in 25 sq. cm."""
_UNIT_IN_FRACTION = r"\s*\{\s*(\\(?:text|mathrm)\s*\{\s*[A-Za-z]{1,12}\s*\}(?:\s*\^\s*(?:\d|\{\s*\d\s*\}))?)\s*\}"
_FRACTION_OF_UNITS = re.compile(rf"\\[dt]?frac{_UNIT_IN_FRACTION}{_UNIT_IN_FRACTION}")
r"""Matches `\frac{\text{m}}{\text{s}^2}`."""

MAY_HOLD_COUNTS = re.compile(r"_|choose|ase|BASE|binary|decimal|octal")
"""A quick test: `with_usual_counts` changes only texts with one of these marks."""
_INDEX = r"(?:\{\s*(\w{1,8})\s*\}|(\w))"
"""The number of a subscript or superscript."""
_COUNT_LETTER = r"(?:\\(?:mathrm|text|rm|mathbf)\s*)?\{?\s*([CP])\s*\}?"
"""The C of a binomial coefficient, or the P of permutations."""
_PRESCRIPT = re.compile(rf"(?:\{{\s*\}}|\\,|(?<![\w)}}\s]))\s*[_^]\s*{_INDEX}\s*{_COUNT_LETTER}\s*_\s*{_INDEX}")
"""Matches `{}_{12}C_5`, `^{12}C_5`."""
_SWAPPED = re.compile(r"(?<![A-Za-z\\])([CAP])\s*\^\s*(?:\{\s*(\d{1,4})\s*\}|(\d))\s*_\s*(?:\{\s*(\d{1,4})\s*\}|(\d))")
"""Matches `C^3_{12}`, which becomes C_{12}^{3}."""
_BRACED_CHOOSE = re.compile(r"\{([^{}]{1,40})\\choose([^{}]{1,40})\}")
r"""Matches `{n \choose k}`."""
_CHOOSE = re.compile(
    r"(?<![\w}])(\d{1,4}|[A-Za-z])\s*(?:\\text\{\s*choose\s*\}|\\choose(?![A-Za-z])|choose)\s*(\d{1,4}|[A-Za-z])(?!\w)"
)
r"""Matches `5 choose 2`, `5 \text{ choose } 2`."""
_COUNT_CALL = re.compile(
    r"(?<![A-Za-z\\])(?:([CP])\s*\(\s*(\w{1,6})\s*,\s*(\w{1,6})\s*\)|(?<!\d)(\d{1,4})\s?([CP])\s?(\d{1,4})(?!\d))"
)
"""Matches `C(12, 5)` and `12C5`."""
_BETA = re.compile(r"(?:(?<![A-Za-z\\])B|\\mathrm\{\s*B\s*\})\s*(?:\\left\s*)?\((?=[^()]{1,40},[^()]{1,40}\))")
"""Euler's beta function, B(2, 3)."""
_BASE_NAMES = {"binary": 2, "octal": 8, "decimal": 10, "hexadecimal": 16}
"""Maps the name of a number system to its base."""
_BASE_WORDS = "|".join(word for word, value in BELOW_HUNDRED.items() if 2 <= value <= 20)
_NUMERAL = r"\(?([0-9][0-9A-Fa-f]{0,60})\)?"
"""The digits of a numeral with a base."""
_WORDED_BASE = re.compile(
    rf"{_NUMERAL}\s*\(?(?:\\text\s*\{{\s*\(?)?\s*(?:(?:in|to)\s+)?"
    rf"(?:(?:the\s+)?base[-\s]*\}}?\s*(?:(\d{{1,2}})|({_BASE_WORDS}))|({'|'.join(_BASE_NAMES)}))\s*\)?\s*\}}?\s*\)?",
    re.IGNORECASE,
)
"""Matches `101 base 2`, `777 (base eight)`, `101 in binary`."""
_WORDED_DIGITS = re.compile(r"\\(?:text|mathrm)\s*\{\s*([0-9A-F]{1,40})\s*\}(?=\s*_)")
r"""The \text{2F} of \text{2F}_{16}."""
_WORDED_SUBSCRIPT = re.compile(
    rf"_\s*\{{?\s*\\(?:text|mathrm)\s*\{{\s*(?:base\s+)?({_BASE_WORDS}|\d{{1,2}})\s*\}}\s*\}}?"
    rf"|_\s*\{{\s*({_BASE_WORDS})\s*\}}"
)
r"""The subscripts of 231_{\text{five}}, 231_\text{base 5} and 231_{five}."""


def with_usual_marks(text: str) -> str:
    """Return the text with number marks, degrees and brackets in the notation of the lexer."""
    ending = text[-MAX_APPROXIMATION_CHARS:]
    if ("appro" in ending or "about" in ending) and (stated := _APPROXIMATION.search(ending)) is not None:
        text = text[: len(text) - len(ending) + stated.start()] + rf" \approx {stated[1]}"
    elif ending.endswith(")") and (stated := _OTHER_FORM.search(ending)) is not None:
        text = text[: len(text) - len(ending) + stated.start()] + f" or {stated[1]}"
    if "," in text and "." in text:
        text = _THOUSANDS_AND_COMMA.sub(lambda m: f"{m[1].replace('.', '')}.{m[2]}", text)
    if text[:1] == ",":
        text = _LEADING_COMMA.sub("0.", text)
    if "{,}" in text:
        text = _BRACED_COMMA.sub(r"\1.\2", text)
    if "..." in text or "dots" in text:
        text = _THREE_POINTS.sub(r"\\ldots ", _REPEATED.sub(_with_period_marked, text))
    if text.count(".") > 1:
        text = _THOUSANDS.sub(lambda m: m[1].replace(".", ""), text)
    if "circ" in text:
        text = _TEMPERATURE.sub(lambda m: _SCALES[m[1] or m[2]], text)
    if text.startswith("(") and text.count("(") == text.count(")") + 1 and "]" not in text and "\\infty" not in text:
        text += ")"
    return text


def _with_period_marked(match: re.Match[str]) -> str:
    """Return 0.\\overline{63} for 0.636363...

    The digits after the last whole period must begin another one, as in 0.63636...
    """
    head, block, _, tail = match.groups()
    return rf"{head}\overline{{{block}}}" if block.startswith(tail) and len(set(block)) > 1 else match[0]


def _with_usual_statements(text: str) -> str:
    r"""Return `x \ne 1, 2`, `3 | n` or `x | 1 < x < 4` in the usual notation, if it is the whole text."""
    if "\\ne" in text and (unequal := _UNEQUAL.fullmatch(text)) is not None:
        return rf"\mathbb{{R}} \setminus \{{{unequal[2]}, {unequal[3]}\}}"
    if (divisible := _DIVISIBLE.fullmatch(text)) is not None:
        return rf"{divisible[2] or divisible[3]} \equiv 0 \pmod{{{divisible[1] or divisible[4]}}}"
    if ("|" in text or "\\mid" in text) and (bare := _BARE_SET.fullmatch(text)) is not None:
        is_condition = re.search(rf"(?<![A-Za-z\\]){bare[1]}(?![A-Za-z])", bare[2]) and _RELATION.search(bare[2])
        return rf"\{{{bare[1]} \mid {bare[2]}\}}" if is_condition else text
    return text


def with_usual_signs(text: str) -> str:
    """Return the text with sets, signs and units in the notation of the lexer."""
    text = _with_usual_statements(text)
    if "U" in text and (")" in text or "]" in text or "}" in text):
        text = _UNION.sub(r" \\cup ", text)
    may_be_unbounded = ("inf" in text or "oo" in text) and ("nd" in text or "or" in text)
    if may_be_unbounded and (")" in text or "]" in text) and _UNBOUNDED.search(text):
        text = _UNION_IN_WORDS.sub(r" \\cup ", text)
    if "'" in text and _APOSTROPHES.fullmatch(text) is not None:
        return text.replace("'", "")
    if "por c" in text or "yüz" in text:
        text = _PERCENT_IN_WORDS.sub(lambda m: f"{m[1] or ''}%", text)
    if "deg" in text or "per cent" in text:
        text = _DEGREES_OF_LETTER.sub(lambda m: _SCALES[m[1]], text)
        text = _DEGREES_OF_SCALE.sub("", text).replace("per cent", "percent")
    if text.endswith('"'):
        text = _INCH_MARK.sub(r"\1''", text)
    if "\\mathrm" in text:
        text = _UPRIGHT_CONSTANT.sub(r"\1", text)
    if "/-" in text:
        text = text.replace("+/-", r" \pm ")
    if "mathbb" in text and "/" in text:
        text = _QUOTIENT.sub(r"\\mathbb{Z}_{\1}", text)
    if "\\in" in text:
        text = _BOLD_SET.sub(r"\1\\mathbb{\2}", text)
    if "sq." in text or "cu." in text:
        text = _SHORT_UNIT.sub(lambda m: _POWERS[m[1]], text)
    if "frac" in text and ("\\text" in text or "\\mathrm" in text):
        text = _FRACTION_OF_UNITS.sub(r"\1/\2", text)
    return text


def with_usual_counts(text: str) -> str:
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
    if (worded := _WORDED_BASE.fullmatch(text)) is not None:
        base = worded[2] or BELOW_HUNDRED.get((worded[3] or "").lower()) or _BASE_NAMES[worded[4].lower()]
        return f"{worded[1]}_{{{base}}}"
    return text


def with_calls_as_counts(text: str) -> str:
    """Return the text with `12C5` and `C(12, 5)` as binomial coefficients, and `B(2, 3)` as the beta function."""
    text = _BETA.sub(" betafunction(", text) if "B" in text else text
    return _COUNT_CALL.sub(lambda m: _count(m[1] or m[5], m[2] or m[4], m[3] or m[6]), text)


def _count(letter: str, total: str, chosen: str) -> str:
    return f"\\binom{{{total}}}{{{chosen}}}" if letter == "C" else f" perm({total}, {chosen})"


def _base(word: str) -> int:
    return int(word) if word.isdigit() else BELOW_HUNDRED[word.lower()]
