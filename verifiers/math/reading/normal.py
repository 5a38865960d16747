r"""Normalises texts, as the first step of a verdict: different ways to write the same formula become one.

    Text                   Result                     Change
    ２π√３，（１，２）      2\pi \usqrt 3,(1,2)        full-width forms, Unicode mathematics, digits of other scripts
    <tab>imes, \\frac      \times , \frac             damaged escapes
    $\dfrac{1}{2}$.        \dfrac{1}{2}               marks around a formula
    **5**, \boxed{5}       5                          marks around an answer
    12.345,67              12345.67                   notation of other countries (`notation`)
    three fourths          \frac{3}{4}                values in words (`phrases`, `chinese_phrases`)

The result is text, not a value. Not covered: LaTeX macros.

Answers in words become formulas: ratios, fractions, numbers and bounds.

    3 to 2    five to four    2 is to 1             -> 3:2   5:4   2:1
    7 out of 12    1 in 6                           -> \frac{7}{12}   \frac{1}{6}
    three fourths    two and a half                 -> \frac{3}{4}   2\frac{1}{2}
    negative five    minus one half                 -> -5   -\frac{1}{2}
    two point five                                  -> 2.5
    all nonnegative real numbers                    -> t \ge 0
    x is at least 3    greater than 3    大于3      -> x \ge 3   t > 3   t > 3

A bound without a letter gets the letter t. Not covered: such words within a sentence.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from truegold.verifiers.currencies import CODES, LONE_SIGNS, MONEY_SIGNS, PREFIXED
from truegold.verifiers.entities import decode_entities
from truegold.verifiers.extract.objects import answer_in_json
from truegold.verifiers.gold import without_reference
from truegold.verifiers.math.measures import unit_of
from truegold.verifiers.math.policy import CACHED_READINGS, charge, remembered
from truegold.verifiers.math.reading import notation
from truegold.verifiers.math.reading.chinese_phrases import with_chinese_numbers
from truegold.verifiers.math.reading.numbered_parts import with_numbered_parts
from truegold.verifiers.math.reading.phrases import (
    MAX_PHRASE_CHARS,
    MAY_HOLD_PHRASE,
    NUMERAL,
    TEXT_COMMAND,
    with_usual_phrases,
)
from truegold.verifiers.math.reading.typesetting import (
    matching_brace,
    with_balanced_braces,
    with_escapes_decoded,
    with_matrix_environments,
    without_dress,
)
from truegold.verifiers.math.tree import HAT
from truegold.verifiers.math.vocabulary import BOUNDS, COMMANDS, DAMAGED, HTML, MARKS_OF_TRUTH, SIGNS
from truegold.verifiers.written_numbers import BELOW_HUNDRED, ORDINALS, PARTS, TENS, number_in_words

MAX_BOXES = 4
"""Maximum number of nested boxes that are removed, since the end of each box has to be searched."""
MAX_ENDING_CHARS = 64
"""Maximum number of characters of punctuation that are removed at the end. Stops pages of full stops."""
MAX_RESPELLED_CHARS = 4_000
"""Maximum length of a text whose notation is rewritten, in characters. Longer texts are not read as a whole."""
DOLLAR = "\ue001"
"""The character for the dollar sign of an amount, after the dollar signs around formulas were removed."""
MONEY_MARKS = {"$": DOLLAR} | {
    sign: chr(0xE020 + index) for index, sign in enumerate(sorted(MONEY_SIGNS.keys() - {"$"}))
}
"""Maps the sign or code of a currency before an amount, such as `CHF` or `R$`, to one character."""
_AMOUNT = rf"[{DOLLAR}{LONE_SIGNS[1:]}\ue020-\ue0ff]-?\d[\d,.]{{0,40}}"
"""The sign of a currency and a number."""
_MAY_HOLD_CURRENCY = re.compile(rf"R[MsPp]|[A-Z]{{3}}|[A-Z] ?{DOLLAR}|/-$|S\.? dol|{_AMOUNT} ?[kKmMbBt]")
"""A quick test: `_with_currencies_marked` changes only texts that match."""
_SHORT_SCALE = re.compile(rf"({_AMOUNT})(?:([kKmMB])| ?(mn|bn|tn))(?![A-Za-z\d^_])")
"""Matches `$5k`, `£5m`, `$5 bn`."""
_SHORT_SCALES = {"k": "thousand", "m": "million", "mn": "million", "b": "billion", "bn": "billion", "tn": "trillion"}
"""Maps an abbreviation after an amount to its word."""
_CURRENCY = re.compile(
    rf"(?<![A-Za-z\\])(?:\\(?:text|mathrm)\s?\{{\s?)?(?:({PREFIXED}){DOLLAR}|({CODES}))(?:\s?\}})?(?:[~\s]|\\[ ,;])?"
    r"(?=[-+]?\.?\d)"
)
"""The `CHF` of CHF 5, the `US$` of US$5."""
_CODE_BEHIND = re.compile(rf"(?<=[\dnd])([~\s]?)({CODES})(?![A-Za-z])")
"""Matches `5 CHF`, `5 million CHF`."""
_OF_AMERICA = re.compile(r"\bU\.?S\.? (?=dollars?\b)")
"""The `US` of US dollars."""
_BODY = re.compile(
    r"(?:/|\s?\bper\b)\s?\(?1\.73(?:\s|\\[ ,;]|~|\\(?:text|mathrm|rm)\b|\{){0,4}m\s?\}?\s?(?:\^\{?2\}?|²)\)?"
)
"""The body surface that a rate of filtration refers to: `/1.73 m²`."""
_LOSS = re.compile(r"△(?=[¥￥]?\d)|▲(?=[¥￥]\d|\d[\d,.]*[百千万億兆]*円)")
"""The sign of a negative amount in Japanese accounts: `△2.2%`."""
_SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ⁽⁾ˣ"
_SUBSCRIPT = "₀₁₂₃₄₅₆₇₈₉₊₋ₙᵢ₍₎ₓ"
_PLAIN_SCRIPT = "0123456789+-ni()x"
_FROM_SUPERSCRIPT = str.maketrans(_SUPERSCRIPT, _PLAIN_SCRIPT)
_FROM_SUBSCRIPT = str.maketrans(_SUBSCRIPT, _PLAIN_SCRIPT)
_SUPERSCRIPTS = re.compile(f"[{_SUPERSCRIPT}]+")
_SUBSCRIPTS = re.compile(f"[{_SUBSCRIPT}]+")
_SIGN_COMMANDS = str.maketrans(SIGNS)
"""Replaces a character by its command: ≤ by `\\le`."""
_VULGAR_FRACTION = re.compile("[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒]")
"""A fraction that is one character."""
_MARKED_LETTER = re.compile("(?<![^\\W\\d_])(?:[A-Za-zα-ω][\u0302\u20d7]|[ĉĝĥîĵŝŵŷẑ])(?![^\\W\\d_])")
"""A single letter with a hat or an arrow. Letters of words do not match."""
_PERCENT_IN_WORDS = re.compile(r"\s?τοις εκατ[όο]|ร้อยละ\s?(\d[\d.,]{0,20})")
"""Matches `24 τοις εκατό`, `ร้อยละ 24`."""
_GREEK_WITH_INDEX = re.compile(r"(?<=[α-ορ-ωΑ-Ω])(\d{1,2})(?![\d.,])")
"""The subscript of ε0 and ω12. The 3 of 2π3 is not a subscript."""
_CIRCLED_NUMBERS = re.compile("[①-⑳][①-⑳,、 ]*")
"""Matches `①③`, `①、③`."""
_CHINESE_CONNECTIVE = re.compile("或者|或|以及|和|与|與|及|且")
_DAMAGED = [(re.compile(pattern), rf"\\{letter}") for letter, pattern in DAMAGED.items()]
"""Damaged escapes and their repairs: a tab before `imes` was the start of `\\times`."""
_DOUBLED = re.compile(r"(?<!\\)\\\\(?=([A-Za-z]{2,20}))")
r"""The doubled backslash of \\frac."""
_HTML = [(re.compile(pattern, re.IGNORECASE), plain) for pattern, plain in HTML.items()]
_DELIMITERS = re.compile(r"(?<!\\)\\[()\[\]]|\$\$")
r"""The marks around a formula: \(, \), \[, \], $$."""
_ENDING = re.compile(r"(?:\\[,;:! ](?![A-Za-z])|\s|(?<!\\right)(?<!\\left)(?<!\\)(?<!\.)[.,;:?]|(?<!\\)\\\\)+$")
r"""Blanks, spacing commands, punctuation and line breaks at the end, except `\right.` and an ellipsis."""
_STARTING = re.compile(r"^(?:\\[,;:! ](?![A-Za-z])|\s|[,;:.](?!\d))+")
"""Blanks, spacing commands and punctuation at the start, except a point before a digit."""
_SIMPLE = re.compile(r"-?(?:\d+(?:\.\d+)?|\d+/\d+|\\frac\{\d+\}\{\d+\}|[A-Za-z])", re.ASCII)
r"""The commonest answers, which need no normalising: -3, 2.5, 3/4, \frac{3}{4}, x."""
_ENDING_MARKS = frozenset(".,;:?\\!")
_STARTING_MARKS = frozenset("\\,;:.")
_LONG_BLANK = re.compile(r"\s{3,}")
"""A run of blanks, which is shortened. Patterns that begin with blanks would try a match at each blank."""
_LOOKS = (
    (r"\left(", "("), (r"\right)", ")"), (r"\left[", "["), (r"\right]", "]"), (r"\left\{", r"\{"),
    (r"\right\}", r"\}"), (r"\dfrac", r"\frac"),
)  # fmt: skip
"""Commands that only change sizes, and their plain forms."""
_SYMBOL = re.compile(r"[A-Z]\w{0,20}\d\w{0,20}", re.ASCII)
"""A symbol without its `_`: CO2, C2v."""
_SUBSCRIPT_MARKS = re.compile(r"_\{(\w+)\}|_")
"""The `_` of a subscript, with its braces."""
_DIVIDING_BLANK = re.compile(r"[\w.] +[\w.]|\n")
"""A blank with a meaning: `2 3` are two numbers."""
REMEMBERED_LOOKS = 2_048
_WORD_LETTERS = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2}")
"""Two letters that are not part of a command. All phrases have them, except `3h20`."""
_INDEX_IN_LETTERS = re.compile(r"(?<![A-Za-z\\])([A-Za-z])_([A-Za-z]{3,})(?=\s*=)")
"""The v_rel of `v_rel = 0.14c`."""
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{")
_CHARS_A_STEP = 10
"""The number of characters whose normalisation costs one step of the verdict's budget (`policy.charge`)."""


