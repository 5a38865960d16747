r"""Leads the way through two trees: their shapes decide which module compares them.

What stands for several values, or may be called otherwise, is prepared first:

    1\pm\sqrt2                   1+\sqrt2, 1-\sqrt2. In `(\pm a, \pm b)` the signs may go together or each for itself:
                                 there are two readings, and the other side decides
    e = 5                        a variable, where e is else a constant
    \sqrt3/3 \approx 0.577       gold that says its value twice: the exact form is what counts

Vectors and matrices may be written as sums and products:

    2\begin{pmatrix}1\\2\end{pmatrix}, (1,2)+t(3,4)     worked out to one vector
    2\mathbf{i}-3\mathbf{j}                             (2,-3), where the other side is a vector
    [[1,2],[3,4]]                                       a matrix, where the other side is one
    \begin{vmatrix}1&2\\3&4\end{vmatrix}                -2, where the other side is a value

An answer is free to choose some letters: integer parameters, the parameter of a line, arbitrary constants.

    k\pi, k \in \mathbb{Z}        n\pi                  declared on a side, or a multiple of pi
    (1, 2) + t(3, 4)              (1+3s, 2+4s)          the parameter of a line
    C_1 e^x + C_2 e^{-x}          Ae^x + Be^{-x}        arbitrary constants
    f(x) = ax + b                 f(x) = mx + c         a family of functions

2x + 1 and 2y + 1 are different: nobody said that x may be called otherwise. Not covered: C for -C, and k+1 for k.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from gmpy2 import mpq

from truegold.verifiers.math.comparison.lists import (
    Comparison,
    is_list,
    is_repeated_list,
    looks_like_set,
    same_lists,
    same_ordered,
)
from truegold.verifiers.math.comparison.relations import same_relations, same_throughout
from truegold.verifiers.math.comparison.sets import same_sets
from truegold.verifiers.math.comparison.single_values import (
    same_amounts,
    same_clocks,
    same_days,
    same_names,
    same_numerals,
    same_ratios,
    same_residues,
    same_texts,
    same_values,
)
from truegold.verifiers.math.exact import rational
from truegold.verifiers.math.identity import same_value
from truegold.verifiers.math.policy import OTHER_STRUCTURE, SAME_NUMBER, Policy, Sameness, charge
from truegold.verifiers.math.tree import (
    MINUS_ONE,
    PLUS_ONE,
    VALUE_TYPES,
    VALUES,
    ZERO,
    Add,
    BareList,
    BaseN,
    Chain,
    Const,
    Day,
    Family,
    FunctionCall,
    Group,
    Matrix,
    Measure,
    Mul,
    Named,
    Node,
    Num,
    Pow,
    Ratio,
    Residues,
    Sign,
    Sym,
    Text,
    TimeOfDay,
    argument_of,
    as_measure,
    facts,
    label_of,
    mapped,
    may_have_parts,
    product_of,
    renamed,
    symbols,
    walk,
)

_RELATED = frozenset({Chain, BareList, Group})
"""Only these hold relations that give a letter its value."""

MAX_SIGNS = 4
"""The most free signs in one answer. Stops 2^20 combinations."""

MAX_RENAMED = 3
"""The most letters that are called otherwise. Stops trying the orders of many."""
_INTEGER_LETTERS = frozenset("klmnj")
_LINE_LETTERS = frozenset({"s", "t", "r", "u", "k", "lambda", "mu"})
_CONSTANT = re.compile(r"[CKABDck](?:_\d)?")
_USUAL_CONSTANT = re.compile(r"[CK](?:_\d)?|c_\d")
"""What arbitrary constants are called on at least one side; A and B may be given by the problem."""
_PAIR_STEPS = 2
"""What it costs to find out which shape two sides have."""
_AMOUNT_TYPES = VALUE_TYPES | {Measure}

MAX_CELLS = 100
"""The most cells of a matrix that is worked out. Stops products of large matrices."""
MAX_DETERMINANT_ROWS = 4
_ARRAYS = frozenset({Matrix, Group})
_COMPOSED = frozenset({Add, Mul, Pow})
_BASIS = ("i", "j", "k")
_TUPLE_OPENINGS = frozenset("(<[")


def with_unknown_letters(gold: Node, answer: Node) -> tuple[Node, Node]:
    """Return both trees with e and i as variables where one side says what they are worth: `e = 5`."""
    if type(gold) not in _RELATED and type(answer) not in _RELATED:
        return gold, answer
    if not (names := _valued_constants(gold) | _valued_constants(answer)):
        return gold, answer

    def as_variable(part: Node) -> Node:
        return Sym(part.name) if isinstance(part, Const) and part.name in names else part

    return mapped(gold, as_variable), mapped(answer, as_variable)


def _valued_constants(node: Node) -> set[str]:
    elements = node.elements if isinstance(node, (BareList, Group)) else (node,)
    names: set[str] = set()
    for element in elements:
        if isinstance(element, Chain) and element.operators[0] == "=":
            first = element.parts[0]
            letters = first.elements if isinstance(first, (BareList, Group)) else (first,)
            names |= {letter.name for letter in letters if isinstance(letter, Const) and letter.name in ("e", "i")}
    return names


def without_repetition(gold: Chain) -> Node:
    """Return the exact form of `\\sqrt3/3 \\approx 0.577` and the first of `{1, 2} = {2, 1}`; else gold itself."""
    if "~" in gold.operators and set(gold.operators) <= {"=", "~"}:
        if index := gold.operators.index("~"):
            return Chain(gold.parts[: index + 1], gold.operators[:index])
        return gold.parts[1] if isinstance(gold.parts[0], Sym) else gold.parts[0]
    return gold.parts[0] if is_repeated_list(gold) else gold


def has_signs(node: Node) -> bool:
    """Tell whether ± or ∓ stands in the tree."""
    return type(node) is not Num and facts(node).sign_count > 0


def sign_readings(node: Node) -> list[Node]:
    """Return the tree without signs: one list of values for each reading of how the signs go together."""
    if not (count := facts(node).sign_count):
        return [node]
    if count > MAX_SIGNS:
        return []
    signs_together = _expanded(node, [(True,) * count, (False,) * count])
    if count == 1:
        return [signs_together]
    return [signs_together, _expanded(node, list(itertools.product((True, False), repeat=count)))]


def _expanded(node: Node, choices: Sequence[tuple[bool, ...]]) -> Node:
    """Return the values that the tree has under all choices of its signs, as a list or as a set."""
    if isinstance(node, Chain) and any(isinstance(part, (BareList, Group)) for part in node.parts):
        return Chain(tuple(_expanded(part, choices) for part in node.parts), node.operators)
    if isinstance(node, (BareList, Group)) and (isinstance(node, BareList) or node.opening == "{"):
        elements: list[Node] = []
        for element in node.elements:
            count = facts(element).sign_count
            element_choices = dict.fromkeys(choice[:count] for choice in choices)
            elements.extend(_with_signs_chosen(element, iter(choice)) for choice in element_choices)
        return BareList(tuple(elements)) if isinstance(node, BareList) else Group("{", "}", tuple(elements))
    return BareList(tuple(_with_signs_chosen(node, iter(choice)) for choice in choices))


def _with_signs_chosen(node: Node, plus: Iterator[bool]) -> Node:
    def choose(part: Node) -> Node:
        if isinstance(part, Sign):
            return PLUS_ONE if next(plus) != part.flipped else MINUS_ONE
        return part

    return mapped(node, choose)


def conditions_agree(comparer: Comparison, gold: Node, answer: Node) -> bool:
    """Compare what both sides say of their letters; what only one side says is understood."""
    if not isinstance(gold, Family) or not isinstance(answer, Family):
        return True
    if not gold.conditions or len(gold.conditions) != len(answer.conditions):
        return True
    return comparer.same(BareList(gold.conditions), BareList(answer.conditions)).same is not False


def without_parameters(gold: Node, answer: Node, *, rename: bool) -> tuple[Node, Node]:
    """Return the bodies of both sides; with `rename`, their integer parameters get the same names."""
    gold_names: frozenset[str] = frozenset()
    answer_names: frozenset[str] = frozenset()
    if isinstance(gold, Family):
        gold_names, gold = gold.parameters, gold.body
    if isinstance(answer, Family):
        answer_names, answer = answer.parameters, answer.body
    if rename and (gold_names or answer_names):
        gold_letters = sorted((gold_names or symbols(gold) - symbols(answer)) & symbols(gold))
        answer_letters = sorted((answer_names or symbols(answer) - symbols(gold)) & symbols(answer))
        different = gold_letters != answer_letters and len(gold_letters) == len(answer_letters)
        if different and not set(answer_letters) & symbols(gold):
            answer = renamed(answer, dict(zip(answer_letters, gold_letters, strict=True)))
    return gold, answer


def renamings(gold: Node, answer: Node) -> Iterator[Node]:
    """Yield the answer with gold's names for the letters that it was free to choose."""
    if symbols(gold) == symbols(answer):
        return
    gold_symbols, answer_symbols = symbols(gold) - _labels(gold), symbols(answer) - _labels(answer)
    gold_letters, answer_letters = gold_symbols - answer_symbols, answer_symbols - gold_symbols
    if not gold_letters or len(gold_letters) != len(answer_letters) or len(gold_letters) > MAX_RENAMED:
        return
    if not _may_be_renamed(gold, answer, gold_letters | answer_letters):
        return
    ordered = sorted(answer_letters)
    for names in itertools.permutations(sorted(gold_letters)):
        yield renamed(answer, dict(zip(ordered, names, strict=True)))


