r"""Cuts normalised text into tokens, in one pass: `2x^3` has a number, a name, an operator and a number.

A comma before three digits joins them to the digits before it, except directly inside brackets: `(1,234)` is a pair.
Typefaces (`\mathbf`, `\left`) and delimiters of formulas are left out. A wide gap (`\quad`, an empty line) is a token,
because it may separate items.

Limits of length and depth are checked here, before anything is built. TooLarge names the limit.

A run of letters is a product of variables (`xy`), a function (`sin`), a function with its variable (`sinx`), a constant
(`pi`) or a word (`hours`). Text commands hold words only: the `m` of `5\text{ m}` is not a variable.

Number literals are `1,234`, `12 345`, `0.1\overline{6}`, `0.1666...` and `1.5e10`.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from truegold.verifiers.currencies import LONE_SIGNS
from truegold.verifiers.math.measures import BARE_UNITS, MULTIPLIERS, unit_of
from truegold.verifiers.math.policy import TooLarge, UnreadableAnswer
from truegold.verifiers.math.reading.lexemes import (
    Lexeme,
    integer_token,
    kind_of,
    number_token,
    plain_token,
    repeating_token,
    text_of,
)
from truegold.verifiers.math.reading.normal import DOLLAR, MONEY_MARKS
from truegold.verifiers.math.reading.typesetting import matching_brace
from truegold.verifiers.math.vocabulary import (
    CANONICAL_GREEK,
    COMMAND_TOKENS,
    COMMANDS,
    CONSTANTS,
    FUNCTIONS,
    GREEK_NAMES,
    IGNORED,
    MATRIX_ENVIRONMENTS,
    OPERATORS,
    RELATIONS,
    STOP_WORDS,
    TEXT_COMMANDS,
    TEXT_FUNCTIONS,
    TYPEFACES,
    WORDS,
)
from truegold.verifiers.written_numbers import BELOW_HUNDRED

MAX_DEPTH = 40
"""The deepest nesting of brackets and commands. Stops `((((...`, which would overflow the stack."""
_SMALL_SPACE = r",|\{,\}|,\s?\\!\s?|\\!\s?,|\\[,;: ]\s?|~|\u2009|\\thinspace\s?"
r"""A mark between groups of digits: a comma, `{,}`, or a small space such as `\,`."""
_GROUPED = (
    rf"(?!0,)\d{{1,3}}(?:(?:{_SMALL_SPACE})\d{{3}})+(?!\d)|\d{{1,3}}(?: \d{{3}})+(?![\d.])"
    r"|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)"
)
"""Matches `1,234`, `1\\,234`, `12 345`, and the Indian `12,34,567`."""
_MARKED_BLOCK = r"\d*\.\d*\\(?:overline|bar|dot|overset\{\.\})\s?\{?\s?\d+\s?\}?(?:\d*\\dot\s?\{?\s?\d\s?\}?)?"
r"""Matches `0.1\overline{6}`, `0.\dot{3}`, `0.\dot{1}2\dot{3}`."""
_REPEATED_DIGIT = r"\d{0,40}\.\d{0,30}?(?P<again>\d)(?P=again){2,40}(?:\.\.\.|\\ldots|\\dots|\\cdots)"
"""Matches `0.1666...`."""
REPEATING = rf"(?P<repeating>{_MARKED_BLOCK}|{_REPEATED_DIGIT})"
NUMERAL = (
    rf"(?P<number>(?:{_GROUPED}|\d+)(?:\.\d+|\.(?![\d.]))?|\.\d+)"
    r"(?P<exponent>[eE](?:[+-]?\d{1,9}|\{[+-]?\d{1,9}\})(?![\d.A-Za-z]))?"
)
"""A number, for `number_token`: the groups are `number` (`1,234.5`) and `exponent` (`e10`)."""
INTEGER = re.compile(r"\d+(?![\d.~\u2009]|,\d|,\s?\\!|\\[!,;: t]|\{,| \d|[eE][-+\d{])")
"""An integer that does not continue with a point, a group of digits or an exponent. Most numbers are of this kind."""
MAX_VARIABLES_IN_A_RUN = 3
"""Maximum number of letters in a product such as `xyz`. Longer runs of letters that are not known are words."""
MAX_FUNCTION_LETTERS = 6
"""Maximum number of letters in a function that is split from a variable: `arctan` in `arctanx`."""
_COUNTS = re.compile(r":?\s+\d")
"""A blank and a digit. Before them, `sind` and `cost` are words (`Es sind 24`, `They cost: 24`).

