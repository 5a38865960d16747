"""Interactors: programs of a suite that talk with the solution.

    {"type": "interactive", "cases": [{"input": "100 42"}], "interactor": "...registerInteraction(argc, argv);..."}

Both run at the same time, apart, each under limits of its own; each reads what the other one prints. The interactor is
run as `interactor input.txt output.txt answer.txt`, as testlib has it. What it writes to output.txt goes to the suite's
checker, where that is a program.

The interactor's word decides: a program that is accepted has answered, however it ends afterwards, unless it passed a
limit. Where both wait for each other, as for a program that never flushes, waiting ends as it does for a program alone.
An interactor that fails is tried on a program that says nothing: if it can do that, it was this program's talk that it
could not take.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence

from truegold.verifiers.code.outcomes import LIMIT_FAILURES, CannotJudge, CaseResult, Opinion, failed_case, judged_case
from truegold.verifiers.code.protocols.checker import Check
from truegold.verifiers.code.protocols.suite_program import ANSWER, INPUT, OUTPUT, NotRun, SuiteProgram
from truegold.verifiers.code.suite.reading import Stdio, StdioCase
from truegold.verifiers.sandbox.execution import Execution, Program, ProgramEnd, SandboxError
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import Local, Ready

SILENT = Program("python", "import os, sys\nos.close(1)\nsys.stdin.read()\n")
"""A program that says nothing, and listens."""


class Interactor:
    """The interactor of a suite, for all of its cases. check: what judges its output where the checker is a program."""

    def __init__(self, tests: Stdio, local: Local, check: Check) -> None:
        self._program = SuiteProgram.from_spec("interactor", tests.interactor or {})
        self._local, self._check = local, check
        self._ready = self._program.prepare(local)
        has_checker = isinstance(tests.checker, Mapping) and tests.checker.get("type") == "program"
        self._collected_files: Sequence[str] = [OUTPUT] if has_checker else []
        self._works: bool | None = None
        """Whether it comes to a verdict on a silent program; None until that was tried."""

    def judge(self, case: StdioCase, partner: Ready) -> tuple[CaseResult, Execution]:
        """Return the result of a talk with the solution, which is the partner, and the run of the solution."""
        solution, interactor, files = self._converse(case, partner, self._collected_files)
        shown = {"input": case.input, "expected": case.output or None}
        if solution.end in LIMIT_FAILURES:
            reason, error = LIMIT_FAILURES[solution.end]
            if solution.end is ProgramEnd.WALL_LIMIT:
                error += ": it has to flush what it prints, and to end when the talk is over"
            return failed_case(case.weight, reason, error=error, **shown), solution
        opinion = self._program.opinion(interactor)
        if opinion is None and _is_cut_short(interactor):
            opinion = Opinion(0.0, "it ended, or closed its output, before the interactor was done")
        elif opinion is None:
            failure = self._program.describe_failure(interactor)
            if not self._works_alone(case):
                raise CannotJudge(failure)
            opinion = Opinion(0.0, f"the interactor cannot take what it says: {failure}")
        elif opinion.share == 1.0 and self._collected_files:
            opinion = self._check(case, files.get(OUTPUT, b"").decode("utf-8", "replace"))
        return judged_case(case.weight, opinion, shown), solution

    def _converse(
        self, case: StdioCase, partner: Ready, collected_files: Sequence[str]
    ) -> tuple[Execution, Execution, Mapping[str, bytes]]:
        """Return the runs of solution and interactor, and those files of the interactor that are collected."""
        texts = {INPUT: case.input, ANSWER: case.output}
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}
        return partner.converse(self._ready, files, collected_files)

    def _works_alone(self, case: StdioCase) -> bool:
        """Return whether it comes to a verdict on a program that says nothing."""
        if self._works is None:
            try:
                interactor = self._converse(case, self._local.prepare_partner(SILENT, Limits()), [])[1]
            except SandboxError as error:
                raise NotRun("interactor", error) from error
            self._works = _is_cut_short(interactor) or self._program.opinion(interactor) is not None
        return self._works


def _is_cut_short(interactor: Execution) -> bool:
    """Return whether the interactor ended because nobody reads what it prints."""
    return interactor.end is ProgramEnd.SIGNALLED and interactor.status == signal.SIGPIPE
