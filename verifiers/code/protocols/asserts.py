"""Test code: `check(candidate)` functions, bare assertions and unittest cases.

In order of preference:

1. assertions that are calls and comparisons become data: one process makes the calls, comparisons happen here
   (`lowering.py`);
2. other test code runs in a sandboxed process of its own, which calls the solution's process by message
   (`inside/test_session/`);
3. test code that has to share the solution's process (it patches the solution's modules, reads its output, passes
   objects that cannot travel) runs there, and the verdict is marked `one_process`: a solution could tamper with it.

Whether tests and solution are apart depends on the suite alone, never on what a solution does.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from truegold.verifiers.code.execution import Execution
from truegold.verifiers.code.inside.confine.preload import warm_modules
from truegold.verifiers.code.inside.test_code.isolation import needs_one_process
from truegold.verifiers.code.inside.wire import Undecodable, from_json, to_json
from truegold.verifiers.code.judging import (
    APART,
    TOGETHER,
    CannotJudge,
    CaseResult,
    Judged,
    ended,
    failed,
    last_line,
    passed,
)
from truegold.verifiers.code.limits import Limits
from truegold.verifiers.code.lowering import lower
from truegold.verifiers.code.protocols.calls import NeedsRunning, judge_lowered
from truegold.verifiers.code.protocols.lines import Parts, lines
from truegold.verifiers.code.protocols.source import Source
from truegold.verifiers.code.sandbox.job import Job
from truegold.verifiers.code.sandbox.local import Local
from truegold.verifiers.code.suite import Asserts, UnitTest
from truegold.verifiers.verdict import Reason

NONCE_BYTES = 16
SEED_BYTES = 8
MAX_MESSAGE_PARTS = 2_000_000
"""For what is said of some tens of thousands of tests. In one process with the tests, a program can write there too."""


def judge_code(tests: Asserts | UnitTest, source: Source, local: Local, limits: Limits, run_all: bool) -> Judged:
    """Run test code against the program."""
    if isinstance(tests, Asserts) and (lowered := lower(tests)) is not None:
        try:
            return judge_lowered(lowered, source, tests.codecs, local, limits, run_all)
        except NeedsRunning:
            # What the program returned brought this about: it must not bring it into one process with the tests.
            judged = _apart(tests, source, local, limits, run_all)
            return judged or Judged([failed(1.0, error="what it returned cannot be passed on")], 1, 1.0)
    if needs_one_process(tests.code) is None:
        judged = _apart(tests, source, local, limits, run_all)
        if judged is not None:
            return judged
    return _together(tests, source, local, limits, run_all)


def _request(tests: Asserts | UnitTest, source: Source, run_all: bool) -> dict[str, Any]:
    return {
        "kind": "asserts" if isinstance(tests, Asserts) else "unittest",
        "code": tests.code,
        "entry_point": tests.entry_point,
        "prelude": source.prelude,
        "codecs": tests.codecs,
        "stop_first": not run_all,
        "seed": _seed(tests.code, source.program),
    }


def _seed(code: str, program: str) -> int:
    """For tests that draw their inputs: the same for the same row, and unknown to the solution's process."""
    digest = hashlib.sha256(f"{code}\0{program}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:SEED_BYTES], "big")


def _apart(tests: Asserts | UnitTest, source: Source, local: Local, limits: Limits, run_all: bool) -> Judged | None:
    """Tests in one process, the solution in another. None where the suite turns out to need a single one."""
    serve = Job("serve", to_json({**source.fields(), "codecs": tests.codecs}), limits, warm=source.warm)
    test = Job("tests", to_json(_request(tests, source, run_all)), limits, warm=warm_modules(_bytes(tests.code)))
    solution, tester = local.sandbox().run_pair(serve, test)
    messages = _messages(tester)
    if any("cannot_isolate" in message for message in messages):
        return None
    # The tester waits while the solution overruns, and is ended by the solution's end.
    trouble = ended(solution) if solution.status != 0 and tester.ok is False else None
    return _judged(messages, trouble or _limit_of(solution) or ended(tester), tester)


def _together(tests: Asserts | UnitTest, source: Source, local: Local, limits: Limits, run_all: bool) -> Judged:
    nonce = os.urandom(NONCE_BYTES).hex()
    request = {**_request(tests, source, run_all), "program": source.program, "nonce": nonce}
    warm = tuple(sorted({*source.warm, *warm_modules(_bytes(tests.code))}))
    done = local.sandbox().run(Job("one_process", to_json(request), limits, warm=warm))
    messages = _messages(done)
    whole = any(message.get("nonce") == nonce for message in messages)
    judged = _judged(messages, ended(done), done, TOGETHER)
    if whole or any(not case.passed for case in judged.cases):
        return judged
    case = failed(1.0, error="the program ended before the tests did")
    return Judged([*judged.cases, case], judged.total + 1, judged.total_weight + 1.0, TOGETHER)


def _bytes(code: str) -> bytes:
    return code.encode("utf-8", "replace")


def _limit_of(solution: Execution) -> tuple[Reason, str] | None:
    trouble = ended(solution)
    return trouble if trouble is not None and trouble[0] in {Reason.TIMEOUT, Reason.LIMIT} else None


def _messages(done: Execution) -> list[dict[str, Any]]:
    found = []
    parts = Parts(MAX_MESSAGE_PARTS)
    for line in lines(done.result):
        if not parts.allow(line):
            break
        try:
            message = from_json(line)
        except Undecodable:
            continue
        if isinstance(message, dict) and all(key in _SHAPES and _SHAPES[key](message[key]) for key in message):
            found.append(message)
    return found


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(type(value.get(key)) is int for key in ("passed", "total"))


_SHAPES: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("test", "line", "nonce", "cannot_isolate", "gone"), _is_text),
    **dict.fromkeys(("error", "calls", "bad_suite", "not_loaded"), _are_texts),
    "ok": lambda value: isinstance(value, bool),
    "done": _are_counts,
}
"""What the lines of `inside/test_code/report.py` and `inside/test_session/tests.py` hold. A line of another shape was
written by a program."""


