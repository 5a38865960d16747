"""The sandbox: what a program can do in it, what it cannot, and what is left afterwards."""

import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sandboxes import LIMITS, box_of, run

from truegold.verifiers.code.execution import End, SandboxError
from truegold.verifiers.code.sandbox import Job, Kind, Sandbox, Tier, sandbox
from truegold.verifiers.code.sandbox.boxes import Box, remove_abandoned
from truegold.verifiers.errors import ConfigError, SetupError

BENIGN = {
    "input and exit": "print(sum(int(input()) for _ in range(2))); exit()",
    "open(0)": "print(sum(map(int, open(0).read().split())))",
    "lines of stdin": "import sys\nprint(sum(int(l) for l in sys.stdin))",
    "readlines": "import sys\nL = sys.stdin.readlines()\nassert L[0] == '3\\n'\nprint(int(L[0]) + int(L[1]))",
    "buffer": "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split())))",
    "os.read": "import os\nprint(sum(map(int, os.read(0, os.fstat(0).st_size).split())))",
    "mode of stdin": "import sys\n"
    "assert 'r' in sys.stdin.mode and 'x' not in sys.stdin.mode\nprint(int(input()) + int(input()))",
    "main": "if __name__ == '__main__':\n    print(int(input()) + int(input()))",
    "recursion": "import sys\nsys.setrecursionlimit(200000)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
    "f(50000)\nprint(int(input()) + int(input()))",
    "recursion through C": "import sys\nfrom functools import lru_cache\n"
    "sys.setrecursionlimit(10**6)\n@lru_cache(None)\n"
    "def f(n): return 0 if n == 0 else 1 + f(n - 1)\nf(50000)\nprint(int(input()) + int(input()))",
    "a thread with a large stack": "import sys, threading\nthreading.stack_size(256 * 2**20)\n"
    "sys.setrecursionlimit(10**6)\n"
    "def main(): print(int(input()) + int(input()))\nt = threading.Thread(target=main); t.start(); t.join()",
    "a thread that is not joined": "import threading, time\n"
    "def f(): time.sleep(0.05); print(int(input()) + int(input()))\nthreading.Thread(target=f).start()",
    "stack limit": "import resource\nresource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY,) * 2)\n"
    "print(int(input()) + int(input()))",
    "atexit": "import atexit, io, sys\nb = io.StringIO(); sys.stdout = b\n@atexit.register\n"
    "def w(): sys.__stdout__.write(b.getvalue())\nprint(int(input()) + int(input()))",
    "a stdout of its own, never flushed": "import io, os, sys\nsys.stdout = io.TextIOWrapper(os.fdopen(1, 'wb'))\n"
    "print(int(input()) + int(input()))",
    "a writer that is flushed when it is dropped": "from io import BytesIO, IOBase\nfrom os import *\nimport sys\n"
    "class W(IOBase):\n    def __init__(self): self.b = BytesIO()\n    def write(self, s): self.b.write(s.encode())\n"
    "    def flush(self): write(1, self.b.getvalue()); self.b = BytesIO()\n"
    "sys.stdout = W()\nprint(int(input()) + int(input()))",
    "asyncio": "import asyncio\nasync def f():\n"
    "    await asyncio.sleep(0); print(int(input()) + int(input()))\nasyncio.run(f())",
    "a temporary file": "import tempfile\nwith tempfile.NamedTemporaryFile('w+') as f:\n    f.write('x'); f.flush()\n"
    "print(int(input()) + int(input()))",
    "files in its folder": "import os\nassert os.listdir('.') == []\nos.mkdir('d'); open('d/f', 'w').write('7')\n"
    "input(); print(open('d/f').read())",
    "numpy": "import numpy as np\nprint(int(np.array([int(input()), int(input())]).sum()))",
    "devices": "open('/dev/null', 'w').write('x'); open('/dev/urandom', 'rb').read(1)\n"
    "print(int(input()) + int(input()))",
    "long integers": "import sys\nsys.set_int_max_str_digits(0)\nx = str(10**5000)\nprint(int(input()) + int(input()))",
    "signals to itself": "import os, signal\ngot = []\nsignal.signal(signal.SIGUSR1, lambda *a: got.append(1))\n"
    "os.kill(os.getpid(), signal.SIGUSR1)\nassert got\nprint(int(input()) + int(input()))",
    "dataclasses": "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
    "print(P(int(input())).x + int(input()))",
    "closing stdout": "import sys\nprint(int(input()) + int(input()))\nsys.stdout.close()",
}