_GROUPED = re.compile(r"\{\s*-?\d{1,3}(?:,\d{3})+(?:\.\d+)?\s*\}")
"""A number in braces: {1,000}."""
_NAMED_SET = re.compile(r"([^={}]{1,40}=\s*)\{([^{}]{1,200}[,;][^{}]{1,200})\}")
r"""A set whose braces lack their backslashes: `A \cap B = {2, 3}`."""
_LAYOUT = re.compile(r"\\(?:noindent|newline)(?![A-Za-z])|(?<![\\&])(?:\\\\\s*)+(?:\\noindent\s*)?$")
r"""Commands that only affect the layout: \noindent, line breaks at the end."""


def normal_text(text: str) -> str:
    """Return an answer normalised. The steps of this work are taken from the verdict's budget (`policy.charge`)."""
    charge(len(text) // _CHARS_A_STEP)
    return normal(text)


@remembered(CACHED_READINGS)
def normal_gold(gold: str) -> str:
    """Return a gold normalised. The result is cached, because all completions of a group have the same gold."""
    text = normal_text(without_reference(gold))
    return f"\\{{{text[1:-1]}\\}}" if _lists_in_braces(text) else text


def _lists_in_braces(text: str) -> bool:
    """Tell whether a gold is a list in braces, such as {2, 3}, which is a set. {1,000} is a number and not a list."""
    if not text.startswith("{") or ("," not in text and ";" not in text) or _GROUPED.fullmatch(text):
        return False
    return matching_brace(text, 0) == len(text) - 1


def normal(text: str) -> str:
    """Return the text with its mathematics as ASCII LaTeX, and without the marks around formulas."""
    if _SIMPLE.fullmatch(text) is not None or text.rstrip("\ufe0f") in MARKS_OF_TRUTH:
        return MARKS_OF_TRUTH.get(text.rstrip("\ufe0f"), text)
    if "{" in text and ":" in text and (stated := answer_in_json(text.strip())) is not None:
        text = stated
    if "\\u" in text:
        text = with_escapes_decoded(text)
    if "&" in text:
        text = decode_entities(text)
    text = _BODY.sub("/bsa", text) if "1.73" in text else text
    if not (is_ascii := text.isascii()):
        text = _in_ascii(text)
    if not text.isprintable():
        for pattern, repaired in _DAMAGED:
            text = pattern.sub(repaired, text)
        text = "".join(c if c.isprintable() or c.isspace() else " " for c in text)
    if "\\\\" in text:
        # `\\frac` was escaped twice. In `\\x` the `\\` may end a row.
        text = _DOUBLED.sub(lambda m: "\\" if m[1] in COMMANDS else m[0], text)
    if "<" in text:
        for pattern, plain in _HTML:
            text = pattern.sub(plain, text)
    text = _unwrapped(text)
    if "   " in text or not (text.isascii() and text.isprintable()):
        text = _LONG_BLANK.sub(lambda m: "\n\n" if m[0].count("\n") > 1 else " ", text)
    if len(text) > MAX_RESPELLED_CHARS:
        return text
    return _as_formula(_with_currencies_marked(text), is_ascii)


def _with_currencies_marked(text: str) -> str:
    """Return the text with one character for each currency before an amount, and with codes after amounts as words."""
    if _MAY_HOLD_CURRENCY.search(text) is None:
        return text
    text = _CURRENCY.sub(lambda m: MONEY_MARKS[m[2] or f"{m[1].strip()}$"], text)
    text = _SHORT_SCALE.sub(lambda m: f"{m[1]} {_SHORT_SCALES[(m[2] or m[3]).lower()]}", text)
    return _CODE_BEHIND.sub(r"\1\\text{ \2}", _OF_AMERICA.sub("", text.removesuffix("/-")))


def _as_formula(text: str, is_ascii: bool) -> str:
    """Return the text in the notation that the reader knows."""
    if "_" in text:
        text = _INDEX_IN_LETTERS.sub(r"\1_{\2}", text)
    if "\\" in text or "}" in text or "^" in text:
        plain = with_matrix_environments(with_balanced_braces(without_dress(text)))
        text = plain if plain == text else _unwrapped(plain)
    elif text.endswith(("]", "])")):
        text = with_matrix_environments(text)
    if "," in text or "." in text or "(" in text or "circ" in text or "appro" in text or "about" in text:
        text = notation.with_usual_marks(text)
    if notation.MAY_HOLD_SIGNS.search(text) is not None:
        text = notation.with_usual_signs(text)
    if not is_ascii:
        text = with_chinese_numbers(text)
    text = _with_set_marked(text) if text.endswith("}") else text
    if ")" in text or "art" in text or text[1:3] == ". ":
        text = with_numbered_parts(text)
    if notation.MAY_HOLD_COUNTS.search(text) is not None:
        text = notation.with_usual_counts(text)
    if is_ascii and "h" not in text and _WORD_LETTERS.search(text) is None:
        return text
    is_one_word = is_ascii and " " not in text and "-" not in text
    if is_one_word and not (text[:1].isdigit() and text[-1:].isalpha()):
        return text
    if MAY_HOLD_PHRASE.search(text) is not None:
        text = with_usual_phrases(text)
    return text if is_one_word else with_spoken_numbers(text)


def _with_set_marked(text: str) -> str:
    r"""Return the text with `\{` for the bare braces of a set: {x | x > 2}, A = {2, 3}."""
    if (named := _NAMED_SET.fullmatch(text)) is not None:
        return rf"{named[1]}\{{{named[2]}\}}"
    if text.startswith("{") and ("|" in text or "\\mid" in text) and matching_brace(text, 0) == len(text) - 1:
        return f"\\{{{text[1:-1]}\\}}"
    return text


def _unwrapped(text: str) -> str:
    """Return the text without delimiters of formulas, emphasis, final punctuation, and boxes around the whole text."""
    if "noindent" in text or "newline" in text or text.endswith("\\\\"):
        text = _LAYOUT.sub(" ", text).strip()
    text = _strip(text)
    if text.startswith("**") and text.endswith("**") and len(text) > 4:
        text = _strip(text[2:-2])
    if "$" not in text and "\\" not in text:
        return text
    if "$" in text:
        text = text.replace(r"\$", DOLLAR)
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
    """Return a key that is the same for normalised texts that differ only in the number of blanks."""
    return " ".join(text.split()) if " " in text or not text.isprintable() else text


def same_but_for_looks(text: str, other: str) -> bool:
    """Tell whether two normalised texts differ only in looks: sizes of brackets and fractions, blanks next to marks.

    A symbol with a digit may lack the marks of its subscripts: C_{2v} is C2v, and CO_2 is CO2.
    """
    if ("_" in text) != ("_" in other) and (plain := _SYMBOL.fullmatch(other if "_" in text else text)) is not None:
        return plain[0] == _SUBSCRIPT_MARKS.sub(r"\1", text if "_" in text else other)
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
    if (text := text.strip()) and (text[-1] in _ENDING_MARKS or text[-2:-1] == "\\"):
        ending = _ENDING.search(text, max(len(text) - MAX_ENDING_CHARS, 0))
        text = text[: ending.start()].strip() if ending else text
    if text and text[0] in _STARTING_MARKS and not (text[0] == "\\" and text[1:2].isalpha()):
        text = _STARTING.sub("", text).strip()
    return text


def _in_ascii(text: str) -> str:
    """Return the text with Unicode mathematics as LaTeX commands."""
    text = _PERCENT_IN_WORDS.sub(lambda m: f"{m[1] or ''}%", _LOSS.sub("-", text))
    text = _MARKED_LETTER.sub(_with_accent_command, _GREEK_WITH_INDEX.sub(r"_{\1}", text))
    text = _SUPERSCRIPTS.sub(lambda m: "^{" + m.group().translate(_FROM_SUPERSCRIPT) + "}", text)
    text = _SUBSCRIPTS.sub(lambda m: "_{" + m.group().translate(_FROM_SUBSCRIPT) + "}", text)
    text = _VULGAR_FRACTION.sub(_as_fraction, text)
    text = _CIRCLED_NUMBERS.sub(_as_list, text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_SIGN_COMMANDS))
    text = text.translate(_SIGN_COMMANDS)
    text = _CHINESE_CONNECTIVE.sub(lambda m: r"\text{ or }" if m.group().startswith("或") else r"\text{ and }", text)
    return "".join(str(unicodedata.decimal(c)) if not c.isascii() and c.isdecimal() else c for c in text)


