"""Finds test code that has to run in the solution's process, because it does something that two processes cannot.

    needs_one_process("with patch('solution.now'): ...")     "it imports unittest.mock"
    needs_one_process("class Mine(Base): ...")              "it derives a class from Base"
    needs_one_process("assert add(1, 2) == 3")               None

Only the test code is read, so that a solution cannot choose how it is tested. Objects that the tests pass and that
cannot be sent between processes are noticed only when the tests run.
"""

from __future__ import annotations

import ast
import builtins
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from truegold.verifiers.code.python_source import UNREADABLE
from truegold.verifiers.code.suite.imports import means_solution
from truegold.verifiers.sandbox.inside.program import MODULE
from truegold.verifiers.sandbox.inside.test_code.library_functions import defined_names, library_names

CACHED_SUITES = 256
_WORDS = tomllib.loads(files(__package__).joinpath("isolation.toml").read_text(encoding="utf-8"))
_CALLS: Mapping[str, str] = _WORDS.pop("calls")
"""Functions that need one process, and the reason for each."""
_SETS = {name: frozenset(words.split()) for name, words in _WORDS.items()}
"""Sets of names, as `isolation.toml` describes them."""


@lru_cache(maxsize=CACHED_SUITES)
def needs_one_process(code: str) -> str | None:
    """Return the reason why test code has to share a process with the solution, or None.

    Returns None also for code that cannot be parsed.
    """
    try:
        tree = ast.parse(code)
    except UNREADABLE:
        return None
    reasons = (_node_reason(node, code) for node in ast.walk(tree))
    return next(filter(None, reasons), None) or _running_reason(tree, "pandas" in code) or _class_reason(tree, code)


def _node_reason(node: ast.AST, code: str) -> str | None:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return _import_reason(node, code)
    if isinstance(node, ast.Call):
        return _call_reason(node)
    if isinstance(node, ast.FunctionDef) and (used := {a.arg for a in node.args.args} & _SETS["fixtures"]):
        return f"it uses the fixture {min(used)}"
    if isinstance(node, ast.AsyncFor | ast.AsyncWith):
        return "it uses asynchronous objects of the solution"
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AugAssign) else targets
    for target in targets:
        name = _dotted_name(target.value if isinstance(target, ast.Subscript) else target)
        if name in _SETS["state"]:
            return f"it changes {name}"
    return None


def _import_reason(node: ast.Import | ast.ImportFrom, code: str) -> str | None:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif node.level or means_solution(node.module or "", code):
        return None
    else:
        names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    for name in names:
        root = name.partition(".")[0]
        if root in _SETS["sharing"] or name in _SETS["sharing"]:
            return f"it imports {name if name in _SETS['sharing'] else root}"
        is_known = root in sys.stdlib_module_names or root in _SETS["foreign_free"] or means_solution(name, code)
        if not is_known:
            return f"it imports {root}, whose objects cannot be passed between processes"
    return None


def _call_reason(node: ast.Call) -> str | None:
    if any(keyword.arg == "allow_pickle" for keyword in node.keywords):
        return _CALLS["read_pickle"]
    return _CALLS.get(_dotted_name(node.func).rpartition(".")[2])


def _running_reason(tree: ast.Module, with_pandas: bool) -> str | None:
    """Return a reason if the code may execute a text from the solution, as in `eval(f(1))` or `map(eval, f(1))`.

    A text from the solution must not run in the process of the tests; a text that is written in the test code may. A
    call of `format` counts as execution, since `f(1).format(user)` can read every attribute of `user`.
    """
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    paths = {
        alias.asname or alias.name: f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        for node in imports
        for alias in node.names
    }
    methods = _SETS["running_methods"] | (_SETS["running_by_pandas"] if with_pandas else set())
    texts = _names_of_texts(tree)
    harmless = set()
    for node in ast.walk(tree):
        name = _dotted_name(getattr(node, "func", node))
        first, dot, rest = name.partition(".")
        path = f"{paths.get(first, first)}{dot}{rest}".removeprefix("builtins.")
        last = path.rpartition(".")[2]
        if isinstance(node, ast.Call):
            arguments = [each.value for each in node.keywords if each.arg in _SETS["texts"] | {None}]
            arguments += node.args[: 2 if "timeit" in path else 1]
            if last in _SETS["formatting"] and not _is_text(getattr(node.func, "value", node.func), texts):
                arguments = [*node.args, *(each.value for each in node.keywords)]
                path = "eval" if "." in path else path
            if all(_is_text(each, texts) for each in arguments):
                harmless.add(id(node.func))
                continue
        elif id(node) in harmless:
            continue
        if path in _SETS["running"] or ("." in path and last in methods):
            return f"it calls {name} with a value that may come from the solution"
    return None


def _names_of_texts(tree: ast.Module) -> set[str]:
    """Return the names that the code assigns only constants to."""
    bound = Counter(defined_names(tree))
    constants = Counter(
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_text(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    )
    return {name for name, count in constants.items() if count == bound[name]}


def _is_text(node: ast.expr, texts: set[str]) -> bool:
    """Return whether an expression is a constant, a lambda or a name in `texts`."""
    if isinstance(node, ast.Lambda) or (isinstance(node, ast.Name) and node.id in texts):
        return True
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _dotted_name(node: ast.AST) -> str:
    """Return a dotted name as text: `a.b.c`, or `().c` if the attribute belongs to another expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "()")
    return ".".join(reversed(parts))


def _class_reason(tree: ast.Module, code: str) -> str | None:
    """Return a reason if the code derives a class from a class of the solution, else None."""
    solutions = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and means_solution(node.module or MODULE, code)
        for alias in node.names
    }
    known = (set(defined_names(tree)) - solutions) | vars(builtins).keys() | library_names(tree, None)
    bases = (base for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases)
    foreign = (base.id for base in bases if isinstance(base, ast.Name) and base.id not in known)
    return next((f"it derives a class from {name}" for name in foreign), None)
