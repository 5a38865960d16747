"""Judges rows with truegold's verifier `code`, and keeps the important fields of each verdict.

If the verifier raises, the verdict is "not judged" with the name of the exception. No row can end the run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from code_plain import script
from code_rows import Row

from truegold.verifiers.code.verifier import CodeVerifier
from truegold.verifiers.sandbox import Tier
from truegold.verifiers.sandbox.execution import Limits, Program, SandboxError
from truegold.verifiers.sandbox.local import Local

SHOWN_CHARS = 160
ONE_PROGRAM = Limits(cpu_s=60.0, memory_mb=4096)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One verdict. score None: not judged."""

    score: float | None
    reason: str
    evidence: Mapping[str, Any]
    wall_s: float

    @property
    def accepted(self) -> bool:
        """Whether the program earned the full score."""
        return self.score == 1.0

    @property
    def in_one_process(self) -> bool:
        """Whether tests and program shared a process."""
        return self.evidence.get("isolation") == "one_process"

    @property
    def explanation(self) -> str:
        """Why, in one line."""
        failed = self.evidence.get("failed") or {}
        why = self.evidence.get("error") or failed.get("error") or ""
        if not why and failed:
            parts = [f"{name} {failed[name]}" for name in ("test", "input", "expected", "got") if failed.get(name)]
            why = ", ".join(parts)
        return one_line(f"{self.reason}: {why}".removesuffix(": "))


def verifier(tier: Tier | None = None) -> CodeVerifier:
    """Return the verifier, of the strongest tier where none is named."""
    return CodeVerifier(tier=tier)


def judge(row: Row, by: CodeVerifier) -> Outcome:
    """Return the verdict of a verifier on a row. An exception of the verifier is a verdict too."""
    began = time.perf_counter()
    try:
        verdict = by(row.response, info=row.info)
    except Exception as error:
        evidence = {"error": f"{type(error).__name__}: {error}"}
        return Outcome(None, f"raised {type(error).__name__}", evidence, time.perf_counter() - began)
    return Outcome(verdict.score, str(verdict.reason), dict(verdict.evidence), time.perf_counter() - began)


def judge_all(rows: Sequence[Row], by: CodeVerifier, jobs: int) -> list[Outcome]:
    """In the rows' order."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(partial(judge, by=by), rows))


def as_one_program(row: Row, test: str, stdin: bytes = b"") -> tuple[bool, str]:
    """A second opinion that shares no comparison with the first: program and assertions run in the sandbox as one
    ordinary program, with much time. Where it comes to its end, everything has passed.

    For model programs that were not written to deceive: one could print the mark, if it knew it.
    """
    mark = os.urandom(8).hex()
    whole = script(replace(row, tests={**row.tests, "code": test}))
    try:
        program = Program("python", f"{whole}\nprint('\\n' + {mark!r})\n")
        done = Local().prepare(program, ONE_PROGRAM).run(stdin)
    except SandboxError as error:
        return False, f"not run: {error}"
    if done.ok and done.stdout.rstrip().endswith(mark.encode()):
        return True, "comes to its end"
    last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return False, one_line(f"{done.end} {done.status}: {last}".removesuffix(": "))


def one_line(text: str) -> str:
    """Return the beginning of a text on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= SHOWN_CHARS else f"{flat[:SHOWN_CHARS]}…"
