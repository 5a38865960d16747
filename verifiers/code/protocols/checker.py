"""Checkers: what tells whether an output is right. Most compare it with the expected one (`output_comparison.py`).

Where several answers are right, the checker is a program. It gets input, output and expected output in a sandbox:

    Python that defines check(input, output, answer) -> bool is called.
    Any other program is run, and says by its exit status what it thinks (`suite_program.py`).

Anything else is a broken checker, unless it takes the expected output: then it is this output that it cannot read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from truegold.verifiers.code import outcomes
from truegold.verifiers.code.outcomes import CannotJudge, Opinion
from truegold.verifiers.code.output_comparison import checker_of
from truegold.verifiers.code.protocols.python_tests import TestedProgram, failed_call, make_calls
from truegold.verifiers.code.protocols.suite_program import ARGUMENTS, PROGRAM_LIMITS, NotRun, SuiteProgram
from truegold.verifiers.code.protocols.testlib import uses_testlib
from truegold.verifiers.code.suite.reading import StdioCase
from truegold.verifiers.sandbox.execution import SandboxError
from truegold.verifiers.sandbox.inside.wire.foreign_values import Json
from truegold.verifiers.sandbox.local import Local, Ready

Check = Callable[[StdioCase, str], Opinion]
"""Says what to think of an output."""

_ACCEPTED = Opinion(1.0)


class _CheckerFailed(CannotJudge):
    """The checker failed, on this output at least."""


def check_of(spec: str | Mapping[str, Json], local: Local) -> Check:
    """Return what judges outputs by a checker's description."""
    if isinstance(spec, Mapping) and spec.get("type") == "program":
        return _ProgramChecker(spec, local)
    compare = checker_of(spec)

    def check(case: StdioCase, output: str) -> Opinion:
        difference = compare(case.output, output)
        return _ACCEPTED if difference is None else Opinion(0.0, difference)

    return check


class _ProgramChecker:
    """A checker that is a program, sandboxed as the solution is."""

    def __init__(self, spec: Mapping[str, Json], local: Local) -> None:
        self._program, self._local = SuiteProgram.from_spec("checker", spec), local
        self._ready: Ready | None = None
        self._defines_check = self._program.language == "python" and "def check(" in self._program.code

    def __call__(self, case: StdioCase, output: str) -> Opinion:
        try:
            return self._run([case.input, output, case.output])
        except _CheckerFailed as failure:
            # A checker that takes the expected output works, and it is this output that it cannot read.
            if self._run([case.input, case.output, case.output]).share == 1.0:
                return Opinion(0.0, f"the checker cannot read it: {failure}")
            raise

    def _run(self, texts: Sequence[str]) -> Opinion:
        """Return what it says. texts: input, output and expected output."""
        try:
            return self._call_check(texts) if self._defines_check else self._run_program(texts)
        except SandboxError as error:
            raise NotRun("checker", error) from error

    def _call_check(self, texts: Sequence[str]) -> Opinion:
        source = TestedProgram(self._program.code, "", self._local, PROGRAM_LIMITS)
        calls = make_calls(source, [("check", list(texts), {})], {})
        accepted = calls.outcomes[0]
        failure = failed_call(accepted, calls)
        if failure is not None:
            raise _CheckerFailed(f"the checker failed: {failure[1]}")
        if isinstance(accepted, bool):
            return _ACCEPTED if accepted else Opinion(0.0, "the checker refuses it")
        raise _CheckerFailed(f"the checker gave no True or False but {outcomes.cut(accepted)}")

    def _run_program(self, texts: Sequence[str]) -> Opinion:
        if self._ready is None:
            self._ready = self._program.prepare(self._local)
        files = {name: text.encode("utf-8", "surrogatepass") for name, text in zip(ARGUMENTS, texts, strict=True)}
        execution = self._ready.run_with(files)
        opinion = self._program.opinion(execution)
        if opinion is None:
            raise _CheckerFailed(self._program.describe_failure(execution))
        if opinion.share == 0.0 and not uses_testlib(self._program.code):
            return Opinion(0.0, f"the checker refuses it: {opinion.why}")
        return opinion
