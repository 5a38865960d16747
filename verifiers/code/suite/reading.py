"""Reads the tests of a problem from `info` into a typed suite.

    read_suite({"tests": {"type": "stdio", "cases": [{"input": "1 2", "output": "3"}]}})
        Suite(tests=Stdio(cases=(StdioCase("1 2", "3", 1.0),), checker="tokens"), language="python", limits=Limits())
    read_suite({"type": "asserts", "code": "def check(candidate): ...", "entry_point": "add"})
        Suite(tests=Asserts(code="def check...", entry_point="add", ...), ...)
    read_suite({"tests": {"type": "stdio", "cases": [{"input": "1 2", "output": 3}]}})
        BadSuite: tests.cases[0].output must be text, got 3

`info["tests"]` has one of the forms, or a shape from `shapes`, as an object or as JSON text. Without `tests`, `info`
itself is read as tests. Options of the tests (`SUITE_OPTIONS`) may also be keys of `info`; other keys are ignored.

Arguments and expected values are JSON. Values that JSON lacks are tagged objects (`inside.wire`), for example a tuple
is `{"$": "tuple", "v": [1, 2]}`. Not covered: tests that have to be decompressed or unpickled.

A suite's checker and interactor may be programs, which can use the suite's `files`. `read_checker` completes them:

    "#include \\"testlib.h\\"\\nint main(..."             {"type": "program", "code": "...", "language": "cpp"}
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.resources import files
from itertools import chain
from typing import NamedTuple

from truegold.verifiers.code.drivers import VOID, Signature, read_signature, signature_of_stub
from truegold.verifiers.code.outcomes import BadSuite, require, require_files, shown
from truegold.verifiers.code.output_comparison import read_spec
from truegold.verifiers.code.suite.imports import is_helper, with_calls_of_check
from truegold.verifiers.code.suite.shapes import normal_form, with_calls_of_tests, with_doctests
from truegold.verifiers.code.suite.unrun import unrun_tests
from truegold.verifiers.code.value_comparison import read_call_spec
from truegold.verifiers.sandbox.inside.wire.decoding import decode
from truegold.verifiers.sandbox.inside.wire.foreign_values import Json, Undecodable
from truegold.verifiers.sandbox.inside.wire.json_lines import are_plain
from truegold.verifiers.sandbox.languages import edition_name
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import PYTHON

LEETCODE_PRELUDE = files(__package__).joinpath("leetcode_prelude.txt").read_text(encoding="utf-8")
"""Code that LeetCode runs before a solution (`List`, `ListNode`), and that its data sets build arguments with."""

Codecs = Mapping[str, tuple[str, ...]]
"""Classes of the problem whose objects are sent between processes, with the names of their attributes."""


@dataclass(frozen=True, slots=True)
class StdioCase:
    """The input and the expected output of a program."""

    input: str
    output: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Stdio:
    """Tests of programs that read stdin and write stdout."""

    cases: tuple[StdioCase, ...]
    checker: str | Mapping[str, Json] = "tokens"
    """The checker of outputs: an argument of `output_comparison.checker_of`, or the description of a program."""
    interactor: Mapping[str, Json] | None = None
    """The description of a program that exchanges messages with the solution, or None."""


class CallCase(NamedTuple):
    """A call and its expected result."""

    args: tuple[Json, ...]
    kwargs: Mapping[str, Json]
    expected: Json
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Calls:
    """Tests of a function: `entry_point(*args, **kwargs)` returns `expected`."""

    entry_point: str
    cases: tuple[CallCase, ...]
    checker: str | Mapping[str, Json] = "values"
    """The checker of values: an argument of `value_comparison.call_checker_of`."""
    prelude: str = ""
    """Python code that runs before the program."""
    codecs: Codecs = field(default_factory=dict)
    signature: Signature | None = None
    """The types of the function that the suite states, or None."""
    in_place: int = -1
    """The index of the argument that the function changes into the result; -1 if the result is the returned value."""
    plain_args: bool = field(default=False, compare=False)
    """Whether all arguments are known to be plain data (`inside/wire/json_lines.py`)."""
    plain_expected: bool = field(default=False, compare=False)
    """Whether all expected values are known to be plain data or tuples of it."""

    @property
    def returned_argument(self) -> int:
        """`in_place`, or 0 if the signature says that the function returns nothing."""
        returns_nothing = self.signature is not None and self.signature.returns == VOID
        return 0 if self.in_place < 0 and returns_nothing else self.in_place


@dataclass(frozen=True, slots=True)
class _CodeTests:
    code: str
    entry_point: str | None = None
    """The function or class under test, or None if the row does not name it."""
    prelude: str = ""
    """Python code that runs before the program."""
    stub: str = ""
    """The beginning of the program that a completion-style problem provides."""
    codecs: Codecs = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asserts(_CodeTests):
    """Python code that raises an exception if the solution is wrong."""


@dataclass(frozen=True, slots=True)
class UnitTest(_CodeTests):
    """Python code with `unittest.TestCase` classes."""


@dataclass(frozen=True, slots=True)
class Inserted:
    """A test program in any language with a marker that the solution replaces."""

    code: str
    marker: str = "#<INSERT>"
    """The text in the code that the solution replaces."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of one problem."""

    tests: Stdio | Calls | Asserts | UnitTest | Inserted
    language: str = "python"
    limits: Limits = field(default_factory=Limits)