Elsewhere they are the functions sin and cos with a variable."""
_CONNECTIVES = {"or": "or", "and": "and", "oder": "or", "und": "and"}
"""Maps a connective to its English form."""
FOREIGN_CONNECTIVES = {
    **dict.fromkeys(("или", "또는", "または", "أو", "या"), ("sep", "or")), "и": ("sep", "and"),
}  # fmt: skip
"""Maps a connective in another script to the kind and text of its token."""
_TEXT_SYMBOLS = {"pi": ("const", "pi"), "infty": ("const", "inf"), "circ": ("op", "∘")}
"""Symbols that programs write as words: `\\text{pi}`."""
_CONSTANT_WORDS = frozenset({"constant", "const"})
"""Words that are the constant of integration after a plus."""
_WORDS = WORDS["common"] | BELOW_HUNDRED.keys() | MULTIPLIERS.keys() | STOP_WORDS
"""Short words that are not products of variables."""
_CURRENCIES = frozenset({"USD", "EUR", "GBP", "CNY", "RMB", "INR"})
"""Codes of currencies, which are never products of variables."""
_VALUE_ENDS = frozenset({"num", "close", "unbrace"})
"""Kinds of tokens that end a value."""
MAX_CHARS = 4_000
"""Maximum number of characters in a text. Stops answers of a megabyte, which would take seconds to read."""
MAX_TOKENS = 1_500
"""Maximum number of tokens in a text. Stops `1+1+1+...`, whose comparison takes a step for each token."""
_LATIN = "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1ea0-\u1ef9"
"""Letters with accents, which belong to the word around them."""
_MARKS_OF_LETTERS = "\u0300-\u036f\u064b-\u065f\u0900-\u0963\u0971-\u09e5\u0a01-\u0dff\u0e31-\u0e4e"
"""Vowel signs of Arabic, Indic scripts and Thai, which do not begin a word."""
_TOKEN = re.compile(
    rf"(?P<letters>[A-Za-z]+(?![A-Za-z{_LATIN}]))|\\(?P<command>[A-Za-z]+)|(?P<space>\s+)|{REPEATING}|{NUMERAL}|\\(?P<escape>.)"
    rf"|(?P<foreign>[A-Za-z]*[{_LATIN}][A-Za-z{_LATIN}]*|[^\x00-\x7f\W\d_](?:[^\x00-\x7f\W\d_]|[{_MARKS_OF_LETTERS}])*)"
    r"|(?P<relation><=>|<=|>=|!=|==|=<|=>|[=<>])|(?P<other>.)",
    re.DOTALL,
)
_CROSS = re.compile(r"(\)|matrix\})\s*\\times\s*((?:\\left\s*)?(?:\(|\\begin))")
r"""The \times of (1,2,3)\times(4,5,6)."""
_TIMES_TEN = re.compile(r"(?<=[\d.])\s*[xX]\s*(?=10\s*\^)")
"""The x of 3 x 10^5."""
_NABLA = re.compile(r"\\nabla\s*(?:\^\s*\{?\s*(2)\s*\}?|\\(cdot|times)(?![A-Za-z]))?")
r"""Matches `\nabla`, `\nabla^2`, `\nabla\cdot`, `\nabla\times`."""
_NABLAS = {"2": "laplacian", "cdot": "divergence", "times": "curl", None: "gradient"}
"""Maps the mark after a nabla to the name of the operator."""
_PART = r"\{?((?:[^{}/+-]|\{[^{}]{1,20}\}){1,40})\}"
_ORDER = r"\s*(?:\^\s*\{?(\d)\}?)?"
_PARTIAL = re.compile(
    rf"\\[dt]?frac\s*\{{\s*\\partial{_ORDER}{_PART}\s*\{{\s*\\partial{_PART}"
    rf"|\\partial\s*{_ORDER}\s*(\\?[A-Za-z]+)\s*/\s*\\partial\s*(\\?[A-Za-z]+(?:\^\{{?\d\}}?)?)"
)
r"""Matches `\frac{\partial^2 u}{\partial x^2}`, `\partial u/\partial x`."""
_SLASHED_DERIVATIVE = re.compile(r"(?<![A-Za-z\\])d([A-Za-z])/d([a-z])(?![A-Za-z])")
"""Matches `dy/dx`."""
_ENVIRONMENT = re.compile(r"\s*\{\s*([A-Za-z]{1,20}\*?)\s*\}")
r"""The {pmatrix} after \begin."""
_CONNECTING = frozenset({"sep", "gap", "rel", "op", "row", "cell", "logic"})
"""Kinds of tokens that separate or connect, so that a wide blank next to them has no meaning."""
_NO_OPERAND = frozenset({"start", "rel", "sep", "gap", "row", "cell", "logic"})
"""Kinds of tokens that may precede an opening bracket or follow a closing one. `start` is the start of the text."""
_BEFORE_NEGATION = frozenset({"rel", "sep", "gap", "logic", "open"})
"""Kinds of tokens after which a tilde may mean `not`."""
_LETTER_FOLLOWS = re.compile(r"\s*\(?[A-Za-z]")
_VECTOR = re.compile(r"\\(?:mathbf|boldsymbol|bm|pmb|bf)\s*(?:\{\s*(\\?[A-Za-z]{1,10})\s*\}|([A-Za-z])(?![A-Za-z]))")
r"""A bold letter, `\mathbf{F}`, which is a vector if the text has a cross product."""
_OPERAND_ENDS = frozenset({"num", "name", "const", "close", "unbrace"})
"""Kinds of tokens that end an operand."""
_NAMED = frozenset({"name", "const", "unbrace"})
"""Kinds of tokens before the `_` of a subscript."""
_BRACES = frozenset({"brace", "unbrace"})
_SUBSCRIPT_KINDS = frozenset({"word", "name", "num", "op", "rel"})
"""Kinds of tokens in a subscript that is part of a name."""
_SUBSCRIPT_MARKS = frozenset({"+", "-", "±", "∓", "perp", "||"})
"""Marks that are a subscript without braces, as in `\\rho_+`."""
_SUBSCRIPT_TEXTS = {"=>": "to"}
"""Maps the text of a token to its text in a name."""
_MAX_SUBSCRIPT = 12
"""Maximum number of tokens in a subscript that is part of a name."""
_COLUMNS = re.compile(r"\s*\[[a-zA-Z|\s]{0,20}\]")
"""The alignment of a matrix: `[t]`, `[rr]`."""
_MONEY = {**{sign: sign for sign in LONE_SIGNS}, **{mark: sign for sign, mark in MONEY_MARKS.items()}}
"""Maps a character before an amount to the sign or code of its currency."""
_DIGIT = frozenset("0123456789")
_ESCAPES = {
    "%": ("op", "%"), "|": ("bar", "||"), "\\": ("row", ""), "$": ("op", DOLLAR), "#": ("op", "#"), "&": ("op", "&"),
    "_": ("op", "_"),
}  # fmt: skip
"""Maps the character after a backslash to the kind and text of its token."""
_NEGATED = {"=": "!=", "in": "notin"}
"""Maps a relation to the relation after `\\not`."""
_NEGATION = ("logic", "not")
"""The kind and text of the token `not`."""
_IDLE_ESCAPES = frozenset(",;:! /@()[]")
"""Characters that make a small space or a delimiter of a formula after a backslash: `\\,`, `\\(`."""


def add_letters(run: str, spaced: bool, tokens: list[Lexeme]) -> None:
    """Add the tokens of a run of letters outside of text commands."""
    if len(run) == 1:
        tokens.append(plain_token("name", run, spaced))
        return
    lower = run.lower()
    if lower in _CONSTANT_WORDS and tokens and tokens[-1][:2] == ("op", "+"):
        tokens.append(plain_token("name", "C", spaced))
    elif lower == "et" and spaced and tokens and tokens[-1].kind in _VALUE_ENDS:
        tokens.append(plain_token("sep", "and", spaced))  # French for `and`. Elsewhere it is e times t.
    elif lower in _CONNECTIVES:
        tokens.append(plain_token("sep", _CONNECTIVES[lower], spaced))
    elif run == "choose" and tokens:
        tokens.append(plain_token("op", run, spaced))
    elif run in FUNCTIONS:
        tokens.append(plain_token("func", FUNCTIONS[run], spaced))
    elif run in CONSTANTS:
        tokens.append(plain_token("const", CONSTANTS[run], spaced))
    elif run in GREEK_NAMES and run != "eta":
        tokens.append(plain_token("name", CANONICAL_GREEK.get(run, run), spaced))
    elif _is_word(run, lower) or not _add_parts(run, spaced, tokens):
        tokens.append(plain_token("word", run, spaced))


def add_word(run: str, spaced: bool, tokens: list[Lexeme]) -> None:
    """Add the token of a run of letters inside of a text command."""
    lower = run.lower()
    if lower in _CONSTANT_WORDS and tokens and tokens[-1][:2] == ("op", "+"):
        tokens.append(plain_token("name", "C", spaced))
    elif lower in _CONNECTIVES:
        tokens.append(plain_token("sep", _CONNECTIVES[lower], spaced))
    elif run in TEXT_FUNCTIONS:
        tokens.append(plain_token("func", TEXT_FUNCTIONS[run], spaced))
    else:
        tokens.append(plain_token(*_TEXT_SYMBOLS.get(run, ("word", run)), spaced))


def _is_word(run: str, lower: str) -> bool:
    """Tell whether a run of letters is a word, such as `cm` or `Tom`, rather than a product, such as `ABC` or `IN`."""
    if len(run) == MAX_VARIABLES_IN_A_RUN and run.istitle() and run[1] in "aeiou" and lower not in FUNCTIONS:
        return True  # A name, as Ben and Tom are.
    if run.isupper() and len(run) <= MAX_VARIABLES_IN_A_RUN:
        return run in _CURRENCIES
    return (
        lower in _WORDS
        or run in BARE_UNITS
        or (not run[0].islower() and lower in BARE_UNITS and (len(run) > 2 or unit_of(run) is None))
    )


def _add_parts(run: str, spaced: bool, tokens: list[Lexeme]) -> bool:
    """Add the parts of `sinx`, `piR` or `xyz`, or of `orx` after a value. Return False for any other run."""
    head, last = run[:-1], run[-1]
    if head == "pi" or (2 <= len(head) <= MAX_FUNCTION_LETTERS and head in FUNCTIONS):
        known = plain_token("const", "pi", spaced) if head == "pi" else plain_token("func", FUNCTIONS[head], spaced)
        tokens.extend((known, plain_token("name", last, False)))
        return True
    if head in ("or", "and") and tokens and tokens[-1].kind in _VALUE_ENDS:
        tokens.extend((plain_token("sep", head, False), plain_token("name", last, False)))
        return True
    if len(run) > MAX_VARIABLES_IN_A_RUN:
        return False
    tokens.append(plain_token("name", run[0], spaced))
    tokens.extend(plain_token("name", letter, False) for letter in run[1:])
    return True


TokenPair: TypeAlias = tuple[Lexeme, Lexeme]
"""The token without a blank before it, and the token with one."""


def _pairs(kind: str, marks: str) -> dict[str, TokenPair]:
    return {mark: (Lexeme(kind, mark, False), Lexeme(kind, mark, True)) for mark in marks}


_MARKS = {
    **_pairs("op", "+-*/^_%:'"),
    **_pairs("sep", ",;"),
    **_pairs("bar", "|"),
    "&": (Lexeme("cell", "", False), Lexeme("cell", "", True)),
}
"""Maps a character that is always a token to its tokens."""

_OPENERS = _pairs("brace", "{") | _pairs("open", "([")
_CLOSERS = _pairs("unbrace", "}") | _pairs("close", ")]")


def lex(text: str, *, group_digits: bool = True) -> list[Lexeme]:
    """Return the tokens of a normalised text. Raises TooLarge, and UnreadableAnswer for an unknown character."""
    if len(text) > MAX_CHARS:
        raise TooLarge(f"{len(text)} characters, the limit is {MAX_CHARS}")
    if "x" in text or "X" in text:
        text = _TIMES_TEN.sub("*", text)
    if "\\nabla" in text:
        text = _NABLA.sub(lambda m: rf"\{_NABLAS[m[1] or m[2]]} ", text)
    if "\\partial" in text:
        text = _PARTIAL.sub(lambda m: rf"\partialof{{{m[2] or m[5]}}}{{{m[3] or m[6]}}}{{{m[1] or m[4] or 1}}}", text)
    if "/d" in text:
        text = _SLASHED_DERIVATIVE.sub(r"\\frac{d \1}{d \2}", text)
    if "\\times" in text and ("\\vec" in text or "\\overr" in text or "\\b" in text or "bf" in text):
        text = with_bold_vectors(text).replace("\\times", "\\crossproduct")
    elif "\\times" in text:
        text = _CROSS.sub(r"\1\\crossproduct\2", text)
    tokens: list[Lexeme] = []
    _Scanner(text, tokens, group_digits, level=0).run()
    if len(tokens) > MAX_TOKENS:
        raise TooLarge(f"{len(tokens)} tokens, the limit is {MAX_TOKENS}")
    if "_" in text:
        tokens = _with_subscripts_named(tokens)
    if "\\not\\" in text or ("\\not" in text and "=" in text):
        tokens = _with_negated_relations(tokens)
    if "]" in text or "[" in text:
        tokens = _with_reversed_brackets(tokens)
    return _without_idle_gaps(tokens) if "gap" in map(kind_of, tokens) else tokens


def with_bold_vectors(text: str) -> str:
    r"""Return the text with \vec{F} for \mathbf{F}."""
    return _VECTOR.sub(lambda match: rf"\vec{{{match[1] or match[2]}}}", text)


def _with_subscripts_named(tokens: list[Lexeme]) -> list[Lexeme]:
    r"""Return the tokens, with the tokens of a subscript joined to one name if they are not an expression.

    They are joined in \rho_+, E_{\text{in}}, E_{j=3} and p_\perp, but not in x_{n+1}.
    """
    named: list[Lexeme] = []
    skipped_to = 0
    for index, token in enumerate(tokens):
        if index < skipped_to:
            continue
        named.append(token)
        if token[:2] == ("op", "_") and index and tokens[index - 1].kind in _NAMED and index + 1 < len(tokens):
            skipped_to = _end_of_subscript(tokens, index + 1)
            if skipped_to:
                inside = tokens[index + 1 : skipped_to]
                texts = (_SUBSCRIPT_TEXTS.get(part.text, part.text) for part in inside if part.kind not in _BRACES)
                named.append(Lexeme("name", "".join(texts), False))
    return named


def _end_of_subscript(tokens: list[Lexeme], start: int) -> int:
    """Return the end of the subscript that begins at `start`, or 0 if it is an expression."""
    first = tokens[start]
    if first.kind != "brace":
        behind = tokens[start + 1].kind if start + 1 < len(tokens) else "stop"
        is_mark = first.kind in ("rel", "op") and first.text in _SUBSCRIPT_MARKS and behind not in ("num", "name")
        return start + 1 if is_mark else 0
    end = next((i for i in range(start, min(start + _MAX_SUBSCRIPT, len(tokens))) if tokens[i].kind == "unbrace"), 0)
    inside = tokens[start + 1 : end] if end else []
    kinds = {token.kind for token in inside}
    is_mark = bool(inside) and (inside[-1].kind == "op" or "/" in map(text_of, inside))
    return end + 1 if kinds <= _SUBSCRIPT_KINDS and (is_mark or "word" in kinds or "rel" in kinds) else 0


def _with_negated_relations(tokens: list[Lexeme]) -> list[Lexeme]:
    r"""Return the tokens with `\not` and the relation after it as one: `!=` for \not=, `notin` for \not\in."""
    joined: list[Lexeme] = []
    for token in tokens:
        if token.kind == "rel" and joined and joined[-1][:2] == ("cmd", "not"):
            joined[-1] = Lexeme("rel", _NEGATED.get(token.text, f"not {token.text}"), joined[-1].spaced)
        else:
            joined.append(token)
    return joined


def _with_reversed_brackets(tokens: list[Lexeme]) -> list[Lexeme]:
    """Return the tokens with the brackets of `]0,1[` as an opening and a closing one.

    The tokens next to a bracket show which of the two it is.
    """
    turned = tokens.copy()
    for index, token in enumerate(tokens):
        before = tokens[index - 1].kind if index else "start"
        behind = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.kind == "close" and token.text == "]" and (before in _NO_OPERAND or _joins_sets(tokens[index - 1])):
            turned[index] = token._replace(kind="open")
        elif token.kind == "open" and token.text == "[" and before in _OPERAND_ENDS and _ends_set(behind):
            turned[index] = token._replace(kind="close")
    return turned


def _ends_set(behind: Lexeme | None) -> bool:
    return behind is None or behind.kind in _NO_OPERAND or behind.kind == "close" or _joins_sets(behind)


def _joins_sets(token: Lexeme) -> bool:
    return token.kind == "op" and token.text in ("cup", "cap", "minus")


def _without_idle_gaps(tokens: list[Lexeme]) -> list[Lexeme]:
    """Return the tokens without wide blanks next to a token that separates or connects. Other wide blanks separate."""
    kept: list[Lexeme] = []
    for token, following in zip(tokens, [*tokens[1:], Lexeme("close", "", False)], strict=True):
        before = kept[-1].kind if kept else "open"
        idle = before in _CONNECTING or before == "open" or following.kind in _CONNECTING or following.kind == "close"
        if token.kind != "gap" or not idle:
            kept.append(token)
    return kept


class _Scanner:
    """Adds the tokens of one text to a list.

    level: 0 for a whole text, and the number of nested text commands for the content of a text command.
    """

    __slots__ = ("brackets", "group_digits", "level", "text", "tokens")

    def __init__(self, text: str, tokens: list[Lexeme], group_digits: bool, level: int) -> None:
        self.text = text
        self.tokens = tokens
        self.group_digits = group_digits
        self.level = level
        self.brackets: list[str] = []

    def run(self) -> None:
        """Add all tokens. Most characters are marks and digits, which are added without the pattern `_TOKEN`."""
        text, add, brackets = self.text, self.tokens.append, self.brackets
        spaced = self.level > 0
        position, end = 0, len(text)
        while position < end:
            c = text[position]
            if c in _MARKS:
                add(_MARKS[c][spaced])
                position += 1
            elif c in _OPENERS:
                add(_OPENERS[c][spaced])
                brackets.append(c)
                position += 1
            elif c in _CLOSERS:
                add(_CLOSERS[c][spaced])
                if brackets:
                    brackets.pop()
                position += 1
            elif c == " ":
                position += 1
                spaced = True
                continue
            elif c in _DIGIT and (integer := INTEGER.match(text, position)) is not None:
                add(integer_token(integer.group(), spaced))
                position = integer.end()
            else:
                position, spaced = self._add_match(position, spaced)
                continue
            spaced = False

    def _add_match(self, position: int, spaced: bool) -> tuple[int, bool]:
        """Add the tokens that begin at `position`. Return the next position, and whether a blank precedes it."""
        match = _TOKEN.match(self.text, position)
        assert match is not None
        kind, text, position = match.lastgroup, match.group(), match.end()
        if kind == "letters":
            self._add_letters(text, spaced, position)
        elif kind == "command":
            position = self._add_command(text[1:], position, spaced)
        elif kind == "space":
            if text.count("\n") > 1:
                self.tokens.append(plain_token("gap", "", True))
            return position, True
        elif kind in ("number", "exponent"):
            separates = not self.group_digits or (bool(self.brackets) and self.brackets[-1] != "{")
            token, position = number_token(match, spaced, separates)
            self.tokens.append(token)
        elif kind == "repeating":
            self.tokens.append(repeating_token(text, spaced))
        elif kind == "relation":
            self.tokens.append(plain_token("rel", RELATIONS.get(text, text), spaced))
        elif kind == "foreign":
            self.tokens.append(plain_token(*FOREIGN_CONNECTIVES.get(text, ("word", text)), spaced))
        elif kind == "escape":
            self._add_escape(text[1], spaced)
        elif text == "~" and self._may_negate(position):
            self.tokens.append(plain_token(*_NEGATION, spaced))
        else:
            self._add_other(text, spaced)
        return position, False

    def _add_letters(self, run: str, spaced: bool, end: int) -> None:
        if self.level:
            add_word(run, spaced, self.tokens)
        elif run[:-1] in FUNCTIONS and _COUNTS.match(self.text, end) is not None:
            self.tokens.append(plain_token("word", run, spaced))
        elif self.text.startswith("^", end) and run.lower() in STOP_WORDS:
            # The `be` of `be^{2x}` is a product.
            self.tokens.extend(plain_token("name", c, spaced and not i) for i, c in enumerate(run))
        else:
            add_letters(run, spaced, self.tokens)

    def _add_command(self, name: str, position: int, spaced: bool) -> int:
        """Add the tokens of a command. Return the position after the command."""
        if (known := COMMAND_TOKENS.get(name)) is not None:
            known = _NEGATION if name == "sim" and self._may_negate(position) else known
            self.tokens.append(plain_token(*known, spaced))
        elif name in IGNORED:
            if name in ("left", "right") and self.text.startswith(".", position):
                position += 1
                if name == "right":
                    self._close_unseen(spaced)
        elif name in TEXT_COMMANDS:
            return self._add_text(name, position, spaced)
        elif name in ("begin", "end"):
            return self._add_environment(name, position, spaced)
        elif name not in TYPEFACES:
            if (start := _known_start(name)) is None:
                self.tokens.append(plain_token("cmd", name, spaced))
            else:
                position = self._add_command(start, position, spaced)
                add_letters(name[len(start) :], False, self.tokens)
        return position

    def _may_negate(self, position: int) -> bool:
        r"""Tell whether a tilde means `not`, as in `\sim p`, but not in `a \sim b` or `\sim 5`."""
        may_begin = not self.tokens or self.tokens[-1].kind in _BEFORE_NEGATION
        return may_begin and _LETTER_FOLLOWS.match(self.text, position) is not None

    def _close_unseen(self, spaced: bool) -> None:
        """Add the closing bracket that `\\right.` stands for. It closes the last bracket that was opened."""
        opened = next((token.text for token in reversed(self.tokens) if token.kind == "open"), None)
        if opened is not None:
            self.tokens.append(plain_token("close", opened, spaced))

    def _add_text(self, name: str, position: int, spaced: bool) -> int:
        """Add the tokens of a text command. Return the position after it."""
        text, tokens = self.text, self.tokens
        while text[position : position + 1].isspace():
            position += 1
        if not text.startswith("{", position):
            return position
        end = matching_brace(text, position)
        if end < 0:
            raise UnreadableAnswer(f"\\{name} is never closed")
        if self.level >= MAX_DEPTH:
            raise TooLarge(f"text commands nested more than {MAX_DEPTH} deep")
        inner = text[position + 1 : end]
        if name == "operatorname" and (operator := OPERATORS.get(inner.strip())) is not None:
            tokens.append(plain_token("func", operator, spaced))
            return end + 1
        before = len(tokens)
        _Scanner(inner, tokens, self.group_digits, self.level + 1).run()
        if len(tokens) > before and not spaced and not inner[:1].isspace():
            tokens[before] = tokens[before]._replace(spaced=False)
        return end + 1

    def _add_environment(self, name: str, position: int, spaced: bool) -> int:
        """Add the token of `\\begin` or `\\end`. Return the position after its arguments."""
        if (match := _ENVIRONMENT.match(self.text, position)) is None:
            raise UnreadableAnswer(f"\\{name} without the name of an environment")
        environment, position = match.group(1).rstrip("*"), match.end()
        self.tokens.append(plain_token(name, environment, spaced))
        if name == "begin" and environment in MATRIX_ENVIRONMENTS:
            if columns := _COLUMNS.match(self.text, position):
                position = columns.end()
            if environment in ("array", "tabular") and self.text[position:].lstrip().startswith("{"):
                position = self.text.index("{", position)
                closing = matching_brace(self.text, position)
                position = closing + 1 if closing > 0 else position
        return position

    def _add_escape(self, mark: str, spaced: bool) -> None:
        """Add the token of a backslash and a character that is not a letter."""
        if mark == "{":
            self.brackets.append("\\{")
            self.tokens.append(plain_token("open", "{", spaced))
        elif mark == "}":
            if self.brackets:
                self.brackets.pop()
            self.tokens.append(plain_token("close", "{", spaced))
        elif mark in _ESCAPES:
            self.tokens.append(plain_token(*_ESCAPES[mark], spaced))
        elif mark not in _IDLE_ESCAPES:
            raise UnreadableAnswer(f"the unknown command \\{mark}")

    def _add_other(self, mark: str, spaced: bool) -> None:
        if mark in ".!":
            self.tokens.append(plain_token("op", mark, spaced))
        elif mark in _MONEY:
            self.tokens.append(plain_token("money", _MONEY[mark], spaced))
        elif unit_of(mark) is not None:
            self.tokens.append(plain_token("word", mark, spaced))
        elif mark not in '~"':
            raise UnreadableAnswer(f"the unknown character {mark!r}")


def _known_start(name: str) -> str | None:
    """Return the known command at the start of a longer name: `quad` for `\\quadx`, `pi` for `\\pir`."""
    if name in COMMANDS:
        return None
    return next((name[:-cut] for cut in (1, 2) if name[:-cut] in COMMANDS and len(name) - cut > 1), None)
