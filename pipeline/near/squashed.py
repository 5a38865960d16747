r"""Finds texts that contain an evaluation item (a problem of a test set) letter for letter, in any layout.

Texts are compared in a squashed form, without layout. `SquashedItems` finds items within texts. `SquashedKeys` pairs
texts that are equal as a whole.

    an item     "A triangle has sides of 3 cm, 4 cm and 5 cm. What is its two-digit area?"
    squashed    atrianglehassidesof#3#cm#4#cmand#5#cmwhatisitstwodigitarea
    a text      "A tri-\nangle  has **sides** of 3 cm, 4 cm and 5&nbsp;cm. Whаt is its two digit area?"
    squashed    the same bytes, although one а of the text is Cyrillic

Squashing removes spaces, line ends, punctuation, markup, case and hyphens between words. A search for leaked items also
removes accents. Cyrillic letters that look like Latin letters are replaced, and so are such Greek letters within a
word. Letters, numbers and mathematical signs are kept, each in one spelling: `10⁵` becomes `10^{5}`, and `1 2` stays
different from `12`. Items and texts are squashed in the same way, so texts in Cyrillic or Greek can be compared, too.

Texts with the same letters and digits but different signs are different problems (`differ_in_signs`).

Each item is represented by one window of WINDOW bytes. Texts that contain this window are searched for the whole item.
Texts are not stored. A hit is the number of a text and the number of an item.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from html import unescape
from itertools import groupby
from pathlib import Path

import numpy as np
import polars as pl

from truegold.pipeline.near.arrays import Growing, Hashes, Ints, Marks, OnDisk, run_starts
from truegold.pipeline.near.exact_copies import change_marked, mark_mega
from truegold.pipeline.text.encodings import CYRILLIC, GREEK

WINDOW = 32
"""The number of bytes of a window, a power of two."""
BATCH = 10_000
"""The number of texts that are squashed at a time."""
WINDOWS = 8
"""The number of windows of an item from which the rarest window is chosen."""
LEAST_BYTES = 40
"""Squashed items of fewer bytes are not searched for. A text may contain such an item by chance."""
CHUNK_TEXTS = 1_000
"""The number of texts whose windows are hashed at a time."""
PAIRED_IN_FULL = 32
"""In a group of at most this number of equal texts, every text is paired with every other. In a larger group, each text
is paired with the first only."""
FILTER_BITS = 18
"""The prefilter, a quick test of windows, has 2**FILTER_BITS slots. Few windows of texts pass by chance."""

_SIGNS = {
    **dict.fromkeys("‐‑‒–—―−", "-"),
    **dict.fromkeys("’′", "'"),
    **{"″": "''", "‴": "'''", "∶": ":", "∣": "|", "⋅": "·", "∙": "·", "≠": "<>", "≤": "<=", "≥": ">=", "÷": "/"},
    **{"°": " degrees ", "△": "triangle"},
}
"""Signs of several spellings, each with the spelling that is compared."""
_GREEK_SIGNS = "αρκυχντηγ"
"""Greek letters that look like Latin letters. Standing alone, they are symbols."""
_TO_ASCII = str.maketrans(
    CYRILLIC | {greek: latin for greek, latin in GREEK.items() if greek not in _GREEK_SIGNS} | _SIGNS
)
_GREEK_TO_LATIN = str.maketrans(GREEK)
_GREEK_IN_WORD = re.compile(rf"(?i)\b(?!(?:sin|cos|tan|cot|sec|csc|log|ln)[{_GREEK_SIGNS}]\b)[a-z{_GREEK_SIGNS}]{{3,}}")
"""A word in which Greek letters replace Latin ones; not "2αx" or "sinα"."""
_RAISED_RUN = re.compile("[⁰¹²³⁴-ⁿⁱ]+")
"""A run of superscript digits and signs: `10⁵` becomes `10^{5}`."""
_LOWERED_RUN = re.compile("[₀-₉]+")
"""A run of subscript digits: `x₁` becomes `x_1`."""
_MARKED_UP = r"&#?\w+;|</?[A-Za-z]"
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9]{0,10}(?:\s[^<>]{0,200})?/?>")
_SUPERSCRIPT = re.compile(r"(?i)<sup>([^<>]{1,20})</sup>")
"""A superscript in HTML: `10<sup>5</sup>` becomes `10^{5}`."""
_LATEX = (
    (r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|limits|q?quad|[lc]?dots[bcmio]?)(?-u:\b)", " "),
    (r"\\times(?-u:\b)", "×"),
    (r"\\(?:cdot|ast)(?-u:\b)", "·"),
    (r"\\(?:mid|[lr]?vert)(?-u:\b)", "|"),
    (r"\\prime(?-u:\b)", "'"),
    (r"\^\s*\{?\s*('(?:\s*')*)\s*\}?", "${1}"),
    (r"\\(?:begin|end)\s*\{(?:align|equation|gather|split)\*?\}|\\[,;:! ()\[\]]|\$", " "),
    (
        r"\\(?:text|math)(?:rm|bf|it|sf|tt|cal|bb)?\s*\{([^{}]*)\}|\\(?:operatorname|mbox|boldsymbol)\s*\{([^{}]*)\}",
        " ${1}${2} ",
    ),
    (r"\\[dtc]frac", r"\frac"),
    (r"\\frac\s*(?:\{\s*(\d+|[a-z])\s*\}|(\w))\s*(?:\{\s*(\d+|[a-z])\s*\}|(\w))", " ${1}${2}/${3}${4} "),
    (r"\^\s*\{?\s*\\circ\s*\}?|\\degree(?-u:\b)", " degrees "),
    (r"\\(?:leqslant|leq?)(?-u:\b)", "<="),
    (r"\\(?:geqslant|geq?)(?-u:\b)", ">="),
    (r"\\neq?(?-u:\b)", "<>"),
    (r"\\div(?-u:\b)", "/"),
)
"""Patterns of LaTeX commands, each with its replacement in plain text."""
_SYMBOLS = {
    f"\\{name}": symbol
    for name, symbol in (
        pair.split()
        for pair in (
            "alpha α,beta β,gamma γ,delta δ,varepsilon ε,epsilon ε,zeta ζ,eta η,vartheta θ,theta θ,iota i,kappa κ"
            ",lambda λ,mu μ,nu ν,xi ξ,pi π,rho ρ,sigma σ,tau τ,upsilon υ,varphi φ,phi φ,chi χ,psi ψ,omega ω"
            ",sqrt √,infty ∞,angle ∠,lfloor ⌊,rfloor ⌋,lceil ⌈,rceil ⌉,neg ¬,lnot ¬,wedge ∧,land ∧,vee ∨,lor ∨"
            ",cup ∪,cap ∩,pm ±,mp ∓"
        ).split(",")
    )
}
_UNITS = (
    (r"(?-u:\b)centimet(?:er|re)s?(?-u:\b)", "cm"),
    (r"(?-u:\b)millimet(?:er|re)s?(?-u:\b)", "mm"),
    (r"(?-u:\b)kilomet(?:er|re)s?(?-u:\b)", "km"),
    (r"(?-u:\b)met(?:er|re)s?(?-u:\b)", "m"),
    (r"(?-u:\b)kilograms?(?-u:\b)", "kg"),
    (r"(?-u:\b)inch(?:es)?(?-u:\b)", "in"),
    (r"(?-u:\b)(?:feet|foot)(?-u:\b)", "ft"),
    (r"(?-u:\b)miles per hour(?-u:\b)", "mph"),
    (r"(?-u:\b)per ?cent(?-u:\b)", "%"),
)
"""Patterns of units that are spelled out, each with its short form."""
_UNIT = r"met(?:er|re)|kilogram|inch|feet|foot|miles per|per ?cent"
"""A quick test: matches every lower-case text with a unit of `_UNITS`."""
_BRACED = r"\{\s*(\d+|[a-z]?)\s*\}"
_OPERAND = r"\d|(?-u:\b)[a-z]{1,2}(?-u:\b)"
_BETWEEN_LETTERS = r"(?-u:\b)([a-z])\s*,\s*([a-z])(?-u:\b)"
_FORMULA: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (r"[{}]", ((_BRACED, " ${1} "),)),
    (r"(?-u:\b)[a-z]\s*,", ((_BETWEEN_LETTERS, "${1}\2${2}"),) * 2),
    (r"(?-u:\b)[a-z]'", ((r"((?-u:\b)[a-z]\x03*)'", "${1}\3"),) * 3),
    (
        "[~!]",
        (
            *[(r"([\d)\x04]|(?-u:\b)[a-z])!", "${1}\4")] * 2,
            (r"(^|[\s($,∧∨])[~!]\s?([a-z(])", "${1}¬${2}"),
        ),
    ),
    (r"[\da-z](?::| : )[\da-z]", ((rf"({_OPERAND})(?::| : )({_OPERAND})", "${1}\7${2}"),) * 2),
    (r"[×·*]|\d x \d", ((r"(\d)(?:\s*[×·*]\s*|\s+x\s+)(\d)", "${1}\6${2}"),) * 2),
    ("[×·]", ((r"(?:(\d)\s*[×·]|[×·]\s*(\d))", "${1} ${2}"),)),
    (r"=\s*(?:[?_(]|$)", ((r"=\s*(?:\?|_+|\(\s*\)|$)", " "),)),
)
"""Replacements in formulas. Each entry has a pattern that matches the texts to change, and its replacements.