MAX_CASES, MAX_CODECS, MAX_NAMED = 20_000, 64, 4
"""Maximum numbers of cases of a suite, of classes in `codecs`, and of unrun tests that an error message lists."""

MAX_SUITE_CHARS, MAX_CODE_CHARS = 128 * 2**20, 4 * 2**20
"""Maximum numbers of characters of all inputs and outputs together, and of test code, a prelude or a stub."""

SUITE_OPTIONS = (
    *("type", "cases", "code", "language", "limits", "checker", "interactor", "files", "entry_point", "prelude"),
    *("stub", "starter_code", "codecs", "signature", "in_place", "marker", "metadata"),
)
"""Keys of `info` that are options of the tests."""

_USUAL_LIMITS = Limits()
_ENTRY_POINT = re.compile(r"[^\W\d]\w{0,200}(?:\(\))?(?:\.[^\W\d]\w{0,200}(?:\(\))?){0,8}")
"""`add`, `Solution().twoSum`."""
_LANGUAGE = re.compile(r"[a-z][a-z0-9+#._-]{0,30}")
_IDENTIFIER = re.compile(r"[^\W\d]\w{0,200}")


def read_suite(info: Mapping[str, Json]) -> Suite:
    """Return the suite in a row's `info`. Raises `BadSuite`, which names the field and the case."""
    tests, path_prefix = normal_form(info)
    options = {**info, **tests}
    return Suite(_READERS[tests["type"]](options, path_prefix), _language(options), _limits(options))


def check_options(options: Mapping[str, Json]) -> None:
    """Raise `BadSuite` for an invalid option that does not depend on the tests."""
    _language(options)
    _limits(options)
    _codecs(options, "")
    _entry_point(options, "")
    _code(options, "prelude", "")


def _stdio(options: Mapping[str, Json], path_prefix: str) -> Stdio:
    interactor = read_interactor(options, path_prefix)
    needed = ("input", "output") if interactor is None else ("input",)
    cases = [
        StdioCase(_text(case, "input", path), _text({"output": "", **case}, "output", path), _weight(case, path))
        for path, case in _cases(options, path_prefix, needed)
    ]
    total = sum(len(case.input) + len(case.output) for case in cases)
    if total > MAX_SUITE_CHARS:
        raise BadSuite(f"{path_prefix}cases hold {total} characters, the limit is {MAX_SUITE_CHARS}")
    return Stdio(tuple(cases), read_checker(options, path_prefix), interactor)


def _calls(options: Mapping[str, Json], path_prefix: str) -> Calls:
    entry_point = _entry_point(options, path_prefix)
    if entry_point is None:
        raise BadSuite(f"{path_prefix}entry_point must name the function to call, such as add or Solution().twoSum")
    plain_args = _plain_arguments(options.get("cases"))
    plain_expected = False
    if plain_args is None:
        cases = _call_cases(options, path_prefix)
    else:
        expected = [case["expected"] for case in options["cases"]]
        plain_expected = are_plain(expected)
        if not plain_expected:
            expected = [_value(value, f"{path_prefix}cases[{index}].expected") for index, value in enumerate(expected)]
        cases = tuple(CallCase(args, {}, value) for args, value in zip(plain_args, expected, strict=True))
    plain_expected = plain_expected or are_plain([case.expected for case in cases], tuples=True)
    checker = options.get("checker") or "values"
    read_call_spec(checker, f"{path_prefix}checker")
    prelude, codecs = _prelude(options, entry_point, path_prefix), _codecs(options, path_prefix)
    signature = _signature(options, entry_point, path_prefix)
    in_place = _in_place(options, cases, path_prefix)
    are_plain_args = plain_args is not None
    return Calls(entry_point, cases, checker, prelude, codecs, signature, in_place, are_plain_args, plain_expected)


def _prelude(options: Mapping[str, Json], entry_point: str | None, path_prefix: str) -> str:
    """Return the code that runs before the program; by default the names of LeetCode for its `class Solution`."""
    prelude = _code(options, "prelude", path_prefix)
    is_leetcode = (entry_point or "").startswith("Solution()") and _language(options) == PYTHON
    return prelude or (LEETCODE_PRELUDE if is_leetcode else "")


def _signature(options: Mapping[str, Json], entry_point: str, path_prefix: str) -> Signature | None:
    name = entry_point.rpartition(".")[2].removesuffix("()")
    written = options.get("signature")
    stated = read_signature(written, name, f"{path_prefix}signature") if written not in (None, "") else None
    stub = options.get("stub") or options.get("starter_code")
    if stated is None and isinstance(stub, str) and len(stub) <= MAX_CODE_CHARS:
        stated = signature_of_stub(stub, name)
    return stated if stated != Signature() else None


def _in_place(options: Mapping[str, Json], cases: Sequence[CallCase], path_prefix: str) -> int:
    """Return the index of the argument that is the result, or -1 if the returned value is the result."""
    in_place = options.get("in_place")
    if in_place is None or in_place is False:
        return -1
    index = 0 if in_place is True else in_place
    most = min(len(case.args) + len(case.kwargs) for case in cases)
    fits = isinstance(index, int) and 0 <= index < most
    require(fits, f"{path_prefix}in_place", f"true or the position of an argument, from 0 to {most - 1}", in_place)
    return int(index)


def _plain_arguments(cases: Json) -> list[tuple[Json, ...]] | None:
    """Return the arguments of all cases in one fast step, or None if a case is invalid or has to be decoded."""
    if not isinstance(cases, list) or not 0 < len(cases) <= MAX_CASES or set(map(type, cases)) != {dict}:
        return None
    # Cases of a suite usually have the same keys, so that this set has one or two entries.
    combinations = set(map(tuple, cases))
    unusual = any("expected" not in keys or "weight" in keys for keys in combinations)
    if unusual or any(case.get("kwargs") for case in cases):
        return None
    args = [case.get("args", ()) for case in cases]
    if not set(map(type, args)) <= {list, tuple} or not are_plain(list(chain.from_iterable(args))):
        return None
    return list(map(tuple, args))


def _call_cases(options: Mapping[str, Json], path_prefix: str) -> tuple[CallCase, ...]:
    cases = []
    for path, case in _cases(options, path_prefix, ("expected",)):
        args, kwargs = case.get("args", ()), case.get("kwargs") or {}
        require(isinstance(args, list | tuple), f"{path}.args", "a list", args)
        is_object = isinstance(kwargs, Mapping) and all(isinstance(name, str) for name in kwargs)
        require(is_object, f"{path}.kwargs", "an object", kwargs)
        cases.append(
            CallCase(
                tuple(_value(arg, f"{path}.args[{index}]") for index, arg in enumerate(args)),
                {name: _value(arg, f"{path}.kwargs.{name}") for name, arg in kwargs.items()},
                _value(case["expected"], f"{path}.expected"),
                _weight(case, path),
            )
        )
    return tuple(cases)


def _asserts(options: Mapping[str, Json], path_prefix: str) -> Asserts:
    tests = _code_tests(options, path_prefix)
    return Asserts(**{**tests, "code": with_calls_of_tests(tests["code"])})


