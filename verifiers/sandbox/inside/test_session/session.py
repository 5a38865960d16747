"""Sends the test code's requests to the solution's process, one after the other.

No answer of the solution's process is trusted. An invalid answer ends the session: the pending call and all later ones
raise `SolutionGone`. Even if the test code catches this exception, the run counts as failed.

`ArgumentUse` reads from the source whether test code checks an argument after a call that may have changed it:

    k = f(nums, 3); assert nums[:k] == [2, 2]      checked, as in `f(nums); assert nums == [1, 2]`
    r = f(nums); assert r == sorted(nums)          not checked: nums is the expected value

In the second example the test code keeps its own nums, even if the solution changed nums. Otherwise a solution that
empties nums and returns an empty list would pass.
"""

from __future__ import annotations

import ast
import builtins
import functools
import reprlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import islice, pairwise
from types import CodeType, FrameType
from typing import NoReturn, TypeVar

from ..program import class_finder
from ..test_code.library_functions import LIBRARY_OF
from ..test_code.report import SHOWN_CHARS, SolutionWatch
from ..test_code.statements import HELD
from ..wire.encoding import PartnerGone, PartnerLine
from ..wire.value_types import KNOWN_CODECS, Codecs, Json, ResultTooLarge, Undecodable, Value
from .remote_objects import CannotIsolate, Operators, RemoteFunction, RemoteObject, RemoteType
from .remote_values import RemoteValues
from .shared_objects import EXCEPTIONS, Borrower, restore
from .surroundings import StandIn, Surroundings

MAX_SPECIAL_CALLS = 100_000
"""Maximum number of items, lengths and texts that are requested one by one. Stops endless iteration over an object."""

Encoded = TypeVar("Encoded")

_OTHER_FIELDS = frozenset({"data", "value", "key"})
"""Fields of a linked list's or tree's nodes, if the program defines the class and does not name the field `val`."""

_LOOP_ENDING = (StopIteration, StopAsyncIteration, GeneratorExit)
"""Exceptions that end a loop of the test code."""


class SolutionGone(BaseException):
    """The solution's process ended, or sent a message that is not an answer.

    It is not an `Exception`, so that `except Exception` in the test code does not catch it.
    """


class NotLoaded(Exception):
    """The program could not be loaded. The argument is [type, message]."""


