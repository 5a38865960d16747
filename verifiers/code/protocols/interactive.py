"""Programs that talk to an interactor, which asks and answers by the rules of the problem and says who is right.

    {"type": "interactive", "cases": [{"input": "100 42"}], "interactor": "...registerInteraction(argc, argv);..."}

Both run at the same time, apart, each under limits of its own; each reads what the other one prints. The interactor is
run as `interactor input.txt output.txt answer.txt`, as testlib has it. What it writes to output.txt goes to the suite's
checker, where there is one.

The interactor's word decides: a program that is accepted has answered, however it ends afterwards, unless it passed a
limit. Where both wait for each other, as for a program that never flushes, waiting ends as it does for a program alone.
An interactor that fails is tried on a program that says nothing: if it can do that, it was this program's talk that it
could not take.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from truegold.verifiers.code.judging import (
    LIMIT_FAILURES,
    CannotJudge,
    CaseResult,
    Failure,
    Judged,
    failed_case,
)
from truegold.verifiers.code.protocols.cases import RunOfCase, judge_cases, opinion_result, require_compiled
from truegold.verifiers.code.protocols.checkers import Check
from truegold.verifiers.code.protocols.programs import (
    ANSWER,
    INPUT,
    OUTPUT,
    NotRun,
    SuiteProgram,
    describe_failure,
)
from truegold.verifiers.code.suite import Stdio, StdioCase
from truegold.verifiers.sandbox.execution import Backend, End, Execution, Program, SandboxError
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import Local, Ready

SILENT = Program("python", "import os, sys\nos.close(1)\nsys.stdin.read()\n")
"""A program that says nothing, and listens."""


class Partner(Protocol):
    """A program that is ready to talk to another one."""

    compiled: Execution | None

    def converse(
        self, script: Ready, files: Mapping[str, bytes], collect: Sequence[str]
    ) -> tuple[Execution, Execution, Mapping[str, bytes]]:
        """Run it beside a script, as `Ready.converse` says."""
        ...


@runtime_checkable
class PartnerBackend(Protocol):
    """What runs programs that talk: this machine's sandbox."""

    def prepare_partner(self, program: Program, limits: Limits) -> Partner:
        """Make a program ready, as `Local.prepare_partner` does."""
        ...


def judge_interactive(
    tests: Stdio, program: Program, backend: Backend, local: Local, limits: Limits, run_all: bool, check: Check
) -> Judged:
    """Have the program and the interactor talk on every case, or up to the first that fails.

    check: what judges the interactor's output, where the suite has a checker program.
    """
    assert tests.interactor is not None
    talk = _Talk(tests, local, check)
    # A service elsewhere runs one program at a time.
    partners: PartnerBackend = backend if isinstance(backend, PartnerBackend) else local
    partner = partners.prepare_partner(program, limits)
    require_compiled(partner.compiled)

    def run(case: StdioCase) -> RunOfCase:
        result, solution = talk.judge(case, partner)
        return RunOfCase(result, solution.end in LIMIT_FAILURES, solution.idle_s or 0.0)

    return judge_cases(tests.cases, run, run_all)


class _Talk:
    """One interactor for all cases of a suite."""

    def __init__(self, tests: Stdio, local: Local, check: Check) -> None:
        self._interactor = SuiteProgram.from_spec("interactor", tests.interactor or {})
        self._ready = self._interactor.prepare(local)
        self._local, self._check = local, check
        is_checked = isinstance(tests.checker, Mapping) and tests.checker.get("type") == "program"
        self._collect: Sequence[str] = [OUTPUT] if is_checked else []
        self._works: bool | None = None

    def judge(self, case: StdioCase, partner: Partner) -> tuple[CaseResult, Execution]:
        solution, interactor, files = self._converse(case, partner, self._collect)
        shown = {"input": case.input, "expected": case.output or None}
        if solution.end in LIMIT_FAILURES:
            reason, error = _limit_failure(solution)
            return failed_case(case.weight, reason, error=error, **shown), solution
        opinion = self._interactor.opinion(interactor)
        if opinion is None and _is_cut_short(interactor):
            error = "it ended, or closed its output, before the interactor was done"
            return failed_case(case.weight, error=error, **shown), solution
        if opinion is None:
            if not self._works_alone(case):
                raise CannotJudge(describe_failure(self._interactor, interactor))
            error = f"the interactor cannot take what it says: {describe_failure(self._interactor, interactor)}"
            return failed_case(case.weight, error=error, **shown), solution
        if opinion.share == 1.0 and self._collect:
            output = files.get(OUTPUT, b"").decode("utf-8", "replace")
            opinion = self._check(case, output)
        return opinion_result(case.weight, opinion, shown), solution

    def _converse(
        self, case: StdioCase, partner: Partner, collect: Sequence[str]
    ) -> tuple[Execution, Execution, Mapping[str, bytes]]:
        texts: dict[str, Any] = {INPUT: case.input, ANSWER: case.output}
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}
        return partner.converse(self._ready, files, collect)

    def _works_alone(self, case: StdioCase) -> bool:
        """Whether the interactor comes to a verdict on a program that says nothing."""
        if self._works is None:
            try:
                silent = self._local.prepare_partner(SILENT, Limits())
                interactor = self._converse(case, silent, [])[1]
            except SandboxError as error:
                raise NotRun("interactor", error) from error
            self._works = _is_cut_short(interactor) or self._interactor.opinion(interactor) is not None
        return self._works


def _limit_failure(solution: Execution) -> Failure:
    reason, error = LIMIT_FAILURES[solution.end]
    if solution.end is End.WALL_LIMIT:
        error = "it waited longer than the limit: it has to flush what it prints, and to end when the talk is over"
    return reason, error


def _is_cut_short(interactor: Execution) -> bool:
    """Whether it ended because nobody reads what it prints."""
    return interactor.end is End.SIGNALLED and interactor.status == signal.SIGPIPE