def _code_tests(options: Mapping[str, Json], path_prefix: str) -> dict[str, Json]:
    code = _code(options, "code", path_prefix)
    if code is None or not code.strip():
        raise BadSuite(f"{path_prefix}code must hold the tests, got {shown(options.get('code'))}")
    code, entry_point = with_doctests(code), _entry_point(options, path_prefix)
    if entry_point is not None and is_helper(code, entry_point, f"{options.get('prelude')}\n{options.get('stub')}"):
        code, entry_point = with_calls_of_check(code, entry_point), None
    if unrun := unrun_tests(code, entry_point):
        more = f" (and {len(unrun) - MAX_NAMED} more)" if len(unrun) > MAX_NAMED else ""
        raise BadSuite(f"{path_prefix}code has tests that would never run: {'; '.join(unrun[:MAX_NAMED])}{more}")
    return {
        "code": code,
        "entry_point": entry_point,
        "prelude": _prelude(options, entry_point, path_prefix),
        "stub": _code(options, "stub", path_prefix) or "",
        "codecs": _codecs(options, path_prefix),
    }


def _inserted(options: Mapping[str, Json], path_prefix: str) -> Inserted | Asserts:
    code, marker = _code(options, "code", path_prefix) or "", options.get("marker") or "#<INSERT>"
    if not isinstance(marker, str) or marker not in code:
        raise BadSuite(f"{path_prefix}code must contain the marker {shown(marker)}, which the solution replaces")
    if _language(options) != PYTHON:
        return Inserted(code, marker)
    before, _, tests = code.partition(marker)
    if before.rpartition("\n")[2]:
        raise BadSuite(f"{path_prefix}code must have its marker at the start of a line for a solution in Python")
    # Code before the marker becomes the prelude of the solution, unless it contains tests.
    parts = {"code": tests, "prelude": before} if "assert" not in before else {"code": f"{before}\n{tests}"}
    return _asserts({**options, **parts}, path_prefix)


_Reader = Callable[[Mapping[str, Json], str], Stdio | Calls | Asserts | UnitTest | Inserted]
_READERS: Mapping[str, _Reader] = {
    "stdio": _stdio,
    "interactive": _stdio,
    "calls": _calls,
    "asserts": _asserts,
    "unittest": lambda options, path_prefix: UnitTest(**_code_tests(options, path_prefix)),
    "inserted": _inserted,
}


