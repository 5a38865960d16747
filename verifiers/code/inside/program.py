"""The program under test as a module, and the expressions that name what is in it.

    namespace = load("from typing import *", "class Solution: ...")
    entry(namespace, "Solution().twoSum")     the bound method

Prelude and program run in one namespace, that of the module `solution`; `import solution` and pickles find it. Its
`__name__` is "solution", so that what a program does when it is run as a script, such as reading input, is left out.

An entry point is a name, then attributes and calls without arguments. It is walked, not evaluated.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from types import ModuleType
from typing import Any

MODULE = "solution"
PROGRAM_FILE = "solution.py"
PRELUDE_FILE = "prelude.py"
SHOWN_CHARS = 500


class Missing(LookupError):
    """The program has nothing under this name."""


def load(prelude: str, program: str) -> dict[str, Any]:
    """Run both and return their namespace. Whatever they raise, `SystemExit` too, passes through."""
    module = ModuleType(MODULE)
    module.__file__ = PROGRAM_FILE
    sys.modules[MODULE] = sys.modules["__main__"] = module
    namespace = module.__dict__
    if prelude:
        run(prelude, PRELUDE_FILE, namespace)
    run(program, PROGRAM_FILE, namespace)
    return namespace


def run(source: str, file: str, namespace: dict[str, Any]) -> None:
    linecache.cache[file] = (partial(str, source),)
    exec(compile(source, file, "exec", dont_inherit=True), namespace)


def entry(namespace: Mapping[str, Any], expression: str) -> Any:
    """What `NAME(.NAME|())*` stands for. Raises `Missing`, or what a call in it raises."""
    first, *others = expression.replace("()", ".()").split(".")
    if first not in namespace:
        raise Missing(f"the program does not define {first!r}")
    found = namespace[first]
    for part in others:
        if part == "()":
            found = found()
        elif hasattr(found, part):
            found = getattr(found, part)
        else:
            raise Missing(f"{type(found).__name__} has no attribute {part!r}, which {expression!r} asks for")
    return found


def to_its_end(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns."""
    import asyncio  # as much memory as all else that is loaded, and few programs have coroutines

    return asyncio.run(coroutine)


def told(error: BaseException) -> list[Any]:
    """[type, message, line of the program or None]"""
    line = error.lineno if isinstance(error, SyntaxError) else None
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == PROGRAM_FILE:
            line = at.tb_lineno
        at = at.tb_next
    try:
        message = str(error)[:SHOWN_CHARS]
    except Exception:
        message = ""
    return [type(error).__name__[:SHOWN_CHARS], message.encode("utf-8", "backslashreplace").decode(), line]


def class_finder(namespace: Mapping[str, Any], fields_of: Mapping[str, Any]) -> Callable[[str], type]:
    """How a decoder finds the class for a name: the program's own, else one with just these fields."""
    made: dict[str, type] = {}

    def find(name: str) -> type:
        found = namespace.get(name)
        if isinstance(found, type):
            return found
        if name not in made:
            made[name] = _plain_class(name, list(fields_of[name]))
        return made[name]

    return find


def _plain_class(name: str, fields: list[str]) -> type:
    def __init__(self: Any, *values: Any, **named: Any) -> None:
        given = dict(zip(fields, values, strict=False)) | named
        for field in fields:
            setattr(self, field, given.get(field))

    return type(name, (), {"__init__": __init__, "__module__": MODULE})
