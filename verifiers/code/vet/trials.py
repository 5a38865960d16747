"""Runs a program on a suite and keeps what a verdict leaves out: each case's result, output and CPU time.

    bench = Bench(suite)
    trial = bench.run("print(sum(map(int, input().split())))", hash_seed=1)
    trial.passed, trial.attempts[0].output, trial.attempts[0].cpu_s

Judged as the verifier judges, by the same functions and in the same sandbox. Outputs are known of programs that print
and of functions that tests of type `calls` call; of test code only which assertion passed is known.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from truegold.verifiers.code.completion_stub import stub_names
from truegold.verifiers.code.execution import Execution, Program
from truegold.verifiers.code.judging import SEPARATE_PROCESSES, CannotJudge, CaseResult, failed_end
from truegold.verifiers.code.limits import Limits
from truegold.verifiers.code.lowering import lower
from truegold.verifiers.code.protocols.asserts import judge_code
from truegold.verifiers.code.protocols.calls import make_calls
from truegold.verifiers.code.protocols.inserted import judge_inserted
from truegold.verifiers.code.protocols.results import failed_call
from truegold.verifiers.code.protocols.source import Source
from truegold.verifiers.code.protocols.stdio import NotCompiled, judge_stdio
from truegold.verifiers.code.sandbox import Local, Tier
from truegold.verifiers.code.suite import Asserts, Calls, Inserted, Stdio, Suite, UnitTest
from truegold.verifiers.code.values_equal import call_checker_of
from truegold.verifiers.code.vet.watching import Recorder, Watched
from truegold.verifiers.verdict import Reason

PYTHON = "python"
MAX_OUTPUT_CHARS = 2**20
"""What is kept of an output. Stops a suite of large outputs from filling the memory once for each run."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One case. why: one line on a failure. output: a text, a value, or None where it is not known. stderr: its end."""

    passed: bool
    reason: Reason = Reason.MATCH
    why: str = ""
    output: Any = None
    cpu_s: float | None = None
    stderr: str = ""

    @property
    def timed_out(self) -> bool:
        return self.reason is Reason.TIMEOUT


@dataclass(frozen=True, slots=True)
class Trial:
    """One run. attempts: in the order of the cases; fewer than `total` where the run stopped at the first failure.
    cpu_s: the most that any one process used, to be held against the limit; spent_s: that of all."""

    attempts: Sequence[Attempt]
    total: int
    cpu_s: float | None = None
    spent_s: float = 0.0
    isolation: str = SEPARATE_PROCESSES
    error: str | None = None

    @property
    def complete(self) -> bool:
        return self.error is None and len(self.attempts) == self.total

    @property
    def passed(self) -> bool:
        return self.complete and all(each.passed for each in self.attempts)

    @property
    def timed_out(self) -> bool:
        return any(each.timed_out for each in self.attempts)


