"""Reads JSON strictly: integers of any size exactly, neither NaN nor half a character.

parse_json('{"n": 12345678901234567890}')    {"n": 12345678901234567890}
parse_structure("[1, 2]"), parse_structure("7")    [1, 2], "7"
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Mapping
from typing import Any, NoReturn

import orjson

_LONG_NUMBER = re.compile(r"\d{19}", re.ASCII)
"""Digits that may be an integer beyond 64 bits, which `orjson` would not keep exactly."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class LoneSurrogate(ValueError):
    """A JSON text spells half of a character, `"\\ud800"`: it is legal JSON, and no file can hold it as UTF-8."""


def parse_json(text: str) -> object:
    """Return the value of a strict JSON text; raise ValueError with one line that says what is wrong.

    All JSON is read here, so that no value with a lone surrogate gets any further.
    """
    if _LONG_NUMBER.search(text) is None:
        try:
            parsed: object = orjson.loads(text)
            return parsed
        except orjson.JSONDecodeError:
            pass  # It is stricter about lone surrogates and huge floats, and says less about what is wrong.
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at character {error.pos}") from None
    except RecursionError:  # The parser bounds the depth itself: a line may hold a million "[".
        raise ValueError("nested too deeply") from None
    if _SURROGATE.search(text) is not None:
        _refuse_lone_surrogates(value)
    return value


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a character as JSON spells it; two halves in a row are a whole one."""


def _refuse_lone_surrogates(value: object) -> None:
    remaining = [value]
    while remaining:
        part = remaining.pop()
        if isinstance(part, dict):
            remaining += [*part, *part.values()]
        elif isinstance(part, list):
            remaining += part
        elif isinstance(part, str) and not is_utf8(part):
            raise LoneSurrogate(f"a text holds a lone surrogate, half of a character: {part!a:.60}")


MANY_KEYS = 200
"""The keys of an object with more are not looked for one by one."""


def repeated_key(text: str, value: Mapping[str, Any]) -> str | None:
    """Return a key that an object of a JSON text has twice with other values, or None if there is none.

    text: the JSON of `value`. Keys of objects within the object's own are looked at, those of deeper ones are not.
    """
    names = [*value, *(name for inner in value.values() if isinstance(inner, dict) for name in inner)]
    if len(names) <= MANY_KEYS and all(
        text.count(f'"{name}"') < 2 for name in names
    ):  # This costs a scan, the parser with a hook ten times more.
        return None
    repeated: list[str] = []

    def read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        last = dict(pairs)
        if len(last) < len(pairs):
            repeated.extend(name for name, part in pairs if part != last[name])
        return last

    try:
        json.loads(text, object_pairs_hook=read)
    except (ValueError, RecursionError):
        return None
    return next(iter(repeated), None)


def parse_structure(value: Any) -> Any:
    """Return the object or array that a text holds as JSON; every other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return parse_json(value)
        except ValueError:
            return value
    return value


MAX_LITERAL = 100_000
"""Longer texts are not read as Python."""
_ARRAY = re.compile(r"\barray\((\[.*?\])(?:,\s*dtype=[\w'<>]+)?\)", re.DOTALL)
"""An array of numpy within a list or a dict."""
_BETWEEN_DICTS = re.compile(r"\}\s*\n\s*\{")
"""numpy writes no commas between the entries of an array."""


def parse_literal(value: Any) -> Any:
    """Return what `parse_structure` does, and the list or dict that a text holds as Python or numpy writes it."""
    structure = parse_structure(value)
    if not isinstance(structure, str) or structure.lstrip()[:1] not in ("{", "[") or len(structure) > MAX_LITERAL:
        return structure
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # LaTeX has escapes that Python has not.
        try:
            return ast.literal_eval(_ARRAY.sub(r"\1", _BETWEEN_DICTS.sub("}, {", structure.strip())))
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            return structure


def is_utf8(text: str) -> bool:
    """Say whether a text can be written as UTF-8: one with a lone surrogate cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
