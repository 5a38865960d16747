"""Programs that read stdin and write stdout. Each case is a run of its own; outputs are compared here, outside.

    case {"input": "3\\n4\\n", "output": "7\\n"}, the program prints "7"  ->  passed

A checker that is a program (several answers are right) gets input, output and expected output in a sandbox of its own:

    Python that defines check(input, output, answer) -> bool
    any other program: run as `checker input.txt output.txt answer.txt` (the order of testlib); exit status 0 accepts,
    1 and 2 reject, and so does a last line of output that is 0 or False; anything else is a broken checker
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from truegold.verifiers.code.checkers import checker_of
from truegold.verifiers.code.execution import Backend, End, Execution, Program, SandboxError
from truegold.verifiers.code.judging import CannotJudge, CaseResult, Judged, cut, ended, failed, last_line, passed
from truegold.verifiers.code.limits import Limits
from truegold.verifiers.code.protocols.calls import call
from truegold.verifiers.code.protocols.results import explained
from truegold.verifiers.code.protocols.source import Source
from truegold.verifiers.code.sandbox.languages import LANGUAGES
from truegold.verifiers.code.sandbox.local import Local
from truegold.verifiers.code.suite import Stdio, StdioCase
from truegold.verifiers.verdict import Reason

MAX_OVERRUN = 2
"""Cases that may end at a limit before the others count as failed. Stops a program that loops on a hundred cases."""

FAIR_WAIT_S = 0.5
"""What a case may wait, or stand in line on a busy machine, without its being counted."""

MAX_WAITING_S = 30.0
"""Over all cases of a program. Stops one that answers rightly and sleeps below the limit each time."""

CHECKER_LIMITS = Limits(cpu_s=30.0, memory_mb=2048)

Check = Callable[[StdioCase, str], str | None]
"""None where an output is accepted, else why not."""


def judge_stdio(
    tests: Stdio, program: Program, backend: Backend, local: Local, limits: Limits, run_all: bool
) -> Judged:
    """Run the program on every case, or up to the first that fails."""
    check = _check_of(tests.checker, local)
    total_weight = sum(case.weight for case in tests.cases)
    with backend.prepare(program, limits) as ready:
        if ready.compiled is not None and (trouble := ended(ready.compiled)) is not None:
            raise NotCompiled(trouble[1])
        results: list[CaseResult] = []
        overrun, waited = 0, 0.0
        for case in tests.cases:
            if overrun >= MAX_OVERRUN or waited > MAX_WAITING_S:
                results.append(failed(case.weight, Reason.TIMEOUT, error="not run: earlier cases took too long"))
                continue
            execution = ready.run(case.input.encode("utf-8", "surrogatepass"))
            results.append(_judge(case, execution, check))
            overrun += execution.end is not End.EXITED
            waited += max(0.0, execution.wall_s - (execution.cpu_s or 0.0) - FAIR_WAIT_S)
            if not results[-1].passed and not run_all:
                break
    return Judged(results, len(tests.cases), total_weight)


class BrokenSandbox(CannotJudge):
    """The checker was not run at all."""


class NotCompiled(Exception):
    """The program is no program of its language. The text is the compiler's last word."""


def _judge(case: StdioCase, execution: Execution, check: Check) -> CaseResult:
    shown = {"input": case.input, "expected": case.output, "got": execution.stdout[:2000].decode("utf-8", "replace")}
    trouble = ended(execution)
    if trouble is not None:
        return failed(case.weight, trouble[0], error=trouble[1], **shown)
    try:
        output = execution.stdout.decode()
    except UnicodeDecodeError as error:
        return failed(case.weight, error=f"its output is no UTF-8: {error}", **shown)
    why = check(case, output)
    return passed(case.weight) if why is None else failed(case.weight, error=why, **shown)


def _check_of(spec: Any, local: Local) -> Check:
    if isinstance(spec, Mapping) and spec.get("type") == "program":
        return _ProgramChecker(spec, local)
    checker = checker_of(spec)
    return lambda case, output: checker(case.output, output)


class _ProgramChecker:
    """A checker that is a program of its own, sandboxed as the solution is."""

    def __init__(self, spec: Mapping[str, Any], local: Local) -> None:
        self._code, self._language, self._local = str(spec["code"]), str(spec.get("language") or "python"), local
        self._function = self._language == "python" and "def check(" in self._code

    def __call__(self, case: StdioCase, output: str) -> str | None:
        try:
            return self._verdict([case.input, output, case.output])
        except BrokenSandbox:
            raise
        except CannotJudge as failure:
            # Where it takes the expected output, it works, and it is this output that it cannot stand.
            if self._verdict([case.input, case.output, case.output]) is None:
                return f"the checker cannot read it: {failure}"
            raise

    def _verdict(self, texts: list[str]) -> str | None:
        try:
            return self._called(texts) if self._function else self._started(texts)
        except SandboxError as error:
            raise BrokenSandbox(f"the checker could not be run: {error}", Reason.SANDBOX_ERROR) from error

    def _called(self, texts: list[str]) -> str | None:
        called = call(Source(self._code), [("check", texts, {})], {}, self._local, CHECKER_LIMITS)
        trouble = explained(called.results[0], called)
        if trouble is not None:
            raise CannotJudge(f"the checker failed: {trouble[1]}")
        if isinstance(called.results[0], bool):
            return None if called.results[0] else "the checker refuses it"
        raise CannotJudge(f"the checker gave no True or False but {cut(called.results[0])}")

    def _started(self, texts: list[str]) -> str | None:
        names = ("input.txt", "output.txt", "answer.txt")
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in zip(names, texts, strict=True)}
        if self._language != "python" and self._language not in LANGUAGES:
            raise CannotJudge(f"checkers in {self._language!r} are not known")
        with self._local.prepare_script(Program(self._language, self._code, files), CHECKER_LIMITS, names) as ready:
            if ready.compiled is not None and not ready.compiled.ok:
                raise CannotJudge(f"the checker does not compile: {last_line(ready.compiled.stderr)}")
            done = ready.run(b"")
        word = last_line(done.stdout)
        if done.ok:
            return f"the checker says {word}" if word in {"0", "0.0", "False", "false"} else None
        if done.status in {1, 2}:
            return f"the checker refuses it: {last_line(done.stderr) or word}"
        raise CannotJudge(f"the checker failed ({done.end}, {done.status}): {last_line(done.stderr)}")