Braces around a single sign are removed. "=?" at the end of a sum is removed, too. Signs with a meaning are kept as
control characters, so that these pairs stay different: f(x,y) and f(xy), f'(x) and f(x), 5! and 5, 2·3 and 23, a:b and
ab.
"""
_BROKEN = r"([a-z])-[ \t]*\n\s*([a-z])"
"""A word that is hyphenated at a line end, such as "kilo-" and "meter"."""
_VECTORS = r"\\vec|vector|overrightarrow|向量|mathbf|boldsymbol"
"""Matches a text about vectors. There, a · b may differ from a × b."""
_SEGMENTS = r"(?-u:\b)([A-Z]{2,3})\s*[-\u2212]\s*([A-Z]{2,3})(?-u:\b)"
"""A difference of segments or angles: "AB - CD". Between longer words, the sign is a hyphen."""
_HYPHEN = r"(\p{L}{2}|#)\s*-+\s*(\p{L}{2})"
_PARTED = (
    (r"([0-9]),([0-9]{3})(?-u:\b)", "${1}${2}"),
    (r"([0-9])\.([0-9])", "${1}\1${2}"),
    (r"[0-9\x01]+", "#${0}#"),
    (_HYPHEN, "${1}${2}"),
    (_HYPHEN, "${1}${2}"),
    (r"(?-u:\b)([a-z])\s*-([a-z]{4}|th(?-u:\b))", "${1}${2}"),
)
"""Replacements in a lower-case text, applied in order: grouping commas, decimal points, marks around numbers, and
hyphens (twice, for "dd-mm-yyyy")."""
FORM_REQUEST = (
    r"(?i)([.?!$\n)\]}])\s*\(?(?:please )?(?:express|enter|give|write|round|leave|state|provide|simplify|put|submit)"
    r" (?:your|the final|the answers?|all (?:possible |the )?(?:values|solutions|answers)|the solutions|answers?) ?"
    r"[^?]{0,200}$"
)
"""Matches a last sentence that requests a form of the answer: "Express your answer as a common fraction."."""
ANSWERS = ["answer", "solution", "value"]
"""A quick test: every text that FORM_REQUEST matches contains one of these strings."""
_END = "\0"
"""The separator between squashed texts."""
_KEPT_MINUS = bytes.maketrans(b"\5", b"-")
"""Turns the control character \\5 back into a minus. \\5 stands for the minus of `_SEGMENTS` while hyphens are
removed."""
_IDLE = bytes(code for code in range(9, 128) if not chr(code).isalnum() and chr(code) not in "#()+-/<=>[]^{|}%")
"""ASCII characters that are removed. NUL (between texts) and characters 1 to 8 (marks in numbers and formulas) stay."""
_IDLE_BEYOND_ASCII = re.compile("[^\\w\x00-\x7f\u0300-\u036f¬·±×÷⁄⁺-⁼₊-₌←-⇿∀-⋿⌈-⌋⟀-⟯⦀-⫿]+")
"""Characters beyond ASCII that are removed: all except letters, digits, accents and mathematical signs."""
_ACCENTS = re.compile("((?<!\\w)\\w[\u0302-\u0304\u0307](?!\\w))|[\u0300-\u0337\u0339-\u036f]+")
"""Accents. A single letter with an accent, such as x̄, is a symbol and is matched as group 1. The stroke of ∉ is not an
accent."""
_OTHER_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉０１２３４５６７８９", "0123456789" * 3)
_NO_DIGITS = bytes(code for code in range(1, 256) if not 48 <= code < 58)
_SIGN = re.compile(r"[\W_]+")
_MILD_SIGNS = dict.fromkeys(map(ord, "{}\2"))
_WORD = re.compile(r"[^\W\d_]+")
_LIST = re.compile("\\[((?:#[\\d\1]+#){4,})\\]")
"""A bracketed list of four or more numbers in a squashed text."""
_CELL = r"[_*@~]|(?<!\w)\.|\.(?![\s\d]|$)"
_MAY_BE_GRID = r"(?m)^(?:[^\p{L}\n]|(?-u:\b)[A-Za-z](?-u:\b))*[._*@~](?:[^\p{L}\n]|(?-u:\b)[A-Za-z](?-u:\b))*$"
"""A quick test: matches every text with a line of a grid whose cells are signs."""
_GRID_LINE = re.compile(r"(?=\s*\S)(?:[\d_]|[^\w\\$=]|[^\W\d_](?![^\W\d_]))+")
"""A line of signs, numbers and single letters: "#..#.", "_ 3 _ _"."""
CELLS_OF_GRID = 2
"""The minimum number of cells in a line of a grid."""
_CELLS = re.compile(_CELL)
_CELL_SIGNS = str.maketrans("._*@~", "[]|%^")
"""Each sign of a cell -> a sign that squashing does not remove."""
END_CHARS = 100
"""The number of characters at the end of an item in which its last word is searched for."""


def squash(texts: pl.Series, *, fold_accents: bool = True) -> bytes:
    """Return the squashed texts as one byte string, with a NUL after each text."""
    unlike = (texts.str.len_bytes() != texts.str.len_chars()) | texts.str.contains(_MARKED_UP)
    texts = change_marked(
        texts, unlike.to_numpy(), lambda some: pl.Series([_plain(text, fold_accents) for text in some], dtype=pl.String)
    )
    texts = _change(texts, _MAY_BE_GRID, lambda some: pl.Series(map(_keep_cells, some), dtype=pl.String))
    texts = _change(texts, _SEGMENTS, lambda some: some.str.replace_all(_SEGMENTS, "${1}\5${2}"))
    texts = _change(
        mark_mega(texts).str.to_lowercase(), _BROKEN, lambda some: some.str.replace_all(_BROKEN, "${1}${2}")
    )
    with_vectors = texts.str.contains(_VECTORS)
    texts = _change(texts, "\\\\|\\$", lambda some: _replace(some, _LATEX).str.replace_many(_SYMBOLS))
    texts = _change(texts, _UNIT, lambda some: _replace(some, _UNITS))
    for pattern, changes in _FORMULA:
        texts = _change(texts, pattern, partial(_replace, changes=changes))
    scalars = ~with_vectors & texts.str.contains("[×·]")
    texts = change_marked(texts, scalars.to_numpy(), lambda some: some.str.replace_all("[×·]", " "))
    texts = _replace(texts, _PARTED).str.replace_all(_END, "", literal=True)
    return "".join(texts + _END).encode().translate(_KEPT_MINUS, _IDLE)


def differ_in_signs(left: Sequence[str], right: Sequence[str]) -> Marks:
    """Mark the pairs of texts with the same letters and digits, but different signs: "⌊x⌋ = 2" and "⌈x⌉ = 2".

    A pair is also marked if one text contains the letters and digits of the other, with different signs.
    """
    texts = dict.fromkeys([*left, *right])
    squashed = squash(pl.Series(list(texts), dtype=pl.String), fold_accents=False).decode().split(_END)
    signed = dict(zip(texts, map(_without_brackets, squashed), strict=False))
    bare = {text: _bare(form) for text, form in signed.items()}
    return np.array(
        [
            _holds_without_signs((bare[here], signed[here]), (bare[there], signed[there]))
            for here, there in zip(left, right, strict=True)
        ],
        dtype=bool,
    )


def _holds_without_signs(here: tuple[str, str], there: tuple[str, str]) -> bool:
    (short, short_signed), (long, long_signed) = sorted((here, there), key=lambda forms: len(forms[0]))
    if len(short) == len(long):
        return short == long and short_signed != long_signed
    return len(short) >= LEAST_BYTES and short in long and short_signed not in long_signed


def _without_brackets(squashed: str) -> str:
    """Return a squashed text without commas, without braces, and without brackets around words and long lists."""
    return _LIST.sub(r"\1", re.sub(r"\(([\w#]*)\)", r"\1", squashed.translate(_MILD_SIGNS)))


def _bare(squashed: str) -> str:
    return _SIGN.sub("", squashed.replace("\x08", "m")).translate(_GREEK_TO_LATIN)


def _change(texts: pl.Series, pattern: str, change: Callable[[pl.Series], pl.Series]) -> pl.Series:
    return change_marked(texts, texts.str.contains(pattern).to_numpy(), change)


def _replace(texts: pl.Series, changes: Iterable[tuple[str, str]]) -> pl.Series:
    for pattern, replacement in changes:
        texts = texts.str.replace_all(pattern, replacement)
    return texts


def _plain(text: str, fold_accents: bool) -> str:
    """Return the text without markup and with look-alike letters replaced. Letters, digits and mathematical signs
    beyond ASCII stay. Accents stay unless `fold_accents` is true."""
    if "&" in text:
        text = unescape(text)
    if "<" in text:
        text = _TAG.sub("", _SUPERSCRIPT.sub(r"^{\1}", text))
    if text.isascii():
        return text
    text = _RAISED_RUN.sub(r"^{\g<0>}", _LOWERED_RUN.sub(r"_\g<0>", text)).translate(_TO_ASCII)
    text = unicodedata.normalize("NFKD", text).replace("−", "-")
    if fold_accents:
        text = _ACCENTS.sub(r"\1", text)
    text = _IDLE_BEYOND_ASCII.sub("", text)
    return text if text.isascii() else _GREEK_IN_WORD.sub(_greek_to_latin, text)


def _keep_cells(text: str) -> str:
    """Return the text with the cells of a grid (two or more lines) replaced by signs that squashing keeps."""
    lines = []
    for is_grid, group in groupby(text.split("\n"), lambda line: _GRID_LINE.fullmatch(line) is not None):
        block = list(group)
        if is_grid and len(block) > 1 and max(len(_CELLS.findall(line)) for line in block) >= CELLS_OF_GRID:
            block = [_CELLS.sub(lambda match: match[0].translate(_CELL_SIGNS), line) for line in block]
        lines += block
    return "\n".join(lines)


def _greek_to_latin(match: re.Match[str]) -> str:
    return match[0].translate(_GREEK_TO_LATIN)


@dataclass(frozen=True)
class LayoutCopies:
    """Pairs of texts that are equal when squashed, the lower number first."""

    left: Ints
    right: Ints
    whole: Marks
    """Whether the whole texts are equal. Other pairs are equal only without a last sentence such as "Express your
    answer as a fraction."."""