class NoSuchName(LookupError):
    """The program does not define this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the program does not define {name!r}")


class Session(SolutionWatch):
    """The connection by which test code uses the solution.

    namespace: the global variables of the test code, among which classes are found by name. argument_use: tells which
    arguments are checked after a call.
    """

    def __init__(
        self,
        namespace: Mapping[str, Value],
        codecs: Codecs,
        uses_numpy: bool,
        argument_use: ArgumentUse,
        tree: ast.Module,
    ) -> None:
        self.broken_reason = None
        self.isolation_problem: str | None = None
        """The reason that test code needs the solution in its own process, or None."""
        self.codecs: dict[str, Sequence[str]] = {**KNOWN_CODECS, **codecs}
        self.find_class = class_finder(namespace, self.codecs)
        self.uses_numpy = uses_numpy
        """Whether arrays of numpy are decoded as arrays."""
        self._argument_use = argument_use
        self._last_call: tuple[str, tuple[Value, ...], dict[str, Value], Value] | None = None
        self._line = PartnerLine()
        self._turn = threading.RLock()
        self._values = RemoteValues(self)
        self.replaced_methods: dict[tuple[int, str], Value] = {}
        """Functions by which the test code has replaced methods, by handle and name."""
        self._surroundings = Surroundings(tree, lambda value: self._send_args(value)[0])
        self._borrower = Borrower(self._values.encode_known, self._values.decode)
        self._special_calls = 0
        self.operators = Operators(self, RemoteObject)

    def wait_until_loaded(self) -> None:
        """Request that the program is loaded, and wait for it. Raises `NotLoaded`."""
        try:
            self._line.send(["load"])
            kind, *rest = self._line.receive()
        except (PartnerGone, Undecodable) as error:
            self._break_off(error)
        if kind == "not loaded":
            raise NotLoaded([str(part)[:500] for part in rest[:2]])
        if kind != "loaded":
            self._break_off(Undecodable("it does not report whether the program is loaded"))

    def look_up_entry(self, expression: str) -> Value:
        """Return the object of an entry point: `Solution().twoSum`. Raises `NoSuchName`."""
        first, _, rest = expression.partition("()")
        if rest:
            self.operators.function_holders.add(first)
        return self._ask_by_name(["entry", expression])

    def look_up(self, name: str) -> Value:
        """Return a global variable of the program. Raises `NoSuchName`."""
        if name in self.codecs and not self._argument_use.asks_for(_OTHER_FIELDS):
            return self.find_class(name)
        return self._ask_by_name(["name", name])

    def library_function(self, module: str, name: str) -> Value:
        """Return a function of a library in the solution's process."""
        return self._ask(["library", module, name])

    def public_names(self) -> list[str]:
        """Return the names of the program's global variables that are public."""
        names = self._ask(["public"])
        if type(names) is not list or not all(type(name) is str for name in names):
            self._break_off(Undecodable("names are texts"))
        return names

    def call(self, request: list[Value], shown: str, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        """Return the result of a call.

        request: the request without arguments. shown: the name of the function in reports.
        """
        self._last_call = (shown, args, kwargs, ...)
        data, objects = self._send_args((*args, *kwargs.values()))
        keep = self._argument_use.looks_at_arguments(sys._getframe(1)) if objects else None
        request = [*request, data, list(kwargs), *([True] if keep else [])]
        result = self._ask(request, objects, keep=keep)
        if request[0] == "call" and type(type(result)) is RemoteType:
            self.operators.note_call(request[1], result._truegold_handle)
        self._last_call = (shown, args, kwargs, result)
        return result

    def describe_last_call(self) -> list[str] | None:
        """Return the name, arguments and result of the last call as text, for reports."""
        if self._last_call is None:
            return None
        name, args, kwargs, result = self._last_call
        arguments = [_show(value) for value in args] + [f"{key}={_show(value)}" for key, value in kwargs.items()]
        return [name, ", ".join(arguments)[:SHOWN_CHARS], "no value" if result is ... else _show(result)]

    def get_attribute(self, handle: int, name: str) -> Value:
        """Return an attribute of an object of the solution."""
        return self._ask(["attribute", handle, name])

    def set_attribute(self, handle: int, name: str, value: Value) -> None:
        """Set an attribute of an object of the solution."""
        self._ask(["set", handle, name, self._send_args(value)[0]])

    def call_special(self, handle: int, name: str, *args: Value) -> Value:
        """Return the result of a special method, such as `__len__`."""
        self._special_calls += 1
        if self._special_calls > MAX_SPECIAL_CALLS:
            self._break_off(Undecodable(f"more than {MAX_SPECIAL_CALLS} items one by one"))
        return self._ask(["special", handle, name, self._send_args(args)[0]], may_stop=name == "__next__")

    def ask_operator(self, name: str, operands: tuple[Value, ...]) -> Value:
        """Return the result of an operator that the solution applies."""
        return self._ask(["operate", name, self._send_args(operands)[0]])

    def data_of(self, handle: int) -> Value:
        """Return the built-in data in an object whose class is derived from a built-in type."""
        data = self._ask(["data", handle])
        if isinstance(data, RemoteObject):
            self._break_off(Undecodable("it sends no data for an object derived from a built-in type"))
        return data

    def refuse_isolation(self, reason: str) -> NoReturn:
        """Raise `CannotIsolate`, or `SolutionGone` if the session has ended already."""
        if self.broken_reason is not None:
            raise SolutionGone(self.broken_reason)
        self.isolation_problem = self.isolation_problem or reason
        raise CannotIsolate(reason)

    def _ask_by_name(self, request: list[Value]) -> Value:
        target = self._ask(request, asked=request[1])
        if type(target) is RemoteType:
            self.operators.note_class(request[1], target._truegold_class_handle)
        return target

    def _send_args(self, value: Value) -> tuple[Json, list[Value]]:
        return self._encode(lambda: self._values.encode(value))

    def _encode(self, encode: Callable[[], Encoded]) -> Encoded:
        try:
            return encode()
        except CannotIsolate as error:
            if error.maybe_from_solution:
                self._break_off(Undecodable(f"its result cannot be passed on: {error}"))
            self.refuse_isolation(str(error))
        except ResultTooLarge as error:
            self._break_off(Undecodable(f"a value is too large to be passed on: {error}"))

    def _ask(
        self,
        request: list[Value],
        objects: list[Value] | None = None,
        may_stop: bool = False,
        asked: str | None = None,
        keep: str | None = None,
    ) -> Value:
        """Return the value of the answer to a request, or raise its exception.

        objects: the mutable objects in the arguments. may_stop: whether the exception may be a `StopIteration`. asked:
        the name that is looked up. keep: the result of `looks_at_arguments`.
        """
        kind, *rest = self._exchange_with_changes(request)
        if kind == "missing" and asked is not None:
            raise NoSuchName(asked)
        error: BaseException
        try:
            if kind == "ok":
                return self._values.decode(rest[0], asked=asked)
            if kind == "lent" and len(rest) == 3:
                return self._borrower.borrow(*rest)
            if kind == "changed" and objects and len(rest) <= 1 + bool(keep):
                value = self._values.decode(rest[1], known=objects) if len(rest) > 1 else None
                if keep != "identity" or len(rest) == 1 or any(value is each for each in objects):
                    self._restore_arguments(rest[0], objects)
                return value
            if kind != "error":
                raise Undecodable("it is not an answer to what was asked")
            error = self._values.decode_exception(*rest)
        except (Undecodable, LookupError, TypeError, ValueError, AttributeError) as problem:
            self._break_off(problem)
        if isinstance(error, _LOOP_ENDING) and not may_stop:
            # This would end a loop of the test code, `all(map(check, cases))`, as if all checks had passed.
            error = RuntimeError(f"the solution raised {type(error).__name__}")
        raise error

    def _exchange_with_changes(self, request: list[Value]) -> list[Value]:
        """Exchange messages, together with both sides' changes in lent containers and in the surroundings."""
        before: dict[str, Json] = {"take": self._encode(self._borrower.changes), "follow": self._surroundings.changes()}
        if any(before.values()):
            request = ["also", before, *request]
        reply = self._exchange(request)
        if reply[0] != "also":
            return reply
        try:
            _, after, *reply = reply
            printed, changed = after["printed"], after["changes"]
            if list(map(type, printed)) != [str, str]:
                raise Undecodable("the printed text is missing")
            if self._surroundings.captures:
                sys.stdout.write(printed[0])
                sys.stderr.write(printed[1])
            self._encode(lambda: self._borrower.take(changed))
        except (Undecodable, LookupError, TypeError, ValueError, AttributeError) as problem:
            self._break_off(problem)
        if not reply:
            self._break_off(Undecodable("it sends changes without an answer"))
        return reply

    def _restore_arguments(self, data: Json, objects: list[Value]) -> None:
        parts = self._values.decode(data, known=objects)
        if type(parts) is not list or len(parts) != len(objects):
            raise Undecodable("these are not the contents of the arguments")
        for value, contents in zip(objects, parts, strict=True):
            restore(value, contents, self.codecs)

    def _exchange(self, request: list[Value]) -> list[Value]:
        """Send a request and return the answer. Until then, make the calls of functions that the solution requests."""
        with self._turn:
            if self.broken_reason is not None:
                raise SolutionGone(self.broken_reason)
            finished = False
            try:
                self._line.send(request)
                reply = self._line.receive()
                while reply[0] == "callback":
                    self._line.send(self._answer_callback(*reply[1:]))
                    reply = self._line.receive()
                finished = True
            except (PartnerGone, Undecodable, TypeError) as error:
                self._break_off(error)
            finally:
                if not finished:
                    self.broken_reason = self.broken_reason or "the test code ended in the middle of a call"
            return reply

    def _answer_callback(self, index: int, args: Json, names: list[str]) -> list[Value]:
        """Call a function of the test code and return the answer to the solution."""
        if type(names) is not list or not all(type(name) is str for name in names):
            raise Undecodable("names of arguments are texts")
        function = self._values.function(index)
        values = self._values.decode(args)
        if type(values) is not tuple or len(values) < len(names):
            raise Undecodable("arguments are a tuple")
        first = len(values) - len(names)
        try:
            result = function(*values[:first], **dict(zip(names, values[first:], strict=True)))
            if not isinstance(function, StandIn):
                return ["value", self._send_args(result)[0]]
            try:
                return ["value", self._values.encode(result)[0]]
            except CannotIsolate as problem:
                # The solution chose this request. A solution must not bring the tests into its own process.
                raise TypeError(str(problem)) from None
        except (CannotIsolate, SolutionGone):
            raise
        except BaseException as error:
            return ["raise", *self._encode_error(error)]

    def _encode_error(self, error: BaseException) -> tuple[Json, Json]:
        handle = self._values.class_handle(type(error))
        if handle is not None:
            return {"$": "handle", "v": handle}, self._send_args(error.args)[0]
        builtin = next(kind for kind in type(error).__mro__ if EXCEPTIONS.get(kind.__name__) is kind)
        path = [type(error).__module__, type(error).__qualname__]
        kind = {"$": "library", "v": path, "else": builtin.__name__}
        return kind, self._send_args(error.args)[0]

    def _break_off(self, error: BaseException) -> NoReturn:
        why = "the solution's process ended" if isinstance(error, PartnerGone) else f"the solution's answer: {error}"
        self.broken_reason = self.broken_reason or why[:300]
        raise SolutionGone(self.broken_reason)


class _ValueRepr(reprlib.Repr):
    """Shows values of the test code, shortened. Remote objects are shown by their class."""

    def repr1(self, value: Value, level: int) -> str:
        if isinstance(value, RemoteObject | RemoteFunction | RemoteType):
            kind = value if isinstance(value, RemoteType) else type(value)
            return f"<{type.__getattribute__(kind, '__name__')}>"  # The object's own text would need another request.
        try:
            return super().repr1(value, level)
        except Exception:
            return f"<{type(value).__name__}>"


_REPR = _ValueRepr()
_REPR.maxlist = _REPR.maxtuple = _REPR.maxset = _REPR.maxfrozenset = _REPR.maxdeque = _REPR.maxdict = 20
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 200


def _show(value: Value) -> str:
    return _REPR.repr(value)[:SHOWN_CHARS]


MAX_STATEMENTS = 40
"""Maximum number of statements that are read after a call, since long test code may have many calls."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_VARIABLES = (ast.Name, ast.Attribute, ast.Subscript)
_KEEPS_NOTHING = ("print", HELD)
"""Functions that do not keep their arguments."""
_LOOKS = (ast.Assert, ast.Expr, ast.Return, ast.For, ast.If, ast.With)
"""Statements that may test a value."""


class ArgumentUse:
    """Tells whether calls in test code are followed by checks of their arguments.

    file: the name under which the code was compiled.
    """

    def __init__(self, tree: ast.Module, file: str) -> None:
        self._tree = tree
        self._file = file
        self._answers: dict[tuple[CodeType, int], str | None] = {}

    @functools.cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return {below: node for node in ast.walk(self._tree) for below in ast.iter_child_nodes(node)}

    @functools.cached_property
    def _calls(self) -> dict[tuple[int | None, int | None], ast.Call]:
        """Calls by the line and column where they end."""
        return {(node.end_lineno, node.end_col_offset): node for node in self._parents if isinstance(node, ast.Call)}

    @functools.cached_property
    def _known_names(self) -> set[str]:
        """Names of functions that are not the solution's."""
        functions = {node.name for node in self._parents if isinstance(node, ast.FunctionDef)}
        imported = {node.asname or node.name.partition(".")[0] for node in self._parents if isinstance(node, ast.alias)}
        return {*dir(builtins), *LIBRARY_OF} | functions | imported

    @functools.cached_property
    def _identities(self) -> Mapping[ast.stmt, set[str]]:
        """The variables whose identity each statement checks: `assert f(xs) is xs`."""
        names: dict[ast.stmt, set[str]] = {}
        for node in self._parents:
            sides: list[ast.expr] = []
            if isinstance(node, ast.Call) and getattr(node.func, "attr", None) in ("assertIs", "assertIsNot"):
                sides = node.args[:2]
            elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
                sides = [node.left, *node.comparators]
            if sides and not any(isinstance(side, ast.Constant) for side in sides):
                compared = {_source_text(side) for side in sides if isinstance(side, _VARIABLES)}
                names.setdefault(self._up_to_statement(node)[-1], set()).update(compared)
        return names

    def asks_for(self, attributes: Set[str]) -> bool:
        """Tell whether the test code reads one of these attributes."""
        return any(isinstance(node, ast.Attribute) and node.attr in attributes for node in self._parents)

    def looks_at_arguments(self, frame: FrameType | None) -> str | None:
        """Return how the test code checks the arguments of the call that it is making.

        "contents": it reads them, `assert nums == [1, 2]`. "identity": it only checks `result is nums`. None: no check.
        frame: a frame of this call, from which the test code's frame is found.
        """
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        if frame is None:
            return None
        position = code, instruction = frame.f_code, frame.f_lasti
        if position not in self._answers:
            _, line, _, column = next(islice(code.co_positions(), instruction // 2, None), (None, None, None, None))
            call = self._calls.get((line, column))
            self._answers[position] = None if call is None else self._use_after(call)
        return self._answers[position]

    def _use_after(self, call: ast.Call) -> str | None:
        *expressions, statement = self._up_to_statement(call)
        if isinstance(statement, ast.Expr) and all(isinstance(node, ast.Await) for node in expressions[1:]):
            return "contents"
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        arguments = [value.value if isinstance(value, ast.Starred) else value for value in values]
        variables = {_source_text(value) for value in arguments if isinstance(value, _VARIABLES)}
        result_names = _names_with_results(statement)
        is_alone = all(len(_variables_in(statement)[variable]) == 1 for variable in variables)
        if is_alone and not _hands_on(statement) and self._tests_contents(statement, variables, result_names):
            return "contents"
        compared = set().union(*self._identities.values())
        return None if compared.isdisjoint(variables | result_names) else "identity"

    def _tests_contents(self, statement: ast.stmt, variables: set[str], result_names: set[str]) -> bool:
        """Return whether later statements test the contents of variables.

        A variable that is only the expected value of the result is not tested.
        """
        is_looked_at = False
        for later in islice(self._statements_after(statement), MAX_STATEMENTS):
            inner = later.body if isinstance(later, ast.With) else [later]
            if all(_called_name(each) in _KEEPS_NOTHING or each in self._identities for each in inner):
                continue
            every_use = [node for variable in variables for node in _variables_in(later).get(variable, ())]
            uses = [use for use in every_use if not self._is_passed_on(use)]
            if uses and (len(uses) < len(every_use) or not self._is_subject(later, uses, result_names)):
                return False
            is_looked_at = is_looked_at or (bool(uses) and _is_look(later, uses))
            if not result_names.isdisjoint(_variables_in(later)):
                if any(map(_hands_on, inner)):
                    return False
                result_names = result_names | _names_with_results(later) - variables
            if isinstance(later, ast.Assign) and not variables.isdisjoint(map(_source_text, _stored(later))):
                break
        return is_looked_at

    def _up_to_statement(self, node: ast.AST) -> list[Value]:
        """Return a node and the nodes around it, up to its statement."""
        above: list[Value] = [node]
        while not isinstance(above[-1], ast.stmt):
            above.append(self._parents[above[-1]])
        return above

    def _statements_after(self, statement: ast.AST) -> Iterator[ast.stmt]:
        """Yield the statements after this one, up to the end of its function."""
        while not isinstance(statement, (*_FUNCTIONS, ast.Module)):
            parent = self._parents[statement]
            for _, siblings in ast.iter_fields(parent):
                if isinstance(siblings, list) and statement in siblings:
                    yield from siblings[siblings.index(statement) + 1 :]
            statement = parent

    def _is_passed_on(self, use: ast.AST) -> bool:
        """Return whether a variable is an argument of another call of the solution."""
        return any(
            isinstance(parent, ast.Call) and node is not parent.func and not self._is_known(parent.func)
            for node, parent in pairwise(self._up_to_statement(use))
        )

    def _is_known(self, function: ast.expr) -> bool:
        """Tell whether a function is not the solution's, because Python or the test code defines it."""
        if "assert" in getattr(function, "attr", "").lower():
            return True
        while isinstance(function, ast.Attribute | ast.Call):
            function = function.value if isinstance(function, ast.Attribute) else function.func
        return not isinstance(function, ast.Name) or function.id in self._known_names

    def _is_subject(self, later: ast.stmt, uses: list[ast.AST], result_names: set[str]) -> bool:
        """Tell whether a later statement tests an argument of `k = f(nums)`.

        assert nums[:k] == [2, 2]     tested: k only selects a part of nums; so does `for i in range(k)`
        assert k == sorted(nums)      not tested: nums is the expected value of k
        """
        names = [node for name in result_names for node in _variables_in(later).get(name, ())]
        ends = [self._up_to_statement(name) for name in names]
        steps = [step for above in ends for step in pairwise(above)]
        indices = {node: parent.value for node, parent in steps if node is getattr(parent, "slice", None)}
        cut = set(indices.values())
        if all(not cut.isdisjoint(self._up_to_statement(use)) for use in uses):
            return True
        bounds = {*indices, *(call for above in ends for call in above if _calls_range(call))}
        return isinstance(later, _LOOKS) and all(not bounds.isdisjoint(above) for above in ends)


def _calls_range(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


@functools.cache
def _source_text(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)


@functools.cache
def _variables_in(statement: ast.stmt) -> Mapping[str, list[ast.AST]]:
    nodes: dict[str, list[ast.AST]] = {}
    for node in ast.walk(statement):
        if isinstance(node, _VARIABLES):
            nodes.setdefault(_source_text(node), []).append(node)
    return nodes


def _stored(statement: ast.stmt) -> list[Value]:
    """Return the variables that a statement assigns."""
    nodes: list[Value] = [node for uses in _variables_in(statement).values() for node in uses]
    return [node for node in nodes if isinstance(node.ctx, ast.Store)]


def _names_with_results(statement: ast.stmt) -> set[str]:
    """Return the variables that hold a result after a statement: r, or `kept` for `kept["r"] = f(nums)`."""
    stored = _stored(statement)
    holders = {_source_text(node.value) for node in stored if not isinstance(node, ast.Name)}
    return {_source_text(node) for node in stored} | holders - {"self"}


def _called_name(statement: ast.stmt) -> str:
    """Return the name of the function if a statement is only a call of it, or else ""."""
    function = getattr(getattr(statement, "value", None), "func", None) if isinstance(statement, ast.Expr) else None
    return "" if function is None else str(getattr(function, "attr", getattr(function, "id", "?")))


def _hands_on(statement: ast.stmt) -> bool:
    """Tell whether a statement passes a value to an object that may keep it: `kept.append(f(nums))`."""
    name = _called_name(statement).lower()
    return name not in ("", *_KEEPS_NOTHING) and "assert" not in name


def _is_look(later: ast.stmt, uses: list[ast.AST]) -> bool:
    """Tell whether a statement reads the variable. `nums.sort()` and `nums = [...]` do not."""
    if isinstance(later, ast.Expr) and isinstance(later.value, ast.Call):
        receiver = getattr(later.value.func, "value", None)
        return receiver not in uses
    return any(not isinstance(getattr(use, "ctx", None), ast.Store) for use in uses)
