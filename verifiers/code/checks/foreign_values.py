"""Reads literals of languages other than Python, such as the expected values in tests.

    literal("vec![1, 2 * 3]", "rust")                                  [1, 6]
    literal("new ArrayList<>(Arrays.asList(\\"a\\"))", "java")         ["a"]
    literal("std::map<string, int>{{\\"a\\", 1}}", "cpp")              {"a": 1}
    literal("f(2)", "cpp")                                             raises NoLiteral

Lists, arrays, tuples and pairs become lists. `agree` compares the result with a value that a program returned.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from truegold.verifiers.sandbox.inside.wire.value_types import Value

MAX_NESTED = 40
"""Maximum depth of brackets that are read."""

PRINTS = ("rust", "go")
"""Languages whose programs print values in the language's own notation, instead of JSON."""

_TYPES = r"<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>"
"""Type parameters: `<int, List<String>>`."""
_LIST = rf"""(?:vec\s*!|Arrays\.asList(?=\()|List\.of(?=\()|new\s+[\w.]+(?:{_TYPES})?\s*(?:\[\s*\])+
  |(?:std::)?make_(?:pair|tuple)(?=\()|array(?=\()|(?:\[\d*\])+\**[\w.]+(?:{_TYPES}|[ ]?\{{\}})?(?=\s*\{{)|&(?=\[))"""
_LIST_OF = rf"""(?:(?:std::)?(?:vector|list|deque|array|initializer_list|pair|tuple)\s*{_TYPES}
  |new\s+(?:java\.util\.)?(?:ArrayList|LinkedList)\s*(?:{_TYPES})?)"""
_SET = rf"""(?:Set\.of(?=\()|(?:Hash|BTree)Set::from(?=\()
  |new\s+(?:java\.util\.)?(?:Linked)?(?:Hash|Tree)?Set\s*(?:{_TYPES})?
  |(?:std::)?(?:unordered_|multi)?set\s*{_TYPES})"""
_MAP = rf"""(?:Map\.of(?=\()|(?:Hash|BTree)Map::from(?=\()
  |new\s+(?:java\.util\.)?(?:Linked)?(?:Hash|Tree)?Map\s*(?:{_TYPES})?
  |(?:std::)?(?:unordered_)?map\s*{_TYPES}|map\[[\w.]+\](?:\[\])*[\w.]+(?:[ ]?\{{\}})?(?=\s*\{{))"""
_COLLECTION = re.compile(f"(?P<list>{_LIST})|(?P<list_of>{_LIST_OF})|(?P<set>{_SET})|(?P<map>{_MAP})", re.VERBOSE)
"""The constructor of a collection, before the bracket with its elements."""
_CAST = re.compile(
    r"\(\s*(?:std::)?(?:(?:unsigned\s+)?(?:int|long|short|char|byte)(?:\s+long)?|float(?:64)?|double|string|String|bool|boolean)\s*\)"
)
_NUMERAL = re.compile(
    r"(0[xX][\da-fA-F]+|\d[\d_]*(?:\.\d+|\.(?![.\w]))?(?:[eE][+-]?\d+)?)"
    r"(_?[iu](?:8|16|32|64|128|size)|_?f(?:32|64)|[fFdDlLuUn]{0,3})\b"
)
"""A number and the suffix of its type: `1.5f`, `7_i32`."""
_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'', re.DOTALL)
_WRAPPED = re.compile(
    r"(?:Some|Optional\.of|std::make_optional)\(|(?:String::from|(?:std::)?string|new\s+String)\s*\((?=\s*[\"'])"
)
"""A constructor that leaves its argument as it is: `Some(`, `String::from(`."""
_WORD = re.compile(r"[A-Za-z]\w*\b(?!\s*[(:.!])")
_FLOATS = re.compile(r"\b(?:float|double)(?:32|64)?\b")
_NIL = re.compile(r"<nil>|(?:\[\d*\]|map\[[\w.]+\])+\**[\w.]+(?: \{\})?\(nil\)|\(\*[\w.]+\)\(nil\)")
_VARIANT = re.compile(r"(?:\w+::)*([A-Z](?:\w*[a-z]\w*)?)(?![\w!:])")
"""The name of a Rust variant or struct, as in source or as `{:?}` prints it: `Error::Empty`, `Shape::Circle(2.0)`,
`Point { x: 1 }`. `u8::MAX` does not match."""
_OWNED = re.compile(r"\s*\.\s*(?:to_string|to_owned|into|to_vec)\s*\(\s*\)")
_EMPTY = re.compile(
    r"(?:Vec|String|HashMap|HashSet|BTreeMap|BTreeSet)(?:::<[^()]*>)?::new\(\)"
    r"|(?:Collections\.empty(?:List|Map|Set)|Optional\.empty)\(\)"
)
_EMPTY_VALUES: dict[str, Value] = {"Optional": None, "String": "", "Map": {}, "": []}
_WORDS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "nullptr", "None", "nil", "undef", "NULL"), None),
}
_KEY = re.compile(r"([A-Za-z_$][\w$]*)\s*(?::(?!:)|=>)")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f", "v": "\v", "a": "\a"}


