r"""Reads ambiguous notation in less usual ways, which are tried if the usual readings of two sides do not match.

1,234   -> a list of two, if the other side is a list
1,5     -> one and a half, if the other side is one number
5m      -> five metres, if the other side has no variable m
1/2x    -> 1/(2x)
2e+3    -> twice e, plus three, if the other side has the constant e
0.1(6)  -> a repeating decimal
12C5    -> a binomial coefficient, like C(12, 5), if the other side is a value
h(a+b)  -> a product, if the other side uses h as a variable
log 2   -> the logarithm to the base ten
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import starmap
from string import ascii_letters

from gmpy2 import mpq

from truegold.verifiers.math.exact import rational
from truegold.verifiers.math.measures import TIME, unit_of
from truegold.verifiers.math.policy import Policy, TooLarge, UnreadableAnswer
from truegold.verifiers.math.reading.answers import read
from truegold.verifiers.math.reading.days_and_times import read_clock_text
from truegold.verifiers.math.reading.lexemes import USUAL, Notation
from truegold.verifiers.math.reading.lexer import with_bold_vectors
from truegold.verifiers.math.reading.notation import with_calls_as_counts
from truegold.verifiers.math.tree import (
    BAR,
    DOT,
    HAT,
    MINUS_ONE,
    PLUS_ONE,
    VALUES,
    VECTOR_MARK,
    Add,
    BareList,
    Big,
    Chain,
    Const,
    FunctionCall,
    Group,
    Matrix,
    Measure,
    Mul,
    Node,
    Num,
    Pow,
    SetOps,
    Sym,
    TimeOfDay,
    derivative_of,
    facts,
    mapped,
    may_have_parts,
    substituted,
    symbols,
    walk,
    with_log_base_ten,
)

_STEM = re.compile(r"[_'].*")
"""The subscript and the primes of a name."""
_SIGNED = frozenset(
    {"x", "y", "z", "t", "s", "u", "q", "Q", "n", "theta", "phi", "psi", "chi", "alpha", "beta", "delta"}
)
"""Letters of coordinates, times, charges, angles and integers, which may be negative."""
_POINTS = re.compile(rf"([A-Z][_\d']{{0,4}})([A-Z][_\d']{{0,4}}){VECTOR_MARK}")
"""The name of the vector from A to B."""
_DECIMAL_COMMA = re.compile(r"([+-]?)(\d{1,3}(?: \d{3}){1,3}|\d{1,9}),(\d{1,9})(?![\d,])")
"""Matches `1,5` and `1 234,5`."""
_SLASH_NEIGHBOUR = re.compile(r"/\s*\(?[\dA-Za-z\\]")
"""A slash and the start of its divisor."""
_SCIENTIFIC = re.compile(r"(\d)e([+-])")
"""The 2e+ of 2e+3."""
_REPEATING_BLOCK = re.compile(r"(-?\d{0,20}\.\d{0,20})\((\d{1,20})\)")
"""Matches `0.1(6)`."""
_AXIS = "([xyzrnts]|theta|phi|rho)"
_UNIT_VECTOR = re.compile(rf"e[{HAT}{VECTOR_MARK}]?_{_AXIS}|{_AXIS}{HAT}")
r"""The names of \hat x and \hat{e}_x in a tree."""
_MARKED_LETTER = re.compile(r"\\(?:w?i?d?e?hat|vec|mathbf|boldsymbol|bm|bf)(?![A-Za-z])")
"""A command that marks a vector."""
_OF_AXES = {"x": "i", "y": "j", "z": "k"}
"""Maps an axis to its unit vector."""
_LOST_CARET = re.compile(r"(?<![\d.])([1-9](?:\.\d{1,20})?\s?(?:\\times|\\cdot|[x*])\s?10)\s?-\s?(\d{1,2})(?!\d)")
"""A power whose `^` was lost in copying: `1.6 x 10-19`."""
_MINUTES_AND_SECONDS = re.compile(r"(\d{1,4})'\s?(?:(\d{1,2}(?:\.\d{1,6})?)'')?")
"""Matches `5'30''`."""
_DOTS_OF_TIME = {"t": DOT, "t^(2)": "\u0308"}
r"""Maps the variable of a derivative to the marks of \dot x and \ddot x."""
_HARMONIC = re.compile(r"H_(\d{1,3}|[nmkN])")
"""The name of a harmonic number: H_4, H_n."""
_LETTERS_APART = re.compile(r"[\d)}](?:\s|~|\\[,;: ]|\u2009)+\\?[A-Za-z]")
"""A blank before letters, as in `5 T`, where T may be a unit. `5T` is a product unless the other side has a unit."""
_USUAL_UNIT = re.compile(r"(?<![A-Za-z\\])(?:[mgshLlNJWVA]|[A-Za-z]{2,3})(?:\^?\W?\d\W?)?$|/")
"""A slash or a common unit at the end, as in `5m` and `5mW`. The c of `5c` is not a common unit."""
_MAY_HOLD_UNIT = re.compile(
    rf"(?<![A-Za-z\\])(?:[A-Za-z]{{2}}|[{''.join(filter(unit_of, ascii_letters))}](?![A-Za-z]))|[^\x00-\x7f]"
    r"|\\(?!(?:[dt]?frac|sqrt|left|right|cdot|times|pi|infty|cup|cap|in|ln|log|sin|cos|tan)(?![A-Za-z]))[A-Za-z]"
)
"""A quick test: every text with a unit has the letter of a unit, two letters in a row, or the command of a unit."""
_GROUPING = re.compile(r"\d,\d{3}(?!\d)")
"""A comma that may group digits: 1,234."""


def other_readings(
    gold: Node, answer: Node, gold_text: str, answer_text: str, policy: Policy
) -> Iterator[tuple[Node, Node]]:
    """Yield pairs of trees for gold and answer. In each pair, at least one side is read in a less usual way."""
    if type(gold) is Num and type(answer) is Num:
        return
    mixed_numbers = policy.mixed == "sum"
    for tree in _other_trees(answer_text, answer, gold, mixed_numbers):
        yield gold, tree
    for tree in _other_trees(gold_text, gold, answer, mixed_numbers):
        yield tree, answer
    gold_facts, answer_facts = facts(gold), facts(answer)
    may_share = "-" in gold_text or "-" in answer_text or _has_unit(gold) or _has_unit(answer)
    if gold_facts.symbols != answer_facts.symbols or (gold_facts.symbols and may_share):
        yield from _readings_in_units((gold, gold_text), (answer, answer_text), policy)
    if policy.log == "either" and (gold_facts.has_bare_log or answer_facts.has_bare_log):
        yield with_log_base_ten(gold), with_log_base_ten(answer)
    named = _with_names_spelled_out(gold, answer_facts.symbols), _with_names_spelled_out(answer, gold_facts.symbols)
    if named != (gold, answer):
        yield named
    yield from _readings_of_marks((gold, gold_text), (answer, answer_text))
    if policy.signs == "positive":
        unsigned = {name for name in gold_facts.symbols | answer_facts.symbols if _STEM.sub("", name) not in _SIGNED}
        unsigned -= _letters_of_sizes(gold) | _letters_of_sizes(answer)
        yield _with_positive(gold, unsigned), _with_positive(answer, unsigned)
    marks = _may_mark_complement(gold_text) + _may_mark_complement(answer_text)
    if marks == 2 or (marks and SetOps in (type(gold), type(answer))):
        yield _with_complements(gold), _with_complements(answer)
    functions = gold_facts.unknown_functions | answer_facts.unknown_functions
    if functions & (gold_facts.symbols | answer_facts.symbols):
        yield _with_products(gold), _with_products(answer)


def _readings_of_marks(gold: tuple[Node, str], answer: tuple[Node, str]) -> Iterator[tuple[Node, Node]]:
    r"""Yield readings with brackets as whole parts, [n/2], and with marked letters as vectors, \hat x."""
    (gold_tree, gold_text), (answer_tree, answer_text) = gold, answer
    if "floor" in gold_text + answer_text and ("[" in gold_text or "[" in answer_text):
        yield mapped(gold_tree, _as_whole_part), mapped(answer_tree, _as_whole_part)
    names = symbols(gold_tree) | symbols(answer_tree)
    if any(map(_UNIT_VECTOR.fullmatch, names)) and all(starmap(_may_be_vector, (gold, answer))):
        yield mapped(gold_tree, _as_unit_vector), mapped(answer_tree, _as_unit_vector)
    if any(VECTOR_MARK in name for name in names):
        yield _with_points(gold_tree), _with_points(answer_tree)
        for tree in _try_reading(with_bold_vectors(answer_text), USUAL):
            yield gold_tree, tree
        for tree in _try_reading(with_bold_vectors(gold_text), USUAL):
            yield tree, answer_tree


def _with_names_spelled_out(node: Node, other_names: frozenset[str]) -> Node:
    r"""Return the tree with h/2\pi for \hbar, l for \ell, and 1 + 1/2 + ... + 1/n for H_n.

    Only names that the other side does not use are replaced.
    """
    names = symbols(node)
    values: dict[str, Node] = {}
    if "hbar" in names and "h" in other_names and "hbar" not in other_names:
        values["hbar"] = Mul((Sym("h"), Pow(Mul((Num(mpq(2)), Const("pi"))), MINUS_ONE)))
    if "ell" in names and "l" in other_names and "l" not in names and "ell" not in other_names:
        values["ell"] = Sym("l")
    for name in names:
        pair = derivative_of(Sym(name)) if "/d" in name else None
        if pair is not None and (dotted := f"{pair[0]}{_DOTS_OF_TIME.get(pair[1])}") in other_names:
            values[name] = Sym(dotted)
        if (index := _HARMONIC.fullmatch(name)) is not None and not any(map(_HARMONIC.match, other_names)):
            last = Num(mpq(int(index[1]))) if index[1].isdigit() else Sym(index[1])
            values[name] = Big("sum", "k_", PLUS_ONE, last, Pow(Sym("k_"), MINUS_ONE))
    return substituted(node, values) if values and isinstance(node, (*VALUES, Chain)) else node


def _with_positive(node: Node, names: set[str]) -> Node:
    """Return the tree with |m| for each letter m in `names`, except where the letter is a label."""
    if isinstance(node, BareList):
        return BareList(tuple(_with_positive(part, names) for part in node.elements), node.joined)
    if isinstance(node, Chain):
        first, *rest = node.parts[0], *(_with_positive(part, names) for part in node.parts[1:])
        is_power = isinstance(first, Pow) and isinstance(first.base, Sym) and first.base.name in names
        if is_power and isinstance(first, Pow) and len(rest) == 1 and rational(first.exponent):
            # Solve \\omega^2 = k/m for \\omega.
            return Chain((first.base, Pow(rest[0], Pow(first.exponent, MINUS_ONE))), node.operators)
        return Chain((first, *rest), node.operators)
    sizes: dict[str, Node] = {name: FunctionCall("abs", (Sym(name),)) for name in names}
    return substituted(node, sizes) if isinstance(node, VALUES) else node


def _letters_of_sizes(node: Node) -> frozenset[str]:
    """Return the letters in absolute values, such as the q of |q|. The bars show that q may be negative."""
    sizes = [part for part in walk(node) if isinstance(part, FunctionCall) and part.name == "abs"]
    return frozenset().union(*map(symbols, sizes))


def _other_trees(text: str, tree: Node, other_side: Node, mixed_numbers: bool) -> Iterator[Node]:
    """Yield less usual trees of one text, which depend on the tree of the other side."""
    if _GROUPING.search(text) and isinstance(other_side, (BareList, Group, Chain)):
        yield from _try_reading(text, Notation(mixed_numbers=mixed_numbers, group_digits=False))
    is_pair = isinstance(tree, BareList) and len(tree.elements) == 2
    is_beside_value = is_pair and isinstance(other_side, (*VALUES, Measure)) and not symbols(other_side)
    if is_beside_value and (match := _DECIMAL_COMMA.match(text)) is not None:
        sign, whole, decimals = match.groups()
        with_point = f"{sign}{whole.replace(' ', '')}.{decimals}{text[match.end() :]}"
        yield from _try_reading(with_point, Notation(mixed_numbers=mixed_numbers))
    if isinstance(other_side, TimeOfDay) and (clock := read_clock_text(text)) is not None:
        yield clock
    is_span = isinstance(other_side, Measure) and other_side.unit.dimension == TIME
    if is_span and (span := _MINUTES_AND_SECONDS.fullmatch(text)) is not None:
        yield from _try_reading(f"{span[1]} minutes {span[2] or 0} seconds", Notation())
    if "10" in text and "-" in text and (lost := _LOST_CARET.sub(r"\1^{-\2}", text)) != text:
        yield from _try_reading(lost, Notation(mixed_numbers=mixed_numbers, letter_units=_has_unit(other_side)))
    may_count = "C" in text or "P" in text or "B(" in text or "B}" in text
    if may_count and isinstance(other_side, VALUES) and (counted := with_calls_as_counts(text)) != text:
        yield from _try_reading(counted, Notation(mixed_numbers=mixed_numbers))
    may_add = "e" in text and _SCIENTIFIC.search(text) is not None
    if may_add and any(isinstance(part, Const) and part.name == "e" for part in walk(other_side)):
        yield from _try_reading(_SCIENTIFIC.sub(r"\1 e \2", text), Notation(mixed_numbers=mixed_numbers))
    if text.endswith(")") and (repeating := _REPEATING_BLOCK.fullmatch(text)) is not None:
        yield from _try_reading(rf"{repeating[1]}\overline{{{repeating[2]}}}", Notation(mixed_numbers=mixed_numbers))
    if "/" in text and _SLASH_NEIGHBOUR.search(text):
        yield from _try_reading(text, Notation(mixed_numbers=mixed_numbers, tight_products=True))


def _readings_in_units(gold: tuple[Node, str], answer: tuple[Node, str], policy: Policy) -> Iterator[tuple[Node, Node]]:
    """Yield readings with letters as units: N in `5 N`, if the other side is `5 kg m/s^2`.

    In a gold of `5T` the T stays a variable if the answer is 5.
    """
    (gold_tree, gold_text), (answer_tree, answer_text) = gold, answer
    notation = Notation(mixed_numbers=policy.mixed == "sum", letter_units=True)
    answers = _in_letter_units(answer_text, answer_tree, notation)
    may_be_gold = _has_unit(answer_tree) or policy.letters == "units" or _LETTERS_APART.search(gold_text) is not None
    is_gold_read = policy.letters != "variables" and (may_be_gold or answers)
    golds = _in_letter_units(gold_text, gold_tree, notation) if is_gold_read else []
    for other_answer in answers:
        is_usual = _LETTERS_APART.search(answer_text) or (_USUAL_UNIT.search(answer_text) and not symbols(other_answer))
        if _has_unit(gold_tree) or is_usual:
            yield gold_tree, other_answer
        yield from ((other_gold, other_answer) for other_gold in golds)
    if may_be_gold:
        # In `(9+a) t` the t is a variable.
        yield from ((other, answer_tree) for other in golds if _has_unit(answer_tree) or not symbols(other))


def _in_letter_units(text: str, tree: Node, notation: Notation) -> list[Node]:
    readings = _try_reading(text, notation) if _MAY_HOLD_UNIT.search(text) is not None else (tree,)
    return list(filter(_has_unit, readings))


def _has_unit(node: Node) -> bool:
    return any(isinstance(part, Measure) and not part.unit.is_label for part in walk(node))


def _try_reading(text: str, notation: Notation) -> Iterator[Node]:
    try:
        yield read(text, notation)
    except (UnreadableAnswer, TooLarge):
        return


def _may_mark_complement(text: str) -> bool:
    return "^c" in text or "^{c" in text or "'" in text or "prime" in text or "\\overline" in text or "\\bar" in text


def _with_complements(node: Node) -> Node:
    r"""Return the tree with the complement of A for A^c, A' and \overline{A}."""

    def complement(part: Node) -> Node:
        if isinstance(part, Sym) and len(part.name) > 1 and part.name[0].isupper():
            return SetOps("not", (Sym(part.name[0]),)) if part.name[1:] in ("'", BAR) else part
        if isinstance(part, Pow) and isinstance(part.exponent, Sym) and part.exponent.name in ("c", "C"):
            return SetOps("not", (part.base,))
        return part

    return mapped(node, complement) if may_have_parts(node) else complement(node)


