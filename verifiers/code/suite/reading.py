"""Reads the tests of a problem from `info` into a typed suite.

    read_suite({"tests": {"type": "stdio", "cases": [{"input": "1 2", "output": "3"}]}})
        Suite(tests=Stdio(cases=(StdioCase("1 2", "3", 1.0),), checker="tokens"), language="python", limits=Limits())
    read_suite({"type": "asserts", "code": "def check(candidate): ...", "entry_point": "add"})
        Suite(tests=Asserts(code="def check...", entry_point="add", ...), ...)
    read_suite({"tests": {"type": "stdio", "cases": [{"input": "1 2", "output": 3}]}})
        BadSuite: tests.cases[0].output must be text, got 3

`info["tests"]` is an object or JSON text: tests with one of the types of `FORMS`, or in one of the shapes below.
Without `tests`, `info` itself is read as tests. Options of the tests (`SUITE_OPTIONS`) may also be keys of `info`;
other keys are ignored.

Arguments and expected values are JSON. Values that JSON lacks are tagged objects (`inside.wire`): a tuple is
`{"$": "tuple", "v": [1, 2]}`. Not covered: tests that have to be decompressed or unpickled.

A suite's checker and interactor may be programs, which can use the suite's `files`. The text of a program becomes an
object with its language:

    "#include \\"testlib.h\\"\\nint main(..."      ->     {"type": "program", "code": "...", "language": "cpp", ...}

Tests in the shapes of many data sets first become tests with one of these types (`normal_form`):

    shape of the tests                                              type (data sets)
    [{"input": "1 2\\n", "output": "3\\n"}, ...]                    stdio (Codeforces, DeepCoder, rLLM)
    {"inputs": ["1 2\\n"], "outputs": ["3\\n"]}                     stdio (APPS, TACO, verl); also "input", "output"
    {"inputs": [[1, 2]], "outputs": [[3]], "fn_name": "add"}        calls (APPS, TACO, PRIME)
    [{"input": "[2, 7]\\n9", "output": "[0, 1]",                    calls (LiveCodeBench); its function is `func_name`
      "testtype": "functional"}, ...]                               in `metadata`, `fn_name` or `entry_point`
    [{"type": "function_call", "fn_name": "f",                      calls (SYNTHETIC-1)
      "input": [3], "output": 4}]
    [{"input": "nums = [2, 7], target = 9", "output": "[0, 1]"}]    calls if there is an `entry_point` (LeetCode)
    [{"args": [3], "expected": 4}]                                  calls if there is an `entry_point`
    ["assert add(1, 2) == 3", ...]                                  asserts (MBPP, AceCode)
    {"test_list": [...], "test_setup_code": "import math"}          asserts (MBPP)
    {"functional": "def check(candidate): ...\\n\\ncheck(f)"}       asserts (rLLM's LeetCode)
    {"test": "def check(candidate): ...", "entry_point": "f"}       asserts (HumanEval), unittest (BigCodeBench)
    "from solution import f\\n\\ndef test_f(): assert f(3) == 4"    asserts (KodCode)
    {"public_tests": {"input": [...], "output": [...]}, ...}        stdio (CodeContests), the lists are joined
    {"public_test_cases": "[...]", "private_test_cases": "[...]"}   stdio or calls (LiveCodeBench), the lists are joined
    {"language": "python", "test_cases": [...]}                     the type of the inner tests (open-r1)

Every shape may be JSON text. A list of lines is joined into one text.

The arguments of a call are a list, an object of named arguments, or a text. APPS wraps some expected values in a list
of one entry. If every entry of `outputs` is such a list, `[3]` and `3` are both accepted, as in APPS' own evaluation.
In APPS, an object with only integers as keys, `{"1": "a"}`, means `{1: "a"}`. Arguments that are texts contain JSON or
Python literals, and so does their expected value:

    read_arguments("[2, 7, 11]\\n9")             ([[2, 7, 11], 9], {})
    read_arguments("nums = [2, 7], target = 9")  ([], {"nums": [2, 7], "target": 9})
    read_value("(1, 2)")                         {"$": "tuple", "v": [1, 2]}
"""

from __future__ import annotations

import ast
import doctest
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.resources import files
from itertools import chain
from typing import NamedTuple

