"""Reads the imports of the product as a graph: of files, and of the entries of every folder.

    find_circle(import_graph())      [] or ["truegold.a.b", "truegold.a.c", "truegold.a.b"]

Imports inside functions count, and so do those under `if TYPE_CHECKING`. `from package import name` is an import of
the module `package.name` where there is one, else of the package's `__init__`. Between the entries of one folder
(subfolders taken as wholes, `__init__` left out: it is the folder's door) the graph has to be free of circles too, so
that each folder reads from the bottom up.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
FLOORS = ("verifiers", "pipeline", "synth", "train", "flows")

NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}

Graph = dict[str, set[str]]


def source_files() -> list[Path]:
    """Return every Python file of the product."""
    return [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))]


@cache
def syntax_tree(path: Path) -> ast.Module:
    """Return what a file is parsed into."""
    return ast.parse(path.read_text())


def code_lines(path: Path) -> int:
    """Return how many lines of a file are code: without blank lines, comments and docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def module_name(path: Path) -> str:
    """Return a file's name as a module: `truegold.pipeline.clean.__init__` for `pipeline/clean/__init__.py`."""
    return ".".join(("truegold", *path.relative_to(ROOT).with_suffix("").parts))


def imported_modules(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    """Yield the names of the modules of the product that a file imports."""
    package = module_name(path).split(".")[:-1]
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _module_or_door(alias.name, modules)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                target = f"{source}.{alias.name}"
                yield from _module_or_door(target, modules) or _module_or_door(source, modules)


def _module_or_door(name: str, modules: Mapping[str, Path]) -> list[str]:
    """Return the module `name`, or the `__init__` of the package of that name; nothing where there is neither."""
    return [module for module in (name, f"{name}.__init__") if module in modules][:1]


@cache
def import_graph() -> Graph:
    """Return which file imports which others."""
    modules = {module_name(path): path for path in source_files()}
    return {name: set(imported_modules(path, modules)) - {name} for name, path in modules.items()}


def folder_graphs(files: Graph) -> dict[str, Graph]:
    """Return, for every folder, which of its entries imports which others."""
    graphs: dict[str, Graph] = {}
    for importer, targets in files.items():
        for target in targets:
            importer_path, target_path = importer.split("."), target.split(".")
            depth = 0
            while importer_path[depth] == target_path[depth]:
                depth += 1
            importer_entry, target_entry = importer_path[depth], target_path[depth]
            if "__init__" not in (importer_entry, target_entry):
                graph = graphs.setdefault(".".join(importer_path[:depth]), {})
                graph.setdefault(importer_entry, set()).add(target_entry)
    return graphs


def floors(graph: Graph) -> dict[str, int]:
    """Return the floor of every entry of a folder: 1 where it imports none of the others, else one above those."""
    levels: dict[str, int] = {}
    for entry in TopologicalSorter(graph).static_order():
        levels[entry] = 1 + max((levels[target] for target in graph.get(entry, ())), default=0)
    return levels


def find_circle(graph: Graph) -> list[str]:
    """Return one circle of the graph, its first entry again at the end; an empty list where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []
