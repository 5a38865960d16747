r"""One spelling for what is typeset in many: the first step for gold and answer alike.

    ２π√３，（１，２）      2\pi \usqrt 3,(1,2)        full-width forms, Unicode mathematics, every script's digits
    <tab>imes, \\frac      \times , \frac             escapes that a program has damaged on the way
    $\dfrac{1}{2}$.        \dfrac{1}{2}               what only says that here is a formula
    **5**, \boxed{5}       5

Text in, text out; nothing here knows about values. Not covered: macros.
"""

from __future__ import annotations

import re
import unicodedata

from truegold.verifiers.math.reading.names import COMMANDS, GREEK

MAX_BOXES = 4
"""Around each other. Stops two thousand of them, each searched for its end."""

DOLLAR = "\ue001"
"""An amount's dollar sign, once the dollar signs around formulas are gone."""
THIN = "\u2009"
"""Any small space: the ones that group digits."""

_SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ⁽⁾ˣ"
_SUBSCRIPT = "₀₁₂₃₄₅₆₇₈₉₊₋ₙᵢ₍₎ₓ"
_PLAIN_SCRIPT = "0123456789+-ni()x"
_RAISE = str.maketrans(_SUPERSCRIPT, _PLAIN_SCRIPT)
_LOWER = str.maketrans(_SUBSCRIPT, _PLAIN_SCRIPT)
_RAISED = re.compile(f"[{_SUPERSCRIPT}]+")
_LOWERED = re.compile(f"[{_SUBSCRIPT}]+")

_SYMBOLS = {
    **dict.fromkeys("−﹣‐‑‒–—―－", "-"),
    **dict.fromkeys(
        "\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\ufeff\u00ad\u202a\u202b\u202c\u202d\u202e", ""
    ),
    **dict.fromkeys("\u00a0\u2002\u2003\u3000\u205f", " "),
    **dict.fromkeys("\u2004\u2005\u2006\u2007\u2008\u200a\u202f", THIN),
    **dict.fromkeys("√", r"\usqrt "),
    "∛": r"\sqrt[3] ",
    "∜": r"\sqrt[4] ",
    "×": r"\times ",
    "✕": r"\times ",
    "⨯": r"\times ",
    "÷": r"\div ",
    **dict.fromkeys("·⋅∙•", r"\cdot "),
    "±": r"\pm ",
    "∓": r"\mp ",
    "∞": r"\infty ",
    **dict.fromkeys("≤≦⩽", r"\le "),
    **dict.fromkeys("≥≧⩾", r"\ge "),
    "≠": r"\ne ",
    **dict.fromkeys("≈≅≃", r"\approx "),
    "≡": r"\equiv ",
    "∪": r"\cup ",
    "∩": r"\cap ",
    "∖": r"\setminus ",
    "∈": r"\in ",
    "∉": r"\notin ",
    **dict.fromkeys("∅⌀", r"\emptyset "),
    "ℝ": r"\mathbb{R} ",
    "ℤ": r"\mathbb{Z} ",
    "ℕ": r"\mathbb{N} ",
    "ℚ": r"\mathbb{Q} ",
    "ℂ": r"\mathbb{C} ",
    "°": r"^\circ ",
    "º": r"^\circ ",
    "˚": r"^\circ ",
    "℃": r"^\circ C",
    "′": "'",
    "″": "''",
    "’": "'",
    "‘": "'",
    "“": '"',
    "”": '"',
    "⁄": "/",
    "∕": "/",
    "∑": r"\sum ",
    "∏": r"\prod ",
    "∫": r"\int ",
    "∠": r"\angle ",
    "△": r"\triangle ",
    "∀": r"\forall ",
    "∃": r"\exists ",
    "∣": "|",
    "∥": r"\| ",
    "⟨": r"\langle ",
    "⟩": r"\rangle ",
    "⌊": r"\lfloor ",
    "⌋": r"\rfloor ",
    "⌈": r"\lceil ",
    "⌉": r"\rceil ",
    "…": r"\ldots ",
    "⋯": r"\ldots ",
    "→": r"\to ",
    "⇒": r"\Rightarrow ",
    "⟹": r"\Rightarrow ",
    "∨": r"\lor ",
    "∧": r"\land ",
    "。": ".",
    "、": ",",
    "￥": "¥",
    "µ": "μ",
    **{letter: rf"\{name} " for name, letter in GREEK.items()},
}
_TRANSLATE = str.maketrans(_SYMBOLS)
_VULGAR = re.compile("[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒]")
_CIRCLED = re.compile("[①-⑳][①-⑳,、 ]*")
_HAN_CONNECTIVE = re.compile("或者|或|以及|和|与|與|及|且")
_NOT_CJK_SYMBOL = re.compile(r"[^\x00-\x7f]")

