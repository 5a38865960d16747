"""Turns the results of a row's test cases into one verdict, and defines the errors for unusable tests.

    results of the cases                   score    reason
    all passed                             1        match
    one failed                             0        mismatch; timeout or limit if the program exceeded a limit
    3 of 4 passed, reward "pass_rate"      0.75     partial; the score is a share of the cases' weights

    require(isinstance(output, str), "tests.cases[3].output", "text", 5)
        BadSuite: tests.cases[3].output must be text, got 5

The evidence names the sandbox (`tier`), whether tests and solution ran in separate processes (`isolation`), and the
first failed case. The evidence contains no times, so a second verdict on the same row is equal to the first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from truegold.verifiers.sandbox.execution import Execution, ProgramEnd
from truegold.verifiers.sandbox.inside.wire.value_types import Json
from truegold.verifiers.verdict import Reason, Verdict

SHOWN_VALUE_CHARS, SHOWN_CHARS = 60, 300
"""Maximum number of characters that are shown: SHOWN_VALUE_CHARS of a value in a message, SHOWN_CHARS of an input or
output in the evidence."""

MAX_FILES, MAX_FILE_CHARS = 32, 4 * 2**20
"""MAX_FILES limits the files of a checker or interactor, and MAX_FILE_CHARS the characters of each file."""

SEPARATE_PROCESSES = "apart"
"""The isolation of a suite whose tests and expected values were never in the solution's process."""

ONE_PROCESS = "one_process"
"""The isolation of tests that run in the solution's process. The solution could tamper with such tests."""

SHARES_PROCESS = "the program could tamper with the tests, since it shares a process with them"

_FILE_NAME = re.compile(r"(?:[A-Za-z0-9_][\w.+-]{0,100}/){0,4}[A-Za-z0-9_][\w.+-]{0,100}", re.ASCII)
"""A relative path without hidden parts: `params.h`, `common/params.h`."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,16}\b")
"""The address ` at 0x7f3a5c2d1e50` in `<Node object at 0x7f3a5c2d1e50>`."""


class BadSuite(ValueError):
    """Raised for tests that cannot be used. The message is one line that names the field and its valid values."""

    def __init__(self, message: str) -> None:
        super().__init__("\\n".join(message.splitlines()))


def require(fits: bool, field: str, expected: str, value: object) -> None:
    """Raise `BadSuite` if `fits` is false. The message names the field, the expected value and the actual value."""
    if not fits:
        raise BadSuite(f"{field} must be {expected}, got {shown(value)}")


def require_switch(value: object, field: str) -> None:
    """Raise `BadSuite` unless a value is true or false."""
    require(isinstance(value, bool), field, "true or false", value)


def require_tolerance(value: object, field: str) -> None:
    """Raise `BadSuite` unless a value is a number from 0 to 1e9."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    require(is_number and 0 <= value <= 1e9, field, "a number from 0 to 1000000000", value)  # type: ignore[operator]


def require_files(value: object, field: str) -> None:
    """Raise `BadSuite` unless a value maps file names to texts."""
    fits = isinstance(value, Mapping) and len(value) <= MAX_FILES
    require(fits, field, f"an object of at most {MAX_FILES} files", value)
    for name, text in value.items():  # type: ignore[attr-defined]
        is_name = isinstance(name, str) and _FILE_NAME.fullmatch(name) is not None
        require(is_name, field, "an object whose keys are names of files, such as params.h", name)
        fits = isinstance(text, str) and len(text) <= MAX_FILE_CHARS
        require(fits, f"{field}.{name}", f"text of at most {MAX_FILE_CHARS} characters", text)


def checker_options(
    spec: object, field: str, presets: Mapping[str, Mapping[str, Json]], default: str
) -> tuple[str, dict[str, Json]]:
    """Return the type and the options of a checker. Raises `BadSuite` for an unknown type.

    spec: the name of a type, or an object. presets: options that each type implies. default: the type of an object
    without `type`.
    """
    options: dict[str, Json] = {"type": spec} if isinstance(spec, str) else {}
    options |= spec if isinstance(spec, Mapping) else {}
    kind = options.pop("type", default) if options else None
    known = isinstance(kind, str) and kind in presets
    require(known, field, f"one of {', '.join(presets)}", spec if kind is None else kind)
    return str(kind), {**presets[str(kind)], **options}


def shown(value: object) -> str:
    """Return a short text without line breaks for a value of any size."""
    if isinstance(value, str | bytes):
        return repr(value[:SHOWN_VALUE_CHARS])[:SHOWN_VALUE_CHARS]
    if isinstance(value, list | tuple | dict | set | frozenset):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 1_000:
        return f"a number of {value.bit_length()} bits"
    return repr(value)[:SHOWN_VALUE_CHARS]


Failure = tuple[Reason, str]
"""The reason of a verdict, and an explanation of one line."""

