"""Runs tests of functions in languages other than Python: calls, and test programs with a marker for the solution.

Calls go through a driver around the solution (`drivers`):

    {"entry_point": "Solution().twoSum", "cases": [{"args": [[2, 7], 9], "expected": [0, 1]}]}, language cpp

The driver reads arguments as JSON, one line for each call, and prints one line for each returned value. The solution's
process never gets an expected value. A forged line does not help a wrong solution, since it lacks the right value.

A program whose types cannot be written as JSON fails. Tests whose values do not fit one type of the language raise
CannotJudge.

Test programs contain a marker, which the solution replaces. Both run in one process:

    {"type": "inserted", "code": "#<INSERT>\\nint main() { if (add(1, 2) != 3) throw 1; return 0; }"}

The solution passes if the program ends with exit status 0 and reaches its last line. As proof, a harness around the
program reads a secret word from stdin before the solution runs. It prints this word on the last line. A solution
therefore does not pass by calling `exit(0)` or by reading the source of the harness. A failed assertion always ends the
program, even if the language would continue (`console.assert`) or the solution has disabled assertions.

The word is not in a file, an argument or the environment. Depending on the language, a hostile solution may still find
the word, since solution and harness share a process. So the verdict is weak, and `weakness` says why.

Tests of simple assertions are rewritten instead: they print values, and the verifier compares these with the expected
ones (`checks/foreign_assertions.py`). Such a verdict is not weak.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from urllib.parse import quote

from truegold.verifiers.code.checks.foreign_assertions import StatedTests, read_assertions, rust_program, uncalled_test
from truegold.verifiers.code.checks.foreign_values import PRINTS, read_printed
from truegold.verifiers.code.drivers import (
    NO_FORM,
    CallTarget,
    Signature,
    compose,
    compose_stated,
    driver_file,
    language_name_of,
    names_like,
    without_rust_main,
)
from truegold.verifiers.code.outcomes import (
    ONE_PROCESS,
    CannotJudge,
    CaseResult,
    Judged,
    Raised,
    failed_case,
    failed_end,
    passed_case,
)
from truegold.verifiers.code.protocols.python_tests import ExpectedResults, failed_call, judge_outcomes, read_results
from truegold.verifiers.code.protocols.stdio import NotCompiled, prepare
from truegold.verifiers.code.suite.reading import CallCase, Calls, Inserted
from truegold.verifiers.code.value_comparison import shown_value, to_values
from truegold.verifiers.sandbox.execution import Execution, Limits, Program
from truegold.verifiers.sandbox.inside.wire.value_types import Array, Instance, Json, Value
from truegold.verifiers.sandbox.local import Backend, Local
from truegold.verifiers.sandbox.toolchains import language_name
from truegold.verifiers.verdict import Reason

TYPED = ("cpp", "java")
"""Languages with static types, where each argument and result has one type."""


def judge_native_calls(
    tests: Calls, source: str, language: str, backend: Backend, limits: Limits, run_all: bool
) -> Judged:
    """Call the entry point for every case and judge the results. Raises NotCompiled and CannotJudge."""
    if language_name_of(language) in TYPED:
        _require_types(tests.cases)
    lines = [json.dumps(_arguments(case), separators=(",", ":")) for case in tests.cases]
    target = CallTarget(tests.entry_point, tests.in_place, tests.signature or Signature())
    prepared = backend.prepare(Program(language, compose(language, source, target)), limits)
    if prepared.compiled is not None and not prepared.compiled.ok and b"overloaded" in prepared.compiled.stderr:
        target = replace(target, arity=len(_arguments(tests.cases[0])))
        prepared = backend.prepare(Program(language, compose(language, source, target)), limits)
    if prepared.compiled is not None and (failure := failed_end(prepared.compiled)) is not None:
        lacks_form = NO_FORM in prepared.compiled.stderr
        why = f"a type of {target.name!r} cannot be written as JSON" if lacks_form else failure[1]
        raise NotCompiled(why if names_like(source, target.name) else f"the program has no {target.name!r}")
    execution = prepared.run("".join(f"{line}\n" for line in lines).encode())
    replied = replace(execution, result=execution.stdout)
    returned = read_results(replied, len(tests.cases), {}, limits, ExpectedResults([]))
    cases = tuple(case._replace(expected=to_values(case.expected)) for case in tests.cases)
    outcomes = [_as_in_python(case.expected, outcome) for case, outcome in zip(cases, returned.outcomes, strict=True)]
    return judge_outcomes(replace(tests, cases=cases), replace(returned, outcomes=outcomes), run_all)


def _require_types(cases: Sequence[CallCase]) -> None:
    """Raise CannotJudge if an argument or the results of the tests do not fit one static type."""
    mixed = any(_mixes_lists(value) for case in cases for value in (*case.args, *case.kwargs.values(), case.expected))
    if mixed or len({_type_family(case.expected) for case in cases} - {None}) > 1:
        raise CannotJudge("the tests mix values of several types, which do not fit one type of the language")


def _type_family(value: Value) -> str | None:
    """Return the family of a value's type, such as "number", or None for the value None."""
    families = {bool: "truth value", int: "number", float: "number", str: "text", dict: "dictionary"}
    return None if value is None else families.get(type(value), "list")


