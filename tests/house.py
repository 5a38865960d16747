"""Reads the imports of the product as a graph: of files, and of the entries of every folder.

    circles(file_graph())      [] or [["truegold.a.b", "truegold.a.c", "truegold.a.b"]]

Imports inside functions count; those under `if TYPE_CHECKING` count as well. `from package import name` is an import of
the module `package.name` where there is one, else of the package's `__init__`. Between the entries of one folder
(subfolders taken as wholes, `__init__` left out: it is the folder's door) the graph has to be free of circles too, so
that each folder reads from the bottom up.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
FLOORS = ("verifiers", "pipeline", "synth", "train", "flows")

Graph = dict[str, set[str]]


def source_files() -> list[Path]:
    """Every Python file of the product."""
    return [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))]


def module_name(path: Path) -> str:
    """`pipeline/clean/__init__.py` is `truegold.pipeline.clean.__init__`."""
    return ".".join(("truegold", *path.relative_to(ROOT).with_suffix("").parts))


def imports(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    """The modules of the product that a file imports, by name."""
    package = module_name(path).split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _known(alias.name, modules)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield from _known(f"{source}.{alias.name}", modules) or _known(source, modules)


def _known(name: str, modules: Mapping[str, Path]) -> list[str]:
    return [found for found in (name, f"{name}.__init__") if found in modules][:1]


def file_graph() -> Graph:
    """Which file imports which."""
    modules = {module_name(path): path for path in source_files()}
    return {name: set(imports(path, modules)) - {name} for name, path in modules.items()}


def folder_graphs(files: Graph) -> dict[str, Graph]:
    """For every folder, which of its entries imports which other one."""
    graphs: dict[str, Graph] = {}
    for importer, imported in files.items():
        for target in imported:
            left, right = importer.split("."), target.split(".")
            shared = 0
            while left[shared] == right[shared]:
                shared += 1
            entries = left[shared], right[shared]
            if "__init__" not in entries:
                graph = graphs.setdefault(".".join(left[:shared]), {})
                graph.setdefault(entries[0], set()).add(entries[1])
    return graphs


def circle(graph: Graph) -> list[str]:
    """One circle of the graph, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []
