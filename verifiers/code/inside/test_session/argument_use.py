"""Whether test code looks at an argument once more after the call that may have changed it.

    k = f(nums, 3)                    nums is what is tested as well: its changes are wanted beside what f returned
    assert k == 2
    assert nums[:k] == [2, 2]

    f(nums)                           so they are where what f returns is of no interest
    assert nums == [1, 2]

    r = f(nums)                       here they are not: the tests expect what nums was, and a solution that empties it
    assert r == sorted(nums)          could return an empty list

A look at the text alone, for each place of a call once.
"""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from types import CodeType, FrameType

from ..test_code.library_functions import WELL_KNOWN

MAX_LOOKED_AT = 40
"""Statements behind a call. Stops long test code from being read once more for each of its calls."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_PLACES = (ast.Name, ast.Attribute, ast.Subscript)


class Later:
    """tree: the test code. file: the name under which it was compiled."""

    def __init__(self, tree: ast.Module, file: str) -> None:
        self._tree = tree
        self._file = file
        self._above: dict[ast.AST, ast.AST] = {}
        self._calls: dict[tuple[int, int], ast.Call] = {}
        self._own = {*dir(builtins), *WELL_KNOWN}
        self._places: dict[ast.stmt, dict[str, list[ast.AST]]] = {}
        self._known: dict[tuple[CodeType, int], bool] = {}

    def looks_at_arguments(self, frame: FrameType | None) -> bool:
        """Of the call that test code is making now. frame: any below which that call is."""
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        if frame is None:
            return False
        place = frame.f_code, frame.f_lasti
        if place not in self._known:
            self._known[place] = self._found(*place)
        return self._known[place]

    def _found(self, code: CodeType, at: int) -> bool:
        if not self._above:
            self._read()
        positions = code.co_positions() if hasattr(code, "co_positions") else iter(())
        _, line, _, column = next(islice(positions, at // 2, None), (None, None, None, None))
        call = self._calls.get((line or 0, column or 0))
        return call is not None and self._wanted(call)

    def _read(self) -> None:
        for node in ast.walk(self._tree):
            for below in ast.iter_child_nodes(node):
                self._above[below] = node
            if isinstance(node, ast.Call):
                self._calls[node.end_lineno or 0, node.end_col_offset or 0] = node
            elif isinstance(node, ast.FunctionDef):
                self._own.add(node.name)
            elif isinstance(node, ast.alias):
                self._own.add(node.asname or node.name.partition(".")[0])

    def _wanted(self, call: ast.Call) -> bool:
        statement = self._statement(call)
        if isinstance(statement, ast.Expr) and statement.value in (call, self._above[call]):
            return True
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        given = [value.value if isinstance(value, ast.Starred) else value for value in values]
        places = {_text(value) for value in given if isinstance(value, _PLACES)}
        if not places or any(len(self._uses(statement, {place})) > 1 for place in places):
            return False
        results = _stored(statement)
        looks = False
        for later in islice(self._after(statement), MAX_LOOKED_AT):
            every = self._uses(later, places)
            uses = [use for use in every if not self._is_given_on(use)]
            if uses and (len(uses) < len(every) or not self._is_subject(later, uses, results)):
                return False
            looks = looks or (bool(uses) and _is_a_look(later, uses))
            if isinstance(later, ast.Assign) and _stored(later) & places:
                break
        return looks

    def _uses(self, statement: ast.stmt, places: set[str]) -> list[ast.AST]:
        if statement not in self._places:
            found = self._places[statement] = defaultdict(list)
            for node in ast.walk(statement):
                if isinstance(node, _PLACES):
                    found[_text(node)].append(node)
        known = self._places[statement]
        return [node for place in places & known.keys() for node in known[place]]

    def _statement(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self._above[node]
        return node

    def _after(self, statement: ast.AST) -> Iterator[ast.stmt]:
        """The statements behind it, up to the end of its function."""
        while not isinstance(statement, (*_FUNCTIONS, ast.Module)):
            above = self._above[statement]
            for name in ("body", "orelse", "finalbody", "handlers"):
                among = getattr(above, name, None)
                if isinstance(among, list) and statement in among:
                    yield from among[among.index(statement) + 1 :]
            statement = above

    def _is_given_on(self, use: ast.AST) -> bool:
        """Whether it is an argument of a further call of the solution."""
        while not isinstance(use, ast.stmt):
            above = self._above[use]
            if isinstance(above, ast.Call) and use is not above.func and not self._is_of_the_tests(above.func):
                return True
            use = above
        return False

    def _is_of_the_tests(self, function: ast.expr) -> bool:
        """Whether a function is none of the solution's."""
        if "assert" in getattr(function, "attr", "").lower():
            return True
        while isinstance(function, ast.Attribute | ast.Call):
            function = function.value if isinstance(function, ast.Attribute) else function.func
        return not isinstance(function, ast.Name) or function.id in self._own

    def _is_subject(self, later: ast.stmt, uses: list[ast.AST], results: set[str]) -> bool:
        """Whether an argument stands there as what is tested, and not as what a result is compared with."""
        if all(self._is_cut_by(use, results) for use in uses):
            return True
        if not isinstance(later, ast.Assert | ast.Expr | ast.Return | ast.For | ast.If | ast.With):
            return False
        names = (node for node in ast.walk(later) if isinstance(node, ast.Name) and node.id in results)
        return all(self._is_bound(name, later) for name in names)

    def _is_cut_by(self, use: ast.AST, results: set[str]) -> bool:
        """`nums[:k]`, `sorted(nums)[:k]`"""
        while not isinstance(use, ast.stmt):
            above = self._above[use]
            if isinstance(above, ast.Subscript) and use is above.value:
                names = {node.id for node in ast.walk(above.slice) if isinstance(node, ast.Name)}
                if names & results:
                    return True
            use = above
        return False

    def _is_bound(self, name: ast.AST, later: ast.stmt) -> bool:
        """Whether a result only says up to where: in an index, or in `range`."""
        while name is not later:
            above = self._above[name]
            if isinstance(above, ast.Subscript) and name is above.slice:
                return True
            if isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id == "range":
                return True
            name = above
        return False


def _text(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)


def _stored(statement: ast.stmt) -> set[str]:
    """Names that a statement binds."""
    names = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}


def _is_a_look(later: ast.stmt, uses: list[ast.AST]) -> bool:
    """Not `nums.sort()` and `nums = [...]`, which are neither here nor there."""
    if isinstance(later, ast.Expr) and isinstance(later.value, ast.Call):
        receiver = getattr(later.value.func, "value", None)
        return receiver not in uses
    return any(not isinstance(getattr(use, "ctx", None), ast.Store) for use in uses)