def _cases(
    options: Mapping[str, Json], path_prefix: str, required: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Yield each case with its path for error messages: `tests.cases[3]`."""
    cases: Json = options.get("cases")
    require(isinstance(cases, list | tuple), f"{path_prefix}cases", "a list", cases)
    if not 0 < len(cases) <= MAX_CASES:
        raise BadSuite(f"{path_prefix}cases must hold 1 to {MAX_CASES} cases, got {len(cases)}")
    for index, case in enumerate(cases):
        path = f"{path_prefix}cases[{index}]"
        require(isinstance(case, Mapping), path, "an object", case)
        missing = [key for key in required if key not in case]
        if missing:
            raise BadSuite(f"{path}.{missing[0]} is missing")
        yield path, case


def _text(case: Mapping[str, Json], key: str, path: str) -> str:
    value = case[key]
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    raise BadSuite(f"{path}.{key} must be text, got {shown(value)}")


def _weight(case: Mapping[str, Json], path: str) -> float:
    weight = case.get("weight", 1.0)
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    require(is_number and 0 < weight <= 1e9, f"{path}.weight", "a number above 0", weight)
    return float(weight)


def _value(encoded: Json, path: str) -> Json:
    """Return the value for an argument or expected value in JSON. Raises `BadSuite` if it cannot be decoded."""
    if type(encoded) in (int, str, bool, type(None)):
        return encoded
    if type(encoded) is float and math.isfinite(encoded):
        return encoded
    try:
        return decode(encoded)
    except Undecodable as error:
        raise BadSuite(f"{path} is not a value: {error}") from error


def _entry_point(options: Mapping[str, Json], path_prefix: str) -> str | None:
    entry_point = options.get("entry_point")
    if entry_point is None or entry_point == "":
        return None
    fits = isinstance(entry_point, str) and _ENTRY_POINT.fullmatch(entry_point) is not None
    require(fits, f"{path_prefix}entry_point", "a name such as add or Solution().twoSum", entry_point)
    return str(entry_point)


def _code(options: Mapping[str, Json], key: str, path_prefix: str) -> str | None:
    code: str | None = options.get(key)
    fits = code is None or (isinstance(code, str) and len(code) <= MAX_CODE_CHARS)
    require(fits, f"{path_prefix}{key}", f"text of at most {MAX_CODE_CHARS} characters", code)
    return code


def _codecs(options: Mapping[str, Json], path_prefix: str) -> Codecs:
    value = options.get("codecs") or {}
    fits = isinstance(value, Mapping) and len(value) <= MAX_CODECS
    require(fits, f"{path_prefix}codecs", f"an object of at most {MAX_CODECS} classes", value)
    for name, attributes in value.items():
        names = [name, *attributes] if isinstance(attributes, list | tuple) else [None]
        fits = all(isinstance(identifier, str) and _IDENTIFIER.fullmatch(identifier) for identifier in names)
        require(fits, f"{path_prefix}codecs.{str(name)[:60]}", "a list of attribute names", attributes)
    return {name: tuple(attributes) for name, attributes in value.items()}


def _language(options: Mapping[str, Json]) -> str:
    value = options.get("language") or "python"
    name = edition_name(value) if isinstance(value, str) else ""
    if _LANGUAGE.fullmatch(name):
        return name
    raise BadSuite(f"language must be the name of a programming language, got {shown(value)}")


def _limits(options: Mapping[str, Json]) -> Limits:
    value = options.get("limits")
    if not value:
        return _USUAL_LIMITS
    known = [field.name for field in fields(Limits)]
    require(isinstance(value, Mapping), "limits", "an object", value)
    unknown = [str(name)[:60] for name in value if name not in known]
    if unknown:
        raise BadSuite(f"limits.{unknown[0]} is unknown; there are {', '.join(known)}")
    try:
        return Limits(**value)
    except ValueError as error:
        raise BadSuite(f"limits.{error}") from error


_CPP = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)
_PYTHON = re.compile(r"^(?:import|from|def|class) ", re.MULTILINE)


def read_checker(options: Mapping[str, Json], path_prefix: str) -> str | Mapping[str, Json]:
    """Return the checker of a suite; a program is completed by its language and files. Raises `BadSuite`."""
    spec = options.get("checker") or "tokens"
    if isinstance(spec, str) and is_source(spec):
        spec = {"type": "program", "code": spec}
    kind, _ = read_spec(spec, f"{path_prefix}checker")
    return _complete(spec, options, path_prefix) if kind == "program" else spec


def read_interactor(options: Mapping[str, Json], path_prefix: str) -> Mapping[str, Json] | None:
    """Return the interactor of a suite, or None if it has none. Raises `BadSuite`."""
    spec = options.get("interactor")
    if spec is None or spec == "":
        if options.get("type") == "interactive":
            raise BadSuite(f"{path_prefix}interactor is missing: a program that exchanges messages with the solution")
        return None
    spec = {"code": spec} if isinstance(spec, str) else spec
    require(isinstance(spec, Mapping), f"{path_prefix}interactor", "a program or an object with its code", spec)
    read_spec({**spec, "type": "program"}, f"{path_prefix}interactor")
    return _complete({**spec, "type": "program"}, options, path_prefix)


def _complete(spec: Json, options: Mapping[str, Json], path_prefix: str) -> dict[str, Json]:
    files = options.get("files") or {}
    require_files(files, f"{path_prefix}files")
    code, language = spec["code"], spec.get("language")
    if language is None:
        language = "cpp" if _CPP.search(code) else "python"
    return {**spec, "language": edition_name(language), "files": {**files, **(spec.get("files") or {})}}


def is_source(text: str) -> bool:
    """Return whether the text of a checker is a program instead of a checker's name."""
    return "\n" in text.strip() and (_CPP.search(text) is not None or _PYTHON.search(text) is not None)