from truegold.verifiers.code.drivers import VOID, Signature, read_signature, signature_of_stub
from truegold.verifiers.code.outcomes import BadSuite, require, require_files, shown
from truegold.verifiers.code.output_comparison import read_spec
from truegold.verifiers.code.python_source import parse
from truegold.verifiers.code.suite.imports import is_helper, with_calls_of_check
from truegold.verifiers.code.suite.unrun import unrun_tests
from truegold.verifiers.code.value_comparison import read_call_spec
from truegold.verifiers.sandbox.execution import Limits
from truegold.verifiers.sandbox.inside.wire.decoding import decode
from truegold.verifiers.sandbox.inside.wire.encoding import are_plain, encode
from truegold.verifiers.sandbox.inside.wire.value_types import Json, Undecodable
from truegold.verifiers.sandbox.local import PYTHON
from truegold.verifiers.sandbox.toolchains import edition_name

MAX_JSON_CHARS, MAX_WRAPPED = 256 * 2**20, 4
"""MAX_JSON_CHARS limits JSON text. MAX_WRAPPED limits the objects around tests: `{"test_cases": {"test_cases": ...`"""

_EXAMPLE = re.compile(r"^\s*>>> ", re.MULTILINE)
"""An example of a doctest."""
FORMS = ("stdio", "interactive", "calls", "asserts", "unittest", "inserted")
"""Values of `type`."""

_NormalForm = dict[str, Json]
"""Tests with a `type` of `FORMS`."""

_WRAPPERS = ("test_cases", "unit_tests", "official_tests", "input_output", "verification_info", "ground_truth")
"""Keys of objects that contain the tests."""
_NAMES = ("entry_point", "fn_name", "func_name", "function_name")
"""Keys with the name of the function under test."""
_FUNCTIONAL = ("functional", "function_call", "call_based")
"""Values of `type` or `testtype` that mark a case of a data set as a call."""


def normal_form(info: Mapping[str, Json]) -> tuple[dict[str, Json], str]:
    """Return tests with a `type` of `FORMS`, and the prefix of fields in errors: "tests." or "". Raises `BadSuite`."""
    has_tests = info.get("tests") is not None
    tests = _normal(info["tests"] if has_tests else info, info, MAX_WRAPPED)
    return tests, "tests." if has_tests else ""


def _normal(tests: Json, info: Mapping[str, Json], wrappers_left: int) -> _NormalForm:
    if isinstance(tests, str):
        parsed = _parse_text(tests)
        if parsed is None:
            return _code_tests_of(tests)
        tests = parsed
    if isinstance(tests, list | tuple):
        return _list(tests, info)
    if isinstance(tests, Mapping):
        return _object(tests, info, wrappers_left)
    raise BadSuite(f"tests must be an object, a list or text, got {shown(tests)}")


def _object(  # noqa: PLR0911  (One per shape.)
    tests: Mapping[str, Json], info: Mapping[str, Json], wrappers_left: int
) -> _NormalForm:
    if tests.get("type") in FORMS:
        return dict(tests)
    for inputs, outputs in (("inputs", "outputs"), ("input", "output")):
        if isinstance(tests.get(inputs), list) and isinstance(tests.get(outputs), list):
            return _columns(tests, info, inputs, outputs)
    if tests.get("assert_case"):
        return {**tests, **_list(_listed(tests["assert_case"]), info)}
    if isinstance(tests.get("functional"), str):
        return {**tests, **_code_tests_of(tests["functional"])}
    if "test_list" in tests:
        setup = [*_listed(tests.get("test_imports")), *_listed(tests.get("test_setup_code"))]
        return {**tests, **_asserts_of([*setup, *_listed(tests["test_list"])])}
    if isinstance(tests.get("test"), str) and tests["test"].strip():
        prompt = tests.get("prompt")
        stub = {"stub": prompt} if isinstance(prompt, str) and "def " in prompt and not tests.get("stub") else {}
        return {**tests, **stub, **_code_tests_of(tests["test"])}
    for parts in (("public_test_cases", "private_test_cases"), ("public_tests", "private_tests", "generated_tests")):
        if any(part in tests for part in parts):
            return _list([case for part in parts for case in _part(tests.get(part), part)], {**info, **tests})
    for wrapper in _WRAPPERS:
        if tests.get(wrapper) is not None and wrappers_left > 0:
            rest = {key: value for key, value in tests.items() if key not in (wrapper, "type")}
            return {**rest, **_normal(tests[wrapper], {**info, **rest}, wrappers_left - 1)}
    if "type" in tests:
        raise BadSuite(f"type must be one of {', '.join(FORMS)}, got {shown(tests['type'])}")
    keys = ", ".join(str(key)[:40] for key in list(tests)[:8])
    raise BadSuite(f"no tests found: tests have a type ({', '.join(FORMS)}), this object has {keys or 'nothing'}")


