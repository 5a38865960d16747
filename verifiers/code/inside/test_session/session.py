"""The test code's side of the line: requests to the solution's process, one after the other.

Everything that arrives is claimed by the solution. Whatever is not a well-formed answer ends the session: `broken` says
why, the pending call raises `SolutionGone`, and so does every later one. Test code that swallows that exception gains
nothing by it, because a run whose session is broken has failed.
"""

from __future__ import annotations

import reprlib
import sys
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

from ..program import class_finder
from ..test_code.report import SHOWN_CHARS
from ..wire import KNOWN_CODECS, Codecs, Json, ResultTooLarge, Undecodable
from ..wire.lines import Closed, Wire
from .argument_use import Later
from .in_place import restore
from .reception import Receiver
from .remote_objects import CannotIsolate, RemoteFunction, RemoteObject, RemoteType
from .sending import Sender
from .shared_names import EXCEPTIONS

MAX_SPECIAL = 100_000
"""Items, lengths and texts that are asked for one by one. Stops objects that are iterated over without end."""

_STOPPING = (StopIteration, StopAsyncIteration, GeneratorExit)


class SolutionGone(BaseException):
    """The solution's process ended, or said what is no answer. Not an `Exception`, which test code catches."""


class NotLoaded(Exception):
    """The program could not be loaded: [type, message, line]."""