def _mixes_lists(value: Value) -> bool:
    """Return whether a list mixes lists with other values, as in [1, [2, [3]]]."""
    if isinstance(value, dict):
        return _mixes_lists(list(value)) or _mixes_lists(list(value.values()))
    if not isinstance(value, list):  # A tuple has a type for each of its items.
        return isinstance(value, tuple) and any(map(_mixes_lists, value))
    kinds = {_type_family(item) for item in value} - {None}
    return (len(kinds) > 1 and "list" in kinds) or any(map(_mixes_lists, value))


def _arguments(case: CallCase) -> list[Value]:
    """Return the arguments for a driver: positional ones, then named ones, which are in the function's order."""
    return [_driver_json(value) for value in (*case.args, *case.kwargs.values())]


def _driver_json(value: Value) -> Value:  # noqa: PLR0911  (One per type.)
    """Return the JSON of an argument for drivers: {1: "a b"} -> ["dict:", [[1, "a%20b"]]], inf -> "float:inf"."""
    match value:
        case None | bool() | int():
            return value
        case str():
            return quote(value, safe="", errors="surrogatepass")
        case float():
            return value if math.isfinite(value) else f"float:{value}"
        case Instance():
            return _driver_json(to_values(value)) if to_values(value) is not value else _no_form(value)
        case Array():
            return _driver_json(value.elements)
        case dict():
            return ["dict:", [[_driver_json(key), _driver_json(item)] for key, item in value.items()]]
        case list() | tuple():
            return [_driver_json(item) for item in value]
        case set() | frozenset():
            return sorted((_driver_json(item) for item in value), key=repr)
    return _no_form(value)


def _no_form(value: Value) -> Value:
    raise CannotJudge(f"an argument of type {type(value).__name__} exists only in Python")


def _as_in_python(expected: Value, outcome: Value) -> Value:
    """Return a result with the expected Python type: a list becomes a set, an empty linked list None."""
    if isinstance(expected, set | frozenset) and isinstance(outcome, list):
        return set(map(_hashable, outcome))
    if expected is None and outcome == []:
        return None  # An empty linked list or tree.
    return outcome


def _hashable(value: Value) -> Value:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


WORD_BYTES, NAME_BYTES = 16, 8
"""Number of random bytes: WORD_BYTES in the secret word, NAME_BYTES in the name of the variable that holds the word."""

IN_MEMORY = "the program could search its memory for the word that is printed at the end"
IN_VARIABLE = "the program could list the shell's variables, one of which is printed at the end"
IN_SOURCE = "the program could read the word that is printed at the end in its own source"
WAITS = "the tests wait: a program could leave them waiting, or call the listener that prints the word at the end"
NO_END = "a program passes by exit status 0 alone: the harness cannot add a last line to these tests"

STATED = b"\x01"
"""The first character of a line with a value that the program prints for comparison."""

KEPT_IMPORTS = 256
"""The size of the cache of imports that were tried."""
MAX_PRINTED = 500_000
"""Maximum number of hexadecimal digits of all values printed in the language's notation (`foreign_values.PRINTS`)."""

INNER_FILE = "inserted"
"""The file name of the test program in languages whose harness is a separate program."""

_MAIN = re.compile(
    r"\bmain\s*\([^(){}]*\)\s*(?:(?:throws|->)\s*[\w.,\s<>()]+?)?\{(?!.*\bmain\s*\([^(){}]*\)\s*[{t-])", re.DOTALL
)
"""The head of the last main function: `int main(int argc, char** argv) {`."""

_END_OF_MAIN = re.compile(r"(?:return\s*(?:0|EXIT_SUCCESS)?\s*;\s*)?\}(?:\s*\})?\s*;?\s*\Z")
"""`return 0; }` at the end of the program, in Java followed by the brace that closes the class."""

_TEST_CALLED_MAIN = re.compile(r"(#\s*\[\s*test\s*\]\s*(?:pub\s+)?fn\s+)main\b")
"""The head of a test function of Rust called main, which is not the program's main function."""

