"""Test programs in any language, into which the solution is inserted. Both are one process, so the verdict is weak.

    {"type": "inserted", "code": "#<INSERT>\\nint main() { if (add(1, 2) != 3) throw 1; return 0; }"}

The solution passes where the program ends with exit status 0 and gets to its last line, where it prints a word that it
was handed and that nobody knows beforehand: a solution that calls `exit(0)` does not pass, nor does one that reads the
harness. A failed assertion ends the program, also where the language would go on (`console.assert`) or the solution has
switched assertions off. What stays possible is in `Judged.weakness` (`harness.py`).
"""

from __future__ import annotations

import os
import re

from truegold.verifiers.code.judging import ONE_PROCESS, Judged, failed_case, failed_end, passed_case
from truegold.verifiers.code.protocols.harness import IN_MEMORY, lines_after_solution, put_harness_around
from truegold.verifiers.code.protocols.stdio import prepare
from truegold.verifiers.code.suite import Inserted
from truegold.verifiers.sandbox.execution import Backend, Execution, Program
from truegold.verifiers.sandbox.inside.confine.preload import warm_modules
from truegold.verifiers.sandbox.inside.wire import to_json
from truegold.verifiers.sandbox.job import Job
from truegold.verifiers.sandbox.languages import language_name
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import PYTHON, Local

WORD_BYTES = 16

_RUST_TEST = re.compile(r"^\s*#\[test\]", re.MULTILINE)
_RUST_MAIN = re.compile(r"^\s*(?:pub\s+)?fn\s+main\b", re.MULTILINE)


def judge_inserted(
    tests: Inserted, solution: str, language: str, backend: Backend, local: Local, limits: Limits
) -> Judged:
    """Insert the solution, run the program, and look for its last line."""
    word = os.urandom(WORD_BYTES).hex()
    if language == PYTHON:
        source = tests.code.replace(tests.marker, solution)
        job = Job("to_end", to_json({"source": source, "word": word}), limits, warm=warm_modules(source))
        execution = local.sandbox().run(job)
        return _judge(execution, word in execution.result.decode("utf-8", "replace"), IN_MEMORY)
    family = language_name(language)
    harness = put_harness_around(tests.code, family, word)
    head = tests.code.partition(tests.marker)[0]
    if head.count("{") == head.count("}"):  # Headers are included outside of functions only.
        solution += lines_after_solution(family)
    source = harness.source.replace(tests.marker, solution)
    files = {name: _insert(text, tests.marker, solution) for name, text in harness.files.items()}
    # The tests decide this: a solution with a main function, or with tests of its own, changes nothing.
    is_set_of_tests = family == "rust" and bool(_RUST_TEST.search(tests.code)) and not _RUST_MAIN.search(tests.code)
    program = Program(language, source, files, reads_once=True, is_set_of_tests=is_set_of_tests)
    execution = prepare(backend, program, limits).run(f"{word}\n".encode())
    is_complete = not harness.has_end or word.encode() in execution.stdout.splitlines()[-1:]
    if is_set_of_tests:
        # A solution may leave the tests out of the program: `#![cfg(not(test))]`.
        is_complete = _tests_run(execution.stdout) >= len(_RUST_TEST.findall(tests.code))
    return _judge(execution, is_complete, harness.weakness)


def _tests_run(stdout: bytes) -> int:
    """Return how many tests libtest says have passed."""
    counts = re.findall(rb"(?m)^test result: ok\. (\d+) passed", stdout)
    return int(counts[-1]) if counts else 0


def _insert(code: bytes, marker: str, solution: str) -> bytes:
    return code.replace(marker.encode(), solution.encode("utf-8", "replace"))


def _judge(execution: Execution, is_complete: bool, weakness: str | None) -> Judged:
    failure = failed_end(execution)
    if failure is not None:
        case = failed_case(1.0, failure[0], error=failure[1])
    elif not is_complete:
        case = failed_case(1.0, error="the program ended before the tests did")
    else:
        case = passed_case()
    return Judged([case], 1, 1.0, ONE_PROCESS, method="inserted", weakness=weakness)