@pytest.mark.parametrize("name", BENIGN)
def test_an_ordinary_program_runs_as_it_does_outside(box: Sandbox, name: str) -> None:
    done = run(box, BENIGN[name], b"3\n4\n")
    assert (done.stdout, done.ok) == (b"7\n", True), done


ENDS = {
    "loop": ("while True: pass", End.CPU_LIMIT),
    "loop with every signal ignored": (
        "import signal\nfor s in range(1, 64):\n    try: signal.signal(s, signal.SIG_IGN)\n    except Exception: pass\n"
        "while True: pass",
        End.CPU_LIMIT,
    ),
    "one long call in C": ("x = 9 ** 9 ** 8", End.CPU_LIMIT),
    "a regex that backtracks": ("import re\nre.match(r'(a+)+$', 'a' * 64 + 'b')", End.CPU_LIMIT),
    "closed files, then a loop": ("import os\nos.closerange(0, 256)\nwhile True: pass", End.CPU_LIMIT),
    "sleep": ("import time\ntime.sleep(10**6)", End.WALL_LIMIT),
    "output": ("while True: print('a' * 10000)", End.OUTPUT_LIMIT),
    "error output": ("import sys\nwhile True: sys.stderr.write('a' * 10000)", End.OUTPUT_LIMIT),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_program_beyond_a_limit_is_ended_and_the_limit_named(box: Sandbox, name: str) -> None:
    source, end = ENDS[name]
    assert run(box, source, cpu_s=0.5).end is end


FAILS = {
    "memory": "x = []\nwhile True: x.append(bytearray(2**24))",
    "a large folder": "for i in range(10**6): open(f'f{i}', 'wb').write(b'x' * 2**20)",
    "open files": "f = [open('/dev/null') for _ in range(10**6)]",
    "fork": "import os\nos.fork()\nprint('forked')",
    "a program": "import subprocess\nsubprocess.run(['/bin/true'], check=True)",
    "threads": "import threading, time\n"
    "for _ in range(10**4): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
    "abort": "import os\nos.abort()",
    "a crash": "import ctypes\nctypes.string_at(0)",
}


@pytest.mark.parametrize("name", FAILS)
def test_a_program_that_wants_too_much_fails(box: Sandbox, name: str) -> None:
    done = run(box, FAILS[name])
    assert not done.ok
    assert b"forked" not in done.stdout


DENIED = {
    "TCP": "import socket\nsocket.socket().connect(('127.0.0.1', {port}))",
    "UDP": "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "netlink": "import socket\nsocket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "an abstract socket": "import socket\nsocket.socket(socket.AF_UNIX).connect('\\0{name}')",
    "a file of the user": "open({secret!r})",
    "the list of a folder": "import os\nos.listdir({folder!r})",
    "writing to a file of the user": "open({secret!r}, 'a')",
    "a new file beside it": "open({secret!r} + '2', 'w')",
    "writing to the interpreter's folder": "import os\nopen(os.__file__, 'a')",
    "/dev/shm": "open('/dev/shm/truegold-test', 'w')",
    "/etc/shadow": "open('/etc/shadow')",
    "memory through /proc": "open('/proc/self/mem', 'r+b')",
    "the environment of its parent": "import os\nopen(f'/proc/{{os.getppid()}}/environ')",
    "signals to its parent": "import os\nos.kill(max(os.getppid(), {pid}), 0)",
    "signals to all": "import os, signal\nos.kill(-1, signal.SIGCONT)",
    "signals to the test": "import os\nos.kill({pid}, 9)",
    "ptrace": "import ctypes, os\nassert ctypes.CDLL(None).ptrace(16, {pid}, 0, 0) == 0",
    "ptrace of its parent": "import ctypes, os\nassert ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0",
    "memory of another process": "import ctypes\nassert ctypes.CDLL(None).process_vm_readv({pid}, 0, 0, 0, 0, 0) >= 0",
    "shared memory": "import ctypes\nassert ctypes.CDLL(None).shmget(0x1234, 4096, 0o1666) >= 0",
    "message queues": "import ctypes\nassert ctypes.CDLL(None).msgget(0x1234, 0o1666) >= 0",
    "keys": "import ctypes\nassert ctypes.CDLL(None).syscall(248, b'user', b'a', b'b', 1, -3) >= 0",
    "io_uring": "import ctypes\nassert ctypes.CDLL(None).syscall(425, 4, ctypes.create_string_buffer(512)) >= 0",
    "memfd": "import os\nos.memfd_create('x')",
    "namespaces": "import ctypes\nassert ctypes.CDLL(None).unshare(0x10000000) == 0",
    "mounting": "import ctypes\nassert ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, 0) == 0",
    "chroot": "import os\nos.chroot('.')",
    "becoming root": "import os\nos.setuid(0) if os.getuid() else os.setuid(12345)",
    "the host's name": "import socket\nsocket.sethostname('x')",
    "bpf": "import ctypes\nassert ctypes.CDLL(None).syscall(321, 0, 0, 0) >= 0",
    "userfaultfd": "import ctypes\nassert ctypes.CDLL(None).syscall(323, 0) >= 0",
    "x32 calls": "import ctypes\nassert ctypes.CDLL(None).syscall(0x40000000 + 39) > 0",
    "a GPU": "open('/dev/nvidia0')",
}


@pytest.mark.parametrize("name", DENIED)
def test_what_is_outside_cannot_be_reached(box: Sandbox, name: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the answer")
    secret.chmod(0o666)
    with socket.create_server(("127.0.0.1", 0)) as server:
        source = DENIED[name].format(
            port=server.getsockname()[1],
            name="truegold-test",
            secret=str(secret),
            folder=str(tmp_path),
            pid=os.getpid(),
        )
        done = run(box, source)
    assert done.end is End.EXITED
    assert done.status == 1
    assert b"Error" in done.stderr
    assert secret.read_text() == "the answer"
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert not Path("/dev/shm/truegold-test").exists()


def test_a_program_of_the_same_user_cannot_change_modes_of_files_outside(box: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(0o644)
    before = secret.stat()
    run(box, f"import os\nos.chmod({str(secret)!r}, 0); os.utime({str(secret)!r}, (1, 1))")
    after = secret.stat()
    assert (after.st_mode, after.st_mtime) == (before.st_mode, before.st_mtime)


def test_a_program_sees_no_environment_but_its_own(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    done = run(
        box,
        "import os\nprint(dict(os.environ))\nimport ctypes\nctypes.CDLL(None).getenv.restype = ctypes.c_char_p\n"
        "print(ctypes.CDLL(None).getenv(b'HF_TOKEN'))",
    )
    assert b"hf_secret" not in done.stdout
    assert b"PATH" in done.stdout


def test_nothing_of_one_program_is_there_for_the_next(box: Sandbox) -> None:
    run(
        box,
        "import builtins, os, sys\nopen('left', 'w').write('x'); os.makedirs('d/e/f'); builtins.print = None\n"
        "import math\nmath.pi = 4\nos.environ['LEFT'] = '1'\nos.chmod('d', 0)",
    )
    done = run(box, "import math, os\nprint(os.listdir('.'), math.pi > 3.1, 'LEFT' in os.environ)")
    assert done.stdout == b"[] True False\n"


MARKS = {
    "times": "os.utime('.', (77, 77))",
    "a mode": "os.chmod('.', 0o755)",
    "a file, and the time set back": "before = os.stat('.'); open('left', 'w').close()\n"
    "os.utime('.', ns=(before.st_atime_ns, before.st_mtime_ns))",
    "a file that came and went": "open('left', 'w').close(); os.unlink('left')",
}


@pytest.mark.parametrize("name", MARKS)
def test_a_mark_on_the_working_folder_is_no_message_to_the_next_program(box: Sandbox, name: str) -> None:
    look = "import os\nfound = os.stat('.')\nprint(os.listdir('.'), oct(found.st_mode & 0o777), found.st_mtime == 77)"
    first = run(box, look).stdout
    assert run(box, f"import os\n{MARKS[name]}").ok
    assert run(box, look).stdout == first
    assert b"left" not in first and b"True" not in first


SEARCH = """
import gc
wanted = {first!r} + {second!r}
print(sum(wanted in repr(o)[:10000] for o in gc.get_objects()))
"""


def test_a_program_searching_its_memory_finds_no_earlier_program(box: Sandbox) -> None:
    ran, never_ran = "gold-" + os.urandom(8).hex(), "gold-" + os.urandom(8).hex()
    run(box, f"x = [{ran!r}]", b"stdin " + ran.encode())
    # A search finds itself; so it has to find as much of a text that was never here.
    found = [run(box, SEARCH.format(first=text[:8], second=text[8:])).stdout for text in (ran, never_ran)]
    assert found[0] == found[1] != b""


def test_a_long_job_is_judged_by_the_processor_time_it_used(box: Sandbox) -> None:
    """Six at once on any machine: each gets a share of a core, and none is blamed for the others."""
    source = "import time\nwhile time.process_time() < 0.6: pass\nprint('done')"
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda _: run(box, source, cpu_s=1.5), range(6)))
    assert {d.end for d in done} == {End.EXITED}
    assert all(d.cpu_s is not None and d.cpu_s > 0.5 for d in done)


def test_the_verdict_on_an_overrun_names_cpu_even_when_the_program_ends_by_itself(box: Sandbox) -> None:
    done = run(box, "import time\nwhile time.process_time() < 0.31: pass", cpu_s=0.3)
    assert done.end is End.CPU_LIMIT


def test_threads_asking_at_once_get_their_own_answers(box: Sandbox) -> None:
    with ThreadPoolExecutor(8) as pool:
        outputs = list(pool.map(lambda n: run(box, "print(input())", str(n).encode()).stdout, range(60)))
    assert outputs == [f"{n}\n".encode() for n in range(60)]


def test_a_forked_copy_of_the_parent_starts_sandboxes_of_its_own(box: Sandbox) -> None:
    run(box, "print(1)")
    child = os.fork()
    if child == 0:
        ok = run(box, "print(2)").stdout == b"2\n"
        box.close()
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert run(box, "print(3)").stdout == b"3\n"


def test_a_sandbox_process_that_was_killed_is_replaced() -> None:
    box = Sandbox(Kind(), box_of(Tier.FULL).tier, seats=1)
    try:
        assert run(box, "print(1)").stdout == b"1\n"
        (pid,) = box.pids()
        os.kill(pid, signal.SIGKILL)
        assert run(box, "print(2)").stdout == b"2\n"
    finally:
        box.close()


def test_a_sandbox_that_keeps_failing_is_trouble_and_no_verdict() -> None:
    box = Sandbox(Kind(python="/bin/false"), Tier.FULL, seats=1)
    with pytest.raises(SandboxError, match="did not start"):
        run(box, "print(1)")
    box.close()


def test_many_jobs_leave_no_process_no_file_and_no_memory(box: Sandbox) -> None:
    hostile = [
        "import os\nos._exit(3)",
        "import threading, time\n"
        "for _ in range(20): threading.Thread(target=time.sleep, args=(60,)).start()\nimport os; os._exit(0)",
        "import os\nfor i in range(50): open(f'f{i}', 'w').write('x' * 1000)\nos.makedirs('a/b/c')",
        "x = bytearray(50 * 2**20)",
        "import ctypes\nctypes.string_at(0)",
    ]
    for source in hostile * 2:
        run(box, source)
    before = _footprint(box)
    for source in hostile * 30:
        run(box, source)
    after = _footprint(box)
    assert after["children"] == before["children"]
    assert after["files"] == before["files"]
    assert after["resident_kb"] < before["resident_kb"] + 4000
    assert after["descriptors"] == before["descriptors"]


def _footprint(box: Sandbox) -> dict[str, int]:
    pids = [pid for seat in box.pids() for pid in _tree(seat)]
    return {
        "children": len(pids),
        "files": sum(len(list(Path(folder).iterdir())) for folder in box.folders()),
        "resident_kb": sum(_resident_kb(pid) for pid in pids),
        "descriptors": sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids),
    }


def _tree(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        found += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
    return found


def _runs(pid: int) -> bool:
    """A process that has ended and was not waited for yet by the machine's first process does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _resident_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:"))


def test_closing_takes_every_process_and_folder_along(box: Sandbox) -> None:
    own = Sandbox(Kind(), box.tier, seats=2)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: run(own, "import time; time.sleep(0.2)"), range(2)))
    pids, folders = [pid for seat in own.pids() for pid in _tree(seat)], own.folders()
    own.close()
    deadline = time.monotonic() + 10
    while any(_runs(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [pid for pid in pids if _runs(pid)] == []
    assert [folder for folder in folders if Path(folder).exists()] == []


def test_folders_that_a_killed_process_left_are_removed_and_those_in_use_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine, abandoned, other = Box(), tmp_path / "truegold-box-1-abandoned", tmp_path / "somebody-else"
    for folder in (abandoned / "deep" / "er", other):
        folder.mkdir(parents=True)
    long_ago = time.time() - 3600
    for path in (mine.path, abandoned, other):
        os.utime(path, (long_ago, long_ago))
    just_made = tmp_path / "truegold-box-1-just-made"
    just_made.mkdir()
    remove_abandoned()
    assert {path.name for path in tmp_path.iterdir()} == {Path(mine.path).name, "somebody-else", just_made.name}
    mine.close()
    assert not Path(mine.path).exists()


def test_a_killed_parent_leaves_no_sandbox_behind(box: Sandbox, tmp_path: Path) -> None:
    script = f"""
import sys, threading, time
from truegold.verifiers.code.limits import Limits
from truegold.verifiers.code.sandbox import Job, Kind, Tier, sandbox
box = sandbox(Kind(Tier({str(box.tier)!r})))
box.run(Job("main", b"print(1)", Limits()))
threading.Thread(target=box.run, args=(Job("main", b"while True: pass", Limits(cpu_s=60)),), daemon=True).start()
time.sleep(0.3)
print(*box.pids(), flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        pids = [pid for seat in map(int, process.stdout.readline().split()) for pid in _tree(seat)]
        assert len(pids) >= 2
        process.kill()
        process.wait()
    deadline = time.monotonic() + 10
    while any(_runs(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [pid for pid in pids if _runs(pid)] == []


def test_different_hash_seeds_order_sets_differently_and_each_always_alike() -> None:
    box_of(Tier.FULL)
    source = "print(list({'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'}))"
    outputs = [[run(sandbox(Kind(hash_seed=seed)), source).stdout for _ in range(2)] for seed in (0, 1)]
    assert outputs[0][0] == outputs[0][1]
    assert outputs[1][0] == outputs[1][1]
    assert outputs[0][0] != outputs[1][0]


def test_the_tier_can_be_asked_for_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    box_of(Tier.CONTAINER)
    monkeypatch.setenv("TRUEGOLD_SANDBOX", "container")
    assert sandbox(Kind(hash_seed=77)).tier is Tier.CONTAINER
    monkeypatch.setenv("TRUEGOLD_SANDBOX", "fort")
    with pytest.raises(ConfigError, match="full, container, weak"):
        sandbox(Kind(hash_seed=78))


def test_the_weak_tier_runs_and_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    box = box_of(Tier.WEAK)
    assert run(box, "print(int(input()) + 1)", b"6").stdout == b"7\n"
    assert run(box, "while True: pass", cpu_s=0.3).end is End.CPU_LIMIT
    done = run(box, "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2**60, 2**60))")
    assert b"ValueError" in done.stderr


NO_NAMESPACES = """
import ctypes, struct, sys
from truegold.verifiers.code.inside import kernel, seccomp, syscalls
LOAD, EQUAL, ANY, RET = 0x20, 0x15, 0x45, 0x06
allow, deny = (RET, 0, 0, 0x7FFF0000), (RET, 0, 0, 0x00050001)
code = [(LOAD, 0, 0, 0)]
for name in ("unshare", "setns", "mount"):
    numbers = {"unshare": (272, 97), "setns": (308, 268), "mount": (165, 40)}[name]
    code += [(EQUAL, 0, 1, numbers[not syscalls.has_x32()]), deny]
code += [(EQUAL, 0, 1, syscalls.needed("clone3")), (RET, 0, 0, 0x00050000 | 38)]
code += [(EQUAL, 0, 3, syscalls.needed("clone")), (LOAD, 0, 0, 16), (ANY, 0, 1, 0x7E020000), deny, allow]
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
assert seccomp.Filter(b"".join(struct.pack("=HBBI", *i) for i in code)).install() == 0
from truegold.verifiers.code.limits import Limits
from truegold.verifiers.code.sandbox import Job, possible_tiers, sandbox
print(possible_tiers())
box = sandbox()
print(box.tier, box.run(Job("main", b"print(int(input()) + 1)", Limits(), b"6")).stdout)
print(box.run(Job("main", b"open('/etc/hostname')", Limits())).stderr[-40:])
"""


def test_where_namespaces_are_forbidden_the_container_tier_is_chosen_and_says_why() -> None:
    box_of(Tier.CONTAINER)
    done = subprocess.run([sys.executable, "-c", NO_NAMESPACES], capture_output=True, text=True, check=True)
    assert "unshare: Operation not permitted" in done.stdout
    assert "container b'7\\n'" in done.stdout
    assert "Permission denied" in done.stdout


AS_ANOTHER_USER = """
import os, sys
if os.getuid() == 0:
    os.setgroups([]); os.setgid(1000); os.setuid(1000)
from truegold.verifiers.code.limits import Limits
from truegold.verifiers.code.sandbox import Job, Kind, Tier, sandbox
for tier in (Tier.FULL, Tier.CONTAINER):
    box = sandbox(Kind(tier))
    print(box.tier, box.run(Job("main", b"print(int(input()) + 1)", Limits(), b"6")).stdout)
    print(box.run(Job("main", b"import os; os.fork()", Limits())).stderr[-30:])
"""


def test_an_ordinary_user_gets_both_tiers() -> None:
    for tier in (Tier.FULL, Tier.CONTAINER):
        box_of(tier)
    python = _python_for_everybody()
    done = subprocess.run(
        [python, "-c", AS_ANOTHER_USER], capture_output=True, text=True, check=False, env=_readable_paths(), cwd="/"
    )
    assert done.returncode == 0, done.stderr
    assert "full b'7\\n'" in done.stdout
    assert "container b'7\\n'" in done.stdout
    assert done.stdout.count("Operation not permitted") == 2


def _readable_paths() -> dict[str, str]:
    """Where another interpreter finds this project and its packages, however they are installed for this one."""
    folders = [Path(__file__).parents[3] / "typings", Path(sysconfig.get_path("purelib"))]
    return {"PYTHONPATH": os.pathsep.join(map(str, folders)), "PATH": os.environ["PATH"]}


def _python_for_everybody() -> str:
    """An interpreter of this version that an ordinary user may run; ours may lie in root's home folder."""
    if os.getuid() != 0:
        return sys.executable
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        usable = "import os; os.setuid(1000); import encodings.idna, truegold.verifiers.code.limits"
        command = [candidate, "-c", usable]
        if Path(candidate).exists():
            tried = subprocess.run(command, capture_output=True, env=_readable_paths(), check=False)
            if tried.returncode == 0:
                return candidate
    pytest.skip("no interpreter of this version that an ordinary user may run, with this project's folders readable")


def test_a_machine_without_any_tier_says_what_to_do() -> None:
    with pytest.raises(SetupError, match="truegold doctor"):
        sandbox(Kind(python="/bin/false"))


def test_two_partners_talk_over_a_line_that_nobody_else_has(box: Sandbox) -> None:
    """Played with the role `main`, whose programs use the descriptor directly."""
    first = Job("main", b"import os\nos.write(4, os.read(4, 10).upper())", LIMITS)
    second = Job("main", b"import os\nos.write(4, b'hello')\nprint(os.read(4, 10))", LIMITS)
    one, two = box.run_pair(first, second)
    assert two.stdout == b"b'HELLO'\n"
    assert one.ok


def test_the_end_of_the_second_partner_is_the_end_of_both(box: Sandbox) -> None:
    started = time.monotonic()
    one, two = box.run_pair(Job("main", b"while True: pass", LIMITS), Job("main", b"print(1)", LIMITS))
    assert two.ok
    assert not one.ok
    assert one.cpu_s is not None
    assert time.monotonic() - started < 60


def test_the_protocol_survives_programs_that_write_where_they_should_not(box: Sandbox) -> None:
    done = run(
        box,
        "import os\nfor n in range(3, 64):\n    try: os.write(n, b'{\"jobs\": []}\\n')\n"
        "    except OSError: pass\nprint(1)",
    )
    assert done.stdout == b"1\n"
    assert run(box, "print(2)").stdout == b"2\n"


def test_output_that_is_no_text_comes_back_as_it_is(box: Sandbox) -> None:
    assert run(box, "import sys\nsys.stdout.buffer.write(bytes(range(256)))").stdout == bytes(range(256))


def test_ten_megabytes_of_input_arrive(box: Sandbox) -> None:
    assert run(box, "import sys\nprint(len(sys.stdin.buffer.read()))", b"x" * 10**7).stdout == b"10000000\n"


def test_json_of_a_request_is_never_longer_than_the_zygote_reads() -> None:
    request = Job("main", b"x", LIMITS).request()
    assert len(json.dumps(request)) * 2 < 2**16


def test_locks_are_not_held_while_a_program_runs(box: Sandbox) -> None:
    """A program that takes long keeps one seat; others get theirs."""
    long = threading.Thread(target=run, args=(box, "import time; time.sleep(1.5)"))
    long.start()
    started = time.monotonic()
    run(box, "print(1)")
    alive = long.is_alive()
    long.join()
    assert alive or time.monotonic() - started > 1.5


TRAPS = {
    "deep folders": "import os\nfor _ in range(2000): os.mkdir('d'); os.chdir('d')",
    "a folder that cannot be listed": "import os\nos.mkdir('graphlib', 0o300)\nopen('graphlib/__init__.py', 'w').write('0/0')",
    "links": "import os\nos.symlink('/', 'root'); os.symlink('.', 'self'); os.mkdir('d'); os.symlink('..', 'd/up')",
    "names": "import os\nfor n in ('\\n', '-rf', '.leaving-0', '\\udcff', ' '): os.mkdir(n)\nopen('.leaving-0/x', 'w')",
}


@pytest.mark.parametrize("name", TRAPS)
def test_whatever_a_program_leaves_in_its_folder_is_gone_for_the_next(box: Sandbox, name: str) -> None:
    run(box, TRAPS[name])
    assert run(box, "import os\nprint(os.listdir('.'))\nimport graphlib").stdout == b"[]\n"


def test_files_in_folders_count_as_well(box: Sandbox) -> None:
    source = "import os\nos.mkdir('s')\nfor i in range(400): open(f's/{i}', 'wb').write(b'x' * 2**20)\nprint('all')"
    assert run(box, source).stdout == b""


def test_a_program_cannot_make_itself_trouble_of_the_sandbox(box: Sandbox) -> None:
    for status in (70, 71, 126, 127, 255):
        assert run(box, f"import os\nos._exit({status})").status == status


def test_signals_cannot_be_sent_by_way_of_files(box: Sandbox) -> None:
    done = run(
        box, "import fcntl, os, socket\na, b = socket.socketpair()\nfcntl.fcntl(a, fcntl.F_SETOWN, os.getppid())"
    )
    assert b"PermissionError" in done.stderr