class Bench:
    """A suite, ready for programs to be tried on it. For one thread at a time."""

    def __init__(self, suite: Suite, tier: Tier | None = None, python: str = "") -> None:
        if suite.language != PYTHON and not isinstance(suite.tests, Stdio | Inserted):
            raise CannotJudge(f"tests of this type are for Python, this row says {suite.language!r}")
        self.suite = suite
        self._local = Local(tier, python) if python else Local(tier)

    def run(self, program: str, hash_seed: int = 0, limits: Limits | None = None) -> Trial:
        """Every case. limits: the suite's where not given. SandboxError where the sandbox fails."""
        tests, limits = self.suite.tests, limits or self.suite.limits
        if isinstance(tests, Stdio):
            subject = Program(self.suite.language, program)
            return self._printed(tests, range(len(tests.cases)), subject, self._with(hash_seed), limits, True)
        return self._together(tests, program, self._with(hash_seed), limits, True)

    def run_some(self, program: str, order: Sequence[int], limits: Limits) -> Trial:
        """Only these cases, up to the first that fails; where cases share a process, all."""
        tests = self.suite.tests
        if isinstance(tests, Stdio):
            return self._printed(tests, order, Program(self.suite.language, program), self._with(0), limits, False)
        return self._together(tests, program, self._with(0), limits, False)

    def fails(self, program: str, limits: Limits, order: Sequence[int], language: str | None = None) -> int | None:
        """The first case that the program fails, None where it passes all. order: of all the cases, for programs that
        print. language: the suite's where not given."""
        tests = self.suite.tests
        if isinstance(tests, Stdio):
            subject = Program(language or self.suite.language, program)
            trial = self._printed(tests, order, subject, self._with(0), limits, False)
            return None if trial.passed else order[max(len(trial.attempts) - 1, 0)]
        trial = self.run_some(program, order, limits)
        if trial.passed:
            return None
        return next((at for at, attempt in enumerate(trial.attempts) if not attempt.passed), len(trial.attempts))

    def shuffled(self, program: str, seed: int) -> Trial | None:
        """Every call in another order, in one process; None for tests that are no plain calls."""
        tests = self.suite.tests
        if isinstance(tests, Calls):
            order = _order(len(tests.cases), seed)
            moved = replace(tests, cases=tuple(tests.cases[at] for at in order))
            trial = self._called(moved, program, self._with(0), self.suite.limits)
            return replace(trial, attempts=_back(trial.attempts, order))
        lowered = lower(tests) if isinstance(tests, Asserts) else None
        if lowered is None or not isinstance(tests, Asserts):
            return None
        order = _order(len(lowered.calls), seed)
        calls = [lowered.calls[at] for at in order]
        jobs = [(each.function, list(each.args), dict(each.kwargs)) for each in calls]
        called = make_calls(_source(tests, program), jobs, tests.codecs, self._with(0), self.suite.limits)
        results = _back(called.outcomes, order)
        held = [
            all(failed_call(results[at], called) is None for at in check.calls) and check.holds(results)
            for check in lowered.checks
        ]
        if None in held:
            return None
        return Trial([Attempt(bool(each), Reason.MATCH if each else Reason.MISMATCH) for each in held], len(held))

    def _with(self, hash_seed: int) -> Watched:
        return Watched(self._local.requested_tier, self._local.python, hash_seed)

    def _together(
        self, tests: Calls | Asserts | UnitTest | Inserted, program: str, local: Watched, limits: Limits, run_all: bool
    ) -> Trial:
        if isinstance(tests, Calls):
            return self._called(tests, program, local, limits)
        if isinstance(tests, Inserted):
            return self._inserted(tests, program, local, limits)
        return self._asserted(tests, program, local, limits, run_all)

    def _printed(
        self, tests: Stdio, order: Sequence[int], program: Program, local: Local, limits: Limits, run_all: bool
    ) -> Trial:
        plain = _plain(local)
        backend = Recorder(plain)
        moved = replace(tests, cases=tuple(tests.cases[at] for at in order))
        try:
            judged = judge_stdio(moved, program, backend, plain, limits, run_all)
        except NotCompiled as error:
            return Trial((), len(tests.cases), error=str(error))
        # Where two cases took too long, the others are not run.
        pairs = zip_longest(judged.cases, backend.executions)
        attempts = [_attempt(result, execution) for result, execution in pairs]
        return Trial(attempts, len(tests.cases), *_times(backend.executions), judged.isolation)

    def _called(self, tests: Calls, program: str, local: Watched, limits: Limits) -> Trial:
        differs = call_checker_of(tests.checker)
        jobs = [(tests.entry_point, list(case.args), dict(case.kwargs)) for case in tests.cases]
        called = make_calls(_source(tests, program), jobs, tests.codecs, local, limits)
        attempts = []
        for case, got in zip(tests.cases, called.outcomes, strict=True):
            trouble = failed_call(got, called)
            if trouble is not None:
                attempts.append(Attempt(False, trouble[0], trouble[1]))
            else:
                why = differs(case.expected, got)
                reason = Reason.MATCH if why is None else Reason.MISMATCH
                attempts.append(Attempt(why is None, reason, why or "", got))
        return Trial(attempts, len(tests.cases), *_times(local.executions), error=called.load_error)

    def _asserted(
        self, tests: Asserts | UnitTest, program: str, local: Watched, limits: Limits, run_all: bool
    ) -> Trial:
        judged = judge_code(tests, _source(tests, program), local, limits, run_all)
        attempts = [Attempt(case.passed, case.reason, _why(case)) for case in judged.cases]
        return Trial(attempts, judged.total, *_times(local.executions), judged.isolation)

    def _inserted(self, tests: Inserted, program: str, local: Local, limits: Limits) -> Trial:
        backend = Recorder(_plain(local))
        try:
            judged = judge_inserted(tests, program, self.suite.language, backend, limits)
        except NotCompiled as error:
            return Trial((), 1, error=str(error))
        attempts = [Attempt(case.passed, case.reason, _why(case)) for case in judged.cases]
        return Trial(attempts, judged.total, *_times(backend.executions), judged.isolation)


def _source(tests: Calls | Asserts | UnitTest, program: str) -> Source:
    stub = getattr(tests, "stub", "")
    if not stub:
        return Source(program, tests.prelude)
    entry_point = (tests.entry_point or "").partition(".")[0].removesuffix("()")
    return Source(program, f"{tests.prelude}\n{stub_names(stub, entry_point)}")


def _plain(local: Local) -> Local:
    return Local(local.requested_tier, local.python, local.hash_seed)


def _attempt(result: CaseResult, execution: Execution | None) -> Attempt:
    if execution is None:
        return Attempt(False, result.reason, _why(result))
    output = execution.stdout[:MAX_OUTPUT_CHARS].decode("utf-8", "replace") if failed_end(execution) is None else None
    stderr = execution.stderr[-2_000:].decode("utf-8", "replace")
    return Attempt(result.passed, result.reason, _why(result), output, execution.cpu_s, stderr)


def _why(result: CaseResult) -> str:
    if result.passed:
        return ""
    said = result.shown.get("error") or result.shown.get("got") or str(result.reason)
    test = result.shown.get("test")
    return f"{test}: {said}" if test else said


def _times(executions: Sequence[Execution]) -> tuple[float | None, float]:
    """The CPU time of the longest, and of all."""
    times = [execution.cpu_s for execution in executions if execution.cpu_s is not None]
    return max(times, default=None), sum(times)


def _order(count: int, seed: int) -> list[int]:
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order


def _back(moved: Sequence[Any], order: Sequence[int]) -> list[Any]:
    """What was in the given order, in the original one."""
    found: list[Any] = [None] * len(order)
    for at, item in zip(order, moved, strict=True):
        found[at] = item
    return found
