r"""Reads answers that a response gives as a JSON object, also with raw LaTeX, line breaks and single quotes in it.

    {"reasoning": "... \frac{1}{3}", "answer": "\frac{1}{2}"} -> \frac{1}{2}
    {'steps': ['2+2', '4+1'], 'final_answer': 5,}             -> 5
    {"answer": {"value": 5, "unit": "cm"}}                    -> 5\text{ cm}
    {"solution": "We add ...", "answer": 5}                   -> 5: the field `answer` goes before `solution`
    {"answer": 5, "final_answer": 6}                          -> 5 or 6: a hedge
    {"x": 1, "y": 2}                                          -> x=1, y=2
    {"reasoning": "the \"answer\": 5 is wrong", "answer": 6}  -> 6
    {"answer": 5, "correct": false}                           -> nothing
    {"answer": "\ln 2", "numerical_answer": 0.6931}           -> \ln 2: the decimal is only its approximation
    \text{"answer": "}\frac{1}{2}\text{"}                     -> \frac{1}{2}: an object in a box, without its braces

Not covered: quotation marks inside a string without a backslash before them.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

from truegold.verifiers.extract.stated_values import PATTERNS

MAX_CHARS = 20_000
"""Maximum number of characters at the end of a response that are searched for objects. Longer objects are not read."""
MAX_NESTING = 3
"""Maximum number of levels of nested objects that are read."""
MAX_OBJECTS = 8
"""Maximum number of objects in a response that are read. Stops thousands that are opened and never closed."""

Value: TypeAlias = "str | list[Value] | dict[str, Value] | bool | None"
"""A value of an object: numbers stay texts, and None is `null`."""

_FENCE = re.compile(r"^```(?:json)?\s*(\{.*\})\s*```$", re.DOTALL)
"""An object in a Markdown fence."""
_OBJECT = re.compile(r"\{\s*([\"'])\w[\w \-]{0,40}\1\s*:")
"""The beginning of an object: a brace and its first field."""
_START = re.compile(rf"(?:^|(?<=[\s`\[,])){_OBJECT.pattern}")
"""An object within a text."""
_TOKEN = re.compile(
    r"\s*(?:(?P<mark>[{}\[\],:])|\"(?P<double>(?:[^\"\\]|\\.)*)\"|'(?P<single>(?:[^'\\]|\\.)*)'"
    r"|(?P<bare>[^\s{}\[\],:\"'][^{}\[\],:\"'\n]{0,200}))",
    re.DOTALL,
)
"""A brace, bracket, comma or colon; a quoted string; or bare words."""
_ESCAPE = re.compile(r"\\(?:([\\\"'/])|(n)(?![a-z]))")
"""An escaped quote, slash or backslash, or a line break; other backslashes are LaTeX."""
_FIELD = re.compile(rf"\{{?{_OBJECT.pattern[2:]}")
"""The first field of an object, with or without the brace before it."""
_LAYOUT = re.compile(
    r"\\(?:begin|end)\{(?:aligned|array|gathered|cases|matrix|split)\}(?:\{[lcr|]{1,9}\})?|\\\\(?=\s|$)|&"
)
"""Commands that lay out the lines of an object."""
_TYPESET = re.compile(r"(\\(?:text|mathrm|texttt)\{|\\[\\{}_]|[{}])")
"""Commands, braces and escapes that typeset an object in LaTeX."""
_ESCAPED = {r"\{": "{", r"\}": "}", r"\_": "_"}
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "none": None}
_DECIMALS = frozenset({"numericalanswer", "numericanswer", "numericalvalue", "decimalanswer", "approximateanswer"})
"""Fields that repeat the answer as a decimal."""
_KEYS = (
    frozenset(
        ["answer", "finalanswer", "correctanswer", "myanswer", "ans", "答案", "最终答案", *PATTERNS["answer_words"]]
    ),
    frozenset({"final", "result", "output", "solution", "choice", "option", "selectedoption", "correctoption"}),
    _DECIMALS,
)
"""Fields that hold the answer, in groups: a field of an earlier group goes first."""
_JUDGED = frozenset({"correct", "iscorrect", "valid", "isvalid", "right", "isright"})
"""Fields that say whether the answer of an object is right."""
_NAME = re.compile(r"[A-Za-z一-鿿][\w\- ]{0,30}")
"""A field that may be a variable: `x`."""


class _NoObject(Exception):
    """The text is not an object."""


def answer_in_json(text: str) -> str | None:
    """Return the answer of a text that is one JSON object, or None for any other text."""
    if len(text) > MAX_CHARS:
        return None
    if fence := _FENCE.match(text):
        text = fence.group(1)
    if not text.endswith("}") or _OBJECT.match(text) is None:
        return None
    try:
        record, end = _read(text, 0, 0)
    except _NoObject:
        return None
    return _answer_of(record, 0) if isinstance(record, dict) and end == len(text) else None


def answer_in_box(text: str) -> str | None:
    """Return the answer in a JSON object that LaTeX typesets in a box, or None if the text is not such an object.

    An object without a field for the answer gives an empty text. With braces it gives None: it may be the answer.
    """
    if len(text) > MAX_CHARS or ('"' not in text and "'" not in text):
        return None
    written = _plain_object(text)
    if _FIELD.match(written) is None:
        return None
    has_braces = written.startswith("{")
    try:
        record, _ = _read(written if has_braces else f"{{{written}}}", 0, 0)
    except _NoObject:
        return None
    if isinstance(record, dict) and _announced(record):
        return _answer_of(record, 0)
    return None if has_braces else ""


def _plain_object(text: str) -> str:
    r"""Return the object that a typeset text stands for: `"answer": "` for `\text{"answer": "}`."""
    if "\\begin{" in text:
        text = _LAYOUT.sub(" ", text)
    plain: list[str] = []
    closings: list[str] = []
    for token in _TYPESET.split(text):
        if token == "}" and closings:
            plain.append(closings.pop())
        elif token.endswith("{") and token != r"\{":
            is_brace = token == "{"
            closings.append("}" if is_brace else "")
            plain.append("{" if is_brace else "")
        else:
            plain.append(_ESCAPED.get(token, token))
    return "".join(plain).strip()


class Stated(NamedTuple):
    """The answer of the objects in a text."""

    text: str
    behind: str
    """The text after the last object."""


def answer_at_end(text: str) -> Stated | None:
    """Return the answer of all objects in a text, or None. Different answers are joined by `or`."""
    text = text[-MAX_CHARS:]
    answers: dict[str, None] = {}
    start = end = 0
    for _ in range(MAX_OBJECTS):
        if (opening := _START.search(text, start)) is None:
            break
        start = opening.end()
        try:
            record, start = _read(text, opening.start(), 0)
        except _NoObject:
            continue
        end = start
        if isinstance(record, dict) and (announced := _announced(record)):
            answers |= dict.fromkeys(filter(None, (_text_of(value, 0) for value in announced)))
    return Stated(" or ".join(answers), text[end:]) if answers else None


def _read(text: str, position: int, depth: int) -> tuple[Value, int]:
    """Return the value at a position, and the position after it."""
    if depth > MAX_NESTING or (token := _TOKEN.match(text, position)) is None:
        raise _NoObject
    end = token.end()
    if (string := token["double"] if token["double"] is not None else token["single"]) is not None:
        return _ESCAPE.sub(lambda match: match[1] or "\n", string), end
    if (bare := token["bare"]) is not None:
        word = bare.strip()
        return _CONSTANTS.get(word.lower(), word), end
    if token["mark"] not in "{[":
        raise _NoObject
    closing = "}" if token["mark"] == "{" else "]"
    pairs: list[tuple[str, Value]] = []
    while True:
        token = _TOKEN.match(text, end)
        if token is None:
            raise _NoObject
        if token["mark"] == closing:
            break
        if pairs and token["mark"] == ",":
            end = token.end()
            if (after := _TOKEN.match(text, end)) is not None and after["mark"] == closing:
                continue
        elif pairs:
            raise _NoObject
        key = ""
        if closing == "}":
            name, end = _read(text, end, MAX_NESTING)
            colon = _TOKEN.match(text, end)
            if not isinstance(name, str) or colon is None or colon["mark"] != ":":
                raise _NoObject
            key, end = name, colon.end()
        value, end = _read(text, end, depth + 1)
        pairs.append((key, value))
    return (_joined(pairs) if closing == "}" else [value for _, value in pairs]), token.end()


def _joined(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    """Return the fields of an object. A field with two different values gets both, joined by `or`."""
    record: dict[str, Value] = {}
    for name, value in pairs:
        earlier = record.get(name)
        is_other = isinstance(earlier, str) and isinstance(value, str) and earlier != value
        record[name] = f"{earlier} or {value}" if is_other else value
    return record


def _key(name: str) -> str:
    """Return the letters and digits of a field's name in lower case."""
    return "".join(filter(str.isalnum, name.casefold()))