def _with_points(node: Node) -> Node:
    """Return the tree with B - A for the vector AB."""

    def as_difference(part: Node) -> Node:
        ends = _POINTS.fullmatch(part.name) if isinstance(part, Sym) else None
        if ends is None:
            return part
        return Add((Sym(f"{ends[2]}{VECTOR_MARK}"), Mul((MINUS_ONE, Sym(f"{ends[1]}{VECTOR_MARK}")))))

    return mapped(node, as_difference) if may_have_parts(node) else as_difference(node)


def _as_whole_part(part: Node) -> Node:
    """Return the whole part of n/2 for [n/2]. Other nodes are returned unchanged."""
    is_lone = isinstance(part, Group) and (part.opening, part.closing, len(part.elements)) == ("[", "]", 1)
    return FunctionCall("floor", part.elements) if is_lone and isinstance(part, Group) else part


def _may_be_vector(node: Node, text: str) -> bool:
    r"""Tell whether a side may be a vector.

    (1, 2), 2\hat x + 3\hat y     yes: an array, or a sum with a marked letter in each term
    -gk                           no: k has no mark
    \hat x \hat p                 no: a product of two operators
    """
    if isinstance(node, (Group, Matrix)):
        return True
    products = [part.factors for part in walk(node) if isinstance(part, Mul)]
    marked = [[factor for factor in factors if _is_marked(factor)] for factors in products]
    return _MARKED_LETTER.search(text) is not None and all(len(letters) < 2 for letters in marked)


def _is_marked(node: Node) -> bool:
    return isinstance(node, Sym) and (HAT in node.name or _UNIT_VECTOR.fullmatch(node.name) is not None)


def _as_unit_vector(part: Node) -> Node:
    r"""Return i, j, k for the unit vectors \hat x, \mathbf{e}_y and \hat{e}_z, and \hat r for \mathbf{e}_r."""
    if not isinstance(part, Sym) or (match := _UNIT_VECTOR.fullmatch(part.name)) is None:
        return part
    axis = match[1] or match[2]
    name = _OF_AXES.get(axis, f"{axis}{HAT}")
    return Const(name) if name == "i" else Sym(name)


def _with_products(node: Node) -> Node:
    """Return the tree with the product h*(a+b) for h(a+b)."""

    def as_product(part: Node) -> Node:
        if isinstance(part, FunctionCall) and part.applied and len(part.args) == 1:
            return Mul((Sym(part.name), part.args[0]))
        return part

    return mapped(node, as_product)