def _list(tests: Sequence[Json], info: Mapping[str, Json]) -> _NormalForm:
    if not tests:
        raise BadSuite("tests must hold at least one test, got none")
    if all(isinstance(test, str) for test in tests):
        return _asserts_of(tests)
    for index, test in enumerate(tests):
        require(isinstance(test, Mapping), f"tests[{index}]", "an object", test)
    kinds = {_kind(test, info) for test in tests}
    if len(kinds) > 1:
        raise BadSuite("tests must all have one type, got tests for stdin and tests for a function")
    if kinds == {"stdio"}:
        return {"type": "stdio", "cases": [_stdio_case(test, index) for index, test in enumerate(tests)]}
    return _calls_of(tests, {**info, **tests[0]})


def _kind(test: Mapping[str, Json], info: Mapping[str, Json]) -> str:
    stated_kind = str(test.get("testtype") or test.get("type") or "")
    calls = stated_kind in _FUNCTIONAL or "args" in test or "kwargs" in test
    return "calls" if calls or (not stated_kind and _function({**info, **test})) else "stdio"


def _stdio_case(test: Mapping[str, Json], index: int) -> dict[str, Json]:
    output = next((key for key in ("output", "expected_output", "expected") if key in test), "output")
    for key in ("input", output):
        if key not in test:
            raise BadSuite(f"tests[{index}].{key} is missing")
    return {**test, "input": test["input"], "output": test[output]}


def _calls_of(tests: Sequence[Mapping[str, Json]], options: Mapping[str, Json]) -> _NormalForm:
    cases = []
    for index, test in enumerate(tests):
        expected = next((key for key in ("expected", "output", "expected_output") if key in test), None)
        if expected is None:
            raise BadSuite(f"tests[{index}].expected is missing")
        weight = {"weight": test["weight"]} if "weight" in test else {}
        if "args" in test or "kwargs" in test:
            case = {"args": test.get("args") or [], "kwargs": test.get("kwargs") or {}, "expected": test[expected]}
        else:
            case = _call_case(test.get("input"), test[expected], f"tests[{index}]")
        cases.append({**case, **weight})
    return {"type": "calls", "entry_point": _function(options), "cases": cases}


def _columns(tests: Mapping[str, Json], info: Mapping[str, Json], inputs: str, outputs: str) -> _NormalForm:
    pairs = _pairs(tests[inputs], tests[outputs], inputs, outputs)
    options = {**info, **tests}
    if _function(options) is None:
        return {**tests, "type": "stdio", "cases": [{"input": stdin, "output": output} for stdin, output in pairs]}
    if not all(isinstance(args, list) for args, _ in pairs):
        return {**tests, **_calls_of([{"input": args, "output": output} for args, output in pairs], options)}
    cases = [{"args": [_integer_keys(arg) for arg in args], "expected": _integer_keys(out)} for args, out in pairs]
    calls = {**tests, "type": "calls", "entry_point": _function(options), "cases": cases}
    if not all(isinstance(case["expected"], list) and len(case["expected"]) == 1 for case in cases):
        return calls
    for case in cases:
        case["expected"] = [case["expected"][0], case["expected"]]
    checker = options.get("checker") or "values"
    return {**calls, "checker": {**({"type": checker} if isinstance(checker, str) else checker), "any_of": True}}


def _call_case(arguments: Json, output: Json, path: str) -> dict[str, Json]:
    field = "input"
    try:
        args, kwargs = read_arguments(arguments)
        field = "output"
        are_texts = isinstance(arguments, str) and isinstance(output, str)
        return {"args": args, "kwargs": kwargs, "expected": read_value(output) if are_texts else output}
    except UnreadableText as error:
        raise BadSuite(f"{path}.{field} {error}") from error


def _integer_keys(value: Json) -> Json:
    if isinstance(value, list):
        return [_integer_keys(value[0])] if len(value) == 1 and isinstance(value[0], dict) else value
    if not isinstance(value, dict) or not value or not all(map(_INTEGER.fullmatch, value)):
        return value
    return {"$": "dict", "v": [[int(key), item] for key, item in value.items()]}


def _function(options: Mapping[str, Json]) -> str | None:
    """Return the name of the function under test, `Solution().name` if the stub has a class Solution, or None."""
    metadata = options.get("metadata")
    if isinstance(metadata, str):
        metadata = _parse_text(metadata)
    sources = (options, metadata) if isinstance(metadata, Mapping) else (options,)
    names = (source.get(key) for source in sources for key in _NAMES)
    name = next((name for name in names if isinstance(name, str) and name), None)
    stub = options.get("stub") or options.get("starter_code")
    if name is None or not isinstance(stub, str):
        return name
    in_class = "class Solution" in stub and "." not in name
    return f"Solution().{name}" if in_class else name


