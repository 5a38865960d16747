"""Tells whether test code looks at an argument once more after the call that may have changed it.

    k = f(nums, 3)                    nums is tested as well: its changes are needed beside what f returned
    assert k == 2
    assert nums[:k] == [2, 2]

    f(nums)                           here too, where nobody looks at what f returns
    assert nums == [1, 2]

    r = f(nums)                       here they are not: the tests expect what nums was, and a solution that empties it
    assert r == sorted(nums)          could return an empty list

Only the text of the test code is looked at, once for each position of a call.
"""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from types import CodeType, FrameType

from ..test_code.library_functions import LIBRARY_OF

MAX_STATEMENTS = 40
"""How many statements behind a call are read. Stops long test code from being read once more for each of its calls."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_VARIABLES = (ast.Name, ast.Attribute, ast.Subscript)


class ArgumentUse:
    """Knows one piece of test code. file: the name under which it was compiled."""

    def __init__(self, tree: ast.Module, file: str) -> None:
        self._tree = tree
        self._file = file
        self._parents: dict[ast.AST, ast.AST] = {}
        self._calls: dict[tuple[int, int], ast.Call] = {}
        self._known_names = {*dir(builtins), *LIBRARY_OF}
        """Names of functions that are not the solution's."""
        self._variables: dict[ast.stmt, dict[str, list[ast.AST]]] = {}
        self._answers: dict[tuple[CodeType, int], bool] = {}

    def looks_at_arguments(self, frame: FrameType | None) -> bool:
        """Return whether the arguments of the call that test code is making now are looked at after it.

        frame: any below which that call is.
        """
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        if frame is None:
            return False
        position = frame.f_code, frame.f_lasti
        if position not in self._answers:
            call = self._find_call(*position)
            self._answers[position] = call is not None and self._needs_changes(call)
        return self._answers[position]

    def _find_call(self, code: CodeType, instruction: int) -> ast.Call | None:
        if not self._parents:
            self._read()
        positions = code.co_positions() if hasattr(code, "co_positions") else iter(())
        _, line, _, column = next(islice(positions, instruction // 2, None), (None, None, None, None))
        return self._calls.get((line or 0, column or 0))

    def _read(self) -> None:
        for node in ast.walk(self._tree):
            for below in ast.iter_child_nodes(node):
                self._parents[below] = node
            if isinstance(node, ast.Call):
                self._calls[node.end_lineno or 0, node.end_col_offset or 0] = node
            elif isinstance(node, ast.FunctionDef):
                self._known_names.add(node.name)
            elif isinstance(node, ast.alias):
                self._known_names.add(node.asname or node.name.partition(".")[0])

    def _needs_changes(self, call: ast.Call) -> bool:
        statement = self._statement_of(call)
        if isinstance(statement, ast.Expr) and statement.value in (call, self._parents[call]):
            return True
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        arguments = [value.value if isinstance(value, ast.Starred) else value for value in values]
        variables = {_source_text(value) for value in arguments if isinstance(value, _VARIABLES)}
        if not variables or any(len(self._uses(statement, {variable})) > 1 for variable in variables):
            return False
        result_names = _stored_names(statement)
        is_looked_at = False
        for later in islice(self._statements_after(statement), MAX_STATEMENTS):
            every_use = self._uses(later, variables)
            uses = [use for use in every_use if not self._is_passed_on(use)]
            if uses and (len(uses) < len(every_use) or not self._is_subject(later, uses, result_names)):
                return False
            is_looked_at = is_looked_at or (bool(uses) and _is_look(later, uses))
            if isinstance(later, ast.Assign) and _stored_names(later) & variables:
                break
        return is_looked_at

    def _uses(self, statement: ast.stmt, variables: set[str]) -> list[ast.AST]:
        if statement not in self._variables:
            nodes = self._variables[statement] = defaultdict(list)
            for node in ast.walk(statement):
                if isinstance(node, _VARIABLES):
                    nodes[_source_text(node)].append(node)
        nodes_of = self._variables[statement]
        return [node for variable in variables & nodes_of.keys() for node in nodes_of[variable]]

    def _statement_of(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self._parents[node]
        return node

    def _statements_after(self, statement: ast.AST) -> Iterator[ast.stmt]:
        """Yield the statements behind it, up to the end of its function."""
        while not isinstance(statement, (*_FUNCTIONS, ast.Module)):
            parent = self._parents[statement]
            for name in ("body", "orelse", "finalbody", "handlers"):
                siblings = getattr(parent, name, None)
                if isinstance(siblings, list) and statement in siblings:
                    yield from siblings[siblings.index(statement) + 1 :]
            statement = parent

    def _steps_up(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Yield each node and its parent, from this one up to its statement."""
        while not isinstance(node, ast.stmt):
            yield node, self._parents[node]
            node = self._parents[node]

    def _is_passed_on(self, use: ast.AST) -> bool:
        """Return whether it is an argument of a further call of the solution."""
        return any(
            isinstance(parent, ast.Call) and node is not parent.func and not self._is_known(parent.func)
            for node, parent in self._steps_up(use)
        )

    def _is_known(self, function: ast.expr) -> bool:
        """Return whether a function is none of the solution's."""
        if "assert" in getattr(function, "attr", "").lower():
            return True
        while isinstance(function, ast.Attribute | ast.Call):
            function = function.value if isinstance(function, ast.Attribute) else function.func
        return not isinstance(function, ast.Name) or function.id in self._known_names

    def _is_subject(self, later: ast.stmt, uses: list[ast.AST], result_names: set[str]) -> bool:
        """Return whether an argument stands there as what is tested, and not as what a result is compared with."""
        if all(self._is_cut_by_result(use, result_names) for use in uses):
            return True
        if not isinstance(later, ast.Assert | ast.Expr | ast.Return | ast.For | ast.If | ast.With):
            return False
        names = (node for node in ast.walk(later) if isinstance(node, ast.Name) and node.id in result_names)
        return all(map(self._is_bound, names))

    def _is_cut_by_result(self, use: ast.AST, result_names: set[str]) -> bool:
        """Return whether a result cuts it, as in `nums[:k]` and `sorted(nums)[:k]`."""
        for node, parent in self._steps_up(use):
            if isinstance(parent, ast.Subscript) and node is parent.value:
                names = {below.id for below in ast.walk(parent.slice) if isinstance(below, ast.Name)}
                if names & result_names:
                    return True
        return False

    def _is_bound(self, name: ast.AST) -> bool:
        """Return whether a result only says up to where, in an index or in `range`."""
        for node, parent in self._steps_up(name):
            if isinstance(parent, ast.Subscript) and node is parent.slice:
                return True
            if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "range":
                return True
        return False


def _source_text(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)


def _stored_names(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds."""
    names = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}


def _is_look(later: ast.stmt, uses: list[ast.AST]) -> bool:
    """Return whether the statement reads what is used; `nums.sort()` and `nums = [...]` do not."""
    if isinstance(later, ast.Expr) and isinstance(later.value, ast.Call):
        receiver = getattr(later.value.func, "value", None)
        return receiver not in uses
    return any(not isinstance(getattr(use, "ctx", None), ast.Store) for use in uses)
