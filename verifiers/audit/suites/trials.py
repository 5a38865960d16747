"""Runs a program on a suite and records details that a verdict lacks: each case's output, failure and CPU time.

    bench = Bench(suite)
    trial = bench.run("print(sum(map(int, input().split())))", hash_seed=1)
    trial.passed, trial.attempts[0].output, trial.attempts[0].cpu_s

Cases are judged by the verifier's own functions in the same sandbox. The outputs are known for programs that print and
for tests of type `calls`. For test code, only the results of assertions are known.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, cast

from truegold.verifiers.code.checks.lowering import SolutionCall, lower
from truegold.verifiers.code.outcomes import SEPARATE_PROCESSES, CannotJudge, CaseResult, Judged, failed_end
from truegold.verifiers.code.protocols.native_tests import judge_inserted
from truegold.verifiers.code.protocols.python_tests import (
    CallOutcomes,
    TestedProgram,
    failed_call,
    judge_calls,
    judge_code,
    make_calls,
)
from truegold.verifiers.code.protocols.stdio import NotCompiled, judge_stdio
from truegold.verifiers.code.python_source import stub_names
from truegold.verifiers.code.suite.imports import imports_for
from truegold.verifiers.code.suite.reading import Asserts, Calls, Inserted, Stdio, Suite, UnitTest
from truegold.verifiers.code.value_comparison import call_checker_of
from truegold.verifiers.sandbox import Job, Sandbox, Tier
from truegold.verifiers.sandbox.execution import Execution, Limits, Program
from truegold.verifiers.sandbox.local import Local, Ready
from truegold.verifiers.verdict import Reason

PYTHON = "python"
MAX_OUTPUT_CHARS = 2**20
"""Maximum number of characters of an output that are kept, since each run of a suite may have large outputs."""


@dataclass(frozen=True, slots=True)
class CaseAttempt:
    """The result of a program on one case."""

    passed: bool
    reason: Reason = Reason.MATCH
    why: str = ""
    """A line on the failure, empty if the case passed."""
    output: Any = None
    """The printed text or the returned value, or None if it is unknown."""
    cpu_s: float | None = None
    stderr: str = ""
    """The end of the output to stderr."""

    @property
    def timed_out(self) -> bool:
        """Whether the case timed out."""
        return self.reason is Reason.TIMEOUT


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of a program on the cases of a suite."""

    attempts: Sequence[CaseAttempt]
    """The attempts in the order of the cases; fewer than `total` if the run stopped at the first failure."""
    total: int
    cpu_s: float | None = None
    """The CPU time of the slowest process, for comparison with the limit."""
    spent_s: float = 0.0
    """The CPU time of all processes together."""
    isolation: str = SEPARATE_PROCESSES
    error: str | None = None
    """The reason why the program could not run at all, or None."""

    @property
    def passed(self) -> bool:
        """Whether the program passed every case."""
        is_complete = self.error is None and len(self.attempts) == self.total
        return is_complete and all(attempt.passed for attempt in self.attempts)

    @property
    def timed_out(self) -> bool:
        """Whether a case timed out."""
        return any(attempt.timed_out for attempt in self.attempts)


