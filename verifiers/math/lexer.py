r"""Normal text to tokens, in one pass.

A run of letters is the lexer's main question: `xy` is a product of two variables, `sin` a function, `sinx` a function
and a variable, `pi` a constant, `hours` a word. Text commands hold words only: the `m` of `5\text{ m}` is no variable.
A comma between groups of three digits groups them, except directly inside brackets: `(1,234)` is a pair.

Budgets are kept here, before anything is built: `TooLarge` says which was met. `Unreadable` is for what is no answer.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gmpy2 import mpq

from truegold.verifiers.math.measures import MULTIPLIERS, UNITS
from truegold.verifiers.math.names import (
    BIG,
    BINOMIALS,
    CANONICAL_GREEK,
    COMMANDS,
    CONSTANTS,
    FACES,
    FRACTIONS,
    FUNCTIONS,
    GREEK_NAMES,
    IGNORED,
    NUMBER_WORDS,
    PREFIX_FUNCTIONS,
    RELATIONS,
    STOP_WORDS,
    TEXT_COMMANDS,
)
from truegold.verifiers.math.normal import DOLLAR, matching_brace

MAX_CHARS = 4_000
"""Longer texts are not read. Stops answers of a megabyte, whose reading alone would cost seconds."""

MAX_TOKENS = 1_500
MAX_DIGITS = 1_000
"""Of one number. Stops arithmetic on numbers as long as the text allows."""

MAX_DEPTH = 40
"""Brackets and commands inside each other. Stops `((((...`, whose reading would exhaust the stack."""

MAX_SCIENTIFIC = 3_000
"""The largest power of ten that a literal such as 1e10 may have. Stops `1e999999999`."""


class TooLarge(Exception):
    """A budget was met; the message names it."""


class Unreadable(Exception):
    """The text is no answer that the reader knows."""


class Token(NamedTuple):
    kind: str
    text: str
    spaced: bool
    """Whether a blank stands before it."""
    value: mpq | None = None
    decimals: int | None = None


_GROUPED = r"\d{1,3}(?:(?:,|\{,\}|,\s?\\!\s?|\\!\s?,|\\[,;: ]\s?|~|\u2009|\\thinspace\s?)\d{3})+(?!\d)|\d{1,3}(?: \d{3})+(?![\d.])|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)"
_REPEATING = r"\d*\.\d*\\(?:overline|bar|dot|overset\{\.\})\s?\{?\s?\d+\s?\}?(?:\d*\\dot\s?\{?\s?\d\s?\}?)?|\d*\.\d*?(?P<again>\d)(?P=again){2,}(?:\.\.\.|\\ldots|\\dots|\\cdots)"
_TOKEN = re.compile(
    rf"(?P<space>\s+)|(?P<repeating>{_REPEATING})"
    rf"|(?P<number>(?:{_GROUPED}|\d+)(?:\.\d+|\.(?![\d.]))?|\.\d+)"
    r"(?P<exponent>[eE](?:[+-]?\d{1,9}|\{[+-]?\d{1,9}\})(?![\d.A-Za-z]))?"
    r"|\\(?P<command>[A-Za-z]+)|\\(?P<escape>.)|(?P<letters>[A-Za-z]+)|(?P<foreign>[^\x00-\x7f\W\d_]+)"
    r"|(?P<relation><=>|<=|>=|!=|==|=<|=>|[=<>])|(?P<other>.)",
    re.DOTALL,
)
_TIMES_TEN = re.compile(r"(?<=[\d.])\s*x\s*(?=10\s*\^)")
_DIGITS = re.compile(r"\d+")
_ENVIRONMENT = re.compile(r"\s*\{\s*([A-Za-z]{1,20}\*?)\s*\}")
_OPENERS = {"(": ")", "[": "]", "{": "}"}
_CONNECTING = frozenset({"sep", "gap", "rel", "op", "row", "cell"})
_SMALL_ESCAPES = frozenset(",;:! /@")
_TEXT_FUNCTIONS = frozenset(
    {"sin", "cos", "tan", "cot", "ln", "log", "lg", "arcsin", "arccos", "arctan", "exp", "gcd", "lcm"}
)
_CONNECTIVES = {"or": "or", "and": "and", "oder": "or", "und": "and"}
_COMMAND_TOKENS = {
    "lor": ("sep", "or"), "vee": ("sep", "or"), "land": ("sep", "and"), "wedge": ("sep", "and"), "quad": ("gap", ""),
    "qquad": ("gap", ""), "cdot": ("op", "*"), "times": ("op", "*"), "ast": ("op", "*"), "div": ("op", "/"),
    "pm": ("op", "±"), "mp": ("op", "∓"), "cup": ("op", "cup"), "cap": ("op", "cap"), "setminus": ("op", "minus"),
    "backslash": ("op", "minus"), "langle": ("open", "<"), "rangle": ("close", ">"), "lfloor": ("open", "floor"),
    "rfloor": ("close", "floor"), "lceil": ("open", "ceil"), "rceil": ("close", "ceil"), "lvert": ("bar", "|"),
    "rvert": ("bar", "|"), "vert": ("bar", "|"), "lbrace": ("open", "{"), "rbrace": ("close", "{"), "lparen": ("open", "("),
    "rparen": ("close", ")"), "lbrack": ("open", "["), "rbrack": ("close", "]"), "colon": ("op", ":"), "degree": ("op", "°"),
    "textdegree": ("op", "°"), "circ": ("op", "∘"), "textcirc": ("op", "∘"), "prime": ("op", "'"), "newline": ("gap", ""),
    "cupdot": ("op", "cup"), "bigcup": ("op", "cup"), "sqcup": ("op", "cup"), "smallsetminus": ("op", "minus"),
    "Vert": ("bar", "||"), "gets": ("rel", "to"), "blank": ("gap", ""), "par": ("gap", ""), "over": ("op", "over"),
}  # fmt: skip


def lex(text: str, *, group_digits: bool = True) -> list[Token]:
    """The tokens of normal `text`. Raises TooLarge, or Unreadable for a brace that is never closed."""
    if len(text) > MAX_CHARS:
        raise TooLarge(f"{len(text)} characters, the limit is {MAX_CHARS}")
    if "x" in text:
        text = _TIMES_TEN.sub("*", text)
    tokens: list[Token] = []
    _scan(text, tokens, group_digits, in_text=False)
    if len(tokens) > MAX_TOKENS:
        raise TooLarge(f"{len(tokens)} tokens, the limit is {MAX_TOKENS}")
    return _without_idle_gaps(tokens) if any(token.kind == "gap" for token in tokens) else tokens


def _without_idle_gaps(tokens: list[Token]) -> list[Token]:
    """A wide blank separates, except beside what separates or connects anyway."""
    kept: list[Token] = []
    for token, following in zip(tokens, [*tokens[1:], Token("close", "", False)], strict=True):
        idle = token.kind == "gap" and (
            not kept or kept[-1].kind in _CONNECTING or kept[-1].kind == "open" or following.kind in _CONNECTING
            or following.kind == "close"
        )
        if not idle:
            kept.append(token)
    return kept


def _scan(text: str, tokens: list[Token], group_digits: bool, in_text: bool, level: int = 0) -> None:  # noqa: PLR0912
    brackets: list[str] = []
    spaced = bool(in_text)
    position, end = 0, len(text)
    add = tokens.append
    while position < end:
        match = _TOKEN.match(text, position)
        assert match is not None  # `.` matches anything
        kind, value = match.lastgroup, match.group()
        position = match.end()
        if kind == "space":
            if "\n" in value and value.count("\n") > 1:
                add(Token("gap", "", True))
            spaced = True
            continue
        if kind in ("number", "exponent"):
            position = _number(match, brackets, group_digits, spaced, tokens)
        elif kind == "letters":
            if in_text:
                _text_word(value, spaced, tokens)
            else:
                _letters(value, spaced, tokens, text[position : position + 1])
        elif kind == "foreign":
            add(Token("word", value, spaced))
        elif kind == "relation":
            add(Token("rel", RELATIONS.get(value, value), spaced))
        elif kind == "repeating":
            add(_repeating(value, spaced))
        elif kind == "command":
            position = _command(match.group("command"), text, position, spaced, tokens, group_digits, level)
        elif kind == "escape":
            _escape(value[1], spaced, tokens, brackets)
        else:
            _other(value, spaced, tokens, brackets)
        spaced = False


def _number(match: re.Match[str], brackets: list[str], group_digits: bool, spaced: bool, tokens: list[Token]) -> int:
    """Add the number; where its commas separate rather than group, only what stands before the first of them."""
    text, end = match.group("number"), match.end()
    if text.isdigit() and match.end("number") == end and len(text) <= MAX_DIGITS:
        tokens.append(Token("num", text, spaced, mpq(int(text))))
        return end
    separates = not group_digits or (brackets and brackets[-1] != "{")
    if separates and ("," in text or " " in text) and "{,}" not in text and "\\!" not in text:
        head = _DIGITS.match(text)
        if head is not None and head.end() < len(text):
            tokens.append(Token("num", head.group(), spaced, mpq(int(head.group()))))
            return match.start() + head.end()
    exponent = match.group("exponent")
    digits = "".join(c for c in text if c in ".0123456789")
    if len(digits) > MAX_DIGITS:
        raise TooLarge(f"a number of {len(digits)} digits, the limit is {MAX_DIGITS}")
    whole, point, fraction = digits.partition(".")
    value = mpq(int(whole + fraction or "0"), 10 ** len(fraction))
    decimals = len(fraction) if point and fraction else None
    if exponent:
        power = int(exponent[1:].strip("{}"))
        if abs(power) > MAX_SCIENTIFIC:
            raise TooLarge(f"the power of ten {power}, the limit is {MAX_SCIENTIFIC}")
        value, decimals = value * mpq(10) ** power, None
    tokens.append(Token("num", digits, spaced, value, decimals))
    return end


def _repeating(text: str, spaced: bool) -> Token:
    r"""0.1\overline{6} is 1/6; so is 0.1666... Where two digits wear dots, they bound the block."""
    whole, _, rest = text.partition(".")
    if "\\" in rest and not rest.rstrip("\\ldotsc").isdigit():
        fixed, _, block = rest.partition("\\")
        block = "".join(_DIGITS.findall(block))
    else:
        digits = "".join(_DIGITS.findall(rest))
        block = digits[-1]
        fixed = digits.rstrip(block)
    if len(whole) + len(fixed) + len(block) > MAX_DIGITS:
        raise TooLarge(f"a repeating decimal of more than {MAX_DIGITS} digits")
    scale = 10 ** len(fixed)
    value = mpq(int(whole + fixed or "0"), scale) + mpq(int(block), scale * (10 ** len(block) - 1))
    return Token("num", text, spaced, value)


def _letters(run: str, spaced: bool, tokens: list[Token], following: str) -> None:
    """A run of letters outside of text commands."""
    lower = run.lower()
    if lower in _CONNECTIVES:
        tokens.append(Token("sep", _CONNECTIVES[lower], spaced))
    elif len(run) == 1:
        tokens.append(Token("name", run, spaced))
    elif run in FUNCTIONS:
        tokens.append(Token("func", FUNCTIONS[run], spaced))
    elif run in CONSTANTS:
        tokens.append(Token("const", CONSTANTS[run], spaced))
    elif run in GREEK_NAMES and run != "eta":
        tokens.append(Token("name", CANONICAL_GREEK.get(run, run), spaced))
    elif _is_word(run, lower) and not (run.isupper() and len(run) <= 3):
        tokens.append(Token("word", run, spaced))
    else:
        _split_run(run, spaced, tokens)


def _is_word(run: str, lower: str) -> bool:
    return (
        lower in UNITS
        or run in UNITS
        or lower in NUMBER_WORDS
        or lower in STOP_WORDS
        or lower in MULTIPLIERS
        or lower in _WORDS
    )


_WORDS = frozenset(
    "no not yes true false none all any for if then when where with mod per the both neither either even odd one by to from on at only also so we get but max min let am pm st nd rd th".split()
)


def _split_run(run: str, spaced: bool, tokens: list[Token]) -> None:
    for size in range(min(len(run) - 1, 6), 1, -1):
        head, rest = run[:size], run[size:]
        if len(rest) > 1:
            continue
        if head in FUNCTIONS and FUNCTIONS[head] in PREFIX_FUNCTIONS:
            tokens.append(Token("func", FUNCTIONS[head], spaced))
        elif head == "pi":
            tokens.append(Token("const", "pi", spaced))
        else:
            continue
        tokens.append(Token("name", rest, False))
        return
    for word in ("or", "and"):
        if (
            run.startswith(word)
            and len(run) == len(word) + 1
            and tokens
            and tokens[-1].kind in ("num", "close", "unbrace")
        ):
            tokens.extend((Token("sep", word, False), Token("name", run[-1], False)))
            return
    if len(run) <= 3:
        tokens.append(Token("name", run[0], spaced))
        tokens.extend(Token("name", letter, False) for letter in run[1:])
    else:
        tokens.append(Token("word", run, spaced))


def _text_word(run: str, spaced: bool, tokens: list[Token]) -> None:
    lower = run.lower()
    if lower in _CONNECTIVES:
        tokens.append(Token("sep", _CONNECTIVES[lower], spaced))
    elif run in _TEXT_FUNCTIONS:
        tokens.append(Token("func", run, spaced))
    else:
        tokens.append(Token("word", run, spaced))


def _command(
    name: str, text: str, position: int, spaced: bool, tokens: list[Token], group_digits: bool, level: int
) -> int:  # noqa: PLR0912
    """Add what a command stands for, and return where to read on."""
    add = tokens.append
    if name in _COMMAND_TOKENS:
        kind, value = _COMMAND_TOKENS[name]
        add(Token(kind, value, spaced))
    elif name in IGNORED:
        if name in ("left", "right") and text[position : position + 1] == ".":
            position += 1
            if name == "right" and any(token.kind == "open" for token in tokens):  # of \\left\\{
                add(Token("close", next(t.text for t in reversed(tokens) if t.kind == "open"), spaced))
    elif name in FRACTIONS:
        add(Token("cmd", "frac", spaced))
    elif name in BINOMIALS:
        add(Token("cmd", "binom", spaced))
    elif name in FUNCTIONS:
        add(Token("cmd" if name == "sqrt" else "func", FUNCTIONS[name], spaced))
    elif name in CONSTANTS:
        add(Token("const", CONSTANTS[name], spaced))
    elif name in RELATIONS:
        add(Token("bar", "|", spaced) if name == "mid" else Token("rel", RELATIONS[name], spaced))
    elif name in GREEK_NAMES:
        add(Token("name", CANONICAL_GREEK.get(name, name), spaced))
    elif name in BIG:
        add(Token("big", BIG[name], spaced))
    elif name in TEXT_COMMANDS:
        return _text_command(name, text, position, spaced, tokens, group_digits, level)
    elif name in ("begin", "end"):
        return _environment(name, text, position, spaced, tokens)
    elif name in FACES:
        if name in ("mathbb", "Bbb"):
            add(Token("cmd", "mathbb", spaced))
    elif (known := _known_start(name)) is not None:  # \\quadx, \\pir
        position = _command(known, text, position, spaced, tokens, group_digits, level)
        _letters(name[len(known) :], False, tokens, "")
    else:
        add(Token("cmd", name, spaced))
    return position


def _known_start(name: str) -> str | None:
    """The command that `name` begins with, where a letter or two got stuck to it."""
    if name in COMMANDS:
        return None
    return next((name[:-cut] for cut in (1, 2) if name[:-cut] in COMMANDS and len(name) - cut > 1), None)


def _environment(name: str, text: str, position: int, spaced: bool, tokens: list[Token]) -> int:
    match = _ENVIRONMENT.match(text, position)
    if match is None:
        raise Unreadable(f"\\{name} without the name of an environment")
    tokens.append(Token(name, match.group(1), spaced))
    return match.end()


def _text_command(
    name: str, text: str, position: int, spaced: bool, tokens: list[Token], group_digits: bool, level: int
) -> int:
    while text[position : position + 1].isspace():
        position += 1
    if text[position : position + 1] != "{":
        return position
    end = matching_brace(text, position)
    if end < 0:
        raise Unreadable(f"\\{name} is never closed")
    if level >= MAX_DEPTH:
        raise TooLarge(f"text commands nested more than {MAX_DEPTH} deep")
    inner = text[position + 1 : end]
    before = len(tokens)
    _scan(inner, tokens, group_digits, in_text=True, level=level + 1)
    if len(tokens) > before and not spaced and not inner[:1].isspace():
        tokens[before] = tokens[before]._replace(spaced=False)
    return end + 1


def _escape(mark: str, spaced: bool, tokens: list[Token], brackets: list[str]) -> None:
    if mark == "{":
        brackets.append("\\{")
        tokens.append(Token("open", "{", spaced))
    elif mark == "}":
        if brackets:
            brackets.pop()
        tokens.append(Token("close", "{", spaced))
    elif mark == "%":
        tokens.append(Token("op", "%", spaced))
    elif mark == "|":
        tokens.append(Token("bar", "||", spaced))
    elif mark == "\\":
        tokens.append(Token("row", "", spaced))
    elif mark in "$#&_":
        tokens.append(Token("op", DOLLAR if mark == "$" else mark, spaced))
    elif mark in "()[]":
        pass  # a formula's delimiter
    elif mark not in _SMALL_ESCAPES:
        raise Unreadable(f"\\{mark}")


def _other(mark: str, spaced: bool, tokens: list[Token], brackets: list[str]) -> None:
    if mark in _OPENERS:
        brackets.append(mark)
        tokens.append(Token("brace" if mark == "{" else "open", mark, spaced))
    elif mark in ")]}":
        if brackets:
            brackets.pop()
        tokens.append(Token("unbrace" if mark == "}" else "close", mark, spaced))
    elif mark == "|":
        tokens.append(Token("bar", "|", spaced))
    elif mark in ",;":
        tokens.append(Token("sep", mark, spaced))
    elif mark == "&":
        tokens.append(Token("cell", "", spaced))
    elif mark in "+-*/^_!%:'~.\"":
        if mark not in '~"':
            tokens.append(Token("op", mark, spaced))
    elif mark == DOLLAR or mark in UNITS:
        tokens.append(Token("money" if mark in "$€£¥₹₽₩" + DOLLAR else "word", "$" if mark == DOLLAR else mark, spaced))
    else:
        raise Unreadable(f"the character {mark!r}")
