"""Inserts the solution into a test program of any language, and runs both in one process.

    {"type": "inserted", "code": "#<INSERT>\\nint main() { if (add(1, 2) != 3) throw 1; return 0; }"}

The solution passes if the program ends with exit status 0 and reaches its last line. As proof, a harness around the
program reads a secret word from stdin before the solution runs, and prints this word on the last line. A solution
therefore does not pass by calling `exit(0)` or by reading the source of the harness. A failed assertion always ends the
program, even if the language would continue (`console.assert`) or the solution has disabled assertions.

The word is not in a file, an argument or the environment. Depending on the language, a hostile solution may still find
the word, since solution and harness share a process. So the verdict is weak, and `weakness` says why.

Tests of simple assertions are not run in this way. They are rewritten so that they print values, which the verifier
compares with the expected ones (`checks/foreign_assertions.py`). Such a verdict is not weak.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from truegold.verifiers.code.checks.foreign_assertions import StatedTests, read_assertions, rust_program, uncalled_test
from truegold.verifiers.code.checks.foreign_values import PRINTS, read_printed
from truegold.verifiers.code.drivers import compose_stated, driver_file, without_rust_main
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
from truegold.verifiers.code.protocols.python_tests import failed_call, read_results
from truegold.verifiers.code.protocols.stdio import prepare
from truegold.verifiers.code.suite.reading import Inserted
from truegold.verifiers.code.value_comparison import shown_value
from truegold.verifiers.sandbox.execution import Execution, Limits, Program
from truegold.verifiers.sandbox.inside.wire.value_types import Json, Value
from truegold.verifiers.sandbox.languages import language_name
from truegold.verifiers.sandbox.local import Backend, Local
from truegold.verifiers.verdict import Reason

WORD_BYTES, NAME_BYTES = 16, 8
"""Number of random bytes in the secret word, and in the name of the variable that holds the word."""

IN_MEMORY = "the program could search its memory for the word that is printed at the end"
IN_VARIABLE = "the program could list the shell's variables, one of which is printed at the end"
IN_SOURCE = "the program could read the word that is printed at the end in its own source"
NO_END = "a program passes by exit status 0 alone: the harness cannot add a last line to these tests"

STATED = b"\x01"
"""The first character of a line with a value that the program prints for comparison."""

KEPT_IMPORTS = 256
"""The size of the cache of imports that were tried."""
MAX_PRINTED = 500_000
"""Maximum number of hexadecimal digits of all values printed in the language's notation (`foreign_values.PRINTS`)."""

INNER_FILE = "inserted"
"""The file name of the test program, if the harness is a separate program that runs it."""

_MAIN = re.compile(
    r"\bmain\s*\([^(){}]*\)\s*(?:(?:throws|->)\s*[\w.,\s<>()]+?)?\{(?!.*\bmain\s*\([^(){}]*\)\s*[{t-])", re.DOTALL
)
"""The head of the last main function: `int main(int argc, char** argv) {`."""

_END_OF_MAIN = re.compile(r"(?:return\s*(?:0|EXIT_SUCCESS)?\s*;\s*)?\}(?:\s*\})?\s*;?\s*\Z")
"""`return 0; }` at the end of the program, with the brace of a class around it in Java."""

_HARNESS: Mapping[str, Mapping[str, Json]] = tomllib.loads(driver_file("harness.toml"))


def judge_inserted(
    tests: Inserted, solution: str, language: str, backend: Backend, limits: Limits, run_all: bool
) -> Judged:
    """Insert the solution, run the program, and check its exit status and its last line."""
    word = os.urandom(WORD_BYTES).hex()
    family = language_name(language)
    if (name := uncalled_test(tests.code, family)) is not None:
        raise CannotJudge(f"the tests never call their function {name}")
    stated = read_assertions(tests.code, tests.marker, family)
    _require_imports(tests.code if stated is None else f"{stated.head}\n{stated.tail}", family, backend.local)
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
    """Yield values, with texts in the notation of Rust or Go parsed."""
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
    """A way in which a hostile solution could find the word, in addition to tampering with the tests; or None."""


def put_harness_around(code: str, language: str, word: str) -> Harness:
    """Return a test program with its harness.

    language: its usual name, such as cpp. word: the secret word, for languages whose harness cannot read it from stdin.
    """
    if (leaves := _HARNESS["leaves_by_itself"].get(language)) and re.search(leaves, code, re.MULTILINE):
        # Node's `console.assert` only prints a line, so that it is replaced by one that ends the program.
        lead = driver_file("console_assert.js") if language == "javascript" else ""
        return Harness(lead + code, weakness=NO_END)
    if language in ("javascript", "perl"):
        name = f"{INNER_FILE}.{language}"
        runner = driver_file("harness.js" if language == "javascript" else "harness.pl").replace("FILE", name)
        runner = runner.replace("CONSOLE_ASSERT", driver_file("console_assert.js"))
        return Harness(runner, {name: code.encode("utf-8", "surrogatepass")})
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
