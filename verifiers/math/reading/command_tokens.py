"""Commands of LaTeX that are one token: `COMMAND_TOKENS` maps a name to the token's kind and text.

Not covered: those that take text (`text`, `begin`), those that say nothing (`left`, `mathbf`), and unknown ones.
"""

from __future__ import annotations

from truegold.verifiers.math.reading.names import (
    BIG,
    BINOMIALS,
    CANONICAL_GREEK,
    CONSTANTS,
    FRACTIONS,
    FUNCTIONS,
    GREEK_NAMES,
    IGNORED,
    RELATIONS,
)

_SYMBOLS = {
    "lor": ("sep", "or"), "vee": ("sep", "or"), "land": ("sep", "and"), "wedge": ("sep", "and"),
    "quad": ("gap", ""), "qquad": ("gap", ""), "newline": ("gap", ""), "blank": ("gap", ""), "par": ("gap", ""),
    "cdot": ("op", "*"), "times": ("op", "*"), "ast": ("op", "*"), "div": ("op", "/"), "over": ("op", "over"),
    "pm": ("op", "±"), "mp": ("op", "∓"), "colon": ("op", ":"), "prime": ("op", "'"),
    "degree": ("op", "°"), "textdegree": ("op", "°"), "circ": ("op", "∘"), "textcirc": ("op", "∘"),
    "cup": ("op", "cup"), "cupdot": ("op", "cup"), "bigcup": ("op", "cup"), "sqcup": ("op", "cup"),
    "cap": ("op", "cap"), "setminus": ("op", "minus"), "backslash": ("op", "minus"), "smallsetminus": ("op", "minus"),
    "langle": ("open", "<"), "rangle": ("close", ">"), "lfloor": ("open", "floor"), "rfloor": ("close", "floor"),
    "lceil": ("open", "ceil"), "rceil": ("close", "ceil"), "lbrace": ("open", "{"), "rbrace": ("close", "{"),
    "lparen": ("open", "("), "rparen": ("close", ")"), "lbrack": ("open", "["), "rbrack": ("close", "]"),
    "lvert": ("bar", "|"), "rvert": ("bar", "|"), "vert": ("bar", "|"), "mid": ("bar", "|"), "Vert": ("bar", "||"),
    "gets": ("rel", "to"), "sqrt": ("cmd", "sqrt"), "mathbb": ("cmd", "mathbb"), "Bbb": ("cmd", "mathbb"),
}  # fmt: skip

_FAMILIES: dict[str, tuple[str, str]] = {
    **{name: ("big", text) for name, text in BIG.items()},
    **{name: ("name", CANONICAL_GREEK.get(name, name)) for name in GREEK_NAMES},
    **{name: ("rel", text) for name, text in RELATIONS.items()},
    **{name: ("const", text) for name, text in CONSTANTS.items()},
    **{name: ("func", text) for name, text in FUNCTIONS.items()},
    **dict.fromkeys(BINOMIALS, ("cmd", "binom")),
    **dict.fromkeys(FRACTIONS, ("cmd", "frac")),
}
"""The later lines win: `pi` is the constant before it is a letter."""

COMMAND_TOKENS: dict[str, tuple[str, str]] = {
    **{name: token for name, token in _FAMILIES.items() if name not in IGNORED},
    **_SYMBOLS,
}