def _labels(node: Node) -> set[str]:
    """Return the letters that only say what a value is, as the x of `x = k\\pi`."""
    elements = node.elements if isinstance(node, BareList) else (node,)
    names = {label_of(element) for element in elements}
    return {name for name in names if name is not None}


def _may_be_renamed(gold: Node, answer: Node, letters: frozenset[str]) -> bool:
    if all(_CONSTANT.fullmatch(letter) for letter in letters):
        has_variable = bool(symbols(gold) & symbols(answer))
        sides = (letters & symbols(gold), letters & symbols(answer))
        if has_variable and any(all(map(_USUAL_CONSTANT.fullmatch, side)) for side in sides):
            return True
    if letters <= _INTEGER_LETTERS and _has_pi(gold) and _has_pi(answer):
        return True
    if letters <= _LINE_LETTERS and facts(gold).has_array and facts(answer).has_array:
        return True
    return _is_function(gold) and _is_function(answer)


def _has_pi(node: Node) -> bool:
    return any(isinstance(part, Const) and part.name == "pi" for part in walk(node))


def _is_function(node: Node) -> bool:
    """Tell whether a node is f(x) = ..., whose letters besides x are parameters."""
    if not isinstance(node, Chain) or label_of(node) is None or argument_of(node) is None:
        return False
    return isinstance(node.parts[0], FunctionCall) and node.parts[0].applied


