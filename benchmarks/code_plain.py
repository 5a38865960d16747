"""Runs reference programs under plain Python without a sandbox, for comparison with the verdicts of verifiers.

Use it only for reference programs, never for programs of a model: only time and memory are limited.

    answers([program], ["add"], [[([1, 2], {})]], jobs=2)    [[3]]: each call's result, tagged
    passes(row)                       Plain(True, "", 0.03), or Plain(False, "exit status 1: AssertionError", 0.02)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from code_rows import Json, Row

from truegold.verifiers.code.output_comparison import checker_of
from truegold.verifiers.code.value_comparison import call_checker_of
from truegold.verifiers.sandbox.inside import wire
from truegold.verifiers.sandbox.inside.wire.decoding import decode
from truegold.verifiers.sandbox.inside.wire.encoding import encode
from truegold.verifiers.sandbox.inside.wire.value_types import Undecodable

LIMIT_S = 120.0
"""Wall seconds: several times what a verifier gives a program, on a busy machine."""

CHILD = Path(__file__).with_name("code_plain_child.py")
INSIDE = str(Path(wire.__file__).parents[2])
MEMORY = "import resource; resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
SHOWN_CHARS = 160
Call = tuple[list[Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Plain:
    """The result of a program. explanation: why it did not pass. cpu_s: CPU seconds of its slowest process."""

    passed: bool
    explanation: str
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Done:
    """One process that has ended; `in_time`, unless it was killed."""

    status: int
    stdout: bytes
    stderr: bytes
    cpu_s: float
    in_time: bool

    @property
    def trouble(self) -> str | None:
        """Why the run counts as failed; None where it ended well."""
        if not self.in_time:
            return f"no end after {LIMIT_S:.0f} s"
        if self.status == 0:
            return None
        last = self.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        how = f"signal {-self.status}" if self.status < 0 else f"exit status {self.status}"
        return f"{how}: {last}"[:SHOWN_CHARS]


def answers(
    programs: Sequence[str], names: Sequence[str], calls: Sequence[Sequence[Call]], jobs: int
) -> list[list[Json] | str]:
    """Return each program's tagged results of its calls, or the reason why some calls have no result."""
    with ThreadPoolExecutor(jobs) as pool:
        return [replies for replies, _ in pool.map(_answers, programs, names, calls)]


def script(row: Row) -> str:
    """Program and assertions as one program, as people run them."""
    tests = row.tests
    parts = [tests.get("prelude", ""), row.program, tests["code"]]
    if "def check(" in tests["code"]:
        parts.append(f"check({tests['entry_point']})")
    return "\n\n".join(parts)


def passes(row: Row) -> Plain:
    """Whether the program passes its tests."""
    kind = row.tests["type"]
    return {"asserts": _asserts, "calls": _calls, "stdio": _stdio}[kind](row)


def _asserts(row: Row) -> Plain:
    done = _run(script(row), b"")
    return Plain(done.trouble is None, done.trouble or "", done.cpu_s)


def _stdio(row: Row) -> Plain:
    check = checker_of(row.tests.get("checker") or "tokens")
    dearest = 0.0
    for index, case in enumerate(row.tests["cases"]):
        done = _run(row.program, case["input"].encode())
        dearest = max(dearest, done.cpu_s)
        why = done.trouble or check(case["output"], done.stdout.decode("utf-8", "replace"))
        if why is not None:
            return Plain(False, f"case {index}: {why}", dearest)
    return Plain(True, "", dearest)


def _calls(row: Row) -> Plain:
    cases = row.tests["cases"]
    decoded_calls = [(list(map(decode, case["args"])), dict(case.get("kwargs") or {})) for case in cases]
    replies, cpu_s = _answers(row.program, row.tests["entry_point"], decoded_calls, hash_seed=1)
    if isinstance(replies, str):
        return Plain(False, replies, cpu_s)
    differs = call_checker_of(row.tests.get("checker") or "values")
    for index, (case, reply) in enumerate(zip(cases, replies, strict=True)):
        if (why := differs(decode(case["expected"]), decode(reply))) is not None:
            return Plain(False, f"case {index}: {why}", cpu_s)
    return Plain(True, "", cpu_s)


def _answers(program: str, name: str, calls: Sequence[Call], hash_seed: int = 0) -> tuple[list[Json] | str, float]:
    request = {"program": program, "name": name, "calls": [encode([args, kwargs], {}) for args, kwargs in calls]}
    with tempfile.TemporaryDirectory() as folder:
        done = _start([sys.executable, str(CHILD), INSIDE], json.dumps(request).encode(), folder, hash_seed)
    if done.trouble is not None:
        return done.trouble, done.cpu_s
    replies = json.loads(done.stdout)
    raised = next((reply["raised"] for reply in replies if "raised" in reply), None)
    if raised is not None:
        return f"it raises {raised}"[:SHOWN_CHARS], done.cpu_s
    return [reply["r"] for reply in replies], done.cpu_s


def _run(source: str, stdin: bytes) -> Done:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "solution.py"
        path.write_text(source, encoding="utf-8", errors="surrogatepass")
        boot = f"{MEMORY}import runpy, sys; sys.argv = ['solution.py']; runpy.run_path('solution.py', {{}}, '__main__')"
        return _start([sys.executable, "-P", "-c", boot], stdin, folder, 0)


def _start(command: list[str], stdin: bytes, folder: str, hash_seed: int) -> Done:
    """With files as its streams, as judges have them: programs ask how much there is to read."""
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": str(hash_seed), "HOME": folder}
    with ExitStack() as stack:
        stdin_file, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        stdin_file.write(stdin)
        stdin_file.seek(0)
        child = subprocess.Popen(command, stdin=stdin_file, stdout=out, stderr=err, cwd=folder, env=environment)
        timer = threading.Timer(LIMIT_S, child.kill)
        timer.start()
        try:
            _, status, used = os.wait4(child.pid, 0)
            in_time = timer.is_alive()
        finally:
            timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)  # Popen is not to wait for it again
        out.seek(0)
        err.seek(0)
        return Done(child.returncode, out.read(), err.read(), used.ru_utime + used.ru_stime, in_time)


def all_pass(rows: Sequence[Row], jobs: int, say: Callable[[str], None]) -> list[Plain]:
    """Return what plain Python says of each row."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(partial(_guarded, say), rows))


def _guarded(say: Callable[[str], None], row: Row) -> Plain:
    try:
        return passes(row)
    except (OSError, ValueError, Undecodable, KeyError, TypeError) as error:
        say(f"{row.set_name} {row.key} could not be run plainly: {type(error).__name__}: {error}")
        return Plain(False, f"not run: {type(error).__name__}", 0.0)