class NoLiteral(ValueError):
    """Raised for a text that is not a literal."""


class LetterCode(str):
    """A character literal, which is also a number in C, C++, Java and Go."""


class HashedList(list[Value]):
    """The elements of a set, in any order."""


def literal(text: str, language: str) -> Value:
    """Return the value of a literal. Raises `NoLiteral` for any other expression."""
    reader = _Literal(text.strip(), language)
    value = reader.sum(0)
    reader.skip()
    if reader.position != len(reader.text):
        raise NoLiteral(text)
    return value


def read_printed(text: str, language: str) -> Value:
    """Return the value that Rust's `{:?}` or Go's `%#v` printed. Raises `ValueError` if it cannot be read.

    text: the printed bytes in hexadecimal.
    """
    value = literal(bytes.fromhex(text).decode(), language)
    return value[0] if language == "go" and isinstance(value, list) and len(value) == 1 else value


class _Literal:
    def __init__(self, text: str, language: str) -> None:
        self.text, self.language, self.position = text, language, 0

    def skip(self) -> None:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        self.skip()
        match = pattern.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
        return match

    def next_is(self, word: str) -> bool:
        self.skip()
        if not self.text.startswith(word, self.position):
            return False
        self.position += len(word)
        return True

    def sum(self, depth: int) -> Value:
        """Read terms with `+` and `-` between them."""
        value = self.product(depth)
        while (operator := self.take(re.compile(r"[+-](?![+-])"))) is not None:
            other = self.product(depth)
            are_texts = isinstance(value, str) and isinstance(other, str)
            if operator[0] == "+" and (are_texts or _both_numbers(value, other)):
                value += other
            else:
                value = _minus(value, other)
        return value

    def product(self, depth: int) -> Value:
        value = self.unary(depth)
        while self.next_is("*"):
            other = self.unary(depth)
            if not _both_numbers(value, other):
                raise NoLiteral(self.text)
            value = value * other
        return value

    def unary(self, depth: int) -> Value:
        if depth > MAX_NESTED:
            raise NoLiteral("too deep")
        if self.next_is("-"):
            return _minus(0, self.unary(depth + 1))
        if (cast := self.take(_CAST)) is not None:
            value = self.unary(depth + 1)
            if isinstance(value, int | float) and not isinstance(value, bool) and re.search("float|double", cast[0]):
                return _as_float32(value) if "float" in cast[0] and "64" not in cast[0] else float(value)
            return value
        is_nil = self.language == "go" and self.take(_NIL) is not None
        return None if is_nil else self.primary(depth)

    def primary(self, depth: int) -> Value:
        if (kind := self.take(_COLLECTION)) is not None:
            value = self._collection(str(kind.lastgroup), depth)
            return _with_floats(value) if _FLOATS.search(kind[0]) else value
        if self.text[self.position : self.position + 1] in _CLOSING:
            return self._collection("", depth)
        if self.text[self.position : self.position + 1] in {'"', "'"}:
            return self._text()
        if (numeral := self.take(_NUMERAL)) is not None:
            return self._numeral(numeral[1].replace("_", ""), numeral[2])
        return self._named(depth)

    def _named(self, depth: int) -> Value:
        if (empty := self.take(_EMPTY)) is not None:
            return next(value for name, value in _EMPTY_VALUES.items() if name in empty[0].partition("::")[0])
        start = self.position
        if self.take(_WRAPPED) is not None:
            return self._closed(self.sum(depth + 1))
        if (word := self.take(_WORD)) is not None and word[0] in _WORDS:
            return _WORDS[word[0]]
        self.position = start
        if self.language == "rust" and (variant := self.take(_VARIANT)) is not None:
            self.skip()
            opening = self.text[self.position : self.position + 1]
            if opening == "(":
                self.position += 1
                return [variant[1], *self._elements(")", depth)[0]]
            return [variant[1], self._collection("", depth)] if opening == "{" else [variant[1]]
        raise NoLiteral(self.text)

    def _numeral(self, digits: str, suffix: str) -> Value:
        if digits[:2] in ("0x", "0X"):
            return int(digits, 16)
        is_float = re.search(r"[.eE]", digits) or suffix.lower().lstrip("_") in ("f", "d", "f32", "f64")
        if not is_float and len(digits) > 1 and digits[0] == "0":
            raise NoLiteral("an octal number")
        if not is_float:  # JavaScript's whole numbers are rounded beyond 2^53.
            return int(float(digits)) if self.language == "javascript" else int(digits)
        return _as_float32(float(digits)) if suffix in ("f", "F") else float(digits)

    def _text(self) -> Value:
        parts: list[str] = []
        is_letter = False
        while (match := self.take(_TEXT)) is not None:
            is_letter = match[2] is not None and self.language in ("c", "cpp", "java", "go", "rust")
            raw = match[2] if match[1] is None else match[1]
            is_plain = self.language == "perl" and match[2] is not None
            if self.language == "perl" and not is_plain and re.search(r"[$@]", raw):
                raise NoLiteral("a text with variables in it")
            parts.append(raw if is_plain and "\\" not in raw else _unescaped(raw))
        self.take(_OWNED)
        text = "".join(parts)
        if is_letter and len(text) != 1:
            raise NoLiteral("several letters")
        if is_letter and self.language == "go":
            return ord(text)
        return LetterCode(text) if is_letter else text

    def _closed(self, value: Value) -> Value:
        if not self.next_is(")"):
            raise NoLiteral(self.text)
        return value

    def _collection(self, kind: str, depth: int) -> Value:
        self.skip()
        opening = self.text[self.position : self.position + 1]
        if opening not in _CLOSING:
            raise NoLiteral(self.text)
        if kind == "map" and self.text[self.position :].startswith(("(){{", "{{")) and "put(" in self.text:
            return self._put_map(depth)
        self.position += 1
        elements, keys, comma = self._elements(_CLOSING[opening], depth)
        self.take(_OWNED)
        if opening == "(" and kind == "" and (self.language != "rust" or (len(elements) == 1 and not comma)):
            if len(elements) != 1 and (self.language != "javascript" or not elements):
                raise NoLiteral(self.text)
            return elements[-1]  # JavaScript's `(1, 2)` is 2.
        if len(keys) not in (0, len(elements)):
            raise NoLiteral("only some elements have keys")
        if keys:
            return _pairs(list(zip(keys, elements, strict=True)))
        if not elements and kind == "" and opening == "{" and self.language in ("javascript", "perl"):
            return {}
        # `vector<int>({1, 2})` and `new HashSet<>(Arrays.asList(1, 2))` take their elements from their argument.
        is_alone = kind in ("list_of", "set", "map") and opening == "(" and len(elements) == 1
        values = elements[0] if is_alone and isinstance(elements[0], list | dict) else elements
        if kind == "map":
            return self._map(values)
        return HashedList(values) if kind == "set" else values

    def _map(self, values: Value) -> Value:
        if isinstance(values, dict):
            return values
        if self.language == "java":  # Map.of("a", 1, "b", 2)
            return _pairs(list(zip(values[::2], values[1::2], strict=True)))
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in values):
            raise NoLiteral("a map of elements that are not pairs")
        return _pairs([(pair[0], pair[1]) for pair in values])

    def _put_map(self, depth: int) -> Value:
        """Read `(){{put("a", 1); put("b", 2);}}`."""
        self.next_is("()")
        self.position += 2
        pairs = []
        while self.take(re.compile(r"put\s*\(")) is not None:
            key = self.sum(depth + 1)
            if not self.next_is(","):
                raise NoLiteral(self.text)
            pairs.append((key, self._closed(self.sum(depth + 1))))
            self.next_is(";")
        if not self.next_is("}}"):
            raise NoLiteral(self.text)
        return _pairs(pairs)

    def _elements(self, closing: str, depth: int) -> tuple[list[Value], list[Value], bool]:
        elements: list[Value] = []
        keys: list[Value] = []
        comma = False
        while not self.next_is(closing):
            if (key := self.take(_KEY)) is not None:
                keys.append(key[1])
            value = self.sum(depth + 1)
            if key is None and self.take(re.compile(r":(?!:)|=>")) is not None:
                keys.append(str(value) if self.language == "javascript" else value)
                value = self.sum(depth + 1)
            elements.append(value)
            comma = self.next_is(",")
            self.skip()
            if not comma and self.text[self.position : self.position + 1] != closing:
                raise NoLiteral(self.text)
        return elements, keys, comma


