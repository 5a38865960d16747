"""Role `calls`: loads the program, makes calls, and hands back what each returned.

    {"prelude": "", "program": "def add(a, b): return a + b", "codecs": {},
     "functions": ["add"], "calls": [[0, [1, 2], {}]]}

gives the lines

    {"loaded": true}          or {"load_error": [type, message, line]} and nothing else
    {"r": 3}                  or {"raised": [type, message, line]}, one for each call, in order

Expected results never come here. A line is written as soon as its call is over, so that a program that crashes or hangs
loses nothing of what it did before. A function that is not there gives a line {"missing": name}, and each call of it
has raised a NameError. `sys.exit()` in a call has raised SystemExit, and the next calls are made.

Arguments are fresh objects for every call. What a call does to them is looked at only with `"in_place": 0`: then the
result is that argument. A coroutine is run to its end,
and iterators are read to theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CoroutineType
from typing import Any

from ..program import NotDefined, class_finder, describe_error, load, look_up, run_coroutine
from ..wire import KNOWN_CODECS, MAX_ENCODED, Decoder, ResultTooLarge, encode, from_json, to_json
from ..wire.lines import write_result, write_result_line


def run_calls(payload: bytes) -> None:
    """Make the calls of the payload, a line of JSON."""
    request = from_json(payload, len(payload))
    codecs = {**KNOWN_CODECS, **request["codecs"]}
    try:
        namespace = load(request["prelude"], request["program"])
    except BaseException as error:
        write_result({"load_error": describe_error(error)})
        return
    write_result_line(b'{"loaded":true}')
    find_class = class_finder(namespace, codecs)
    has_tags = b'"$"' in payload
    names, in_place = request["functions"], request.get("in_place", -1)
    functions: list[Callable[..., Any] | None] = [None] * len(names)
    for index, args, kwargs in request["calls"]:
        try:
            decoded_args = Decoder(codecs, find_class).decode(args) if has_tags else args
            decoded_kwargs = Decoder(codecs, find_class).decode(kwargs) if has_tags else kwargs
            function = functions[index]
            if function is None:
                function = functions[index] = _find_function(namespace, names[index])
            result = function(*decoded_args, **decoded_kwargs)
            if type(result) is CoroutineType:
                result = run_coroutine(result)
            if in_place >= 0:
                result = [*decoded_args, *decoded_kwargs.values()][in_place]
            line = to_json(encode(result, codecs))
            if len(line) > MAX_ENCODED:
                raise ResultTooLarge(f"the result takes {len(line)} bytes, the limit is {MAX_ENCODED}")
            write_result_line(b'{"r":%b}' % line)
        except BaseException as error:
            write_result({"raised": describe_error(error)})


def _find_function(namespace: dict[str, Any], expression: str) -> Callable[..., Any]:
    try:
        function: Callable[..., Any] = look_up(namespace, expression)
    except NotDefined as missing:
        write_result({"missing": expression})
        reason = str(missing)

        def function(*args: Any, **kwargs: Any) -> Any:
            raise NameError(reason)

    return function
