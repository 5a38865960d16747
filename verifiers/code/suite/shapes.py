"""Converts tests from the shapes of many data sets into the forms that `reading` reads.

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
    {"public_tests": {"input": [...], "output": [...]}, ...}        stdio (CodeContests): all its lists together
    {"public_test_cases": "[...]", "private_test_cases": "[...]"}   as LiveCodeBench, both lists together
    {"language": "python", "test_cases": [...]}                     the tests inside (open-r1)

Every shape may be JSON text. A list of lines is joined into one text.

The arguments of a call are a list, an object by names, or a text; with a text the expected value is a text too. APPS
wraps some expected values in a list of one entry. If every entry of `outputs` is such a list, `[3]` and `3` are both
accepted, as in APPS' own evaluation. In APPS, an object with only integers as keys, `{"1": "a"}`, means `{1: "a"}`.
Texts hold JSON or Python literals, and become the JSON that `inside.wire` decodes:

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
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from truegold.verifiers.code.outcomes import BadSuite, require, shown
from truegold.verifiers.code.python_source import parse
from truegold.verifiers.sandbox.inside.wire.foreign_values import Json

MAX_JSON_CHARS, MAX_WRAPPED = 256 * 2**20, 4
"""Maximum number of characters of JSON text, and maximum depth of shapes: `{"test_cases": {"test_cases": ...`"""

_EXAMPLE = re.compile(r"^\s*>>> ", re.MULTILINE)
"""An example of a doctest."""
FORMS = ("stdio", "interactive", "calls", "asserts", "unittest", "inserted")
"""Values of `type`."""

_NormalForm = dict[str, Json]
"""Tests with a `type` of `FORMS`, which `reading` reads."""

_WRAPPERS = ("test_cases", "unit_tests", "official_tests", "input_output", "verification_info", "ground_truth")
"""Keys of objects that contain the tests."""
_NAMES = ("entry_point", "fn_name", "func_name", "function_name")
"""Keys with the name of the function under test."""
_FUNCTIONAL = ("functional", "function_call", "call_based")
"""Types of cases in data sets that are calls."""


def normal_form(info: Mapping[str, Json]) -> tuple[dict[str, Json], str]:
    """Return the tests in normal form, and the prefix of field names in errors ("tests." or ""). Raises `BadSuite`."""
    has_tests = info.get("tests") is not None
    tests = _normal(info["tests"] if has_tests else info, info, MAX_WRAPPED)
    return tests, "tests." if has_tests else ""


def _normal(tests: Json, info: Mapping[str, Json], wrappers_left: int) -> _NormalForm:
    if isinstance(tests, str):
        parsed = _parse_text(tests)
        if parsed is None:
            return _code(tests)
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
        return {**tests, **_code(tests["functional"])}
    if "test_list" in tests:
        setup = [*_listed(tests.get("test_imports")), *_listed(tests.get("test_setup_code"))]
        return {**tests, **_asserts([*setup, *_listed(tests["test_list"])])}
    if isinstance(tests.get("test"), str) and tests["test"].strip():
        prompt = tests.get("prompt")
        stub = {"stub": prompt} if isinstance(prompt, str) and "def " in prompt and not tests.get("stub") else {}
        return {**tests, **stub, **_code(tests["test"])}
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
        return _asserts(tests)
    for index, test in enumerate(tests):
        require(isinstance(test, Mapping), f"tests[{index}]", "an object", test)
    kinds = {_kind(test, info) for test in tests}
    if len(kinds) > 1:
        raise BadSuite("tests must all have one type, got tests for stdin and tests for a function")
    if kinds == {"stdio"}:
        return {"type": "stdio", "cases": [_stdio_case(test, index) for index, test in enumerate(tests)]}
    return _calls(tests, {**info, **tests[0]})


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


def _calls(tests: Sequence[Mapping[str, Json]], options: Mapping[str, Json]) -> _NormalForm:
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
    """Return the tests for a list of inputs and a list of outputs."""
    pairs = _pairs(tests[inputs], tests[outputs], inputs, outputs)
    options = {**info, **tests}
    if _function(options) is None:
        return {**tests, "type": "stdio", "cases": [{"input": stdin, "output": output} for stdin, output in pairs]}
    if not all(isinstance(args, list) for args, _ in pairs):
        return {**tests, **_calls([{"input": args, "output": output} for args, output in pairs], options)}
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


def _asserts(lines: Sequence[Json]) -> _NormalForm:
    for index, line in enumerate(lines):
        require(isinstance(line, str), f"tests[{index}]", "text", line)
    return _code("\n".join(lines))


def _code(code: str) -> _NormalForm:
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

    Code is unchanged unless it consists of text only, or runs its own doctests, for example by `doctest.testmod()`.
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
    """Return whether a docstring has an example that is not skipped; True also for one that cannot be parsed."""
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return True
    return not all(example.options.get(doctest.SKIP) for example in examples)


def with_calls_of_tests(code: str) -> str:
    """Return test code with calls of its uncalled functions `test...()` added; code with fixtures is unchanged."""
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
    """Read named arguments as a call has them in its brackets: `a = 1, b = 2`."""
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
        return _as_json(ast.literal_eval(_json_word(node)))
    except (ValueError, TypeError, RecursionError, MemoryError, SyntaxError, SystemError):
        raise UnreadableText(f"must be JSON or a Python literal, got {shown(text)}") from None


def _json_word(node: ast.expr) -> ast.expr:
    words = {"true": True, "false": False, "null": None}
    return ast.Constant(value=words[node.id]) if isinstance(node, ast.Name) and node.id in words else node


def _as_json(value: Json) -> Json:
    """Return the JSON for a value of Python, with tagged objects for types that JSON lacks."""
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
