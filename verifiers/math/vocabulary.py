r"""Words, commands of LaTeX and signs that the reader of mathematical answers knows, as `vocabulary.toml` lists them.

Units are in `measures`, number words in `written_numbers`. `COMMANDS` also serves to tell `\\frac`, a command whose
backslash was doubled, from `\\x`, the start of a row.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files

_TABLES = tomllib.loads(files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8"))

WORDS: dict[str, frozenset[str]] = {name: frozenset(words.split()) for name, words in _TABLES["words"].items()}

ANY_OF = {name: "|".join(alternatives) for name, alternatives in _TABLES["patterns"].items()}
"""Alternatives of patterns, by what they tell."""


def spellings(table: dict[str, str | list[str]]) -> dict[str, str]:
    """Return the meaning of each spelling that a table lists behind its meaning."""
    return {
        spelling: meaning
        for meaning, listed in table.items()
        for spelling in (listed.split() if isinstance(listed, str) else listed)
    }


GREEK: dict[str, str] = _TABLES["greek"]
CANONICAL_GREEK = spellings(_TABLES["greek_variants"])
GREEK_NAMES = frozenset(GREEK) | CANONICAL_GREEK.keys() | {"ell", "hbar"}
FUNCTIONS = {name: name for name in WORDS["functions"]} | spellings(_TABLES["functions"])
"""The name of each function by its spellings."""
TEXT_FUNCTIONS = {name: FUNCTIONS[name] for name in FUNCTIONS.keys() - WORDS["no_text_functions"]} | {
    "sh": "sinh", "ch": "cosh", "th": "tanh", "cth": "coth",
}  # fmt: skip
"""Functions in a text command."""
OPERATORS = FUNCTIONS | spellings(_TABLES["command_tokens"]["func"])
"""Functions in `\\operatorname`, which are not words in plain letters."""
CONSTANTS = spellings(_TABLES["constants"])
RELATIONS = spellings(_TABLES["relations"])
"""The relations by symbol or command."""
IGNORED, TYPEFACES, TEXT_COMMANDS = WORDS["ignored"], WORDS["typefaces"], WORDS["text_commands"]
MATRIX_ENVIRONMENTS, LINE_ENVIRONMENTS = WORDS["matrix_environments"], WORDS["line_environments"]
_BIG_OPERATORS = spellings(_TABLES["big_operators"])
COMMANDS = frozenset[str]().union(
    filter(str.isalpha, RELATIONS), GREEK_NAMES, FUNCTIONS, _BIG_OPERATORS, WORDS["fractions"], WORDS["binomials"],
    TEXT_COMMANDS, TYPEFACES, IGNORED, WORDS["other_commands"], spellings(_TABLES["command_tokens"]["accent"]),
)  # fmt: skip
"""Every command that the reader does something with."""

_COMMAND_FAMILIES: dict[str, tuple[str, str]] = {
    **{name: ("big", text) for name, text in _BIG_OPERATORS.items()},
    **{name: ("name", CANONICAL_GREEK.get(name, name)) for name in GREEK_NAMES},
    **{name: ("rel", text) for name, text in RELATIONS.items()},
    **{name: ("const", text) for name, text in CONSTANTS.items()},
    **{name: ("func", text) for name, text in FUNCTIONS.items()},
    **dict.fromkeys(WORDS["binomials"], ("cmd", "binom")),
    **dict.fromkeys(WORDS["fractions"], ("cmd", "frac")),
}
"""The later lines win: `pi` is a constant rather than a letter."""
COMMAND_TOKENS: dict[str, tuple[str, str]] = {
    **{name: token for name, token in _COMMAND_FAMILIES.items() if name not in IGNORED},
    **{
        name: (kind, text)
        for kind, table in _TABLES["command_tokens"].items()
        for name, text in spellings(table).items()
    },
}
"""The kind and the text of the token that a command of LaTeX is, for commands that are one token."""

STOP_WORDS = WORDS["stop"]
"""Words that do not count when two phrases are compared."""
FORMULAS = {name.replace(" ", ""): formula for formula, names in _TABLES["formulas"].items() for name in names}
"""The formula of a substance by its name, without blanks."""
ELEMENTS = {symbol: protons for protons, symbol in enumerate(_TABLES["words"]["elements"].split(), 1)}
"""The number of protons by the symbol of an element."""
ELEMENT_NAMES = dict(zip(_TABLES["words"]["element_names"].split(), ELEMENTS, strict=True)) | {
    "aluminum": "Al", "cesium": "Cs", "sulphur": "S",
}  # fmt: skip
"""The symbol of an element by its name."""
NAMED_WORDS = spellings(_TABLES["values"])
"""The name of a value by the words for it."""
MARKS_OF_TRUTH = {mark: name for mark, name in NAMED_WORDS.items() if len(mark) == 1 and not mark.isalpha()}
"""Whether a mark that stands alone says yes or no: ✓, ×."""
SIGNS = {sign: text for text, signs in _TABLES["signs"].items() for sign in signs} | {
    letter: rf"\{name} " for name, letter in GREEK.items()
}
"""The text that is read in place of a character, by the character."""
BOUNDS, LABELS = spellings(_TABLES["bounds"]), spellings(_TABLES["labels"])
HALVES_OF_DAY = spellings(_TABLES["halves_of_day"])
HIDDEN_ARGUMENTS: dict[str, int] = _TABLES["hidden_arguments"]
MONTHS, WEEKDAYS = _TABLES["words"]["months"].split(), _TABLES["words"]["weekdays"].split()
DAMAGED: dict[str, str] = _TABLES["damaged"]
"""Patterns of what a letter of a command has become, by the letter."""
HTML: dict[str, str] = _TABLES["html"]
SYMPY_NAMES, INVERSES = spellings(_TABLES["sympy_names"]), spellings(_TABLES["inverses"])
HALVES_OF_CLOCK, PLAIN_COMMANDS = spellings(_TABLES["halves_of_clock"]), spellings(_TABLES["plain_commands"])
EXCLUSIVE = {
    index: (group, kind)
    for group, kinds in enumerate(_TABLES["exclusive"]["groups"])
    for kind, indices in enumerate(kinds)
    for index in indices.split()
}
"""The group of indices that exclude each other, and which of them an index is, by the index."""
DIRECTIONS = spellings(_TABLES["directions"])
"""The directions by the words that name them."""
BEARINGS: dict[str, int] = {word: int(angle) for word, angle in spellings(_TABLES["bearings"]).items()}
"""The bearings in degrees from the east, against the clock, by their words."""
OPPOSITES = {
    word: (axis, side)
    for axis, pair in enumerate(_TABLES["opposites"]["pairs"])
    for side, words in zip((1, -1), pair, strict=True)
    for word in words.split()
}
"""The pair of opposites that a word belongs to, and its side in the pair, by the word."""