_RUNNER_CALL = re.compile(
    r"""(?:^|[{};])\s*(describe|it|test)(?:\.\w+)?\s*\(\s*(?:"[^"\n]*"|'[^'\n]*'|`[^`]*`)\s*,\s*(?:async\b|function\b|\(|\w+\s*=>)""",
    re.MULTILINE,
)
"""A test of JavaScript that is handed to a test runner: `it("adds", () => {`."""

_HARNESS: Mapping[str, Mapping[str, Json]] = tomllib.loads(driver_file("harness.toml"))


def judge_inserted(
    tests: Inserted, solution: str, language: str, backend: Backend, limits: Limits, run_all: bool
) -> Judged:
    """Insert the solution, run the program, and check its exit status and its last line."""
    word = os.urandom(WORD_BYTES).hex()
    family = language_name(language)
    if family == "rust":
        tests = replace(tests, code=_TEST_CALLED_MAIN.sub(r"\1tests_main", tests.code))
    if (name := uncalled_test(tests.code, family)) is not None:
        raise CannotJudge(f"the tests never call their function {name}")
    stated = read_assertions(tests.code, tests.marker, family)
    _require_imports(tests.code if stated is None else f"{stated.head}\n{stated.tail}", family, backend.local)
    if family in ("javascript", "typescript"):
        _require_no_runner(tests.code)
    if stated is not None:
        return _judge_stated(stated, solution, language, backend, limits, run_all)
    code = tests.code
    if family == "go" and "func main" not in code:
        raise CannotJudge("these tests need Go's test runner, which is not supported, and could not be rewritten")
    if family == "rust":
        solution, code = without_rust_main(solution), rust_program(code)
    harness = put_harness_around(code, family, word)
    head = code.partition(tests.marker)[0]
    if head.count("{") == head.count("}"):  # Headers can be included only outside of functions.
        solution += lines_after_solution(family)
    source = harness.source.replace(tests.marker, solution)
    inserted = solution.encode("utf-8", "replace")
    files = {name: text.replace(tests.marker.encode(), inserted) for name, text in harness.files.items()}
    execution = prepare(backend, Program(language, source, files, reads_once=True), limits).run(f"{word}\n".encode())
    is_complete = harness.weakness == NO_END or word.encode() in execution.stdout.splitlines()[-1:]
    return _judge(execution, is_complete, harness.weakness)


def _require_no_runner(code: str) -> None:
    """Raise CannotJudge if tests of JavaScript need a function of a test runner that they do not define."""
    for name in dict.fromkeys(match[1] for match in _RUNNER_CALL.finditer(code)):
        if not re.search(rf"\bfunction\s+{name}\b|\b{name}\s*=[^=]", code):
            raise CannotJudge(f"the tests call {name} of a runner such as Mocha, and must define it")


def _require_imports(code: str, language: str, local: Local) -> None:
    """Raise CannotJudge if tests import a package that is not installed. language: its usual name, such as cpp."""
    pattern = _HARNESS["imports"].get(language)
    for match in re.finditer(pattern, code, re.MULTILINE) if pattern else ():
        name = next(filter(None, match.groups()))
        if not _runs(language, _HARNESS["import_of"][language].replace("NAME", name), local):
            raise CannotJudge(f"the tests import {name}, which is not installed on this machine")


@lru_cache(maxsize=KEPT_IMPORTS)
def _runs(language: str, source: str, local: Local) -> bool:
    prepared = local.prepare(Program(language, source), Limits())
    return (prepared.compiled is None or prepared.compiled.ok) and prepared.run(b"").ok


def _judge_stated(
    tests: StatedTests, solution: str, language: str, backend: Backend, limits: Limits, run_all: bool
) -> Judged:
    """Run rewritten tests and compare the values that they print with the expected ones."""
    family = language_name(language)
    if family in ("c", "cpp"):
        solution += lines_after_solution(family)
    source = compose_stated(family, tests.head, solution, tests.tail)
    execution = prepare(backend, Program(language, source), limits).run(b"")
    stated = b"".join(line[1:] + b"\n" for line in execution.stdout.split(b"\n") if line[:1] == STATED)
    count = sum(1 + (check.other is not None) for check in tests.checks)
    returned = read_results(replace(execution, result=stated), count, {}, limits, None)
    values = _as_printed(returned.outcomes, family) if family in PRINTS else iter(returned.outcomes)
    judged: list[CaseResult] = []
    for check in tests.checks:
        value = next(values)
        expected = check.expected if check.other is None else next(values)
        failure = failed_call(value, returned) or failed_call(expected, returned)
        if failure is not None:
            judged.append(failed_case(1.0, failure[0], input=check.text, error=failure[1]))
        elif replace(check, expected=expected).holds(value, family):
            judged.append(passed_case())
        else:
            judged.append(failed_case(1.0, input=check.text, expected=shown_value(expected), got=shown_value(value)))
        if not judged[-1].passed and not run_all:
            break
    return Judged(judged, len(tests.checks), float(len(tests.checks)), method="lowered")


