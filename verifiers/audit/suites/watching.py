"""The local back end with a memory: what became of each process that a verdict came from.

watched = Watched(None, sys.executable, 0)
judge_code(tests, source, watched, limits, run_all=True)
watched.executions[0].cpu_s
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from truegold.verifiers.sandbox import Job, Local, Ready, Sandbox, Tier
from truegold.verifiers.sandbox.execution import Execution, Prepared, Program
from truegold.verifiers.sandbox.limits import Limits
from truegold.verifiers.sandbox.local import Partner


class Watched(Local):
    """The local back end for Python's tests; keeps what became of each process."""

    executions: list[Execution]

    def __init__(self, tier: Tier | None, python: str, hash_seed: int) -> None:
        super().__init__(tier, python, hash_seed)
        object.__setattr__(self, "executions", [])

    def sandbox(self) -> Sandbox:
        """Return the sandbox, which keeps what becomes of each process."""
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


class Recorder:
    """A back end that keeps what became of each run of a program; its checker, and test code, run on another one."""

    def __init__(self, inner: Local, local: Local) -> None:
        self.executions: list[Execution] = []
        self.local = local
        self._inner = inner

    @property
    def tier(self) -> str:
        """The tier of the back end inside."""
        return self._inner.tier

    def prepare(self, program: Program, limits: Limits) -> Prepared:
        """Make a program ready to run."""
        return _Recorded(self._inner.prepare(program, limits), self.executions)

    def prepare_partner(self, program: Program, limits: Limits) -> Partner:
        """Make a program ready that talks to another one."""
        return _RecordedPartner(self._inner.prepare_partner(program, limits), self.executions)


class _Recorded:
    def __init__(self, inner: Prepared, executions: list[Execution]) -> None:
        self.compiled = inner.compiled
        self._inner, self._executions = inner, executions

    def run(self, stdin: bytes) -> Execution:
        self._executions.append(self._inner.run(stdin))
        return self._executions[-1]


class _RecordedPartner:
    def __init__(self, inner: Partner, executions: list[Execution]) -> None:
        self.compiled = inner.compiled
        self._inner, self._executions = inner, executions

    def converse(
        self, script: Ready, files: Mapping[str, bytes], collect: Sequence[str]
    ) -> tuple[Execution, Execution, Mapping[str, bytes]]:
        ends = self._inner.converse(script, files, collect)
        self._executions.append(ends[0])
        return ends
