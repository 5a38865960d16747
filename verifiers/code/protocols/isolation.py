"""Tells whether test code does something that cannot be done from another process than the solution's.

    needs_one_process("with patch('solution.now'): ...")     "it imports unittest.mock"
    needs_one_process("assert Vector(1) + Vector(2) == Vector(3)")    "it applies operators to objects of Vector"
    needs_one_process("assert add(1, 2) == 3")               None

Only the test code is looked at, and never a solution: which way tests are run must not be the choice of what they test.
This finds what can be read off the code; passing an object that cannot travel is noticed when it happens.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files

from truegold.verifiers.sandbox.inside.test_code.library_functions import is_solution_module, library_names

CACHED_SUITES = 256
"""How many suites' answers are kept."""

_WORDS = tomllib.loads(files(__package__).joinpath("isolation.toml").read_text(encoding="utf-8"))
_CALLS: Mapping[str, str] = _WORDS.pop("calls")
_SETS = {name: frozenset(words.split()) for name, words in _WORDS.items()}

_CAPITALISED_CALL = re.compile(r"\b_*[A-Z]\w*[\s)\\]*\(")
"""What every call of a class has, in code of ASCII. Most test code has none, and need not be read for that."""


@lru_cache(maxsize=CACHED_SUITES)
def needs_one_process(code: str) -> str | None:
    """Return why the code has to share a process with the solution.

    None where it does not have to, or cannot be read.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return None
    seeds = draws = False
    for node in ast.walk(tree):
        if (reason := _node_reason(node)) is not None:
            return reason
        if isinstance(node, ast.Name) and node.id == "__file__":
            return "it asks where its file lies"
        if isinstance(node, ast.Call) and "random" in _dotted_name(node.func):
            seeds |= _dotted_name(node.func).endswith(".seed")
            draws |= not _dotted_name(node.func).endswith(".seed")
    if seeds and not draws:
        return "it seeds the random numbers of the solution"
    return _class_reason(tree)


@lru_cache(maxsize=CACHED_SUITES)
def compares_objects(code: str) -> bool:
    """Return whether the code compares objects of the solution's classes with each other: `V(1) + V(2) == V(3)`."""
    if code.isascii() and not _CAPITALISED_CALL.search(code):
        return False
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return False
    known = set(_defined_names(tree)) | vars(builtins).keys() | library_names(tree, None)

    def is_object(node: ast.AST) -> bool:
        if isinstance(node, ast.BinOp):
            return is_object(node.left) or is_object(node.right)
        name = _constructed_class(node.operand if isinstance(node, ast.UnaryOp) else node)
        return name is not None and name not in known

    compared = (node for node in ast.walk(tree) if isinstance(node, ast.Compare))
    return any(is_object(node.left) and any(map(is_object, node.comparators)) for node in compared)


def _node_reason(node: ast.AST) -> str | None:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return _import_reason(node)
    if isinstance(node, ast.Call):
        return _call_reason(node)
    if isinstance(node, ast.FunctionDef) and (used := {a.arg for a in node.args.args} & _SETS["fixtures"]):
        return f"it uses the fixture {min(used)}"
    if isinstance(node, ast.AsyncFor | ast.AsyncWith):
        return "it steps through asynchronous objects of the solution"
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign):
        targets = [node.target]
    for target in targets:
        name = _dotted_name(target.value if isinstance(target, ast.Subscript) else target)
        if name in _SETS["state"]:
            return f"it changes {name}"
    return None


def _import_reason(node: ast.Import | ast.ImportFrom) -> str | None:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif node.level:
        return None
    else:
        names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    for name in names:
        root = name.partition(".")[0]
        if root in _SETS["sharing"] or name in _SETS["sharing"]:
            return f"it imports {name if name in _SETS['sharing'] else root}"
        if root not in sys.stdlib_module_names and root not in _SETS["foreign_free"] and not is_solution_module(root):
            return f"it imports {root}, whose objects cannot be passed between processes"
    return None