def compare(gold: Node, answer: Node, policy: Policy) -> Sameness:
    """Compare two trees. Raises TooLarge where a value is beyond the budgets."""
    if type(gold) is Num and type(answer) is Num and gold.value == answer.value:
        return SAME_NUMBER
    comparison = _Comparison(policy)
    if type(gold) is Family or type(answer) is Family:
        if not conditions_agree(comparison, gold, answer):
            return OTHER_STRUCTURE
        gold, answer = without_parameters(gold, answer, rename=policy.parameters == "rename")
    gold, answer = with_unknown_letters(gold, answer)
    if isinstance(gold, Chain):
        gold = without_repetition(gold)
    outcome = _compare_signs(comparison, gold, answer)
    has_letters = type(gold) is not Num and type(answer) is not Num
    if not outcome.same and has_letters and policy.parameters == "rename":
        for other_answer in renamings(gold, answer):
            other_outcome = _compare_signs(comparison, gold, other_answer)
            if other_outcome.same:
                return other_outcome
    return outcome


def _compare_signs(comparison: _Comparison, gold: Node, answer: Node) -> Sameness:
    """Compare two trees; where ± stands in them, all their readings."""
    if not (has_signs(gold) or has_signs(answer)):
        return comparison.same(gold, answer)
    undecided = OTHER_STRUCTURE
    for gold_reading in sign_readings(gold):
        for answer_reading in sign_readings(answer):
            outcome = comparison.same(gold_reading, answer_reading)
            if outcome.same:
                return outcome
            if outcome.same is None:
                undecided = outcome
    return undecided


