"""The stub of a completion-style task: imports, helpers, and a function without its body.

    stub = "import math\\n\\ndef area(r):\\n    \\"\\"\\"The area of a circle.\\"\\"\\"\\n"
    stub_names(stub, "area")                            "import math"
    continue_stub(stub, "    return math.pi * r ** 2", "area")     the stub with this line as the function's body

A response that is a whole program may leave out what the stub gives; another one continues the stub.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from functools import lru_cache

from truegold.verifiers.code.extraction.python_source import MAX_PROGRAM_CHARS
from truegold.verifiers.code.syntax import lines_of, nodes_in_scope, parse

CACHED_STUBS = 1_024

_KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
_BLOCKS = (ast.If, ast.Try)


@lru_cache(maxsize=CACHED_STUBS)
def stub_names(stub: str, entry_point: str) -> str:
    """Return the stub's source without the entry point: what a response may rely on."""
    name = _first_name(entry_point)
    lines = stub.split("\n")
    tree = _parse_stub(stub)
    if tree is None:
        definition = re.compile(rf"(?:async[ \t]+def|def|class)[ \t]+{re.escape(name)}\b|@")
        before = next((index for index, line in enumerate(lines) if definition.match(line)), len(lines))
        kept = "\n".join(lines[:before])
        return kept.strip("\n") if parse(kept) is not None else ""
    parts = []
    for statement in tree.body:
        if not isinstance(statement, _KEPT + _BLOCKS) or getattr(statement, "name", None) == name:
            continue
        first, last = lines_of(statement)
        parts.append("\n".join(lines[first - 1 : last]))
    return "\n".join(parts)


def continue_stub(stub: str, body: str, entry_point: str) -> str | None:
    """Return the stub with `body` behind it, None where that is no function with a body."""
    if len(body) > MAX_PROGRAM_CHARS:
        return None
    lines = stub.rstrip().count("\n") + 1
    for text in _continuations(stub, body):
        tree = parse(text)
        if tree is not None and _has_body(tree, entry_point, lines):
            return text
    return None


def _continuations(stub: str, body: str) -> Iterator[str]:
    joint = "" if stub.endswith("\n") or not stub.rpartition("\n")[2].strip() else "\n"
    yield f"{stub}{joint}{body}"
    lines = body.strip("\n").split("\n")
    indent = _indent_of_body(stub)
    stub = stub.rstrip() + "\n"
    if lines[0][:1] not in (" ", "\t"):
        # The first line's indentation is often lost: as the last token of the prompt, or by stripping the response.
        yield stub + "\n".join(f"{indent}{line}" if line.strip() else line for line in lines)
        yield f"{stub}{indent}{body.strip()}"
    elif not lines[0].startswith(indent):
        yield stub + textwrap.indent(textwrap.dedent("\n".join(lines)), indent)
    # A base model goes on after the function.
    outside = (index for index, line in enumerate(lines) if index and line.strip() and line[:1] not in (" ", "\t"))
    end = next(outside, None)
    if end is not None:
        first = lines[0] if lines[0][:1] in (" ", "\t") else f"{indent}{lines[0]}"
        yield stub + "\n".join([first, *lines[1:end]])


def _has_body(tree: ast.Module, entry_point: str, stub_lines: int) -> bool:
    """Whether the entry point's function has a statement behind the stub's lines."""
    if any(isinstance(node, ast.Return) for node in nodes_in_scope(tree.body)):
        return False
    body: list[ast.stmt] = tree.body
    parts = [part.removesuffix("()") for part in entry_point.split(".")]
    for name in parts:
        definitions = [each for each in body if getattr(each, "name", None) == name]
        if not definitions:
            return False
        body = getattr(definitions[-1], "body", [])
    last = body[-1]
    while isinstance(last, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        last = last.body[-1]
    is_word = isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant | ast.Name)
    return not is_word and (last.end_lineno or 0) >= stub_lines


def _parse_stub(stub: str) -> ast.Module | None:
    """Return the stub's tree, where need be with a body for its last function."""
    tree = parse(stub)
    return tree if tree is not None else parse(f"{stub.rstrip()}\n{_indent_of_body(stub)}pass\n")


def _indent_of_body(stub: str) -> str:
    """Return the indentation of the last function's body: that of its docstring, where it has one."""
    lines = [line for line in stub.split("\n") if line.strip()]
    start = max((i for i, line in enumerate(lines) if line.lstrip().startswith(("def ", "async def "))), default=None)
    if start is None:
        return "    "
    indent = _indent(lines[start])
    below = next((_indent(line) for line in lines[start + 1 :] if '"""' in line or "'''" in line), "")
    if len(below) > len(indent):
        return below
    return indent + ("\t" if "\t" in indent else "    ")


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _first_name(entry_point: str) -> str:
    return entry_point.partition(".")[0].removesuffix("()")