class Bench:
    """Runs programs on a suite; not thread-safe. Raises CannotJudge for test code that is not in Python."""

    def __init__(self, suite: Suite, tier: Tier | None = None, python: str = "") -> None:
        if suite.language != PYTHON and not isinstance(suite.tests, Stdio | Inserted):
            raise CannotJudge(f"tests of this type need Python; the language of this row is {suite.language!r}")
        self.suite = suite
        self._local = Local(tier, python) if python else Local(tier)

    def run(
        self,
        source: str,
        hash_seed: int = 0,
        limits: Limits | None = None,
        order: Sequence[int] | None = None,
        language: str | None = None,
    ) -> Trial:
        """Run a program on every case, or on the cases of `order` up to the first failure.

        order: indexes of cases; ignored for tests whose cases share a process. limits, language: the suite's by
        default. Raises SandboxError if the sandbox fails.
        """
        tests, limits = self.suite.tests, limits or self.suite.limits
        plain, watched = self._plain(hash_seed), self._watched(hash_seed)
        if isinstance(tests, Calls):
            return self._run_calls(tests, source, watched, limits)
        recorder = RunRecorder(plain, plain if isinstance(tests, Stdio) else watched)
        total = len(tests.cases) if isinstance(tests, Stdio) else 1
        try:
            if isinstance(tests, Stdio):
                program = Program(language or self.suite.language, source)
                ordered = tests if order is None else replace(tests, cases=tuple(tests.cases[index] for index in order))
                judged = judge_stdio(ordered, program, recorder, limits, order is None)
            elif isinstance(tests, Inserted):
                judged = judge_inserted(tests, source, self.suite.language, recorder, limits, order is None)
            else:
                judged = judge_code(tests, _source(tests, source, watched, limits), order is None)
        except NotCompiled as error:
            return Trial((), total, error=str(error))
        if not isinstance(tests, Stdio):
            return _trial_of(judged, [*recorder.executions, *watched.executions])
        # After two timeouts the remaining cases do not run, so they have no execution.
        pairs = zip_longest(judged.cases, recorder.executions)
        attempts = [_printed_attempt(result, execution) for result, execution in pairs]
        return Trial(attempts, total, *_cpu_times(recorder.executions), judged.isolation)

    def first_failure(self, source: str, limits: Limits, order: list[int], language: str | None = None) -> int | None:
        """Return the index of the first failed case, or None if all pass. order: the indexes of all cases."""
        trial = self.run(source, 0, limits, order, language)
        if trial.passed:
            return None
        if isinstance(self.suite.tests, Stdio):
            return order[max(len(trial.attempts) - 1, 0)]
        return next((index for index, attempt in enumerate(trial.attempts) if not attempt.passed), len(trial.attempts))

    def run_shuffled(self, program: str, seed: int) -> Trial | None:
        """Run a program with the calls in another order, in one process. Return None for tests that are not calls."""
        tests, limits = self.suite.tests, self.suite.limits
        if isinstance(tests, Calls):
            order = _shuffled_indexes(len(tests.cases), seed)
            shuffled = replace(tests, cases=tuple(tests.cases[index] for index in order))
            trial = self._run_calls(shuffled, program, self._watched(), limits)
            return replace(trial, attempts=_unshuffle(trial.attempts, order))
        if not isinstance(tests, Asserts):
            return None
        lowered = lower(tests.code, tests.entry_point, tests.prelude, tests.stub)
        if isinstance(lowered, str):
            return None
        order = _shuffled_indexes(len(lowered.calls), seed)
        calls = [lowered.calls[index] for index in order]
        made = make_calls(_source(tests, program, self._watched(), limits), calls, tests.codecs)
        outcomes = _unshuffle(made.outcomes, order)
        attempts = []
        for check in lowered.checks:
            holds = failed_call(outcomes[check.call], made) is None and check.holds(outcomes[check.call])
            if holds is None:
                return None
            attempts.append(CaseAttempt(bool(holds), Reason.MATCH if holds else Reason.MISMATCH))
        return Trial(attempts, len(attempts))

    def call(
        self, program: str, name: str, inputs: Sequence[tuple[Any, ...]], limits: Limits, hash_seed: int = 0
    ) -> CallOutcomes:
        """Call a function of the program once for each input, in one process, and return the outcomes."""
        tests = self.suite.tests
        assert isinstance(tests, Calls | Asserts | UnitTest)
        calls = [SolutionCall(name, list(arguments), {}) for arguments in inputs]
        return make_calls(_source(tests, program, self._plain(hash_seed), limits), calls, tests.codecs)

    def _plain(self, hash_seed: int = 0) -> Local:
        return Local(self._local.requested_tier, self._local.python, hash_seed)

    def _watched(self, hash_seed: int = 0) -> WatchedLocal:
        return WatchedLocal(self._local.requested_tier, self._local.python, hash_seed)

    def _run_calls(self, tests: Calls, program: str, watched: WatchedLocal, limits: Limits) -> Trial:
        if tests.signature is not None or tests.in_place >= 0:
            # The result may be a changed argument or a list of nodes.
            judged = judge_calls(tests, _source(tests, program, watched, limits), run_all=True)
            return _trial_of(judged, watched.executions)
        differs = call_checker_of(tests.checker)
        jobs = [SolutionCall(tests.entry_point, list(case.args), dict(case.kwargs)) for case in tests.cases]
        made = make_calls(_source(tests, program, watched, limits), jobs, tests.codecs)
        attempts = []
        for case, outcome in zip(tests.cases, made.outcomes, strict=True):
            if (failure := failed_call(outcome, made)) is not None:
                attempts.append(CaseAttempt(False, failure[0], failure[1]))
            else:
                why = differs(case.expected, outcome)
                reason = Reason.MATCH if why is None else Reason.MISMATCH
                attempts.append(CaseAttempt(why is None, reason, why or "", outcome))
        return Trial(attempts, len(tests.cases), *_cpu_times(watched.executions), error=made.load_error)


