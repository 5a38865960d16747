"""Role `calls`: load the program, make calls with given arguments, hand back what each returned.

    {"prelude": "", "program": "def add(a, b): return a + b", "codecs": {},
     "functions": ["add"], "calls": [[0, [1, 2], {}]]}

gives the lines

    {"loaded": true}          or {"load_error": [type, message, line]} and nothing else
    {"r": 3}                  or {"raised": [type, message, line]}, one for each call, in order

What is expected never comes here. A line is written as soon as its call is over, so that a program that crashes or
hangs loses nothing of what it did before. A function that is not there gives a line {"missing": name}, and each call
of it has raised a NameError. `sys.exit()` in a call has raised SystemExit, and the next calls are made.

Arguments are fresh objects for every call, and what a call does to them is not looked at. A coroutine is run to its
end, and iterators are read to theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CoroutineType
from typing import Any

from ..program import Missing, class_finder, entry, load, to_its_end, told
from ..wire import KNOWN_CODECS, MAX_ENCODED, Decoder, ResultTooLarge, encode, from_json, to_json
from ..wire.lines import write, write_line


def run_calls(payload: bytes) -> None:
    request = from_json(payload, len(payload))
    codecs = {**KNOWN_CODECS, **request["codecs"]}
    try:
        namespace = load(request["prelude"], request["program"])
    except BaseException as error:
        write({"load_error": told(error)})
        return
    write_line(b'{"loaded":true}')
    find_class = class_finder(namespace, codecs)
    has_tags = b'"$"' in payload
    functions = request["functions"]
    found: list[Callable[..., Any] | None] = [None] * len(functions)
    for number, given, named in request["calls"]:
        try:
            args = Decoder(codecs, find_class).decode(given) if has_tags else given
            kwargs = Decoder(codecs, find_class).decode(named) if has_tags else named
            function = found[number]
            if function is None:
                function = found[number] = _look_up(namespace, functions[number])
            result = function(*args, **kwargs)
            if type(result) is CoroutineType:
                result = to_its_end(result)
            line = to_json(encode(result, codecs))
            if len(line) > MAX_ENCODED:
                raise ResultTooLarge(f"the result takes {len(line)} bytes, the limit is {MAX_ENCODED}")
            write_line(b'{"r":%b}' % line)
        except BaseException as error:
            write({"raised": told(error)})


def _look_up(namespace: dict[str, Any], expression: str) -> Callable[..., Any]:
    try:
        function: Callable[..., Any] = entry(namespace, expression)
    except Missing as missing:
        write({"missing": expression})
        reason = str(missing)

        def function(*args: Any, **kwargs: Any) -> Any:
            raise NameError(reason)

    return function
