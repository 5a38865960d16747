"""Search for traces of hostile programs outside of the sandbox: files, processes, memory, network connections.

with Canaries("secret") as canaries:
    ...                              run the programs
    canaries.touched()               [] if no file was changed and there was no connection
census(box)                          {"processes": 4, "zombies": 0, "parent_kb": 51200, ...}
probes(canaries, box)                programs of this file that try to leave traces, and whether they could
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from math_peers.cpu import PROC

from truegold.verifiers.sandbox import Job, Sandbox, close_all
from truegold.verifiers.sandbox.execution import Limits

PORTS = (0, 8000, 8080, 8888, 9999)
"""Where listeners wait; 0 is a port of the system's choice."""

SHARED_MEMORY_KEY = 0x7472_7565
LIMITS = Limits(cpu_s=2.0, memory_mb=256, output_mb=1.0)
CLOSING_S = 10.0
PR_SET_CHILD_SUBREAPER = 36
SYSVIPC = ("shm", "sem", "msg")


class Canaries:
    """Files that anybody may read and write, in the folders that programs try first, and listeners on localhost."""

    def __init__(self, content: str) -> None:
        self._content = content
        self._files: list[Path] = []
        self._listeners: list[socket.socket] = []
        self._before: set[Path] = set()
        self._objects = ipc_objects()
        self.connections = 0

    @property
    def file(self) -> Path:
        """The first file that no program may touch."""
        return self._files[0]

    @property
    def port(self) -> int:
        """The first port that no program may reach."""
        return int(self._listeners[0].getsockname()[1])

    def __enter__(self) -> Self:
        adopt_orphans()
        for folder in folders():
            handle, name = tempfile.mkstemp(prefix="truegold-canary-", suffix=".py", dir=folder)
            with os.fdopen(handle, "w") as file:
                file.write(self._content)
            path = Path(name)
            path.chmod(0o666)
            self._files.append(path)
        for port in PORTS:
            with contextlib.suppress(OSError):
                listener = socket.create_server(("127.0.0.1", port))
                self._listeners.append(listener)
                threading.Thread(target=self._count, args=(listener,), daemon=True).start()
        self._before = marks()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for file in self._files:
            file.unlink(missing_ok=True)

    def touched(self) -> list[str]:
        """Return a line for each change since the start."""
        traces = [f"{path} was changed" for path in self._files if self.is_changed(path)]
        traces += [f"{path} is new" for path in sorted(marks() - self._before)]
        if self.connections:
            traces.append(f"{self.connections} connections to localhost")
        traces += [f"new System V object: {line}" for line in sorted(ipc_objects() - self._objects)]
        return traces

    def is_changed(self, path: Path) -> bool:
        """Return whether a file is gone or holds something else."""
        return not path.exists() or path.read_text() != self._content

    def _count(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                listener.accept()[0].close()
                self.connections += 1


def folders() -> list[Path]:
    """Where a program can hope to leave a file."""
    candidates = [Path(tempfile.gettempdir()), Path.home(), Path("/dev/shm"), Path("/var/tmp")]
    return [path for path in dict.fromkeys(candidates) if path.is_dir() and os.access(path, os.W_OK)]


def marks() -> set[Path]:
    """Files there that a program of the sandbox can have made: other users' files and folders come and go as well, so
    only those of users that the sandbox makes up count, and the names that such programs like."""
    paths = {folder / "x" for folder in folders() if (folder / "x").exists()}
    for folder in folders():
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                if path.lstat().st_uid >= 1_000_000_000 and not path.name.startswith("truegold-box-"):
                    paths.add(path)
    return paths


def ipc_objects() -> set[str]:
    """System V shared memory, semaphores and queues: kind, key and id of each."""
    objects = set()
    for kind in SYSVIPC:
        path = PROC / "sysvipc" / kind
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        objects |= {f"{kind} {' '.join(line.split()[:2])}" for line in lines}
    return objects


def adopt_orphans() -> None:
    """Whatever a sandbox loses becomes a child of this process, where it is counted."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Census:
    """Counts of this process and all its descendants. kb: memory that is not shared with other processes."""

    processes: int
    zombies: int
    descriptors: int
    box_files: int
    system_v: int
    parent_kb: int
    zygotes_kb: int


def census(box: Sandbox) -> dict[str, int]:
    """Count what a sandbox has left behind: processes, open files, folders, memory."""
    bury(box.pids())
    family = descendants(os.getpid())
    zygotes = [pid for pid in family if pid != os.getpid()]
    return asdict(
        Census(
            processes=len(family) - 1,
            zombies=sum(state(pid) == "Z" for pid in family),
            descriptors=sum(map(_open_files, family)),
            box_files=sum(len(list(Path(folder).iterdir())) for folder in box.folders()),
            system_v=len(ipc_objects()),
            parent_kb=private_kb(os.getpid()),
            zygotes_kb=sum(map(private_kb, zygotes)),
        )
    )


def left_after_closing() -> dict[str, int]:
    """All sandboxes closed: processes that are still there, and working folders."""
    close_all()
    deadline = time.monotonic() + CLOSING_S
    while len(descendants(os.getpid())) > 1 and time.monotonic() < deadline:
        bury([])
        time.sleep(0.05)
    folders_left = list(Path(tempfile.gettempdir()).glob(f"truegold-box-{os.getpid()}-*"))
    return {"processes": len(descendants(os.getpid())) - 1, "folders": len(folders_left)}


def bury(zygotes: Sequence[int]) -> None:
    """Reap ended processes that this process has adopted, like the system's first process does."""
    for pid in descendants(os.getpid())[1:]:
        if state(pid) == "Z" and pid not in zygotes:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def descendants(pid: int) -> list[int]:
    """A process and all that come from it."""
    family = [pid]
    for parent in family:  # grows on the way
        for task in _listed(PROC / str(parent) / "task"):
            with contextlib.suppress(OSError):
                family += map(int, (task / "children").read_text().split())
    return family


def state(pid: int) -> str:
    """Return the state of a process as one letter; empty where it has ended."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return "gone"


def private_kb(pid: int) -> int:
    """Return the memory that a process shares with no other, in KB."""
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def _open_files(pid: int) -> int:
    return len(_listed(PROC / str(pid) / "fd"))


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


PROBES = {
    "connects to localhost": "import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)",
    "sends a datagram": "import socket\n"
    "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.sendto(b'x', ('127.0.0.1', {port}))",
    "reads a file of everybody's": "open({file!r}).read()",
    "writes to a file of everybody's": "open({file!r}, 'w').write('x')",
    "makes a file beside it": "open({beside!r}, 'w').write('x')",
    "makes shared memory": "import ctypes\n"
    "if ctypes.CDLL(None).shmget({key}, 4096, 0o1666) < 0: raise OSError('no shared memory')",
    "starts a process that stays": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(30)",
    "starts a program that stays": "import subprocess\nsubprocess.Popen(['/bin/sleep', '30'])",
    "sends a signal to the verifier": "import os\nos.kill({pid}, 0)",
    "reads the verifier's memory": "open('/proc/{pid}/mem', 'rb').read(1)",
}
"""Programs that fail where they are held. Each does one thing, once."""


def probes(canaries: Canaries, box: Sandbox) -> dict[str, bool]:
    """Whether each could do what it tried. A file that a program wrote may be its own, in a /tmp of its own: what
    counts is the one outside."""
    beside = canaries.file.with_suffix(".x")
    values = {"port": canaries.port, "file": str(canaries.file), "beside": str(beside)}
    successes = {}
    for name, source in PROBES.items():
        text = source.format(**values, key=SHARED_MEMORY_KEY, pid=os.getpid())
        done = box.run(Job("main", f"{text}\nprint('done')".encode(), LIMITS))
        successes[name] = done.stdout == b"done\n"
    successes["writes to a file of everybody's"] = canaries.is_changed(canaries.file)
    successes["makes a file beside it"] = beside.exists()
    beside.unlink(missing_ok=True)
    return successes