def _with_accent_command(match: re.Match[str]) -> str:
    marked = unicodedata.normalize("NFD", match[0])
    return rf"\{'hat' if HAT in marked else 'vec'}{{{marked[0]}}}"


def _as_fraction(match: re.Match[str]) -> str:
    above, _, below = unicodedata.normalize("NFKC", match.group()).partition("⁄")
    return rf"\frac{{{above}}}{{{below}}}"


def _as_list(match: re.Match[str]) -> str:
    return ", ".join(unicodedata.normalize("NFKC", c) for c in match.group() if c not in ",、 ")


_WRAPPING = re.compile(rf"{TEXT_COMMAND}|\\[ ,;:!](?![A-Za-z])|~")
_NUMBER_WORD = "|".join(sorted(BELOW_HUNDRED, key=len, reverse=True))
_COUNT = rf"(?:{NUMERAL}|(?:{'|'.join(TENS)})[- ](?:{_NUMBER_WORD})|{_NUMBER_WORD})"
"""Matches `12`, `-3.5`, `twelve`, `twenty-five`."""
_DIVISORS = PARTS | ORDINALS
"""Maps the word of a part to its divisor: half and halves to 2, fourth and fourths to 4."""
_PART = "|".join(sorted(_DIVISORS, key=len, reverse=True))
_MAY_HOLD = re.compile(
    rf"\b(?:to|out of|in|of|half|halves|(?:non-?)?(?:negative|positive)|minus|point|quarters?|{_PART})\b"
    r"|\b(?:than|least|most)\b|[大小多少]于|[至最][少多]|不[大小超]",
    re.IGNORECASE,
)
"""A quick test: only texts that match are rewritten."""
_RATIO = re.compile(
    rf"(?:(?:the |a )?ratio (?:of |is )?)?({_COUNT}) (?:is )?to ({_COUNT})(?: (?:is )?to ({_COUNT}))?", re.IGNORECASE
)
"""Matches `3 to 2`, `the ratio is 3 to 2`, `1 to 2 to 3`."""
_SHARE = re.compile(rf"({_COUNT}) (?:out of|in|of) (?:every )?({_COUNT})(?: [a-z]{{1,20}})?", re.IGNORECASE)
"""Matches `7 out of 12`, `1 in every 6 people`. `5 of 8` also matches, but is not rewritten."""
_FRACTION = re.compile(
    rf"(?:(?:({_COUNT}) and )?(an?|{_COUNT})[- ])({_PART})(?: of [a-z ]{{1,30}}| ([a-z]{{1,12}}))?", re.IGNORECASE
)
"""Matches `three fourths`, `one-half of the cake`, `two and a half`, `two and a half hours`."""
_DIGIT_WORD = "|".join(word for word, value in BELOW_HUNDRED.items() if value < 10)
_DECIMAL = re.compile(rf"({_COUNT}) point ((?:(?:{_DIGIT_WORD})\s?){{1,9}})", re.IGNORECASE)
"""Matches `two point five`, `zero point zero three`."""
_NEGATIVE = re.compile(rf"(?:negative|minus) ({_COUNT})", re.IGNORECASE)
"""Matches `negative five`."""
_SIGNED_REALS = re.compile(
    r"(?:the set of )?(?:all |any )?(?:the )?(non-?negative|non-?positive|positive|negative) "
    r"(?:real numbers?|reals|real values?)(?: of [a-z])?",
    re.IGNORECASE,
)
"""Matches `all nonnegative real numbers`, `positive reals`, `negative real values of x`."""
_SIDES_OF_ZERO = {"nonnegative": r"\ge", "nonpositive": r"\le", "positive": ">", "negative": "<"}
"""Maps a word for a sign to the relation to 0."""
_OF_THE_NUMBERS = re.compile(r"(?<=\d)的(?:所有|一切)?(?:实数|数)$")
"""The 的所有实数 (`all real numbers`) of 大于3的所有实数."""
_BOUND = re.compile(
    r"(?:(?:all|any) (?:real )?(?:numbers?|values?|reals|x)(?: of ([a-z]))?(?: that are| which are)?"
    r"|([a-z])(?: is| must be)?)? ?"
    rf"({'|'.join(BOUNDS)}) ?(\S.*)",
    re.IGNORECASE,
)
"""Matches `at least 3`, `x is at least 3`, `all values of x greater than 3`, `大于3`."""


