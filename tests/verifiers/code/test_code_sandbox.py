"""Programs in the sandbox: what they can do, which limits end them, what they cannot reach, and what they leave."""

import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sandboxes import run
from tables import rows

from truegold.verifiers.sandbox import Sandbox, run_program
from truegold.verifiers.sandbox.execution import Limits, ProgramEnd
from truegold.verifiers.sandbox.local import installed_languages

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
    "the largest limit of recursion": "import sys\nclass N:\n    def __index__(self): return 5000\n"
    "sys.setrecursionlimit(N())\nsys.setrecursionlimit(2**31 - 1)\nprint(int(input()) + int(input()))",
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
    "sqlite": "import sqlite3\nd = sqlite3.connect('d.db'); d.execute('create table t (x)')\n"
    "d.executemany('insert into t values (?)', [(int(input()),), (int(input()),)]); d.commit(); d.close()\n"
    "print(sqlite3.connect('d.db').execute('select sum(x) from t').fetchone()[0])",
    "a hundred threads": "import threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
    "meet = threading.Barrier(100)\nwith ThreadPoolExecutor(100) as pool:\n"
    "    assert len(list(pool.map(lambda n: meet.wait(), range(100)))) == 100\nprint(int(input()) + int(input()))",
    "its user": "import getpass\nassert getpass.getuser() == 'solution'\nprint(int(input()) + int(input()))",
    "a path of stdin in a text": "assert len('/dev/stdin') == 10\nprint(int(input()) + int(input()))",
    "devices": "open('/dev/null', 'w').write('x'); open('/dev/urandom', 'rb').read(1)\n"
    "print(int(input()) + int(input()))",
    "long integers": "import sys\nsys.set_int_max_str_digits(0)\nx = str(10**5000)\nprint(int(input()) + int(input()))",
    "signals to itself": "import os, signal\ngot = []\nsignal.signal(signal.SIGUSR1, lambda *a: got.append(1))\n"
    "os.kill(os.getpid(), signal.SIGUSR1)\nassert got\nprint(int(input()) + int(input()))",
    "dataclasses": "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
    "print(P(int(input())).x + int(input()))",
    "closing stdout": "import sys\nprint(int(input()) + int(input()))\nsys.stdout.close()",
}


@rows("name", BENIGN)
def test_an_ordinary_program_runs_as_it_does_outside(box: Sandbox, name: str) -> None:
    if name == "recursion through C" and sys.version_info >= (3, 12):
        pytest.skip("this Python lets no program raise its limit of recursion through C")
    done = run(box, BENIGN[name], b"3\n4\n")
    assert (done.stdout, done.ok) == (b"7\n", True), done


ENDS = {
    "loop": ("while True: pass", ProgramEnd.CPU_LIMIT),
    "loop with every signal ignored": (
        "import signal\nfor s in range(1, 64):\n    try: signal.signal(s, signal.SIG_IGN)\n    except Exception: pass\n"
        "while True: pass",
        ProgramEnd.CPU_LIMIT,
    ),
    "one long call in C": ("x = 9 ** 9 ** 8", ProgramEnd.CPU_LIMIT),
    "a regex that backtracks": ("import re\nre.match(r'(a+)+$', 'a' * 64 + 'b')", ProgramEnd.CPU_LIMIT),
    "closed files, then a loop": ("import os\nos.closerange(0, 256)\nwhile True: pass", ProgramEnd.CPU_LIMIT),
    "sleep": ("import time\ntime.sleep(10**6)", ProgramEnd.WALL_LIMIT),
    "output": ("while True: print('a' * 10000)", ProgramEnd.OUTPUT_LIMIT),
    "error output": ("import sys\nwhile True: sys.stderr.write('a' * 10000)", ProgramEnd.OUTPUT_LIMIT),
}


@rows("name", ENDS)
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


@rows("name", FAILS)
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
    assert done.end is ProgramEnd.EXITED
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
    "files without a name": "for _ in range(9): os.close(os.open('.', os.O_TMPFILE | os.O_RDWR))",
    "a file that came and went": "open('left', 'w').close(); os.unlink('left')",
}


@pytest.mark.parametrize("name", MARKS)
def test_a_mark_on_the_working_folder_is_no_message_to_the_next_program(box: Sandbox, name: str) -> None:
    look = "import os\nfound = os.stat('.')\nprint(os.listdir('.'), oct(found.st_mode & 0o777), found.st_mtime == 77)"
    look += "\nprint(os.fstat(os.open('next', os.O_CREAT)).st_ino)"
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
    outputs = [run(box, SEARCH.format(first=text[:8], second=text[8:])).stdout for text in (ran, never_ran)]
    assert outputs[0] == outputs[1] != b""


def test_a_long_job_is_judged_by_the_processor_time_it_used(box: Sandbox) -> None:
    """Six at once on any machine: each gets a share of a core, and none is blamed for the others."""
    source = "import time\nwhile time.process_time() < 0.6: pass\nprint('done')"
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda _: run(box, source, cpu_s=1.5), range(6)))
    assert {d.end for d in done} == {ProgramEnd.EXITED}
    assert all(d.cpu_s is not None and d.cpu_s > 0.5 for d in done)


def test_the_verdict_on_an_overrun_names_cpu_even_when_the_program_ends_by_itself(box: Sandbox) -> None:
    done = run(box, "import time\nwhile time.process_time() < 0.31: pass", cpu_s=0.3)
    assert done.end is ProgramEnd.CPU_LIMIT


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


def test_the_entrance_runs_a_program_and_says_what_became_of_it():
    assert run_program("print(sum(map(int, input().split())))", stdin=b"3 4").stdout == b"7\n"
    assert run_program("while True: pass", limits=Limits(cpu_s=0.3)).end is ProgramEnd.CPU_LIMIT
    if "cpp" in installed_languages():
        assert run_program("int main() { return 3; }", "cpp").status == 3
        assert b"error" in run_program("int main() {", "cpp").stderr
