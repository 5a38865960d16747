"""Loads the program under test as a module, and looks up the functions that expressions name.

    namespace = load("from typing import *", "class Solution: ...")
    look_up(namespace, "Solution().twoSum")     the bound method, found by attributes and calls without `eval`

Prelude and program run in the namespace of the module `solution`, so that `import solution` and pickles find it.
Because its `__name__` is "solution", code for running it as a script, such as reading input, is skipped.
"""

from __future__ import annotations

import linecache
import operator
import sys
import traceback
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from types import ModuleType
from typing import SupportsIndex

from .wire.value_types import Value

MODULE = "solution"
PROGRAM_FILE = "solution.py"
PRELUDE_FILE = "prelude.py"
SHOWN_CHARS = 500
MAX_LIMIT = 2**31 - 1
"""The largest recursion limit that Python takes."""


class NotDefined(LookupError):
    """The program does not define this name."""


def load(prelude: str, program: str) -> dict[str, Value]:
    """Run prelude and program and return their namespace. Their exceptions pass through, `SystemExit` too."""
    module = ModuleType(MODULE)
    module.__file__ = PROGRAM_FILE
    sys.modules[MODULE] = sys.modules["__main__"] = module
    namespace = module.__dict__
    hide_frames()
    if prelude:
        run_source(prelude, PRELUDE_FILE, namespace)
    run_source(program, PROGRAM_FILE, namespace)
    return namespace


def hide_frames() -> None:
    """Exclude the caller's frames from the recursion limit, as if a script began here."""
    depth = sum(1 for _ in traceback.walk_stack(sys._getframe()))
    set_limit = sys.setrecursionlimit
    set_limit(sys.getrecursionlimit() + depth)

    def set_program_limit(limit: SupportsIndex, /) -> None:
        frames = operator.index(limit)
        set_limit(frames + depth if frames <= MAX_LIMIT - depth else frames)

    sys.setrecursionlimit = set_program_limit


def run_source(source: str, file: str, namespace: dict[str, Value]) -> None:
    """Run source in a namespace. Tracebacks call it `file` and show its lines."""
    linecache.cache[file] = (partial(str, source),)
    exec(compile(source, file, "exec", dont_inherit=True), namespace)


def look_up(namespace: Mapping[str, Value], expression: str) -> Value:
    """Return the value of an expression of the form `NAME(.NAME|())*`.

    Raises NotDefined, or the exception of a call in it.
    """
    first, *others = expression.replace("()", ".()").split(".")
    if first not in namespace:
        raise NotDefined(f"the program does not define {first!r}")
    target = namespace[first]
    for part in others:
        if part == "()":
            target = target()
        elif hasattr(target, part):
            target = getattr(target, part)
        else:
            raise NotDefined(f"{type(target).__name__} has no attribute {part!r}, which {expression!r} asks for")
    return target


def run_coroutine(coroutine: Coroutine[Value, Value, Value]) -> Value:
    """Run a coroutine to its end and return its result."""
    import asyncio  # It takes as much memory as all other loaded modules, and few programs have coroutines.

    return asyncio.run(coroutine)


def describe_error(error: BaseException) -> list[Value]:
    """Return the type of an error, its message, and the line of the program or None."""
    line = last_line_in(PROGRAM_FILE, error)
    if line is None and isinstance(error, SyntaxError):
        line = error.lineno
    try:
        message = str(error)[:SHOWN_CHARS]
    except Exception:
        message = ""
    return [type(error).__name__[:SHOWN_CHARS], message.encode("utf-8", "backslashreplace").decode(), line]


def last_line_in(file: str, error: BaseException) -> int | None:
    """Return the line of the innermost frame of a file in an error's traceback, or None."""
    line = None
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == file:
            line = step.tb_lineno
        step = step.tb_next
    return line


def class_finder(namespace: Mapping[str, Value], fields_of: Mapping[str, Value]) -> Callable[[str], type]:
    """Return a function that finds the class for a name: the program's class, or else a plain class with the fields."""
    plain_classes: dict[str, type] = {}

    def find_class(name: str) -> type:
        program_class = namespace.get(name)
        if isinstance(program_class, type):
            return program_class
        if name not in plain_classes:
            plain_classes[name] = _make_plain_class(name, list(fields_of[name]))
        return plain_classes[name]

    return find_class


def _make_plain_class(name: str, fields: list[str]) -> type:
    def __init__(self: Value, *values: Value, **named: Value) -> None:
        arguments = dict(zip(fields, values, strict=False)) | named
        for field in fields:
            setattr(self, field, arguments.get(field))

    return type(name, (), {"__init__": __init__, "__module__": MODULE})
