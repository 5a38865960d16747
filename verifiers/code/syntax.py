"""Reading Python source that may be anything.

    parse("def f(): pass")     ast.Module
    parse("def f(")            None
    top_level(parse("import math as m\nclass A:\n    def f(self): pass"))   {"m", "A", "A.f"}

Nothing is run. For what cannot be read, or is longer than MAX_SOURCE_CHARS, `parse` returns None.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings
from collections.abc import Iterable, Iterator

MAX_SOURCE_CHARS = 400_000
"""A longer source is not read. Stops sources whose syntax tree takes gigabytes."""

_MAY_WARN = re.compile(r"\\|[0-9.](?=[aefino])(?:and|else|for|if|in|is|not|or)\b")
"""Escapes, and numbers with a keyword right behind them."""

_QUIET = threading.Lock()


UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError, SystemError)
"""What the parser raises. SystemError is CPython's own mistake over deeply nested sources (3.11, 3.12)."""


def parse(source: str) -> ast.Module | None:
    """Return the syntax tree of a source, None where it has none."""
    try:
        return _tree(source)
    except UNREADABLE:
        return None


def error_line(source: str) -> int | None:
    """Return the line, from 1, over which the parser stumbles; None where there is none or no line can be named."""
    try:
        _tree(source)
    except SyntaxError as error:
        return error.lineno
    except UNREADABLE:
        pass
    return None


def _tree(source: str) -> ast.Module:
    if len(source) > MAX_SOURCE_CHARS:
        raise ValueError("too long")
    if _MAY_WARN.search(source) is None:
        return ast.parse(source)
    # Odd escapes and numbers make the compiler warn, and a user who turned warnings into errors would get other
    # verdicts. The filters belong to the whole process, so one thread sets them at a time, and only where a warning may
    # come.
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def top_level(tree: ast.Module) -> set[str]:
    """Return the names that a module's top-level statements bind, and `Class.method` for the methods of its classes."""
    return {name for statement in tree.body for name in bound_by(statement)}


def bound_by(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds in the scope where it stands."""
    for node in nodes_in_scope([statement]):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
                yield from (f"{name}.{inner}" for part in node.body for inner in bound_by(part) if "." not in inner)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
            case ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
                yield name


def nodes_in_scope(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes below `body` that run in its scope: not what stands inside functions and classes."""
    pending = list(body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            pending += ast.iter_child_nodes(node)


def lines_of(statement: ast.stmt) -> tuple[int, int]:
    """Return the first and the last line of a statement, counted from 1, with its decorators."""
    decorators = getattr(statement, "decorator_list", ())
    first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
    return first, statement.end_lineno or statement.lineno