def _as_printed(outcomes: Sequence[Value], language: str) -> Iterator[Value]:
    """Yield the outcomes. A text in the notation of Rust or Go is read as its value."""
    left = MAX_PRINTED
    for outcome in outcomes:
        value = outcome
        if isinstance(outcome, str):
            left -= len(outcome)
            try:
                value = read_printed(outcome if left >= 0 else "", language)
            except (ValueError, RecursionError):
                value = Raised("Unreadable", "the returned value cannot be read")
        yield value


def _judge(execution: Execution, is_complete: bool, weakness: str | None) -> Judged:
    failure = failed_end(execution)
    if failure is None and not is_complete:
        failure = Reason.MISMATCH, "the program ended before the tests did"
    case = passed_case() if failure is None else failed_case(1.0, failure[0], error=failure[1])
    return Judged([case], 1, 1.0, ONE_PROCESS, method="inserted", weakness=weakness)


@dataclass(frozen=True, slots=True)
class Harness:
    """A test program that reads the secret word at its start and prints it at its end."""

    source: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    weakness: str | None = None
    """A way in which a hostile solution could find the word, or None. (It could also tamper with the tests.)"""


def put_harness_around(code: str, language: str, word: str) -> Harness:
    """Return a test program with its harness.

    language: the usual name, such as cpp. word: the secret word, for a harness that cannot read it from stdin.
    """
    if (leaves := _HARNESS["leaves_by_itself"].get(language)) and re.search(leaves, code, re.MULTILINE):
        # Node's `console.assert` only prints a line, so it is replaced by one that ends the program.
        lead = driver_file("console_assert.js") if language == "javascript" else ""
        return Harness(lead + code, weakness=NO_END)
    if language in ("javascript", "perl"):
        name = f"{INNER_FILE}.{language}"
        runner = driver_file("harness.js" if language == "javascript" else "harness.pl").replace("FILE", name)
        runner = runner.replace("CONSOLE_ASSERT", driver_file("console_assert.js"))
        end = _HARNESS["end_of_javascript"]
        waits = language == "javascript" and re.search(end["waits"], code) is not None
        runner = runner.replace("AT_END", end["at_exit" if waits else "at_once"])
        files = {name: code.encode("utf-8", "surrogatepass")}
        return Harness(runner, files, weakness=WAITS if waits else None)
    if last_line := _HARNESS["last_line"].get(language):
        return Harness(f"{code}\n{last_line.replace('{word}', word)}\n", weakness=IN_SOURCE)
    variable = f"w{os.urandom(NAME_BYTES).hex()}"
    if language == "bash":
        lines = f"IFS= read -r {variable}\n", f'\nprintf "\\n%s\\n" "${variable}"\n'
        return Harness(lines[0] + code + lines[1], weakness=IN_VARIABLE)
    if language in ("c", "cpp", "java", "rust"):
        return _in_main(code, language, variable)
    return Harness(code, weakness=NO_END)


def lines_after_solution(language: str) -> str:
    """Return lines that restore the names which tests use and a solution may have redefined, such as `assert`."""
    if language in ("c", "cpp"):
        return "\n" + "".join(f"#undef {word}\n" for word in _HARNESS["words"]["c"].split()) + "#include <assert.h>\n"
    suffix = {"bash": "sh", "perl": "pl", "rust": "rs"}.get(language)
    return "" if suffix is None else "\n" + driver_file(f"after_solution.{suffix}")


def _in_main(code: str, language: str, variable: str) -> Harness:
    """Return the program with statements at the start and the end of its main function.

    If the main function is not the last part of the program, the program is returned unchanged.
    """
    family = "cpp" if language == "c" else language
    parts = {name: text.replace("VARIABLE", variable) for name, text in _HARNESS["in_main"][family].items()}
    start, end = _MAIN.search(code), _END_OF_MAIN.search(code)
    body = code[start.end() : end.start()] if start and end else ""
    if start is None or end is None or start.end() > end.start() or body.count("{") != body.count("}"):
        return Harness(code, weakness=NO_END)
    source = f"{parts['lead']}{code[: start.end()]} {parts['first']} {body} {parts['last']} {code[end.start() :]}"
    return Harness(source, weakness=None if language == "java" else IN_MEMORY)