def _source(tests: Calls | Asserts | UnitTest, program: str, local: Local, limits: Limits) -> TestedProgram:
    prelude = tests.prelude
    if stub := getattr(tests, "stub", ""):
        entry_point = (tests.entry_point or "").partition(".")[0].removesuffix("()")
        prelude = f"{prelude}\n{stub_names(stub, entry_point)}"
    if not isinstance(tests, Calls):
        prelude = f"{prelude}\n{imports_for(program, tests.code)}"
    return TestedProgram(program, prelude, local, limits)


def _trial_of(judged: Judged, executions: Sequence[Execution]) -> Trial:
    attempts = [CaseAttempt(case.passed, case.reason, _why(case)) for case in judged.cases]
    return Trial(attempts, judged.total, *_cpu_times(executions), judged.isolation)


def _printed_attempt(result: CaseResult, execution: Execution | None) -> CaseAttempt:
    if execution is None:
        return CaseAttempt(result.passed, result.reason, _why(result))
    output = None
    if failed_end(execution) is None:
        output = execution.stdout[:MAX_OUTPUT_CHARS].decode("utf-8", "replace")
    stderr = execution.stderr[-2_000:].decode("utf-8", "replace")
    return CaseAttempt(result.passed, result.reason, _why(result), output, execution.cpu_s, stderr)


def _why(result: CaseResult) -> str:
    if result.passed:
        return ""
    failure = result.shown.get("error") or result.shown.get("got") or str(result.reason)
    test = result.shown.get("test")
    return f"{test}: {failure}" if test else failure


def _cpu_times(executions: Sequence[Execution]) -> tuple[float | None, float]:
    """Return the CPU time of the slowest execution, and the total."""
    times = [execution.cpu_s for execution in executions if execution.cpu_s is not None]
    return max(times, default=None), sum(times)


def _shuffled_indexes(count: int, seed: int) -> list[int]:
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order


def _unshuffle(shuffled: Sequence[Any], order: Sequence[int]) -> list[Any]:
    """Return values that came in a shuffled order in their original order."""
    return [value for _, value in sorted(zip(order, shuffled, strict=True), key=lambda pair: pair[0])]


class WatchedLocal(Local):
    """The local back end for tests in Python, which records the execution of each process."""

    executions: list[Execution]

    def __init__(self, tier: Tier | None, python: str, hash_seed: int) -> None:
        super().__init__(tier, python, hash_seed)
        object.__setattr__(self, "executions", [])

    def sandbox(self) -> Sandbox:
        """Return a sandbox that records the execution of each process."""
        return cast("Sandbox", _WatchedSandbox(super().sandbox(), self.executions))


class _WatchedSandbox:
    def __init__(self, box: Sandbox, executions: list[Execution]) -> None:
        self.tier = box.tier
        self._box, self._executions = box, executions

    def run(self, job: Job) -> Execution:
        self._executions.append(self._box.run(job))
        return self._executions[-1]

    def run_pair(self, solution: Job, tests: Job, piped: bool = False) -> tuple[Execution, Execution]:
        pair = self._box.run_pair(solution, tests, piped)
        self._executions.append(pair[0])
        return pair


class RunRecorder:
    """A back end that records each execution of a program. Checkers and test code run on another back end, `local`."""

    def __init__(self, inner: Local, local: Local) -> None:
        self.executions: list[Execution] = []
        self.local = local
        self._inner = inner

    @property
    def tier(self) -> str:
        """The tier of the inner back end."""
        return self._inner.tier

    def prepare(self, program: Program, limits: Limits) -> _RecordedProgram:
        """Prepare a program for running."""
        return _RecordedProgram(self._inner.prepare(program, limits), self.executions)

    def prepare_partner(self, program: Program, limits: Limits) -> Ready:
        """Prepare a program for exchanging messages with another program."""
        return cast("Ready", _RecordedProgram(self._inner.prepare_partner(program, limits), self.executions))


class _RecordedProgram:
    def __init__(self, inner: Ready, executions: list[Execution]) -> None:
        self.compiled = inner.compiled
        self._inner, self._executions = inner, executions

    def run(self, stdin: bytes) -> Execution:
        self._executions.append(self._inner.run(stdin))
        return self._executions[-1]

    def converse(
        self, script: Ready, files: Mapping[str, bytes], collect: Sequence[str]
    ) -> tuple[Execution, Execution, Mapping[str, bytes]]:
        ends = self._inner.converse(script, files, collect)
        self._executions.append(ends[0])
        return ends