class _Comparison:
    """Compares two trees under one policy; it is the `Comparer` of the parts."""

    __slots__ = ("policy",)

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def same(self, gold: Node, answer: Node) -> Sameness:
        """Compare values, quantities and words; other shapes go on to `_same_shape`. Raises TooLarge."""
        charge(_PAIR_STEPS)
        if type(gold) is Num and type(answer) is Num and gold.value == answer.value:
            return SAME_NUMBER
        gold, answer = worked_out(as_measure(gold)), worked_out(as_measure(answer))
        if type(gold) in VALUE_TYPES and type(answer) in VALUE_TYPES:
            return same_values(gold, answer, self.policy)
        gold, answer = _plain(gold), _plain(answer)
        gold, answer = as_array_beside(gold, answer), as_array_beside(answer, gold)
        kinds = {type(gold), type(answer)}
        if kinds <= VALUE_TYPES:
            return same_values(gold, answer, self.policy)
        if Text in kinds:
            return same_texts(gold, answer)
        if Measure in kinds and kinds <= _AMOUNT_TYPES:
            return same_amounts(gold, answer, self.policy)
        return self._same_shape(gold, answer, kinds)

    def _same_shape(self, gold: Node, answer: Node, kinds: set[type[Node]]) -> Sameness:  # noqa: PLR0911, one a shape
        if Residues in kinds:
            return same_residues(gold, answer)
        if isinstance(answer, Chain) and not isinstance(gold, Chain) and is_repeated_list(answer):
            return same_throughout(self, gold, answer)
        if (is_list(gold) or is_list(answer)) and (outcome := same_lists(self, gold, answer)) is not None:
            return outcome
        if looks_like_set(gold) or looks_like_set(answer):
            return same_sets(self, gold, answer)
        if Chain in kinds:
            return same_relations(self, gold, answer)
        if Group in kinds or Matrix in kinds:
            return same_ordered(self, gold, answer)
        if TimeOfDay in kinds:
            return same_clocks(gold, answer)
        if Ratio in kinds:
            return same_ratios(gold, answer, self.policy)
        if BaseN in kinds:
            return same_numerals(gold, answer, self.policy)
        if Day in kinds:
            return same_days(gold, answer)
        return same_names(gold, answer) if Named in kinds else OTHER_STRUCTURE


def _plain(node: Node) -> Node:
    """Return the point (2, 3) for A(2, 3), 11 for the [11] that programs print, and one congruence for several."""
    if isinstance(node, Chain):
        return with_vector_worked_out(node)
    if isinstance(node, Group) and node.opening == "[" and node.closing == "]" and len(node.elements) == 1:
        return node.elements[0]
    if isinstance(node, Group) and len(node.elements) > 1 and all(map(label_of, node.elements)):
        # The brackets of [x=1, y=2] say nothing.
        return BareList(node.elements)
    if isinstance(node, Mul) and len(node.factors) == 2:
        name, point = node.factors
        if isinstance(name, Sym) and isinstance(point, Group) and len(point.elements) > 1 and point.opening == "(":
            return point
    if isinstance(node, FunctionCall) and node.applied and len(node.args) > 1:
        return Group("(", ")", node.args)
    return with_residues_joined(node)