class NoSuchName(LookupError):
    """The program does not define it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the program does not define {name!r}")


class Session:
    """namespace: of the test code, whose classes instances arrive as. uses_numpy: whether arrays are to be arrays.
    later: knows which calls have arguments whose changes the test code looks at."""

    def __init__(self, namespace: Mapping[str, Any], codecs: Codecs, uses_numpy: bool, later: Later) -> None:
        self.broken: str | None = None
        self.cannot: str | None = None
        self.last_call: tuple[str, tuple[Any, ...], dict[str, Any], Any] | None = None
        self.codecs = {**KNOWN_CODECS, **codecs}
        self.find_class = class_finder(namespace, self.codecs)
        self.uses_numpy = uses_numpy
        self._later = later
        self._wire = Wire()
        self._turn = threading.RLock()
        self._sender = Sender(self.codecs)
        self._receiver = Receiver(self, self._sender)
        self._specials = 0
        self._built: dict[int, str] = {}
        self._asked_classes: dict[int, str] = {}
        self._holds_functions = {"Solution"}

    def wait_until_loaded(self) -> None:
        """Raises `NotLoaded`."""
        try:
            kind, *rest = self._wire.receive()
        except (Closed, Undecodable) as error:
            self._gone(error)
        if kind == "not loaded":
            raise NotLoaded([str(part)[:500] for part in rest[:2]])
        if kind != "loaded":
            self._gone(Undecodable("it does not say whether it is loaded"))

    def entry(self, expression: str) -> Any:
        """What an entry point stands for. Raises `NoSuchName`."""
        first, _, rest = expression.partition("()")
        if rest:
            self._holds_functions.add(first)
        found = self._receive_name(["entry", expression], expression)
        self._ask_class(expression, found)
        return found

    def name(self, name: str) -> Any:
        """A global of the program. Raises `NoSuchName`."""
        if name in self.codecs:
            return self.find_class(name)
        found = self._receive_name(["name", name], name)
        self._ask_class(name, found)
        return found

    def public_names(self) -> list[str]:
        names = self._answered(["public"])
        if type(names) is not list or not all(type(name) is str for name in names):
            self._gone(Undecodable("names are texts"))
        return names

    def call(self, request: list[Any], shown: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """request: the call or method call, without arguments."""
        self.last_call = (shown, args, kwargs, ...)
        data, objects = self._send_args((*args, *kwargs.values()))
        keep = bool(objects) and self._later.looks_at_arguments(sys._getframe(1))
        request = [*request, data, list(kwargs), keep] if keep else [*request, data, list(kwargs)]
        result = self._answered(request, objects, keep=keep)
        if type(type(result)) is RemoteType and request[0] == "call" and request[1] in self._asked_classes:
            self._built[result._truegold_number] = self._asked_classes[request[1]]
        self.last_call = (shown, args, kwargs, result)
        return result

    def describe_last_call(self) -> list[str] | None:
        """[name, arguments, result] of the last call, as a report shows them."""
        if self.last_call is None:
            return None
        name, args, kwargs, result = self.last_call
        arguments = [_shown(value) for value in args] + [f"{key}={_shown(value)}" for key, value in kwargs.items()]
        return [name, ", ".join(arguments)[:SHOWN_CHARS], "no value" if result is ... else _shown(result)]

    def attribute(self, number: int, name: str) -> Any:
        return self._answered(["attribute", number, name])

    def set(self, number: int, name: str, value: Any) -> None:
        self._answered(["set", number, name, self._send_args(value)[0]])

    def special(self, number: int, name: str, *args: Any) -> Any:
        self._specials += 1
        if self._specials > MAX_SPECIAL:
            self._gone(Undecodable(f"more than {MAX_SPECIAL} items one by one"))
        return self._answered(["special", number, name, self._send_args(args)[0]], stops=name == "__next__")

    def may_tell(self, number: int) -> bool:
        """Whether the test code made this object itself, of a class that it calls by a name in capitals."""
        return number in self._built

    def came_back(self, number: int) -> None:
        """An object of a class that only holds functions, whose results are data, is the solution's word where a call
        returned it, also if the test code made it. Of other classes methods may return their object, to be chained."""
        if self._built.get(number) in self._holds_functions:
            del self._built[number]

    def isolate_not(self, reason: str) -> NoReturn:
        if self.broken is not None:
            raise SolutionGone(self.broken)
        self.cannot = self.cannot or reason
        raise CannotIsolate(reason)

    def _ask_class(self, name: str, found: Any) -> None:
        if type(found) is RemoteType and name.lstrip("_")[:1].isupper():
            self._asked_classes[found._number] = name

    def _receive_name(self, request: list[Any], name: str) -> Any:
        reply = self._exchange(request)
        if reply[0] == "missing":
            raise NoSuchName(name)
        return self._understood(reply, asked=name)

    def _send_args(self, value: Any) -> tuple[Json, list[Any]]:
        try:
            return self._sender.encode(value)
        except CannotIsolate as error:
            if error.maybe_theirs:
                self._gone(Undecodable(f"what it returned cannot be passed on: {error}"))
            self.isolate_not(str(error))
        except ResultTooLarge as error:
            self._gone(Undecodable(f"what is passed on is too large to travel: {error}"))

    def _answered(
        self, request: list[Any], objects: list[Any] | None = None, stops: bool = False, keep: bool = False
    ) -> Any:
        return self._understood(self._exchange(request), objects, stops, keep=keep)

    def _understood(
        self,
        reply: list[Any],
        objects: list[Any] | None = None,
        stops: bool = False,
        asked: str | None = None,
        keep: bool = False,
    ) -> Any:
        """The value of an answer; an exception that it stands for is raised."""
        error: BaseException
        try:
            kind, *rest = reply
            if kind == "ok":
                return self._receiver.decode(rest[0], asked=asked)
            if kind == "changed" and objects and len(rest) <= 1 + keep:
                value = self._receiver.decode(rest[1], known=objects) if len(rest) > 1 else None
                self._take_back(rest[0], objects)
                return value
            if kind != "error":
                raise Undecodable("it is no answer to what was asked")
            error = self._receiver.exception(*rest)
        except (Undecodable, LookupError, TypeError, ValueError, AttributeError) as problem:
            self._gone(problem)
        if isinstance(error, _STOPPING) and not stops:
            # It would end a loop of the test code, `all(map(check, cases))`, as if there were nothing more to check.
            error = RuntimeError(f"the solution raised {type(error).__name__}")
        raise error

    def _take_back(self, data: Json, objects: list[Any]) -> None:
        parts = self._receiver.decode(data, known=objects)
        if type(parts) is not list or len(parts) != len(objects):
            raise Undecodable("not the contents of the arguments")
        for value, its in zip(objects, parts, strict=True):
            restore(value, its, self.codecs)

    def _exchange(self, request: list[Any]) -> list[Any]:
        """Send a request and return the answer, calling functions of the test code in between where that is asked."""
        with self._turn:
            if self.broken is not None:
                raise SolutionGone(self.broken)
            finished = False
            try:
                self._wire.send(request)
                reply = self._wire.receive()
                while reply[0] == "callback":
                    self._wire.send(self._called_back(*reply[1:]))
                    reply = self._wire.receive()
                finished = True
            except (Closed, Undecodable, TypeError) as error:
                self._gone(error)
            finally:
                if not finished:
                    self.broken = self.broken or "the test code broke off in the middle of a call"
            return reply

    def _called_back(self, number: int, args: Json, names: list[str]) -> list[Any]:
        """The answer to a function's asking for one of the test code's."""
        if type(names) is not list or not all(type(name) is str for name in names):
            raise Undecodable("names of arguments are texts")
        function = self._sender.function(number)
        values = self._receiver.decode(args)
        if type(values) is not tuple or len(values) < len(names):
            raise Undecodable("arguments are a tuple")
        first = len(values) - len(names)
        try:
            result = function(*values[:first], **dict(zip(names, values[first:], strict=True)))
            return ["value", self._send_args(result)[0]]
        except (CannotIsolate, SolutionGone):
            raise
        except BaseException as error:
            return ["raise", *self._raised(error)]

    def _raised(self, error: BaseException) -> tuple[Json, Json]:
        number = self._receiver.number_of(type(error))
        if number is not None:
            return {"$": "handle", "v": number}, self._send_args(error.args)[0]
        above = next(kind for kind in type(error).__mro__ if EXCEPTIONS.get(kind.__name__) is kind)
        return {"$": "builtin", "v": above.__name__}, self._send_args(error.args)[0]

    def _gone(self, error: BaseException) -> NoReturn:
        why = "the solution's process ended" if isinstance(error, Closed) else f"the solution's answer: {error}"
        self.broken = self.broken or why[:300]
        raise SolutionGone(self.broken)


class _Shown(reprlib.Repr):
    def repr1(self, value: Any, level: int) -> str:
        if isinstance(value, RemoteObject | RemoteFunction | RemoteType):
            kind = value if isinstance(value, RemoteType) else type(value)
            return f"<{type.__getattribute__(kind, '__name__')}>"  # its own text would have to be asked for
        try:
            return super().repr1(value, level)
        except Exception:
            return f"<{type(value).__name__}>"


_SHOWN = _Shown()
_SHOWN.maxlist = _SHOWN.maxtuple = _SHOWN.maxset = _SHOWN.maxfrozenset = _SHOWN.maxdeque = _SHOWN.maxdict = 20
_SHOWN.maxstring = _SHOWN.maxother = _SHOWN.maxlong = 200


def _shown(value: Any) -> str:
    return _SHOWN.repr(value)[:SHOWN_CHARS]
