"""The outcomes of a row: tests that cannot be used, cases that passed or failed, and one verdict of these.

    require(isinstance(output, str), "tests.cases[3].output", "text", 5)
        BadSuite: tests.cases[3].output must be text, got 5

    all passed                          score 1, match
    one failed                          score 0: mismatch, or timeout or limit where that is what ended the program
    reward "pass_rate", 3 of 4 passed   score 0.75 (by weight), partial

The evidence names what held the program (`tier`), whether tests and solution ran apart (`isolation`), and the first
failing case. Times are left out: the verdict on the same row is always the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from truegold.verifiers.sandbox.execution import Execution, ProgramEnd
from truegold.verifiers.sandbox.inside.wire.foreign_values import Json
from truegold.verifiers.verdict import Reason, Verdict

SHOWN_VALUE_CHARS, SHOWN_CHARS = 60, 300
"""Characters that messages show of a value, and evidence of an input or an output. Stops verdicts of megabytes."""

MAX_FILES, MAX_FILE_CHARS = 32, 4 * 2**20
"""Files that a program of the tests may bring along. Stops a row that fills its folder with gigabytes."""

SEPARATE_PROCESSES = "apart"
"""Expected values and tests were in other processes than the solution."""

ONE_PROCESS = "one_process"
"""Tests ran in the solution's process, which could have tampered with them: a weak verdict."""

SHARES_PROCESS = "the program could change what the tests do: it shares a process with them"

_FILE_NAME = re.compile(r"(?:[A-Za-z0-9_][\w.+-]{0,100}/){0,4}[A-Za-z0-9_][\w.+-]{0,100}", re.ASCII)
"""`params.h` or `common/params.h`: no name that leads out of the folder, or is hidden."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,16}\b")
"""The end of `<Node object at 0x7f3a5c2d1e50`."""


class BadSuite(ValueError):
    """The tests of a row cannot be used; the text names the field and what it may be, on one line."""

    def __init__(self, message: str) -> None:
        super().__init__("\\n".join(message.splitlines()))


def require(fits: bool, field: str, expected: str, value: object) -> None:
    """Raise `BadSuite` unless a field's value fits."""
    if not fits:
        raise BadSuite(f"{field} must be {expected}, got {shown(value)}")


def require_switch(value: object, field: str) -> None:
    """Raise `BadSuite` unless a value is true or false."""
    require(isinstance(value, bool), field, "true or false", value)


