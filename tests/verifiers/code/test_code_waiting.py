"""What counts as CPU time and what as waiting, also of children that have ended and on a busy machine."""

import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
from sandboxes import run

from truegold.verifiers.sandbox import Sandbox, pool
from truegold.verifiers.sandbox.execution import Execution, Limits, Program, ProgramEnd, SandboxError
from truegold.verifiers.sandbox.inside.confine import supervise
from truegold.verifiers.sandbox.local import Local
from truegold.verifiers.sandbox.pool import ZygoteClient

SHORT_CHILDREN = """
for i in $(seq {count}); do /usr/bin/awk 'BEGIN {{ for (i = 0; i < 2000000; i++) x += i }}'; done
echo done
"""
"""Each child uses some 30 ms, and the shell itself nearly nothing."""

pytestmark = pytest.mark.skipif(shutil.which("awk") is None, reason="there is no awk on this machine")


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_S", 0.6)


def run_bash(box: Sandbox, source: str, cpu_s: float) -> Execution:
    return Local(box.tier).prepare(Program("bash", source), Limits(cpu_s=cpu_s)).run(b"")


@pytest.fixture
def busy_machine() -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-P", "-c", "while True: pass"]) for _ in range(20)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.usefixtures("short_patience")
def test_the_work_of_ended_children_is_no_waiting(box: Sandbox) -> None:
    done = run_bash(box, SHORT_CHILDREN.format(count=40), cpu_s=30)
    assert (done.end, done.stdout) == (ProgramEnd.EXITED, b"done\n")
    assert done.cpu_s is not None
    assert done.idle_s is not None
    assert done.cpu_s > 0.6 > done.idle_s


def test_the_work_of_ended_children_counts_against_the_limit(box: Sandbox) -> None:
    assert run_bash(box, SHORT_CHILDREN.format(count=10**6), cpu_s=0.5).end is ProgramEnd.CPU_LIMIT


@pytest.mark.usefixtures("short_patience", "busy_machine")
def test_standing_in_line_for_a_core_is_no_waiting(box: Sandbox) -> None:
    done = run_bash(box, SHORT_CHILDREN.format(count=30), cpu_s=30)
    assert (done.end, done.stdout) == (ProgramEnd.EXITED, b"done\n")


@pytest.mark.usefixtures("short_patience")
@pytest.mark.parametrize("source", ["sleep 100", "sleep 100 & wait", "while :; do sleep 0.2; done", "sleep 100 | cat"])
def test_children_that_sleep_are_waiting(box: Sandbox, source: str) -> None:
    assert run_bash(box, source, cpu_s=5).end is ProgramEnd.WALL_LIMIT


def test_a_machine_too_busy_to_run_it_gives_no_verdict(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = {"jobs": [{"ended_by": "busy", "code": -9, "cpu_s": 0.1, "wall_s": 300.0, "idle_s": 0.1, "peak_mb": 9.0}]}
    asked = []
    monkeypatch.setattr(ZygoteClient, "_ask", lambda self, jobs, descriptors, piped: asked.append(jobs) or reply)
    with pytest.raises(SandboxError, match="too busy"):
        run(box, "print(1)")
    assert len(asked) == 1, "a second try would wait as long"


def test_a_process_that_is_never_idle_and_never_runs_ends_as_busy() -> None:
    supervisor = supervise.Supervisor(proc=0)
    plenty = dict.fromkeys(("cpu_s", "idle_s", "own_s", "memory_bytes", "threads"), 2**50)
    watched = supervise.Watched(1, {**plenty, "wall_s": 0.0})
    assert supervisor._broken_limit(watched, 0) == "busy"
