r"""Defines presets of programs: the layouts of datasets with programming problems and tests (see `presets`).

    {"question": "Add two numbers.", "input_output": "{\"inputs\": [\"1 2\\n\"], \"outputs\": [\"3\\n\"]}", ...}

fits `apps`. It becomes a row without gold, with the verifier `code`, verifier_args `{"type": "stdio", "cases":
[{"input": "1 2\n", "output": "3\n"}]}`, and the first of `solutions` as solution. The verifier's own `row_tests` reads
the tests. A `time_limit` of the source becomes `"limits": {"cpu_s": ...}`. Starter code defines functions that tests
call. It is put below the problem.

Datasets of programs share columns of solutions, time limits, starter code and function names:

    "solutions": "[\"print(1)\", \"print(2)\"]"                                  solution_of  ->  "print(1)"
    "solutions": {"language": [2, 3], "solution": ["int main ...", "print(1)"]}    solution_of  ->  "print(1)"
    "time_limit": "2.0 seconds"                                                    limits_of    ->  {"cpu_s": 2.0}

A record whose tests cannot be read is unusable. A solution or a time limit that cannot be read is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

from truegold.pipeline.config.sources import Columns, ColumnSpec
from truegold.pipeline.sources.columns import Column, Derived, Layout
from truegold.pipeline.sources.conversations import read_prompt
from truegold.pipeline.sources.story_columns import StoryColumns
from truegold.verifiers.code.python_source import parse
from truegold.verifiers.code.suite.reading import is_source
from truegold.verifiers.code.suite.row_tests import (
    SETUP,
    Unusable,
    function_name,
    parse_tests,
    read_tests,
    read_tests_value,
)
from truegold.verifiers.columns import Samples, Values, text_of
from truegold.verifiers.row_kinds import TESTS, are_tests, is_test_code, says_something, why_no_tests
from truegold.verifiers.sandbox.local import PYTHON
from truegold.verifiers.sandbox.toolchains import edition_name, is_known, language_name
from truegold.verifiers.strict_json import parse_structure

_TEST_CASE = re.compile(r"^class\s+\w+\s*\(.*TestCase\)", re.MULTILINE)


def humaneval(columns: Set[str], samples: Samples) -> Layout | None:
    """Match `{"prompt": "def f(x):\\n", "canonical_solution": "return x", "test": "def check(..", "entry_point": "f"}`.

    The record becomes a code row without gold. The solution is the whole program (prompt and canonical solution),
    verifier_args `{"type": "asserts", "entry_point": "f", "code": "def check(...", "stub": "def f(x):\\n"}`. Files of
    EvalPlus with a `test` fit as well. BigCodeBench has the prompt in `complete_prompt`, and tests of type `unittest`.

    Records of HumanEval-X, MultiPL-E, MBXP and McEval name another language in `language`, or in an id such as CPP/0.
    Their tests may be in `tests`, and the other columns may be missing. verifier_args are then
    `{"type": "inserted", "language": "cpp", "code": "#<INSERT>\\n\\nint ..."}`.
    """
    prompt, test = _first_column(columns, "prompt", "complete_prompt"), _first_column(columns, "test", "tests")
    if prompt is None or test is None:
        return None
    is_foreign = any(_foreign_language(values, test.column) for values in samples)
    if not is_foreign and not {"canonical_solution", "test", "entry_point"} <= columns:
        return None

    def derive(values: Values) -> Derived:
        code = required_text(values, test.column)
        body, stub = text_of(values.get("canonical_solution")), text_of(values.get(prompt.column)) or ""
        if language := _foreign_language(values, test.column):
            imports = _INCLUDED.findall(stub) if language in _MAY_REPEAT else []
            code = "\n".join([*imports, "#<INSERT>", "", _REST_OF_BODY.sub("", code)])
            arguments = {"type": "inserted", "language": language, "code": code}
            return Derived(arguments, f"{stub}\n{body}" if body else solution_of(values, *_SOLUTIONS))
        if body and body[0].isspace() and stub[-1:] not in ("", "\n"):
            stub += "\n"
        kind = "unittest" if _TEST_CASE.search(code) else "asserts"
        arguments = {"type": kind, "entry_point": required_text(values, "entry_point"), "code": code}
        if stub:
            arguments["stub"] = stub
        return Derived(arguments, stub + body if body else None)

    return _layout(prompt, derive, {"canonical_solution", test.column, "entry_point", *_LANGUAGES})


_LANGUAGES = ("language", "lang", "programming_language")
_INCLUDED = re.compile(r"^[ \t]*(?:#[ \t]*include|using namespace|import|use)\b[^\n]*", re.MULTILINE)
"""An import at the beginning of a program."""
_MAY_REPEAT = ("c", "cpp", "java", "perl")
"""Languages in which a program may repeat imports of the starter code."""
_REST_OF_BODY = re.compile(r"\A\s*\}[ \t]*\n")
"""The end of a function that the prompt opened. The tests of MultiPL-E begin with it."""


def _foreign_language(values: Values, test: str) -> str | None:
    """Return the language of test code, named by a column or by the id (CPP/0), or None if the code is Python."""
    code = values.get(test)
    return _named_language(values, code) if isinstance(code, str) and isinstance(parse_structure(code), str) else None


def _named_language(values: Values, code: str | None) -> str | None:
    """Return the language that a column or the id names, or None if it names none, or if it or the code is Python."""
    texts = [text_of(values.get(name)) or "" for name in (*_LANGUAGES, "task_id")]
    names = (edition_name(text.partition("/")[0]) for text in texts)
    language = next((name for name in names if is_known(language_name(name))), PYTHON)
    return None if language_name(language) == PYTHON or (code and parse(code) is not None) else language


def _with_settings(arguments: dict[str, Any], values: Values, solution: str | None) -> dict[str, Any]:
    """Return arguments with the language, the time limit, the checker and the interactor in other columns."""
    if arguments["type"] in ("stdio", "calls") and (language := _named_language(values, solution)):
        arguments = {"language": language, **arguments}
    if limits := limits_of(values):
        arguments["limits"] = limits
    return arguments | programs_of(values) if arguments["type"] == "stdio" else arguments


def leetcode(columns: Set[str], samples: Samples) -> Layout | None:
    """Match `{"problem_description": "Given an array ...", "starter_code": "class Solution ...", "prompt": "import ..",
    "completion": "class Solution: ...", "entry_point": "Solution().twoSum", "test": "def check(candidate): ..."}`.

    The record becomes a code row with description and starter code as prompt, the completion (or `canonical_solution`)
    as solution, and verifier_args `{"type": "asserts", "entry_point": "Solution().twoSum", "code": "def check ...",
    "prelude": "import ..."}`. The prelude is read from `prelude`, or else from `prompt`.
    """
    prelude = "prelude" if "prelude" in columns else "prompt"
    problem = _first_column(columns - {prelude}, *_PROBLEMS, "query", "prompt")
    if problem is None or not {"entry_point", "test"} <= columns or not {"prelude", "completion"} & columns:
        return None

    def derive(values: Values) -> Derived:
        arguments = {
            "type": "asserts",
            "entry_point": required_text(values, "entry_point"),
            "code": required_text(values, "test"),
        }
        if code := text_of(values.get(prelude)):
            arguments["prelude"] = code
        solution = solution_of(values, "completion", "canonical_solution", "solution", "solutions")
        return Derived(arguments, solution, with_starter(values, problem.column))

    uses = {prelude, "entry_point", "test", "starter_code", "completion", "canonical_solution", "solution"}
    return _layout(problem, derive, uses)


def mbpp(columns: Set[str], samples: Samples) -> Layout | None:
    """Match `{"text": "Write a function ...", "code": "def f ...", "test_list": ["assert f(1) == 2", "assert ..."]}`.

    The record becomes a code row with the code as solution and verifier_args `{"type": "asserts", "code": "assert f(1)
    ..."}`. The first assertion is added to the prompt, as usual with MBPP, because only the tests have the function's
    name. A column `test` with more cases (MBPP+ of EvalPlus) replaces the list.
    """
    text = _first_column(columns, "text", "prompt")
    if text is None or not {"code", "test_list"} <= columns:
        return None

    def derive(values: Values) -> Derived:
        tests = texts_of(parse_structure(values.get("test_list")))
        # Assertions that are not valid Python stay: `vet_tests` drops the row, and a person may replace them.
        has_tests = bool(tests) and (is_test_code(tests) or are_tests(tests))
        if not has_tests and not text_of(values.get("test")):
            raise Unusable("missing_tests", f"the column test_list {why_no_tests(tests)}")
        setup = texts_of(values.get("test_imports")) + texts_of(values.get("test_setup_code"))
        if (prompt := text_of(read_prompt(values.get(text.column))[0])) and tests:
            prompt = f"{prompt}\n\nYour code should pass this test:\n\n{tests[0]}"
        code = text_of(values.get("test")) or "\n".join([*setup, *tests])
        return Derived({"type": "asserts", "code": code}, prompt=prompt)

    uses = {text.column, "code", "test_list", "test_setup_code", "test_imports", "test"}
    return Layout(Columns(prompt=text, solution=_column("code")), "code", "code", derive, frozenset(uses))


def livecodebench(columns: Set[str], samples: Samples) -> Layout | None:
    r"""Match `{"question_content": "You are given ...", "starter_code": "class Solution: ...",
    "public_test_cases": "[{\"input\": \"[1,2]\\n3\", \"output\": \"1\", \"testtype\": \"functional\"}]",
    "private_test_cases": "[...]", "metadata": "{\"func_name\": \"find\"}"}`.

    The record becomes a code row with public and private tests, verifier_args `{"type": "calls", "entry_point":
    "Solution().find", "cases": [{"args": [[1, 2], 3], "expected": 1}, ...]}`. Tests by stdin become `{"type": "stdio",
    ...}`. Private tests that are a compressed pickle, as in the original files, are rejected as unsafe_tests, because
    loading a pickle can run any code.
    """
    if not {"question_content", "public_test_cases"} <= columns:
        return None
    uses = {"public_test_cases", "private_test_cases", "starter_code"}

    def derive(values: Values) -> Derived:
        refuse_packed(values, "private_test_cases")
        tests = {part: parse_tests(values.get(part), part) for part in ("public_test_cases", "private_test_cases")}
        arguments = read_tests(tests, "public_test_cases", function_name(values), [text_of(values.get("starter_code"))])
        return Derived(arguments, prompt=with_starter(values, "question_content"))

    return _layout(_column("question_content"), derive, uses)


def apps(columns: Set[str], samples: Samples) -> Layout | None:
    r"""Match `{"question": "Add two numbers.", "input_output": "{\"inputs\": [\"1 2\\n\"], \"outputs\": [\"3\\n\"]}",
    "solutions": "[\"print(sum(map(int, input().split())))\"]", "starter_code": ""}`.

    The record becomes a code row with the first of the solutions and verifier_args `{"type": "stdio", "cases":
    [{"input": "1 2\n", "output": "3\n"}]}`. With `fn_name`, they are `{"type": "calls", "entry_point": fn_name, ...}`.
    TACO fits as well; its `"time_limit": "2.0 seconds"` becomes `"limits": {"cpu_s": 2.0}`.
    """
    if not {"question", "input_output"} <= columns:
        return None
    return _layout(_column("question"), _from_tests("question", "input_output"), {"input_output", *_USED_WITH_TESTS})


def codecontests(columns: Set[str], samples: Samples) -> Layout | None:
    r"""Match CodeContests: `{"description": "You are given ...", "public_tests": {...}, "private_tests": {...}}`.

    The problem may also be in `problem` or `question`. The record becomes a code row with verifier_args `{"type":
    "stdio", "cases": [...]}`, made of all its public, private and generated tests. The worked solution is the first of
    its solutions in Python 3. The `checker` of CodeContests+, a program, becomes the checker of the tests.
    """
    if (problem := _first_column(columns, "problem", "description", "question")) is None:
        return None
    if {"public_tests", "private_tests"} <= columns:
        uses = {*_TEST_PARTS, *_USED_WITH_TESTS}
        return _layout(problem, _from_tests(problem.column, *_TEST_PARTS), uses)
    return None


_PAIR = ("inputs", "outputs")
_SOLUTIONS = ("solution", "canonical_solution", "reference_solution", "solutions", "completion", "code", "output")


def find_tests(samples: Samples) -> str | None:
    """Return the column with the tests in the sample records; `inputs` for a pair of columns `inputs` and `outputs`."""
    for name in TESTS:
        column = Column(name)
        if any(are_tests(column(values)) for values in samples):
            return name
    return _PAIR[0] if any(_paired(values) for values in samples) else None


def holds_tests(tests: str, values: Values) -> bool:
    """Return whether a record has tests in this column, which is named as by `find_tests`."""
    return are_tests(_paired(values) if tests == _PAIR[0] else Column(tests)(values))


def has_assertions(tests: str, values: Values) -> bool:
    """Return whether the tests of a record are assertions."""
    return is_test_code(Column(tests)(values))


def _paired(values: Values) -> Mapping[str, Any] | None:
    """Return the tests of a record with inputs and outputs in two columns, or None."""
    inputs, outputs = (parse_structure(values.get(name)) for name in _PAIR)
    if not (isinstance(inputs, list) and isinstance(outputs, list) and inputs and len(inputs) == len(outputs)):
        return None
    name = next((text for key in ("fn_name", "func_name") if (text := text_of(values.get(key)))), None)
    return {"inputs": inputs, "outputs": outputs, **({"fn_name": name} if name else {})}


def program_layout(prompt: str, tests: str, stories: StoryColumns, samples: Samples = ()) -> Layout:
    """Return the layout of programs with their tests in the column `tests`, and the prompt in `stories`.

    samples: records that show which columns name the language of the programs, rather than of the text.
    """
    column, values_of_prompt = Column(tests), Column(prompt)

    def derive(values: Values) -> Derived:
        value = _paired(values) if tests == _PAIR[0] else column(values)
        if not holds_tests(tests, values):
            is_empty = not says_something(parse_structure(column(values)))
            reason = "missing_tests" if is_empty else "mixed_source"
            raise Unusable(reason, f"the column {tests} {why_no_tests(column(values))}")
        solution = solution_of(values, *(name for name in _SOLUTIONS if name not in (prompt, tests)))
        arguments = read_tests_value(values, value, tests, function_name(values), solution)
        arguments = _with_settings(arguments, values, solution)
        statement = stories.whole_prompt(values) or read_prompt(values_of_prompt(values))[0]
        return Derived(arguments, solution, with_starter({**values, prompt: statement}, prompt))

    pair = _PAIR if tests == _PAIR[0] else ()
    used = {
        tests.split(".", maxsplit=1)[0],
        *pair,
        *_USED_WITH_TESTS,
        *SETUP,
        "canonical_solution",
        "reference_solution",
        *(name for name in _LANGUAGES if any(_named_language({name: each.get(name)}, None) for each in samples)),
    }
    return _layout(_column(prompt), derive, used - {prompt})


_PROBLEMS = ("problem_description", "question_content", "problem", "question", "description", "content")
_TEST_PARTS = ("public_tests", "private_tests", "generated_tests")
_USED_WITH_TESTS = ("solution", "starter_code", "checker", "interactor")
"""Columns that are used completely, and are not stored in `meta`. Columns with several solutions or with time limits
are stored, because only a part of them may be used."""


def _layout(prompt: ColumnSpec, derive: Callable[[Values], Derived], uses: Iterable[str]) -> Layout:
    return Layout(Columns(prompt=prompt), "code", "code", derive, frozenset(uses))


def _from_tests(problem: str, *columns: str) -> Callable[[Values], Derived]:
    """Return the `derive` for tests in one or several columns. It also reads the other columns that such datasets
    share."""

    def derive(values: Values) -> Derived:
        tests = values.get(columns[0])
        if len(columns) > 1:
            tests = {column: parse_tests(values.get(column), column) for column in columns}
        solution = solution_of(values, "solution", "solutions")
        hints = [text_of(values.get("starter_code")), solution]
        arguments = read_tests(tests, columns[0], function_name(values), hints)
        arguments = _with_settings(arguments, values, solution)
        return Derived(arguments, solution, with_starter(values, problem))

    return derive


def _column(name: str) -> ColumnSpec:
    return ColumnSpec(column=name)


def _first_column(columns: Set[str], *names: str) -> ColumnSpec | None:
    return next((_column(name) for name in names if name in columns), None)


TIME_LIMITS_S = (0.01, 120.0)
"""The bounds of a time limit in seconds. Other time limits are mistakes of the source, and are left out."""

PYTHON3 = 3
"""The number for Python 3 among the languages of solutions in CodeContests."""

_TIME = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec|seconds?)?\s*", re.IGNORECASE)
"""A time limit with its unit: "2.0 seconds", "1500 ms"."""
_FENCED = re.compile(r"\s*```[\w+]*[ \t]*\n(.*?)\n?```\s*", re.DOTALL)
"""A text that is a Markdown code block."""


def refuse_packed(values: Values, column: str) -> None:
    """Raise Unusable if the column holds a text that is not JSON, such as the private tests of LiveCodeBench."""
    value = values.get(column)
    if isinstance(value, str) and value.strip() and value.lstrip()[:1] not in ("[", "{"):
        raise Unusable(
            "unsafe_tests",
            f"column {column!r} holds packed data, such as a pickle, which could run any code when it is read; "
            "if you trust its source, unpack it, and write the tests as JSON",
        )


def limits_of(values: Values) -> dict[str, float]:
    """Return the verifier's limits for a time limit: 2, "2.0 seconds", "1500 ms" or {"seconds": 2, "nanos": 0}."""
    value = values.get("time_limit")
    seconds: Any = None
    if isinstance(value, Mapping):
        whole, nanos = value.get("seconds") or 0, value.get("nanos") or 0
        seconds = whole + nanos / 1e9 if isinstance(whole, int) and isinstance(nanos, int) else None
    elif isinstance(value, str):
        if match := _TIME.fullmatch(value):
            seconds = float(match[1]) / (1000 if (match[2] or "").lower().startswith("m") else 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    return {"cpu_s": seconds} if seconds is not None and TIME_LIMITS_S[0] <= seconds <= TIME_LIMITS_S[1] else {}


def programs_of(values: Values) -> dict[str, str]:
    """Return the checker and the interactor of a record, which are programs in separate columns (CodeContests+)."""
    texts = {name: text_of(values.get(name)) for name in ("checker", "interactor")}
    return {name: text for name, text in texts.items() if text is not None and is_source(text)}


def solution_of(values: Values, *columns: str) -> str | None:
    """Return the first solution in the columns, without the code block around it, or None."""
    for column in columns:
        value = values.get(column)
        # A program may also begin with a bracket. Only a JSON list has several solutions.
        if isinstance(solutions := parse_structure(value), list):
            value = solutions
        if isinstance(value, Mapping):
            value = programs_in_python3(value)
        if isinstance(value, list):
            value = next((text for text in value if text_of(text)), None)
        if (text := text_of(value)) is not None:
            fenced = _FENCED.fullmatch(text)
            return fenced[1] if fenced and "```" not in fenced[1] else text
    return None


def solution_column(samples: Samples, taken: Set[str]) -> ColumnSpec | None:
    """Return the column of solutions by its name, or None. It is for sources with a configured column of tests."""

    def is_text(value: Any) -> bool:
        return text_of(value) is not None and isinstance(value, str) and not isinstance(parse_structure(value), list)

    names = (name for name in _SOLUTIONS if name not in taken and any(is_text(values.get(name)) for values in samples))
    return next(map(_column, names), None)


def programs_in_python3(solutions: Mapping[str, Any]) -> list[Any]:
    """Return the solutions in Python 3 from a record of CodeContests, which has lists of languages and solutions."""
    languages, programs = solutions.get("language"), solutions.get("solution")
    if not isinstance(languages, list) or not isinstance(programs, list):
        return []
    return [program for language, program in zip(languages, programs, strict=False) if language == PYTHON3]


def with_starter(values: Values, column: str) -> str | None:
    """Return the problem. Starter code is put below it unless the problem contains the code."""
    problem, starter = text_of(read_prompt(values.get(column))[0]), text_of(values.get("starter_code"))
    if problem is None or starter is None or starter.strip() in problem:
        return problem
    return f"{problem}\n\nComplete this code:\n\n```python\n{starter.rstrip()}\n```"


def required_text(values: Values, column: str) -> str:
    """Return the text of a column that tests need. Raises Unusable if it is empty."""
    if (text := text_of(values.get(column))) is None:
        raise Unusable("missing_tests", f"column {column!r} is empty")
    return text


def texts_of(value: Any) -> list[str]:
    """Return the texts of a list, or of a single value."""
    parts = value if isinstance(value, list) else [value]
    return [text for part in parts if (text := text_of(part)) is not None]