def _announced(record: dict[str, Value]) -> list[Value]:
    """Return the values of the fields that hold the answer. They may be in a nested object."""
    if any(_key(name) in _JUDGED and value in (False, "0", "no") for name, value in record.items()):
        return []
    for keys in _KEYS:
        if announced := [value for name, value in record.items() if _key(name) in keys]:
            return announced
    nested = [inner for value in record.values() if isinstance(value, dict) and (inner := _announced(value))]
    return nested[0] if len(nested) == 1 else []


def _answer_of(record: dict[str, Value], depth: int) -> str | None:
    """Return the answer of an object: its announced values, its `value` with a `unit`, or all fields as variables."""
    if depth >= MAX_NESTING or not record:
        return None
    announced = _announced(record)
    if not announced and "value" in record:
        unit = record.get("unit") or record.get("units")
        announced = [f"{record['value']}\\text{{ {unit}}}" if isinstance(unit, str) else record["value"]]
    if announced:
        return " or ".join(filter(None, dict.fromkeys(_text_of(value, depth) for value in announced)))
    if not all(isinstance(value, (bool, str)) and _NAME.fullmatch(key) for key, value in record.items()):
        return None
    return ", ".join(f"{_label(key)}={_text_of(value, depth)}" for key, value in record.items())


def _text_of(value: Value, depth: int) -> str:
    """Return a value as text: a list with commas, a nested object as its answer."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return _answer_of(value, depth + 1) or ""
    if isinstance(value, list):
        return ", ".join(
            f"({_text_of(part, depth)})" if isinstance(part, list) else _text_of(part, depth) for part in value
        )
    return value or ""


def _label(key: str) -> str:
    """Return a variable as LaTeX. A name of three or more letters becomes text: `\\text{speed}`."""
    return key if len(key) <= 2 else f"\\text{{{key}}}"