def with_spoken_numbers(text: str) -> str:  # noqa: PLR0911, one for each form
    """Return an answer in words as a formula. Other texts are returned unchanged."""
    is_formula = "\\" in text and not text[0].isalpha() and "\\text" not in text and "\\mathrm" not in text
    if is_formula or len(text) > MAX_PHRASE_CHARS or _MAY_HOLD.search(text) is None:
        return text
    phrase = " ".join(_WRAPPING.sub(r" \1 ", text).split())
    if (ratio := _RATIO.fullmatch(phrase)) is not None:
        return ":".join(_in_digits(part) for part in ratio.groups() if part)
    share = _SHARE.fullmatch(phrase)
    if share is not None and not (re.search(r"\d of \d", phrase) or (" of " in phrase and "out of" not in phrase)):
        return rf"\frac{{{_in_digits(share[1])}}}{{{_in_digits(share[2])}}}"
    if (fraction := _FRACTION.fullmatch(phrase)) is not None:
        return _fraction(fraction) if fraction[4] is None or unit_of(fraction[4]) is not None else text
    if (negative := _NEGATIVE.fullmatch(phrase)) is not None:
        return f"-{_in_digits(negative[1])}"
    if (signed := _SIGNED_REALS.fullmatch(phrase)) is not None:
        return f"t {_SIDES_OF_ZERO[signed[1].lower().replace('-', '')]} 0"
    if (decimal := _DECIMAL.fullmatch(phrase)) is not None:
        return f"{_in_digits(decimal[1])}.{''.join(str(BELOW_HUNDRED[digit.lower()]) for digit in decimal[2].split())}"
    sign, _, rest = phrase.partition(" ")
    if sign.lower() in ("minus", "negative") and (fraction := _FRACTION.fullmatch(rest)) is not None:
        return f"-{_fraction(fraction)}"
    if (bound := _BOUND.fullmatch(_OF_THE_NUMBERS.sub("", phrase))) is not None:
        return f"{bound[1] or bound[2] or 't'} {BOUNDS[bound[3].lower()]} {bound[4]}"
    return text


def _fraction(match: re.Match[str]) -> str:
    below = _DIVISORS[match[3].lower()]
    above = "1" if match[2].lower() in ("a", "an") else _in_digits(match[2])
    whole = _in_digits(match[1]) if match[1] else ""
    unit = rf"\text{{ {match[4]}}}" if match[4] else ""
    return rf"{whole}\frac{{{above}}}{{{below}}}{unit}"


def _in_digits(count: str) -> str:
    """Return 25 for twenty-five. Words for several numbers are returned unchanged."""
    value = number_in_words(count.lower()) if count[0].isalpha() else None
    return count if value is None else str(value)
