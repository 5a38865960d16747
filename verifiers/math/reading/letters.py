"""From a run of letters to tokens: the lexer's main question.

`xy` is a product of two variables, `sin` a function, `sinx` a function and a variable, `pi` a constant, `hours` a word.
Text commands hold words only: the `m` of `5\\text{ m}` is no variable.
"""

from __future__ import annotations

from truegold.verifiers.math.measures import MULTIPLIERS, UNITS
from truegold.verifiers.math.reading.names import (
    CANONICAL_GREEK,
    CONSTANTS,
    FUNCTIONS,
    GREEK_NAMES,
    STOP_WORDS,
)
from truegold.verifiers.math.reading.tokens import Token, plain_token
from truegold.verifiers.written_numbers import BELOW_HUNDRED

MAX_VARIABLES_IN_A_RUN = 3
"""`xyz` is a product; longer runs of letters that no list knows are words."""

MAX_FUNCTION_LETTERS = 6

_CONNECTIVES = {"or": "or", "and": "and", "oder": "or", "und": "and"}
FOREIGN_CONNECTIVES = {
    **dict.fromkeys(("или", "또는", "または", "أو", "या"), ("sep", "or")), "и": ("sep", "and"),
}  # fmt: skip
_TEXT_FUNCTIONS = {
    name: FUNCTIONS[name] for name in FUNCTIONS.keys() - {
        "max", "min", "sign", "floor", "ceil", "ceiling", "abs", "Abs", "choose", "comb", "perm", "factorial", "det",
        "Re", "Im", "sec",
    }
} | {"sh": "sinh", "ch": "cosh", "th": "tanh", "cth": "coth"}  # fmt: skip
"""Functions in a text command. `sec` is a second there, and `max` a word."""
_TEXT_SYMBOLS = {"pi": ("const", "pi"), "infty": ("const", "inf"), "circ": ("op", "∘")}
"""What is left of `\\pi` and `\\circ` where a program took them for words."""
_COMMON_WORDS = frozenset({
    "no", "not", "yes", "true", "false", "none", "all", "any", "for", "if", "then", "when", "where", "with", "mod",
    "per", "the", "both", "neither", "either", "even", "odd", "one", "by", "to", "from", "on", "at", "only", "also",
    "so", "we", "get", "but", "max", "min", "let", "has", "have", "am", "pm", "st", "nd", "rd", "th",
})  # fmt: skip
_WORDS = _COMMON_WORDS | BELOW_HUNDRED.keys() | MULTIPLIERS.keys() | STOP_WORDS | UNITS.keys()
_CURRENCIES = frozenset({"USD", "EUR", "GBP", "CNY", "RMB", "INR"})
_VALUE_ENDS = frozenset({"num", "close", "unbrace"})


def add_letters(run: str, spaced: bool, tokens: list[Token]) -> None:
    """Add the tokens of a run of letters outside of text commands."""
    if len(run) == 1:
        tokens.append(plain_token("name", run, spaced))
        return
    lower = run.lower()
    if lower == "et" and spaced and tokens and tokens[-1].kind in _VALUE_ENDS:
        tokens.append(plain_token("sep", "and", spaced))  # Otherwise it is e times t.
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


def add_word(run: str, spaced: bool, tokens: list[Token]) -> None:
    """Add the token of a run of letters inside of a text command."""
    lower = run.lower()
    if lower in _CONNECTIVES:
        tokens.append(plain_token("sep", _CONNECTIVES[lower], spaced))
    elif run in _TEXT_FUNCTIONS:
        tokens.append(plain_token("func", _TEXT_FUNCTIONS[run], spaced))
    else:
        tokens.append(plain_token(*_TEXT_SYMBOLS.get(run, ("word", run)), spaced))


def _is_word(run: str, lower: str) -> bool:
    """Tell whether a run is a word like `cm` and `hours`; ABC are points, and IN is a product."""
    if len(run) == MAX_VARIABLES_IN_A_RUN and run.istitle() and run[1] in "aeiou" and lower not in FUNCTIONS:
        return True  # A name, as Ben and Tom are.
    if run.isupper() and len(run) <= MAX_VARIABLES_IN_A_RUN:
        return run in _CURRENCIES
    return lower in _WORDS or run in UNITS


def _add_parts(run: str, spaced: bool, tokens: list[Token]) -> bool:
    """Add the parts of `sinx`, `piR`, `xyz` or the `orx` behind a value; return False for any other run."""
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
