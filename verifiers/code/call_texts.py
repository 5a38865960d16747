"""Arguments and results of calls that stand in a data set as text.

    read_arguments("[2, 7, 11]\\n9")             ([[2, 7, 11], 9], {})
    read_arguments("nums = [2, 7], target = 9")  ([], {"nums": [2, 7], "target": 9})
    read_arguments([3, 4])                       ([3, 4], {})
    read_value('"abc"')                          "abc"
    read_value("(1, 2)")                         {"$": "tuple", "v": [1, 2]}

Values come as the JSON that `inside.wire` decodes. A text is JSON; what is not is read as a Python literal.
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


def read_arguments(given: Any) -> tuple[list[Any], dict[str, Any]]:
    if isinstance(given, list | tuple):
        return list(given), {}
    if isinstance(given, Mapping):
        return [], dict(given)
    if not isinstance(given, str):
        return [given], {}
    if _NAMED.match(given):
        return [], _named(given)
    try:
        return [read_value(line) for line in given.split("\n") if line.strip()], {}
    except Unreadable:
        return [read_value(given)], {}  # one value on several lines


def read_value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    tree = parse(text.strip())
    match tree:
        case ast.Module(body=[ast.Expr(value=value)]):
            return _literal(value, text)
    raise Unreadable(f"must be JSON or a Python literal, got {shown(text)}")


def _named(text: str) -> dict[str, Any]:
    """`a = 1, b = 2` is what a call's brackets would hold."""
    match parse(f"f({text})"):
        case ast.Module(body=[ast.Expr(value=ast.Call(func=ast.Name(), args=[], keywords=keywords))]):
            return {keyword.arg: _literal(keyword.value, text) for keyword in keywords if keyword.arg}
    raise Unreadable(f"must be arguments such as `nums = [2, 7], target = 9`, got {shown(text)}")


def _literal(node: ast.expr, text: str) -> Any:
    # JSON's own words stand in texts that mix both languages.
    for part in ast.walk(node):
        match part:
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
                parts[:] = [_word(each) for each in parts]
    try:
        return _as_json(ast.literal_eval(_word(node)))
    except (ValueError, TypeError, RecursionError, MemoryError, SyntaxError):
        raise Unreadable(f"must be JSON or a Python literal, got {shown(text)}") from None


def _word(node: ast.expr) -> ast.expr:
    words = {"true": True, "false": False, "null": None}
    if isinstance(node, ast.Name) and node.id in words:
        return ast.Constant(value=words[node.id])
    return node


def _as_json(value: Any) -> Any:
    """A literal's value as the JSON that stands for it."""
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