def _judged(
    messages: Sequence[dict[str, Any]], trouble: tuple[Reason, str] | None, done: Execution, isolation: str = APART
) -> Judged:
    # In one process with the program, a word about the suite may be the program's: nothing follows from it.
    bad = next((message["bad_suite"] for message in messages if "bad_suite" in message), None)
    if bad is not None and isolation == APART:
        raise CannotJudge(f"the suite itself fails: {': '.join(map(str, bad[:2]))}")
    results = [_result(message, trouble) for message in messages if "test" in message]
    told = next((message[key] for message in messages for key in ("not_loaded", "gone") if key in message), None)
    if told is not None and trouble is None:
        trouble = Reason.MISMATCH, told if isinstance(told, str) else ": ".join(map(str, told[:2]))
    final = next((message["done"] for message in messages if "done" in message), None)
    if final is not None and final["total"] == 0 and isolation == APART:
        raise CannotJudge("the suite has no tests: nothing in its code asserts anything", Reason.VERIFIER_ERROR)
    total = max(len(results), final["total"] if final is not None else 0)
    if final is None or (len(results) < total and all(result.passed for result in results)):
        reason, why = trouble or (Reason.MISMATCH, f"the tests did not come to their end: {last_line(done.stderr)}")
        if not results or results[-1].passed:
            results.append(failed(1.0, reason, error=why.removesuffix(": ")))
        total = max(total, len(results))
    return Judged(results, total, float(total), isolation)


def _result(message: dict[str, Any], trouble: tuple[Reason, str] | None) -> CaseResult:
    if message.get("ok") is True:
        return passed()
    error = message.get("error") or []
    text = ": ".join(str(part) for part in error[:2])
    reason = trouble[0] if trouble is not None and trouble[0] in {Reason.TIMEOUT, Reason.LIMIT} else Reason.MISMATCH
    calls = message.get("calls")
    got = str(calls) if calls else None
    return failed(1.0, reason, test=message.get("line") or message.get("test"), error=text, got=got)