def _call_reason(node: ast.Call) -> str | None:
    name = _dotted_name(node.func)
    last = name.rpartition(".")[2]
    if last in _CALLS and (last != "open" or name in {"open", "io.open"}):
        return _CALLS[last]
    owner = name.rpartition(".")[0].rpartition(".")[2]
    if last in _SETS["file_functions"] and (owner in _SETS["file_owners"] or last.endswith(("_text", "_bytes"))):
        return "it uses files"
    return None


def _dotted_name(node: ast.AST) -> str:
    """Return `a.b.c` as text, and `().c` where something else than a name has the attribute."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "()")
    return ".".join(reversed(parts))


def _class_reason(tree: ast.Module) -> str | None:
    """Return why the code shares classes: it derives from the solution's, or lets objects of them compare and compute.

    A class of the solution is a capitalised name that the code calls and does not define.
    """
    known = set(_defined_names(tree)) | vars(builtins).keys() | library_names(tree, None)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                if isinstance(base, ast.Name) and base.id not in known:
                    return f"it derives a class from {base.id}"
    classes = {name for node in ast.walk(tree) if (name := _constructed_class(node)) and name not in known}
    if not classes:
        return None
    class_of = _classes_of_variables(tree, classes)
    for node in ast.walk(tree):
        for operand in _operands(node):
            name = _constructed_class(operand)
            if name in classes or (name := class_of.get(_dotted_name(operand))) is not None:
                return f"it applies operators to objects of {name}"
    return None


def _defined_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that the code defines, save those that it imports from the solution."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not is_solution_module(node.module or "solution"):
            yield from (alias.asname or alias.name for alias in node.names)


def _constructed_class(node: ast.AST) -> str | None:
    """Return the capitalised name that the expression calls: `Vector` of `Vector(1)` and of `solution.Vector(1)`."""
    if not isinstance(node, ast.Call):
        return None
    owner, _, name = _dotted_name(node.func).rpartition(".")
    return name if name.lstrip("_")[:1].isupper() and (not owner or is_solution_module(owner)) else None


def _classes_of_variables(tree: ast.Module, classes: set[str]) -> dict[str, str]:
    """Return the class of each variable and attribute that such an object is assigned to."""
    class_of: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and (name := _constructed_class(node.value)) in classes and name is not None:
            class_of |= {
                _dotted_name(target): name for target in node.targets if isinstance(target, ast.Name | ast.Attribute)
            }
    return class_of


def _operands(node: ast.AST) -> list[ast.expr]:
    """Return what an expression compares, computes with, hashes or takes the truth of.

    What is compared with a literal does not count: functions may have capitalised names, and `Sort(x) == [1, 2]` says
    that it is one.
    """
    if isinstance(node, ast.Compare):
        return _compared_operands(node)
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [] if _constructed_class(node.operand) else [node.operand]
    if isinstance(node, ast.Set | ast.Dict):
        return [key for key in (node.elts if isinstance(node, ast.Set) else node.keys) if key is not None]
    if isinstance(node, ast.Call) and _dotted_name(node.func).rpartition(".")[2] in _SETS["comparing"]:
        return _passed_operands(node)
    return []


def _compared_operands(node: ast.Compare) -> list[ast.expr]:
    operands: list[ast.expr] = []
    for left, sign, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
        if isinstance(sign, ast.Is | ast.IsNot) or _is_literal(left) or _is_literal(right):
            continue
        operands += [left] if isinstance(sign, ast.In | ast.NotIn) else [left, right]
    return operands


def _passed_operands(node: ast.Call) -> list[ast.expr]:
    if len(node.args) == 1:
        argument = node.args[0]
        elements = argument.elts if isinstance(argument, ast.List | ast.Tuple) else []
        return [*elements, *([] if _constructed_class(argument) else [argument])]
    return [] if any(map(_is_literal, node.args)) else node.args


def _is_literal(node: ast.expr) -> bool:
    return not any(isinstance(below, ast.Name | ast.Call) for below in ast.walk(node))