LIMIT_FAILURES: Mapping[ProgramEnd, Failure] = {
    ProgramEnd.CPU_LIMIT: (Reason.TIMEOUT, "it used more CPU time than the limit"),
    ProgramEnd.WALL_LIMIT: (Reason.TIMEOUT, "it waited longer than the limit"),
    ProgramEnd.MEMORY_LIMIT: (Reason.LIMIT, "it used more memory, processes or threads than the limit"),
    ProgramEnd.OUTPUT_LIMIT: (Reason.LIMIT, "it wrote more than the limit"),
}
"""The failure for each limit that can end a program."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one test case."""

    passed: bool
    reason: Reason = Reason.MATCH
    """`match` if the case passed, else the reason of its failure."""
    weight: float = 1.0
    shown: Mapping[str, str] = field(default_factory=dict)
    """Details of the case for the evidence."""
    share: float = 0.0
    """The part of its weight that a failed case earns, from 0 to 1. It is above 0 only if the checker gives points."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """The judgement of a checker on an output."""

    share: float
    """1 if the output is accepted, 0 if it is refused, a number between them if the checker gives points."""
    why: str | None = None
    """The mistake in one line, or None if the output is accepted."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The outcome of a call that raised an exception."""

    type: str = "Exception"
    message: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """The results of a suite."""

    cases: Sequence[CaseResult]
    """The results of the cases that ran, in order."""
    total: int
    """The number of cases in the suite, including those that did not run."""
    total_weight: float
    isolation: str = SEPARATE_PROCESSES
    method: str = "stdio"
    """The way the suite was run: `stdio`, `calls`, `lowered` (assertions that became calls), `two_processes`,
    `one_process` or `inserted`."""
    weakness: str | None = None
    """A way in which a hostile program could change its verdict. For ONE_PROCESS, None stands for SHARES_PROCESS."""


class CannotJudge(Exception):
    """Raised if the suite or the checker is at fault, so that there is no verdict on the program."""

    def __init__(self, message: str, reason: Reason = Reason.VERIFIER_ERROR) -> None:
        super().__init__(message)
        self.reason = reason


_PASSED = CaseResult(True, Reason.MATCH)


def passed_case(weight: float = 1.0) -> CaseResult:
    """Return the result of a case that passed."""
    return _PASSED if weight == 1.0 else CaseResult(True, Reason.MATCH, weight)


def failed_case(weight: float, reason: Reason = Reason.MISMATCH, /, **shown: object) -> CaseResult:
    """Return the result of a case that failed. shown: details for the evidence; those that are None are left out."""
    if isinstance(error := shown.get("error"), str):
        shown["error"] = without_addresses(error)
    return CaseResult(False, reason, weight, {name: cut(value) for name, value in shown.items() if value is not None})


def judged_case(weight: float, opinion: Opinion, shown: Mapping[str, str | None]) -> CaseResult:
    """Return the result of a case from the opinion of a checker or an interactor."""
    if opinion.share == 1.0:
        return passed_case(weight)
    return replace(failed_case(weight, error=opinion.why, **shown), share=opinion.share)


def failed_end(execution: Execution) -> Failure | None:
    """Return the failure of a program that did not end with exit status 0, or None if it did."""
    if execution.end in LIMIT_FAILURES:
        return LIMIT_FAILURES[execution.end]
    if execution.end is ProgramEnd.EXITED and execution.status == 0:
        return None
    how = f"signal {execution.status}" if execution.end is ProgramEnd.SIGNALLED else f"exit status {execution.status}"
    return Reason.MISMATCH, f"it ended with {how}: {last_line(execution.stderr)}".removesuffix(": ")


def verdict_of(judged: Judged, reward: str, evidence: Mapping[str, Json], extracted: str) -> Verdict:
    """Return the verdict on a program. reward: `all` or `pass_rate`."""
    passed = [case for case in judged.cases if case.passed]
    first_failed = next((index for index, case in enumerate(judged.cases) if not case.passed), None)
    evidence = {**evidence, "isolation": judged.isolation, "method": judged.method}
    if judged.isolation == ONE_PROCESS:
        evidence["weakness"] = judged.weakness or SHARES_PROCESS
    evidence |= {"passed": len(passed), "total": judged.total}
    if first_failed is None and len(passed) == judged.total:
        return Verdict(1.0, Reason.MATCH, extracted, evidence)
    reason = Reason.MISMATCH
    if first_failed is not None:
        reason = judged.cases[first_failed].reason
        evidence["failed"] = {"case": first_failed, **judged.cases[first_failed].shown}
    if reward == "all":
        return Verdict(0.0, reason, extracted, evidence)
    points = sum(case.weight * (1.0 if case.passed else case.share) for case in judged.cases)
    rate = points / judged.total_weight if judged.total_weight else 0.0
    # A program that failed a case must not get 1 by rounding.
    score = min(rate, 1.0 - 1e-9) if len(passed) < judged.total else 1.0
    return Verdict(score, Reason.PARTIAL if score > 0 else reason, extracted, evidence)


def without_addresses(text: str) -> str:
    """Return the text without addresses, which differ in each process: `<Node at 0x7f3a5c2d1e50>` -> `<Node>`."""
    return _ADDRESS.sub("", text)


def cut(value: object) -> str:
    """Return the beginning of a value as a text that UTF-8 can encode: lone surrogates are escaped."""
    text = value if isinstance(value, str) else repr(value)
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}… ({len(text)} characters)"


def last_line(output: bytes | str) -> str:
    """Return the beginning of the last line of an output."""
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else output
    lines = text.strip().splitlines()
    return lines[-1][:SHOWN_CHARS] if lines else ""
