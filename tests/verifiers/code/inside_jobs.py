"""Runs roles of `verifiers/sandbox/inside` in forked processes with the descriptors that the sandbox gives them, but
without its confinement: only programs that the tests wrote themselves run here.

The folder is loaded under another name by an interpreter that has no truegold, as in the sandbox.
"""

import atexit
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from truegold.verifiers.sandbox.inside.wire.encoding import encode

INSIDE = Path(__file__).parents[3] / "verifiers" / "sandbox" / "inside"
LIMIT_S = 60

SERVER = """
import importlib.util, json, os, signal, socket, sys, traceback
folder = sys.argv[1]
init = folder + "/__init__.py"
spec = importlib.util.spec_from_file_location("_inside", init, submodule_search_locations=[folder])
package = importlib.util.module_from_spec(spec)
sys.modules["_inside"] = package
spec.loader.exec_module(package)
from _inside.roles import roles_of
ROLES = roles_of("tests")
assert "truegold" not in sys.modules

def start(job, peer):
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(job["limit_s"])
    names = [job["path"] + end for end in (".out", ".err", ".result")]
    files = [os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC) for name in names]
    sources = [os.open("/dev/null", os.O_RDONLY), *files] + ([peer.fileno()] if peer else [])
    for target, source in enumerate(sources):
        os.dup2(source, 100 + target)
    for target in range(len(sources)):
        os.dup2(100 + target, target)
    os.closerange(len(sources), 1000)
    sys.stdin, sys.stdout, sys.stderr = open(0, closefd=False), open(1, "w", closefd=False), open(2, "w", closefd=False)
    try:
        ROLES[job["role"]](job["payload"].encode())
        sys.stdout.flush()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(70)

for request in iter(sys.stdin.readline, ""):
    jobs = json.loads(request)
    ends = socket.socketpair() if len(jobs) == 2 else (None,)
    pids = [start(job, end) for job, end in zip(jobs, ends)]
    for end in ends:
        if end:
            end.close()
    codes = [os.waitstatus_to_exitcode(os.waitpid(pids[-1], 0)[1])]
    if len(pids) == 2:  # the last one's end is the end of both
        os.kill(pids[0], signal.SIGKILL)
        codes.insert(0, os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1]))
    print(json.dumps(codes), flush=True)
"""


@dataclass
class Outcome:
    """What became of a job."""

    code: int
    """The exit status."""
    raw: bytes
    """What it wrote to the result descriptor."""
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[Any]:
        """The messages on the result descriptor, those that are JSON."""
        messages = []
        for line in self.raw.split(b"\n"):
            try:
                messages.append(json.loads(line))
            except ValueError:
                continue
        return messages

    def values(self, key: str) -> list[Any]:
        """What the lines say under a key."""
        return [line[key] for line in self.lines if isinstance(line, dict) and key in line]


@cache
def _server() -> tuple[subprocess.Popen[str], str]:
    folder = tempfile.mkdtemp(prefix="truegold-inside-")
    command = [sys.executable, "-s", "-c", SERVER, str(INSIDE)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return subprocess.Popen(command, cwd=folder, text=True, **pipes), folder  # type: ignore[call-overload, no-any-return]


def run_jobs(*jobs: tuple[str, dict[str, Any]]) -> list[Outcome]:
    """Run one job, or two partners that both end when the second does. Each is a role and its payload."""
    server, folder = _server()
    paths = [f"{folder}/{index}" for index in range(len(jobs))]
    requests = [
        {"role": role, "payload": json.dumps(payload), "path": path, "limit_s": LIMIT_S}
        for (role, payload), path in zip(jobs, paths, strict=True)
    ]
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(json.dumps(requests) + "\n")
    server.stdin.flush()
    codes = json.loads(server.stdout.readline())
    return [
        Outcome(
            code,
            Path(f"{path}.result").read_bytes(),
            Path(f"{path}.out").read_text(errors="replace"),
            Path(f"{path}.err").read_text(errors="replace"),
        )
        for code, path in zip(codes, paths, strict=True)
    ]


def call(program: str, *calls: list[Any], prelude: str = "", codecs: dict[str, Any] | None = None) -> Outcome:
    """Run role `calls`. Each call is the function, then its arguments."""
    functions = list(dict.fromkeys(name for name, *_ in calls))
    requests = [[functions.index(name), encode(list(args), codecs), {}] for name, *args in calls]
    payload = {
        "prelude": prelude,
        "program": program,
        "functions": functions,
        "calls": requests,
        "codecs": codecs or {},
    }
    return run_jobs(("calls", payload))[0]


@dataclass
class Run:
    """What became of a test run."""

    solution: Outcome
    tester: Outcome

    @property
    def score(self) -> tuple[int, int]:
        """How many tests passed, of how many."""
        (done,) = self.tester.values("done")
        return done["passed"], done["total"]

    @property
    def paid(self) -> bool:
        """Whether the run counts as passed."""
        done = self.tester.values("done")
        return bool(done) and 0 < done[0]["total"] == done[0]["passed"] and not self.tester.values("cannot_isolate")

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The lines of tests that failed."""
        return [line for line in self.tester.lines if line.get("ok") is False]


def check(
    program: str,
    code: str,
    entry_point: str | None = None,
    kind: str = "asserts",
    prelude: str = "",
    codecs: dict[str, Any] | None = None,
    stop_first: bool = False,
) -> Run:
    """Run roles `serve` and `tests`."""
    serve = {"prelude": prelude, "program": program, "codecs": codecs or {}}
    tests = {
        "kind": kind,
        "code": code,
        "entry_point": entry_point,
        "prelude": prelude,
        "codecs": codecs or {},
        "stop_first": stop_first,
        "seed": 17,
    }
    return Run(*run_jobs(("serve", serve), ("tests", tests)))


def programs(name: str) -> dict[str, str]:
    """Return the programs of a file in `programs/`, by the titles above them."""
    text = (Path(__file__).parent / "programs" / f"{name}.txt").read_text()
    _, *sections = text.split("\n### ")
    return {section.partition("\n")[0]: section.partition("\n")[2] for section in sections}
