r"""Compares formulas of sets and of statements by their truth tables.

    Gold                      Answer                              Result
    A \cup (B \cap C)         (A \cup B) \cap (A \cup C)          the same
    \overline{A \cap B}       \overline{A} \cup \overline{B}      the same
    \neg(p \land q)           \neg p \lor \neg q                  the same
    p \implies q              q \implies p                        different

Letters, and predicates such as P(x), are the variables of a formula.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_, xor

from truegold.verifiers.math import tree
from truegold.verifiers.math.policy import Sameness, charge

MAX_ATOMS = 8
"""Maximum number of variables in a formula. With eight of them, its truth table has 2^8 rows."""
_JOINS = {"cup": or_, "or": or_, "cap": and_, "and": and_, "xor": xor}
"""Maps an operator to the operation on truth tables."""
_OF_SETS, _OF_STATEMENTS = frozenset({"cup", "cap", "minus"}), frozenset({"and", "or", "xor"})


class _NoFormulaError(Exception):
    """A side has parts other than variables and connectives."""


def same_formulas(gold: tree.Node, answer: tree.Node) -> Sameness | None:
    """Compare two formulas. Return None if a side is not a formula, or if sets and statements are mixed."""
    atoms: dict[str, int] = {}
    try:
        for side in (gold, answer):
            _gather(side, atoms)
        operators = {part.operator for side in (gold, answer) for part in tree.walk(side) if type(part) is tree.SetOps}
        if len(atoms) > MAX_ATOMS or (operators & _OF_SETS and operators & _OF_STATEMENTS):
            return None
        charge(2 ** len(atoms))
        return Sameness(_table(gold, atoms) == _table(answer, atoms), "structure")
    except _NoFormulaError:
        return None


def _gather(node: tree.Node, atoms: dict[str, int]) -> None:
    is_implication = isinstance(node, tree.Chain) and set(node.operators) <= tree.ARROWS
    if isinstance(node, tree.SetOps) or (isinstance(node, tree.Chain) and is_implication):
        for part in node.parts:
            _gather(part, atoms)
    elif isinstance(node, tree.Sym) or (isinstance(node, tree.FunctionCall) and node.applied):
        atoms.setdefault(tree.show(node), len(atoms))
    elif not (isinstance(node, tree.Named) and node.name == "empty"):
        raise _NoFormulaError


def _table(node: tree.Node, atoms: dict[str, int]) -> int:
    """Return the truth table as a number with one bit for each row: `p and q` is 0b1000, since row 0b11 is true."""
    full = (1 << (1 << len(atoms))) - 1
    if isinstance(node, tree.SetOps):
        tables = [_table(part, atoms) for part in node.parts]
        if node.operator == "not":
            return full ^ tables[0]
        return tables[0] & ~tables[1] if node.operator == "minus" else reduce(_JOINS[node.operator], tables)
    if isinstance(node, tree.Chain):
        first, *rest = node.parts
        if not rest:
            return _table(first, atoms)
        before = _table(first, atoms)
        behind = _table(tree.Chain(tuple(rest), node.operators[1:]), atoms)
        return full ^ before ^ behind if node.operators[0] == "<=>" else (full ^ before) | behind
    if isinstance(node, tree.Named):
        return 0
    index = atoms[tree.show(node)]
    return sum(1 << row for row in range(1 << len(atoms)) if row >> index & 1)