def with_residues_joined(node: Node) -> Node:
    """Return one node for several congruences of one letter and one modulus."""
    if not isinstance(node, BareList) or not all(isinstance(element, Residues) for element in node.elements):
        return node
    parts = [element for element in node.elements if isinstance(element, Residues)]
    moduli = {rational(part.modulus) for part in parts}
    if len(moduli) > 1 or None in moduli or len({part.label for part in parts}) > 1:
        return node
    return Residues(parts[0].label, tuple(r for part in parts for r in part.remainders), parts[0].modulus)


def worked_out(node: Node) -> Node:
    """Return the vector or matrix that a sum or a product is; any other node as it is."""
    return _worked_out(node) if _holds_array(node) else node


def with_vector_worked_out(node: Node) -> Node:
    """Return (x, y) = (1+3t, 2+t) for (x, y) = (1, 2) + t(3, 1)."""
    if isinstance(node, Chain) and node.operators == ("=",) and isinstance(node.parts[1], (Add, Mul)):
        return Chain((node.parts[0], worked_out(node.parts[1])), node.operators)
    return node


def as_array_beside(node: Node, other: Node) -> Node:
    """Return a node as the vector, matrix or value that it is beside the other side."""
    if isinstance(other, Matrix) and isinstance(node, Group) and (rows := _rows_of(node)) is not None:
        return Matrix(rows)
    if isinstance(node, Matrix) and node.bars and isinstance(other, VALUES):
        return _determinant(node) or node
    if isinstance(node, VALUES) and isinstance(other, (Matrix, Group)):
        size = _size_of_vector(other)
        coordinates = _coordinates(node, size) if size in (2, 3) else None
        return Group("(", ")", coordinates) if coordinates is not None else node
    return node


def _holds_array(node: Node) -> bool:
    """Tell whether an array stands in sums and products: quicker than what `facts` remembers of a node."""
    if (kind := type(node)) is Mul:
        parts = node.factors  # type: ignore[attr-defined]
    elif kind is Add:
        parts = node.terms  # type: ignore[attr-defined]
    elif kind is Pow:
        parts = (node.base,)  # type: ignore[attr-defined]
    else:
        return False
    for part in parts:
        kind = type(part)
        if kind in _ARRAYS or (kind in _COMPOSED and _holds_array(part)):
            return True
    return False


def _is_array(node: Node) -> bool:
    if isinstance(node, Matrix):
        return not node.bars
    return isinstance(node, Group) and node.opening in _TUPLE_OPENINGS and len(node.elements) > 1


def _worked_out(node: Node) -> Node:
    if isinstance(node, Add):
        return _added(node, [_worked_out(term) for term in node.terms])
    if isinstance(node, Mul):
        return _multiplied(node, [_worked_out(factor) for factor in node.factors])
    if isinstance(node, Pow) and isinstance(node.exponent, Sym) and node.exponent.name in ("T", "t"):
        rows = _cells(node.base)
        if rows is not None and len({len(row) for row in rows}) == 1:
            return Matrix(tuple(zip(*rows, strict=True)))
    return node


def _added(node: Add, terms: list[Node]) -> Node:
    cells = [_cells(term) for term in terms]
    shapes = {tuple(len(row) for row in rows) if rows is not None else None for rows in cells}
    if len(shapes) != 1 or None in shapes:
        return node
    rows = tuple(
        tuple(Add(parts) for parts in zip(*(matrix[i] for matrix in cells if matrix), strict=True))
        for i in range(len(cells[0] or ()))
    )
    return _like(terms[0], rows)


def _multiplied(node: Mul, factors: list[Node]) -> Node:
    arrays = [factor for factor in factors if _is_array(factor)]
    scalars = [factor for factor in factors if not _is_array(factor)]
    is_point = len(scalars) == 1 and isinstance(scalars[0], Sym) and scalars[0].name[:1].isupper()
    if not arrays or is_point or not all(isinstance(scalar, VALUES) for scalar in scalars):
        return node
    product = arrays[0]
    for array in arrays[1:]:
        rows, columns = _cells(product), _cells(array)
        if not (isinstance(product, Matrix) and isinstance(array, Matrix)) or rows is None or columns is None:
            return node
        if any(len(row) != len(columns) for row in rows) or len(rows) * len(columns[0]) > MAX_CELLS:
            return node
        product = Matrix(tuple(tuple(_dot(row, column) for column in zip(*columns, strict=True)) for row in rows))
    rows = _cells(product)
    if not scalars or rows is None:
        return product
    return _like(product, tuple(tuple(product_of([*scalars, cell]) for cell in row) for row in rows))


