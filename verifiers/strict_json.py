"""Reads JSON strictly: integers of any size stay exact; NaN and lone surrogates are refused.

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
"""Nineteen digits, which may belong to an integer beyond 64 bits. `orjson` does not keep such integers exactly."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class LoneSurrogate(ValueError):
    """A JSON text with a lone surrogate, `"\\ud800"`, which JSON allows but UTF-8 cannot store."""


def parse_json(text: str) -> object:
    """Return the value of a strict JSON text. Raises ValueError with one line that describes the mistake.

    All of truegold's JSON is read here, so that no value has a lone surrogate.
    """
    if _LONG_NUMBER.search(text) is None:
        try:
            parsed: object = orjson.loads(text)
            return parsed
        except orjson.JSONDecodeError:
            pass  # orjson also refuses some legal texts, such as huge floats, and its errors say less.
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at character {error.pos}") from None
    except RecursionError:  # A line may hold a million "[".
        raise ValueError("nested too deeply") from None
    if _SURROGATE.search(text) is not None:
        _refuse_lone_surrogates(value)
    return value


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""A surrogate as JSON spells it: `\\ud83d`. Two in a row make one character; one alone is a lone surrogate."""


def _refuse_lone_surrogates(value: object) -> None:
    remaining = [value]
    while remaining:
        part = remaining.pop()
        if isinstance(part, dict):
            remaining += [*part, *part.values()]
        elif isinstance(part, list):
            remaining += part
        elif isinstance(part, str) and not is_utf8(part):
            raise LoneSurrogate(f"a text holds a lone surrogate: {part!a:.60}")


MANY_KEYS = 200
"""Maximum number of keys that are counted one by one in the text; for more keys the parser is faster."""


def repeated_key(text: str, value: Mapping[str, Any]) -> str | None:
    """Return a key that occurs twice in an object with different values, or None if there is none.

    text: the JSON of `value`. The keys of the object and of the objects directly in it are checked.
    """
    names = [*value, *(name for inner in value.values() if isinstance(inner, dict) for name in inner)]
    if len(names) <= MANY_KEYS and all(
        text.count(f'"{name}"') < 2 for name in names
    ):  # Counting is ten times faster than the parser with a hook.
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
    """Return the object or array that a text holds as JSON; any other value is returned unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return parse_json(value)
        except ValueError:
            return value
    return value


MAX_LITERAL = 100_000
"""Maximum length of a text that is read as a Python literal, in characters."""
_ARRAY = re.compile(r"\barray\((\[.*?\])(?:,\s*dtype=[\w'<>]+)?\)", re.DOTALL)
"""A numpy array within a list or a dict: `array([1, 2], dtype=int64)`."""
_BETWEEN_DICTS = re.compile(r"\}\s*\n\s*\{")
"""The gap between two dicts in a printed numpy array, which has no commas."""


def parse_literal(value: Any) -> Any:
    """Return the list or dict that a text holds as JSON, Python or numpy; any other value is returned unchanged."""
    structure = parse_structure(value)
    if not isinstance(structure, str) or structure.lstrip()[:1] not in ("{", "[") or len(structure) > MAX_LITERAL:
        return structure
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", SyntaxWarning
        )  # Python warns of LaTeX commands such as `\sqrt`, which are not escapes of Python.
        try:
            return ast.literal_eval(_ARRAY.sub(r"\1", _BETWEEN_DICTS.sub("}, {", structure.strip())))
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            return structure


def is_utf8(text: str) -> bool:
    """Say whether a text can be written as UTF-8, that is, has no lone surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
