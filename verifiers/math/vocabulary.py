r"""Lookup tables of words, LaTeX commands and signs for the reader of mathematical answers, from `vocabulary.toml`.

    RELATIONS["leq"]           "<="
    MONTHS[0]                  "january"
    HALVES_OF_DAY["下午"]       "pm"

Units are in `measures`, number words in `written_numbers`.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files

_TABLES = tomllib.loads(files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8"))

WORDS: dict[str, frozenset[str]] = {name: frozenset(words.split()) for name, words in _TABLES["words"].items()}
"""Maps the name of a list in `[words]` to its words."""

ANY_OF = {name: "|".join(alternatives) for name, alternatives in _TABLES["patterns"].items()}
"""Maps the name of a list in `[patterns]` to a regular expression that matches any entry of the list."""


def spellings(table: dict[str, str | list[str]]) -> dict[str, str]:
    """Return a table from spelling to meaning: `{"cot": "ctg cotg"}` becomes `{"ctg": "cot", "cotg": "cot"}`."""
    return {
        spelling: meaning
        for meaning, listed in table.items()
        for spelling in (listed.split() if isinstance(listed, str) else listed)
    }


GREEK: dict[str, str] = _TABLES["greek"]
"""Maps the command of a Greek letter to the letter: `alpha` to α."""
CANONICAL_GREEK = spellings(_TABLES["greek_variants"])
"""Maps a variant of a Greek letter to its plain name: `varphi` to `phi`."""
GREEK_NAMES = frozenset(GREEK) | CANONICAL_GREEK.keys() | {"ell", "hbar"}
"""Commands of Greek letters and of the letters ell and hbar."""
FUNCTIONS = {name: name for name in WORDS["functions"]} | spellings(_TABLES["functions"])
"""Maps each spelling of a function to its name: `tg` to `tan`."""
TEXT_FUNCTIONS = {name: FUNCTIONS[name] for name in FUNCTIONS.keys() - WORDS["no_text_functions"]} | {
    "sh": "sinh", "ch": "cosh", "th": "tanh", "cth": "coth",
}  # fmt: skip
"""Maps the spelling of a function in a text command, as in `\\text{sin}`, to its name."""
OPERATORS = FUNCTIONS | spellings(_TABLES["command_tokens"]["func"])
"""Maps the spelling of a function in `\\operatorname{...}` to its name. `rank` and others are functions only there."""
CONSTANTS = spellings(_TABLES["constants"])
"""Maps each spelling of a constant to its name: `infty` to `inf`."""
RELATIONS = spellings(_TABLES["relations"])
"""Maps a symbol or command to its relation: `lt` to <."""
IGNORED, TYPEFACES, TEXT_COMMANDS = WORDS["ignored"], WORDS["typefaces"], WORDS["text_commands"]
"""`IGNORED` commands have no meaning, `TYPEFACES` only change the look of an argument, `TEXT_COMMANDS` hold words."""
MATRIX_ENVIRONMENTS, LINE_ENVIRONMENTS = WORDS["matrix_environments"], WORDS["line_environments"]
"""Environments that lay out a matrix, such as `pmatrix`, and environments that lay out lines, such as `aligned`."""
_BIG_OPERATORS = spellings(_TABLES["big_operators"])
"""Maps the command of a sum, product, integral or limit to its kind: `iint` to `int2`."""
COMMANDS = frozenset[str]().union(
    filter(str.isalpha, RELATIONS), GREEK_NAMES, FUNCTIONS, _BIG_OPERATORS, WORDS["fractions"], WORDS["binomials"],
    TEXT_COMMANDS, TYPEFACES, IGNORED, WORDS["other_commands"], spellings(_TABLES["command_tokens"]["accent"]),
)  # fmt: skip
"""All commands that the reader knows. They tell a doubled backslash (`\\\\frac`) from a new row (`\\\\x`)."""

_COMMAND_FAMILIES: dict[str, tuple[str, str]] = {
    **{name: ("big", text) for name, text in _BIG_OPERATORS.items()},
    **{name: ("name", CANONICAL_GREEK.get(name, name)) for name in GREEK_NAMES},
    **{name: ("rel", text) for name, text in RELATIONS.items()},
    **{name: ("const", text) for name, text in CONSTANTS.items()},
    **{name: ("func", text) for name, text in FUNCTIONS.items()},
    **dict.fromkeys(WORDS["binomials"], ("cmd", "binom")),
    **dict.fromkeys(WORDS["fractions"], ("cmd", "frac")),
}
"""Maps a command to the kind and the text of its token. Later lines win: `pi` is a constant rather than a letter."""
COMMAND_TOKENS: dict[str, tuple[str, str]] = {
    **{name: token for name, token in _COMMAND_FAMILIES.items() if name not in IGNORED},
    **{
        name: (kind, text)
        for kind, table in _TABLES["command_tokens"].items()
        for name, text in spellings(table).items()
    },
}
"""Maps a command that makes one token to the kind and the text of that token."""

STOP_WORDS = WORDS["stop"]
"""Words that are ignored when two phrases are compared."""
FORMULAS = {name.replace(" ", ""): formula for formula, names in _TABLES["formulas"].items() for name in names}
"""Maps the name of a substance, without blanks, to its formula: `carbondioxide` to CO2."""
ELEMENTS = {symbol: protons for protons, symbol in enumerate(_TABLES["words"]["elements"].split(), 1)}
"""Maps the symbol of an element to its number of protons."""
ELEMENT_NAMES = dict(zip(_TABLES["words"]["element_names"].split(), ELEMENTS, strict=True)) | {
    "aluminum": "Al", "cesium": "Cs", "sulphur": "S",
}  # fmt: skip
"""Maps the name of an element to its symbol."""
NAMED_WORDS = spellings(_TABLES["values"])
"""Maps a phrase for a value to the name of the value: `no solution` to `empty`."""
MARKS_OF_TRUTH = {mark: name for mark, name in NAMED_WORDS.items() if len(mark) == 1 and not mark.isalpha()}
"""Maps a mark that may be a whole answer, such as ✓ or ×, to its truth value."""
SIGNS = {sign: text for text, signs in _TABLES["signs"].items() for sign in signs} | {
    letter: rf"\{name} " for name, letter in GREEK.items()
}
"""Maps a character to the text that is read in its place: ≤ to `\\le`, α to `\\alpha`."""
BOUNDS, LABELS = spellings(_TABLES["bounds"]), spellings(_TABLES["labels"])
"""`BOUNDS` maps a phrase before a bound to its relation (`at least` to `\\ge`). `LABELS` maps a label to its short form
(`minimum` to `min`)."""
HALVES_OF_DAY = spellings(_TABLES["halves_of_day"])
"""Maps a Chinese word for a part of the day to `am` or `pm`."""
HIDDEN_ARGUMENTS: dict[str, int] = _TABLES["hidden_arguments"]
"""Maps a command to the number of its leading arguments that only set the look: 1 for `color`."""
MONTHS, WEEKDAYS = _TABLES["words"]["months"].split(), _TABLES["words"]["weekdays"].split()
"""English names of the months and of the days of the week, in order."""
DAMAGED: dict[str, str] = _TABLES["damaged"]
"""Maps the first letter of damaged commands to a pattern: the `\\t` of `\\text` may have become a tab."""
HTML: dict[str, str] = _TABLES["html"]
"""Maps a pattern of HTML to its replacement."""
SYMPY_NAMES, INVERSES = spellings(_TABLES["sympy_names"]), spellings(_TABLES["inverses"])
"""`SYMPY_NAMES` maps a function to its name in sympy (`arcsin` to `asin`), `INVERSES` to its inverse."""
HALVES_OF_CLOCK, PLAIN_COMMANDS = spellings(_TABLES["halves_of_clock"]), spellings(_TABLES["plain_commands"])
"""`HALVES_OF_CLOCK` maps the letters after an hour to a part of the day (`inthemorning` to `am`). `PLAIN_COMMANDS` maps
a command to its plain spelling (`\\dfrac` to `\\frac`)."""
EXCLUSIVE = {
    index: (group, kind)
    for group, kinds in enumerate(_TABLES["exclusive"]["groups"])
    for kind, indices in enumerate(kinds)
    for index in indices.split()
}
"""Maps a subscript to two numbers, its group and its meaning within the group: `x` to (0, 0) and `y` to (0, 1).

Subscripts of one group with different meanings exclude each other: F_x is not F_y."""
DIRECTIONS = spellings(_TABLES["directions"])
"""Maps a word for a direction to the direction."""
BEARINGS: dict[str, int] = {word: int(angle) for word, angle in spellings(_TABLES["bearings"]).items()}
"""Maps a word for a bearing to its angle in degrees, counterclockwise from east."""
OPPOSITES = {
    word: (axis, side)
    for axis, pair in enumerate(_TABLES["opposites"]["pairs"])
    for side, words in zip((1, -1), pair, strict=True)
    for word in words.split()
}
"""Maps a word to a pair of opposites, by number, and to its side in this pair: 1 or -1."""
