"""Arguments and expected values of calls that stand in a data set as text.

    read_arguments("[2, 7, 11]\\n9")             ([[2, 7, 11], 9], {})
    read_arguments("nums = [2, 7], target = 9")  ([], {"nums": [2, 7], "target": 9})
    read_arguments([3, 4])                       ([3, 4], {})
    read_value('"abc"')                          "abc"
    read_value("(1, 2)")                         {"$": "tuple", "v": [1, 2]}

Values come as the JSON that `inside.wire` decodes. A text is JSON; what is no JSON is read as a Python literal.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from truegold.verifiers.code.bad_suite import shown
from truegold.verifiers.code.syntax import parse

_NAMED = re.compile(r"\s*[^\W\d]\w{0,200}\s*=(?!=)")


class Unreadable(ValueError):
    """The text is neither JSON nor a Python literal."""


def read_arguments(arguments: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and named arguments. Raises `Unreadable`."""
    if isinstance(arguments, list | tuple):
        return list(arguments), {}
    if isinstance(arguments, Mapping):
        return [], dict(arguments)
    if not isinstance(arguments, str):
        return [arguments], {}
    if _NAMED.match(arguments):
        return [], _read_named(arguments)
    try:
        return [read_value(line) for line in arguments.split("\n") if line.strip()], {}
    except Unreadable:
        # The text may be one value on several lines.
        return [read_value(arguments)], {}


def read_value(text: str) -> Any:
    """Return the value that a text stands for. Raises `Unreadable`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    tree = parse(text.strip())
    match tree:
        case ast.Module(body=[ast.Expr(value=value)]):
            return _literal(value, text)
    raise Unreadable(f"must be JSON or a Python literal, got {shown(text)}")


def _read_named(text: str) -> dict[str, Any]:
    """Read `a = 1, b = 2`, which is what a call's brackets would hold."""
    match parse(f"f({text})"):
        case ast.Module(body=[ast.Expr(value=ast.Call(func=ast.Name(), args=[], keywords=keywords))]):
            return {keyword.arg: _literal(keyword.value, text) for keyword in keywords if keyword.arg}
    raise Unreadable(f"must be arguments such as `nums = [2, 7], target = 9`, got {shown(text)}")


def _literal(node: ast.expr, text: str) -> Any:
    # Texts that mix both languages hold JSON's `true`, `false` and `null`.
    for part in ast.walk(node):
        match part:
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
                parts[:] = [_json_word(each) for each in parts]
    try:
        return _as_json(ast.literal_eval(_json_word(node)))
    except (ValueError, TypeError, RecursionError, MemoryError, SyntaxError, SystemError):
        raise Unreadable(f"must be JSON or a Python literal, got {shown(text)}") from None


def _json_word(node: ast.expr) -> ast.expr:
    words = {"true": True, "false": False, "null": None}
    if isinstance(node, ast.Name) and node.id in words:
        return ast.Constant(value=words[node.id])
    return node


def _as_json(value: Any) -> Any:
    """Return the JSON that stands for a literal's value."""
    match value:
        case list():
            return [_as_json(item) for item in value]
        case tuple() | set():
            return {"$": type(value).__name__, "v": [_as_json(item) for item in value]}
        case dict():
            if all(isinstance(key, str) and key != "$" for key in value):
                return {key: _as_json(item) for key, item in value.items()}
            return {"$": "dict", "v": [[_as_json(key), _as_json(item)] for key, item in value.items()]}
        case float() if not math.isfinite(value):
            return {"$": "float", "v": str(value)}
        case complex() | bytes():
            raise ValueError("not in test data")
    return value