def require_tolerance(value: object, field: str) -> None:
    """Raise `BadSuite` unless a value can be a tolerance."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    require(is_number and 0 <= value <= 1e9, field, "a number from 0 to 1000000000", value)  # type: ignore[operator]


def require_files(value: object, field: str) -> None:
    """Raise `BadSuite` unless a value holds the texts of files by their names."""
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
    """Return the type and the options of a checker, which is a type's name or an object with a `type`.

    presets: the options that each type stands for. default: the type of an object that names none.
    """
    options: dict[str, Json] = {"type": spec} if isinstance(spec, str) else {}
    options |= spec if isinstance(spec, Mapping) else {}
    kind = options.pop("type", default) if options else None
    known = isinstance(kind, str) and kind in presets
    require(known, field, f"one of {', '.join(presets)}", spec if kind is None else kind)
    return str(kind), {**presets[str(kind)], **options}


def shown(value: object) -> str:
    """Return the beginning of a value, on one line. It may be as large as its author likes."""
    if isinstance(value, str | bytes):
        return repr(value[:SHOWN_VALUE_CHARS])[:SHOWN_VALUE_CHARS]
    if isinstance(value, list | tuple | dict | set | frozenset):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 1_000:
        return f"a number of {value.bit_length()} bits"
    return repr(value)[:SHOWN_VALUE_CHARS]


Failure = tuple[Reason, str]
"""A reason, and one line that says why."""

LIMIT_FAILURES: Mapping[ProgramEnd, Failure] = {
    ProgramEnd.CPU_LIMIT: (Reason.TIMEOUT, "it used more CPU time than the limit"),
    ProgramEnd.WALL_LIMIT: (Reason.TIMEOUT, "it waited longer than the limit"),
    ProgramEnd.MEMORY_LIMIT: (Reason.LIMIT, "it used more memory, processes or threads than the limit"),
    ProgramEnd.OUTPUT_LIMIT: (Reason.LIMIT, "it wrote more than the limit"),
}


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one test case."""

    passed: bool
    reason: Reason = Reason.MATCH
    """`match` where it passed, else why it did not."""
    weight: float = 1.0
    shown: Mapping[str, str] = field(default_factory=dict)
    """The details that evidence shows of the case."""
    share: float = 0.0
    """The part of its weight that a case is worth which did not pass: a checker may give points."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """The opinion of a checker on an output."""

    share: float
    """1 where the output is accepted, 0 where it is refused, and in between for points."""
    why: str | None = None
    """One line on what is wrong, if it is not accepted."""


@dataclass(frozen=True, slots=True)
class Raised:
    """Stands in the results for a call that raised."""

    type: str = "Exception"
    message: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """The results of a suite."""

    cases: Sequence[CaseResult]
    """The cases that were run, in order."""
    total: int
    """The number of cases in the whole suite, run or not."""
    total_weight: float
    isolation: str = SEPARATE_PROCESSES
    method: str = "stdio"
    """How the suite was judged: stdio, calls, lowered (assertions that became calls), two_processes, one_process or
    inserted."""
    weakness: str | None = None
    """How a program that is made for it could change its own verdict, or None if tests and solution were apart."""


class CannotJudge(Exception):
    """No verdict on the program follows: the suite or the checker is at fault."""

    def __init__(self, message: str, reason: Reason = Reason.VERIFIER_ERROR) -> None:
        super().__init__(message)
        self.reason = reason


_PASSED = CaseResult(True, Reason.MATCH)


def passed_case(weight: float = 1.0) -> CaseResult:
    """Return the result of a case that passed."""
    return _PASSED if weight == 1.0 else CaseResult(True, Reason.MATCH, weight)


def failed_case(weight: float, reason: Reason = Reason.MISMATCH, /, **shown: object) -> CaseResult:
    """Return the result of a case that failed. shown: what evidence says of it; what is None is left out."""
    if isinstance(error := shown.get("error"), str):
        shown["error"] = without_addresses(error)
    return CaseResult(False, reason, weight, {name: cut(value) for name, value in shown.items() if value is not None})


def judged_case(weight: float, opinion: Opinion, shown: Mapping[str, str | None]) -> CaseResult:
    """Return the result of a case that a checker or an interactor has judged."""
    if opinion.share == 1.0:
        return passed_case(weight)
    return replace(failed_case(weight, error=opinion.why, **shown), share=opinion.share)


def failed_end(execution: Execution) -> Failure | None:
    """Return why a program did not end as it should, or None if it did."""
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
    # Rounding must not turn "nearly all" into "all".
    score = min(rate, 1.0 - 1e-9) if len(passed) < judged.total else 1.0
    return Verdict(score, Reason.PARTIAL if score > 0 else reason, extracted, evidence)


def without_addresses(text: str) -> str:
    """Return `<Node object>` for `<Node object at 0x7f3a5c2d1e50>`: addresses differ from process to process."""
    return _ADDRESS.sub("", text)


def cut(value: object) -> str:
    """Return the beginning of a value as text that every writer takes: lone surrogates are written out."""
    text = value if isinstance(value, str) else repr(value)
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}… ({len(text)} characters)"


def last_line(output: bytes | str) -> str:
    """Return the beginning of the last line of an output."""
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else output
    lines = text.strip().splitlines()
    return lines[-1][:SHOWN_CHARS] if lines else ""