def _dot(row: tuple[Node, ...], column: tuple[Node, ...]) -> Node:
    return Add(tuple(Mul((a, b)) for a, b in zip(row, column, strict=True)))


def _cells(node: Node) -> tuple[tuple[Node, ...], ...] | None:
    """Return the rows of a matrix; a tuple is one row."""
    if isinstance(node, Group) and _is_array(node):
        return (node.elements,) if len(node.elements) <= MAX_CELLS else None
    if isinstance(node, Matrix) and not node.bars and sum(map(len, node.rows)) <= MAX_CELLS:
        return node.rows
    return None


def _like(shape: Node, rows: tuple[tuple[Node, ...], ...]) -> Node:
    return Group(shape.opening, shape.closing, rows[0]) if isinstance(shape, Group) else Matrix(rows)


def _rows_of(node: Group) -> tuple[tuple[Node, ...], ...] | None:
    """Return the rows of a matrix that is written as a tuple of tuples."""
    rows = [part.elements for part in node.elements if isinstance(part, Group) and part.opening in _TUPLE_OPENINGS]
    return tuple(rows) if rows and len(rows) == len(node.elements) and len({len(row) for row in rows}) == 1 else None


def _size_of_vector(node: Node) -> int:
    if isinstance(node, Group):
        return len(node.elements) if node.opening in "(<" else 0
    if isinstance(node, Matrix) and not node.bars:
        return len(node.rows) if all(len(row) == 1 for row in node.rows) else len(node.rows[0]) * (len(node.rows) == 1)
    return 0


def _coordinates(node: Node, size: int) -> tuple[Node, ...] | None:
    """Return (2, -3) for 2i-3j; None for an expression that is no combination of the unit vectors."""
    if not (names := {_basis_name(part) for part in walk(node)} - {None}) or not names <= set(_BASIS[:size]):
        return None
    if names == {"i"} and size == 2 and not isinstance(node, (Const, Mul)):
        return None
    units = [tuple(PLUS_ONE if j == k else ZERO for k in range(size)) for j in range(size)]
    coordinates = tuple(_evaluated_for(node, unit) for unit in units)
    twice = _evaluated_for(node, tuple(Num(mpq(2)) for _ in range(size)))
    is_linear = same_value(_evaluated_for(node, (ZERO,) * size), ZERO).same is True
    is_linear = is_linear and same_value(twice, Mul((Num(mpq(2)), Add(coordinates)))).same is True
    return coordinates if is_linear else None


def _basis_name(node: Node) -> str | None:
    return node.name if isinstance(node, (Const, Sym)) and node.name in _BASIS else None


def _evaluated_for(node: Node, unit: tuple[Node, ...]) -> Node:
    def chosen(part: Node) -> Node:
        name = _basis_name(part)
        return unit[_BASIS.index(name)] if name is not None else part

    return chosen(node) if not may_have_parts(node) else mapped(node, chosen)


def _determinant(node: Matrix) -> Node | None:
    size = len(node.rows)
    if size > MAX_DETERMINANT_ROWS or any(len(row) != size for row in node.rows):
        return None
    terms: list[Node] = []
    for order in itertools.permutations(range(size)):
        swaps = sum(order[i] > order[j] for i in range(size) for j in range(i + 1, size))
        factors = [node.rows[i][column] for i, column in enumerate(order)]
        terms.append(Mul((MINUS_ONE if swaps % 2 else PLUS_ONE, *factors)))
    return Add(tuple(terms))
