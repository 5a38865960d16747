"""Functions of libraries that test code uses without importing them, because whoever wrote it had them at hand.

    assert isclose(f(2), 4.5)         math's, whatever the solution calls so: it would say that everything is close
    assert sqrt(16) == 4              the solution's: nothing else is tested here

A closed list of names that everybody means the same thing by. Test code that defines or imports them has its own.
"""

from __future__ import annotations

import ast
import builtins
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

_NAMES = {
    "math": "isclose sqrt ceil floor factorial gcd lcm comb perm fabs hypot log log2 log10 exp isnan isinf isfinite"
    " prod",
    "itertools": "permutations combinations combinations_with_replacement product chain accumulate zip_longest islice"
    " groupby pairwise",
    "collections": "Counter defaultdict deque OrderedDict namedtuple",
    "functools": "reduce partial cmp_to_key",
    "heapq": "heapify heappush heappop nlargest nsmallest",
    "bisect": "bisect_left bisect_right insort",
    "copy": "deepcopy",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "datetime": "datetime timedelta",
    "operator": "itemgetter attrgetter",
    "pytest": "approx raises",
    "numpy": "allclose array_equal",
    "numpy.testing": "assert_allclose assert_array_equal assert_array_almost_equal assert_almost_equal",
}

WELL_KNOWN: Mapping[str, str] = {name: module for module, names in _NAMES.items() for name in names.split()}
"""Name -> module."""

_OF_NUMPY = [name for name, module in WELL_KNOWN.items() if module.startswith("numpy")]
_VARIABLES = (ast.Name, ast.Attribute)
_BUILTINS = frozenset(dir(builtins))


def library_names(tree: ast.Module, entry_point: str | None) -> frozenset[str]:
    """The well-known names that mean the library in this test code: not the entry point, no class whose objects are
    asked for what the library's have not, and none that is tested, as by an assertion that calls nothing else."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if used.isdisjoint(WELL_KNOWN):
        return frozenset(WELL_KNOWN)
    own = {entry_point}
    for node in ast.walk(tree):
        if _asserts(node):
            called = set(_called(node))
            own |= called if len(called) == 1 else set() if called else set(_passed(node))
    return frozenset(WELL_KNOWN.keys() - own - set(_other_classes(tree)))


def library_function(name: str) -> Any:
    """LookupError where the library is not installed here."""
    try:
        return getattr(importlib.import_module(WELL_KNOWN[name]), name)
    except (ImportError, AttributeError):
        raise LookupError(name) from None


def uses_numpy(code: str) -> bool:
    """Whether a well-known name of numpy's may be in it."""
    return any(name in code for name in _OF_NUMPY)


def _asserts(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Assert)
    return "assert" in getattr(node.func, "attr", "").lower()


def _other_classes(tree: ast.Module) -> Iterator[str]:
    """Classes of the solution's that are called as a library's: `c = Counter()` where the tests say `c.increment()`."""
    holders: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and (name := _made(node.value)) is not None:
            holders |= {ast.unparse(target): name for target in node.targets if isinstance(target, _VARIABLES)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            held = holders.get(ast.unparse(node.value)) if isinstance(node.value, _VARIABLES) else None
            name = held or _made(node.value)
            if name is not None and not _has(name, node.attr):
                yield name


def _made(node: ast.AST) -> str | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WELL_KNOWN:
        return node.func.id
    return None


def _has(name: str, attribute: str) -> bool:
    try:
        made = library_function(name)
    except LookupError:
        return True
    return not isinstance(made, type) or hasattr(made, attribute)


def _passed(node: ast.AST) -> Iterator[str]:
    """`f` of `assertRaises(ValueError, f)`"""
    if isinstance(node, ast.Call):
        yield from (value.id for value in node.args if isinstance(value, ast.Name))


def _called(node: ast.AST) -> Iterator[str]:
    """Functions, by their names, that are called there and are not built in."""
    for below in ast.walk(node):
        if isinstance(below, ast.Call) and isinstance(below.func, ast.Name) and below.func.id not in _BUILTINS:
            yield below.func.id