def _with_floats(value: Value) -> Value:
    """Return a value with all numbers as floats, for types such as `[]float64{1, 2}`."""
    if isinstance(value, dict):
        return {key: _with_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return type(value)(map(_with_floats, value))
    return float(value) if _both_numbers(value, value) else value


def _pairs(pairs: list[tuple[Value, Value]]) -> Value:
    try:
        return dict(pairs)
    except TypeError as error:
        raise NoLiteral("a list as a key") from error


def _both_numbers(first: Value, second: Value) -> bool:
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in (first, second))


def _minus(first: Value, second: Value) -> Value:
    if not _both_numbers(first, second):
        raise NoLiteral("a difference of values that are not numbers")
    return first - second if first != 0 or isinstance(first, float) else -second


def _as_float32(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError as error:
        raise NoLiteral("a number too large for 32 bits") from error


def _unescaped(raw: str) -> str:
    def character(escape: re.Match[str]) -> str:
        code = escape[1]
        if code[0] in "xu" and len(code) > 1:
            return chr(int(code.strip("xu{}"), 16))
        if len(code) != 1 or (code.isalnum() and code not in _ESCAPES):
            raise NoLiteral("an unusual escape")
        return _ESCAPES.get(code, code)

    escape = r"\\(x[\da-fA-F]{2}|u[\da-fA-F]{4}|u\{[\da-fA-F]{1,6}\}|[0-7]{2,3}|.)"
    return re.sub(escape, character, raw, flags=re.DOTALL)


def agree(expected: Value, value: Value, language: str, is_strict: bool = False, tolerance: float = 0.0) -> bool:
    """Return whether a returned value agrees with the expected one. is_strict: whether 1 and 1.0 differ."""

    def same(first: Value, second: Value) -> bool:
        return agree(first, second, language, is_strict, tolerance)

    match expected:
        case [] | dict() if not expected and language in ("cpp", "rust") and value in ([], {}):
            return True  # `{}` may be an empty list or an empty map.
        case None | bool() | int() | float() | str():
            return _agree_alone(expected, value, language, is_strict or language == "rust", tolerance)
        case dict():
            are_same = isinstance(value, dict) and len(value) == len(expected)
            return are_same and all(key in value and same(item, value[key]) for key, item in expected.items())
        case list() if isinstance(value, dict) and language == "cpp" and value:  # `{{"a", 1}}` for a map
            pairs = list(map(list, value.items()))
            return same(expected, pairs) or same(sorted(expected, key=repr), sorted(pairs, key=repr))
        case list() if isinstance(value, list) and len(value) == len(expected):
            is_set = isinstance(expected, HashedList)
            return _agree_in_any_order(expected, value, same) if is_set else all(map(same, expected, value))
    return False


def _agree_in_any_order(expected: list[Value], value: list[Value], same: Callable[[Value, Value], bool]) -> bool:
    left = list(value)
    for item in expected:
        index = next((index for index, each in enumerate(left) if same(item, each)), None)
        if index is None:
            return False
        del left[index]
    return True


def _agree_alone(expected: Value, value: Value, language: str, is_strict: bool, tolerance: float) -> bool:
    """Return whether a value agrees with an expected value that is not a collection."""
    is_c = language in ("c", "cpp")
    match expected:
        case None | bool():
            return value is expected or (is_c and expected is not None and value == expected)
        case str():
            is_code = isinstance(expected, LetterCode) and isinstance(value, int) and not is_strict
            in_bytes = language in ("c", "perl") and value == expected.encode().decode("latin-1")
            return value == expected or in_bytes or (is_code and ord(expected) == value)
    if language == "perl" and isinstance(value, str):
        value = _number_of(value)
    if is_c and isinstance(value, str) and len(value) == 1:
        value = ord(value)
    is_number = isinstance(value, int | float) and (is_c or not isinstance(value, bool))
    if not is_number or (is_strict and type(value) is not type(expected)):
        return False
    try:
        return bool(value == expected) or abs(value - expected) <= tolerance
    except OverflowError:  # An integer beyond the range of floats.
        return False


def _number_of(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