def _part(part: Json, name: str) -> list[Json]:
    """Return the tests of one part, such as `public_tests`, as a list."""
    if isinstance(part, str):
        parsed = _parse_text(part)
        if parsed is None and part.strip():
            raise BadSuite(f"{name} must be a list or JSON text, got {shown(part)}: decode compressed tests first")
        part = parsed
    if isinstance(part, Mapping):
        inputs, outputs = _listed(part.get("input")), _listed(part.get("output"))
        pairs = _pairs(inputs, outputs, f"{name}.input", f"{name}.output")
        return [{"input": stdin, "output": output} for stdin, output in pairs]
    return _listed(part)


def _pairs(inputs: Sequence[Json], outputs: Sequence[Json], input_name: str, output_name: str) -> list[Json]:
    if len(inputs) != len(outputs):
        raise BadSuite(f"{input_name} holds {len(inputs)} entries and {output_name} {len(outputs)}")
    return list(zip(inputs, outputs, strict=True))


def _asserts_of(lines: Sequence[Json]) -> _NormalForm:
    for index, line in enumerate(lines):
        require(isinstance(line, str), f"tests[{index}]", "text", line)
    return _code_tests_of("\n".join(lines))


def _code_tests_of(code: str) -> _NormalForm:
    if not code.strip():
        raise BadSuite("tests must hold at least one test, got blank text")
    return {"type": "unittest" if "unittest.TestCase" in code or "(TestCase)" in code else "asserts", "code": code}


_DOCTEST = """
def test_doctest_{index}():
    import doctest, sys
    examples = doctest.DocTestParser().get_doctest({text!r}, dict(sys.modules[__name__].__dict__), {name!r}, None, 0)
    output = []
    outcome = doctest.DocTestRunner(optionflags={flags}).run(examples, out=output.append)
    assert outcome.attempted and not outcome.failed, "".join(output)
"""

_RUNS_DOCTESTS = frozenset({"testmod", "DocTestSuite", "run_docstring_examples"})


def with_doctests(code: str) -> str:
    """Return test code with a test function added for each docstring with examples (`>>> add(1, 2)`).

    Two kinds of tests are changed: examples alone, without any code around them, and code that itself runs doctests,
    for example by `doctest.testmod()`.
    """
    if ">>>" not in code:
        return code
    tree = parse(code)
    if tree is None:
        return _DOCTEST.format(index=0, text=code, name="text", flags=0) if _EXAMPLE.search(code) else code
    documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    texts = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    only_text = all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in texts)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_of_doctest(node.func)]
    module = {"__name__", "sys.modules[__name__]"}
    callable_here = module.union(node.name for node in tree.body if isinstance(node, documented))
    runs = [
        ast.unparse(node.func).removeprefix("doctest.") in _RUNS_DOCTESTS
        and (not node.args or ast.unparse(node.args[0]) in callable_here)
        for node in calls
    ]
    if not only_text and not (runs and all(runs)):
        return code
    flags = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr.isupper()}
    examples = [
        (getattr(node, "name", "module"), text)
        for node in ast.walk(tree)
        if isinstance(node, documented | ast.Module) and _has_examples(text := ast.get_docstring(node) or "")
    ]
    made = " | ".join(sorted(flag for flag in flags if flag.startswith("doctest."))) or "0"
    tests = (
        _DOCTEST.format(index=index, text=text, name=name, flags=made) for index, (name, text) in enumerate(examples)
    )
    return _before_end(code, tree, tests)


def _before_end(code: str, tree: ast.Module, added: Iterable[str]) -> str:
    """Return test code with lines added at its end, or before a last statement that may exit."""
    last, lines = tree.body[-1], code.splitlines(keepends=True)
    leaves = isinstance(last, ast.Expr | ast.Raise) and last.col_offset == 0
    end = last.lineno - 1 if leaves else len(lines)
    return "".join([*lines[:end], "\n", *added, "\n", *lines[end:]]).rstrip("\n")


def _is_of_doctest(function: ast.expr) -> bool:
    return (name := ast.unparse(function)).startswith("doctest.") or name in _RUNS_DOCTESTS


def _has_examples(text: str) -> bool:
    """Return whether a docstring has an example that is not skipped, or examples that cannot be parsed."""
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return True
    return not all(example.options.get(doctest.SKIP) for example in examples)