_DAMAGED = [
    (re.compile("\x0c(?=rac|orall|rom|box|loor)"), r"\\f"),
    (re.compile("\x08(?=eta|oxed|egin|inom|ig|ar|mod|ullet)"), r"\\b"),
    (re.compile("\t(?=ext|imes|heta|an\\b|frac|o\\b|riangle|au|ilde)"), r"\\t"),
    (re.compile("\r(?=ight|angle|ho\\b|floor|ceil|brace)"), r"\\r"),
    (re.compile("\n(?=eq\\b|e\\b|otin|abla|mid)"), r"\\n"),
    (re.compile("\x07(?=lpha|pprox|ngle|rcsin|rccos|rctan)"), r"\\a"),
    (re.compile("\x0b(?=ec|ee|arnothing)"), r"\\v"),
]
_DOUBLED = re.compile(r"(?<!\\)\\\\(?=([A-Za-z]{2,20}))")
_HTML = [
    (re.compile(r"<sup>(.{0,40}?)</sup>", re.IGNORECASE), r"^{\1}"),
    (re.compile(r"<sub>(.{0,40}?)</sub>", re.IGNORECASE), r"_{\1}"),
    (re.compile(r"</?(?:b|i|em|strong|p|span|br|answer)\s?/?>", re.IGNORECASE), " "),
    (re.compile("&lt;"), "<"),
    (re.compile("&gt;"), ">"),
    (re.compile("&amp;"), "&"),
    (re.compile("&nbsp;"), " "),
]
_DELIMITERS = re.compile(r"(?<!\\)\\[()\[\]]|\$\$")
_DELIMITING = (r"\(", r"\)", r"\[", r"\]")
_ENDING = re.compile(r"(?:\\[,;:! ](?![A-Za-z])|\s|(?<!\\right)(?<!\\left)(?<!\\)(?<!\.)[.,;:?]|(?<!\\)\\\\)+$")
_STARTING = re.compile(r"^(?:\\[,;:! ](?![A-Za-z])|\s|[,;:.](?!\d))+")
_MAY_END = frozenset(".,;:?\\!")
_MAY_START = frozenset("\\,;:.")
_COMMAND = re.compile(r"\\[A-Za-z]")
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{")
_NUMBERING = re.compile(r"[;,.]?\s*\((?:[1-9])\)\s*")


def normal(text: str) -> str:
    """`text` in ASCII LaTeX as far as it is mathematics, without what surrounds a formula."""
    if not text.isascii():
        text = _without_unicode(text)
    if not text.isprintable():
        for pattern, repaired in _DAMAGED:
            text = pattern.sub(repaired, text)
        text = "".join(c if c.isprintable() or c.isspace() else " " for c in text)
    if "\\\\" in text:
        text = _DOUBLED.sub(_single, text)
    if "<" in text or "&" in text:
        for pattern, plain in _HTML:
            text = pattern.sub(plain, text)
    return without_numbering(unwrapped(text))


def unwrapped(text: str) -> str:
    """Without formula delimiters, boxes around everything, emphasis and final punctuation."""
    text = _strip(text)
    if text.startswith("**") and text.endswith("**") and len(text) > 4:
        text = _strip(text[2:-2])
    if "$" not in text and "\\" not in text:
        return text
    text = text.replace(r"\$", DOLLAR)
    if "$" in text or any(mark in text for mark in _DELIMITING):
        text = _DELIMITERS.sub(" ", text)
    if "$" in text:
        text = text.replace("$", " " if text.count("$") % 2 == 0 else DOLLAR)
    text = _strip(text)
    for _ in range(MAX_BOXES):
        box = _BOX.match(text)
        if box is None:
            break
        closing = matching_brace(text, box.end() - 1)
        if 0 <= closing < len(text) - 1:
            break
        text = _strip(text[box.end() : closing] if closing > 0 else text[box.end() :])  # one that was cut off, too
    return text


def without_numbering(text: str) -> str:
    """`(1) 5; (2) 7` and `1. 5 2. 7` are the answers 5 and 7 to the parts of a question."""
    if not text.startswith("(1)") or "(2)" not in text:
        return text
    return _NUMBERING.sub("; ", text).strip("; ")


def matching_brace(text: str, opening: int) -> int:
    """The index of the brace that closes the one at `opening`, or -1."""
    depth = 0
    index = opening
    while index < len(text):
        c = text[index]
        if c == "\\":
            index += 1
        elif c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0:
                return index
        index += 1
    return -1


def key_of(text: str) -> str:
    """Two normal texts with one key are the same text but for blanks that mean nothing."""
    return " ".join(text.split())


def _strip(text: str) -> str:
    text = text.strip()
    if text and (text[-1] in _MAY_END or text[-2:-1] == "\\"):
        text = _ENDING.sub("", text).strip()
    if text and text[0] in _MAY_START and not _COMMAND.match(text):
        text = _STARTING.sub("", text).strip()
    return text


def _single(match: re.Match[str]) -> str:
    r"""`\\frac` is a `\frac` whose backslash was escaped twice; `\\x` may begin a row."""
    return "\\" if match.group(1) in COMMANDS else match.group()


def _without_unicode(text: str) -> str:
    text = _RAISED.sub(lambda m: "^{" + m.group().translate(_RAISE) + "}", text)
    text = _LOWERED.sub(lambda m: "_{" + m.group().translate(_LOWER) + "}", text)
    text = _VULGAR.sub(_vulgar_fraction, text)
    text = _CIRCLED.sub(_circled, text)
    text = unicodedata.normalize("NFKC", text.translate(_TRANSLATE)) if _NOT_CJK_SYMBOL.search(text) else text
    text = text.translate(_TRANSLATE)
    text = _HAN_CONNECTIVE.sub(lambda m: r"\text{ or }" if m.group().startswith("或") else r"\text{ and }", text)
    return "".join(str(unicodedata.decimal(c)) if not c.isascii() and c.isdecimal() else c for c in text)


def _vulgar_fraction(match: re.Match[str]) -> str:
    above, _, below = unicodedata.normalize("NFKC", match.group()).partition("⁄")
    return rf"\frac{{{above}}}{{{below}}}"


def _circled(match: re.Match[str]) -> str:
    numbers = [unicodedata.normalize("NFKC", c) for c in match.group() if c not in ",、 "]
    return ", ".join(numbers)