class SquashedKeys:
    """Takes texts in order (`add`), and pairs those that are equal when squashed (`copies`).

    Only texts with the same digits as another text are squashed.
    """

    def __init__(self, scratch: Path | None = None) -> None:
        self._digits = OnDisk(np.uint64, scratch)

    def add(self, texts: pl.Series) -> None:
        """Take in more texts."""
        digits = "".join(texts.str.replace_all(_END, "", literal=True) + _END).translate(_OTHER_DIGITS).encode()
        parts = digits.translate(None, _NO_DIGITS).split(_END.encode())[:-1]
        self._digits.extend(pl.Series(parts, dtype=pl.Binary).hash(seed=7).to_numpy())

    def copies(self, read: Callable[[list[int]], list[str]]) -> LayoutCopies:
        """Return the pairs of equal texts. `read` returns the texts with given numbers.

        In a group of more than PAIRED_IN_FULL texts, each text is paired with the first text only.
        """
        _, inverse, counts = np.unique(self._digits.array, return_inverse=True, return_counts=True)
        numbers = np.flatnonzero(counts[inverse] > 1)
        pairs = [np.zeros((0, 2), dtype=np.int64)]
        whole, problem = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        for start in range(0, len(numbers), BATCH):
            texts = pl.Series(read(numbers[start : start + BATCH].tolist()), dtype=pl.String)
            keys, keys_of_problems = _keys_of_both(texts)
            whole, problem = np.concatenate([whole, keys]), np.concatenate([problem, keys_of_problems])
        order = np.argsort(problem, kind="stable")
        starts = np.flatnonzero(run_starts(problem[order]))
        sizes = np.diff(starts, append=len(problem))
        for start, size in zip(starts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
            group = order[start : start + size]
            for first in range(size - 1 if size <= PAIRED_IN_FULL else 1):
                later = group[first + 1 :]
                pairs.append(np.column_stack([np.full(len(later), group[first]), later]))
        left, right = np.concatenate(pairs).T
        return LayoutCopies(numbers[left], numbers[right], whole[left] == whole[right])


def _keys_of_both(texts: pl.Series) -> tuple[Hashes, Hashes]:
    """Return a key of each text, and a key of each text without its final request for a form of the answer."""
    keys = _keys(texts)
    without = keys.copy()
    requests = np.flatnonzero(texts.str.contains_any(ANSWERS, ascii_case_insensitive=True).to_numpy())
    requests = requests[texts.gather(requests).str.contains(FORM_REQUEST).to_numpy()]
    without[requests] = _keys(texts.gather(requests).str.replace(FORM_REQUEST, "${1}"))
    return keys, without


def _keys(texts: pl.Series) -> Hashes:
    return (
        pl.Series(squash(texts, fold_accents=False).split(_END.encode())[:-1], dtype=pl.Binary)
        .hash(seed=7)
        .to_numpy()
        .copy()
    )


class SquashedItems:
    """Learns all items (`learn`), then searches texts for them (`look_up`). Items and texts are numbered together."""

    def __init__(self) -> None:
        self._eval_items: list[tuple[bytes, str]] = []
        """Each item, squashed, with its last word."""
        self._windows: Hashes = np.zeros(0, np.uint64)
        self._window_item: Ints = np.zeros(0, np.int64)
        self._passes = np.zeros(0, dtype=bool)
        self._texts = 0
        self._text, self._item = Growing(np.int64), Growing(np.int64)

    def learn(self, texts: pl.Series) -> None:
        """Learn more items."""
        last_words = (_WORD.findall(text[-END_CHARS:])[-1:] for text in texts.to_list())
        squashed = squash(texts).split(_END.encode())[:-1]
        self._eval_items += zip(squashed, (word[0] if word else "" for word in last_words), strict=True)
        self._texts = len(self._eval_items)

    def look_up(self, texts: pl.Series) -> None:
        """Look up more texts."""
        first, self._texts = self._texts, self._texts + len(texts)
        self.look_up_again(texts, np.arange(first, self._texts))

    def look_up_again(self, texts: pl.Series, numbers: Ints) -> None:
        """Look up other wordings of the texts with these numbers."""
        if not len(self._passes):
            self._index_windows()
        if not len(self._windows):
            return
        squashed = squash(texts).split(_END.encode())[:-1]
        for start in range(0, len(texts), CHUNK_TEXTS):
            chunk = slice(start, start + CHUNK_TEXTS)
            self._look_up_chunk(squashed[chunk], texts[chunk], numbers[chunk])

    def _index_windows(self) -> None:
        long = [item for item, (squashed, _) in enumerate(self._eval_items) if len(squashed) >= LEAST_BYTES]
        parts = [part for item in long for part in _spread_windows(self._eval_items[item][0])]
        hashes = _hash_windows(b"".join(parts))[::WINDOW].reshape(len(long), WINDOWS)
        _, inverse, counts = np.unique(hashes, return_inverse=True, return_counts=True)
        # Choose each item's rarest window, because the items of one template share most windows.
        rarest = counts[inverse.reshape(hashes.shape)].argmin(axis=1)
        windows = hashes[np.arange(len(long)), rarest]
        order = np.argsort(windows, kind="stable")
        self._windows, self._window_item = windows[order], np.array(long, dtype=np.int64)[order]
        self._passes = np.zeros(1 << FILTER_BITS, dtype=bool)
        self._passes[self._windows >> np.uint64(64 - FILTER_BITS)] = True

    def _look_up_chunk(self, parts: list[bytes], texts: pl.Series, numbers: Ints) -> None:
        # Items contain no NUL, so a matching window never crosses the end of a text.
        joined = _END.encode().join(parts)
        hashes = _hash_windows(joined)
        maybe = np.flatnonzero(self._passes[hashes >> np.uint64(64 - FILTER_BITS)])
        left = np.searchsorted(self._windows, hashes[maybe], side="left")
        right = np.searchsorted(self._windows, hashes[maybe], side="right")
        held = np.flatnonzero(right > left)
        if not len(held):
            return
        ends = np.flatnonzero(np.frombuffer(joined, dtype=np.uint8) == 0)
        text = np.searchsorted(ends, maybe[held])
        candidates = {
            (index, int(item))
            for index, start, stop in zip(text.tolist(), left[held].tolist(), right[held].tolist(), strict=True)
            for item in self._window_item[start:stop]
        }
        pairs = [
            (numbers[index], item)
            for index, item in sorted(candidates)
            if _holds(parts[index], texts[index], *self._eval_items[item])
        ]
        self._text.extend(np.array([text_number for text_number, _ in pairs], dtype=np.int64))
        self._item.extend(np.array([item for _, item in pairs], dtype=np.int64))

    def pairs(self) -> tuple[Ints, Ints]:
        """Return the pairs found: the numbers of texts that contain an item, and of their items."""
        return self._text.array, self._item.array


def _holds(squashed: bytes, text: str, item: bytes, last_word: str) -> bool:
    """Return whether a text contains an item as whole words: "the value of x" is not in "the value of xy"."""
    start = squashed.find(item)
    if start < 0:
        return False
    end = start + len(item)
    if not (item[-1:].isalpha() and squashed[end : end + 1].isalpha()):
        return True
    return re.search(rf"\b{last_word}\b", text, re.IGNORECASE) is not None or _is_gap(text, end)


def _is_gap(text: str, length: int) -> bool:
    """Return whether a word of a text ends after `length` bytes of the squashed text.

    The parts of a hyphenated word count as words.
    """
    gaps = [match.start() for match in re.finditer(r"[\W_]+", text)]
    index = bisect_left(gaps, length, key=lambda gap: len(squash(pl.Series([text[:gap]]))) - len(_END))
    return index < len(gaps) and len(squash(pl.Series([text[: gaps[index]]]))) - len(_END) == length


def _spread_windows(squashed: bytes) -> list[bytes]:
    starts = np.linspace(0, len(squashed) - WINDOW, WINDOWS).astype(int).tolist()
    return [squashed[start : start + WINDOW] for start in starts]


def _hash_windows(data: bytes) -> Hashes:
    """Return a rolling hash: for each position, the hash of the WINDOW bytes that start there."""
    hashes = np.frombuffer(data, dtype=np.uint8).astype(np.uint64)
    width = 1
    while width < WINDOW and len(hashes) > width:
        hashes = hashes[:-width] * np.uint64(0x9E3779B97F4A7C15 + 2 * width) + hashes[width:]
        hashes ^= hashes >> np.uint64(29)
        width *= 2
    return (hashes if width == WINDOW else hashes[:0]) * np.uint64(0xFF51AFD7ED558CCD)