def with_calls_of_tests(code: str) -> str:
    """Return test code with a call of each uncalled function `test...()` added. Code with fixtures is unchanged."""
    if "def test" not in code or "pytest.fixture" in code:
        return code
    tree = parse(code)
    if tree is None:
        return code
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    tests = [
        each.name
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test") and each.name not in used
        if not any(chain(each.args.posonlyargs, each.args.args, each.args.kwonlyargs, each.decorator_list))
    ]
    return _before_end(code, tree, (f"{name}()\n" for name in tests)) if tests else code


def _listed(value: Json) -> list[Json]:
    if value is None or value == "":
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _parse_text(text: str) -> Json:
    """Return the object or list in a text of JSON or Python, or None for any other text."""
    if len(text) > MAX_JSON_CHARS:
        raise BadSuite(f"tests hold {len(text)} characters of text, the limit is {MAX_JSON_CHARS}")
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return read_value(text)
    except UnreadableText:
        return None


_INTEGER = re.compile(r"-?[0-9]{1,19}")
_NAMED = re.compile(r"\s*[^\W\d]\w{0,200}\s*=(?!=)")
"""The beginning of named arguments: `nums =`."""


class UnreadableText(ValueError):
    """Raised for a text that is neither JSON nor a Python literal."""


def read_arguments(arguments: Json) -> tuple[list[Json], dict[str, Json]]:
    """Return the positional and the named arguments of a call. Raises `UnreadableText`."""
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
    except UnreadableText:
        # One value may take several lines.
        return [read_value(arguments)], {}


def read_value(text: str) -> Json:
    """Return the JSON for a text of JSON or a Python literal. Raises `UnreadableText`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    match parse(text.strip()):
        case ast.Module(body=[ast.Expr(value=value)]):
            return _literal(value, text)
    raise UnreadableText(f"must be JSON or a Python literal, got {shown(text)}")


def _read_named(text: str) -> dict[str, Json]:
    """Read the text of named arguments: `a = 1, b = 2`."""
    match parse(f"f({text})"):
        case ast.Module(body=[ast.Expr(value=ast.Call(func=ast.Name(), args=[], keywords=keywords))]):
            return {keyword.arg: _literal(keyword.value, text) for keyword in keywords if keyword.arg}
    raise UnreadableText(f"must be arguments such as `nums = [2, 7], target = 9`, got {shown(text)}")


def _literal(node: ast.expr, text: str) -> Json:
    # Some texts mix Python literals with JSON's `true`, `false` and `null`.
    for part in ast.walk(node):
        match part:
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
                parts[:] = [_json_word(each) for each in parts]
    try:
        return encode(ast.literal_eval(_json_word(node)))
    except (ValueError, TypeError, RecursionError, MemoryError, SyntaxError, SystemError):
        raise UnreadableText(f"must be JSON or a Python literal, got {shown(text)}") from None


def _json_word(node: ast.expr) -> ast.expr:
    words = {"true": True, "false": False, "null": None}
    return ast.Constant(value=words[node.id]) if isinstance(node, ast.Name) and node.id in words else node


LEETCODE_PRELUDE = files(__package__).joinpath("leetcode_prelude.txt").read_text(encoding="utf-8")
"""Code that LeetCode runs before a solution: names such as `List` and `ListNode`, and functions that build nodes."""

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
    """The index of the argument that the function turns into the result, or -1 if it returns the result."""
    plain_args: bool = field(default=False, compare=False)
    """Whether all arguments are certainly plain data (`are_plain` in `inside/wire/encoding.py`)."""
    plain_expected: bool = field(default=False, compare=False)
    """Whether all expected values are certainly plain data or tuples of plain data."""

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
"""MAX_CASES limits the cases of a suite, MAX_CODECS the classes in `codecs`, MAX_NAMED the unrun tests in a message."""

MAX_SUITE_CHARS, MAX_CODE_CHARS = 128 * 2**20, 4 * 2**20
"""All inputs and outputs together may have MAX_SUITE_CHARS characters. Test code, a prelude or a stub may have
MAX_CODE_CHARS."""

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
    """Return the code that runs before the program. By default, a `class Solution` gets the names of LeetCode."""
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
    """Return the arguments of all cases at once, which is fast. None if a case is invalid or has to be decoded."""
    if not isinstance(cases, list) or not 0 < len(cases) <= MAX_CASES or set(map(type, cases)) != {dict}:
        return None
    # Cases of a suite usually have the same keys, so this set has one or two entries.
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
    """Return the checker of a suite, with its language and files if it is a program. Raises `BadSuite`."""
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
    """Return whether the text of a checker is a program. Otherwise it is the name of a checker."""
    return "\n" in text.strip() and (_CPP.search(text) is not None or _PYTHON.search(text) is not None)
