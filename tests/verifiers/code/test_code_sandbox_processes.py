"""The sandbox's own processes: who gets a seat and a partner, what is replaced and left behind, and in which tiers."""

import contextlib
import json
import os
import signal
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

from truegold.verifiers.code.verifier import CodeVerifier
from truegold.verifiers.sandbox import Job, Sandbox, Tier, sandbox
from truegold.verifiers.sandbox.errors import ConfigError, SetupError
from truegold.verifiers.sandbox.execution import ProgramEnd, SandboxError
from truegold.verifiers.sandbox.pool import Kind, WorkFolder, describe_job, remove_abandoned


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
    box = Sandbox(Kind(), box_of(Tier.FULL).tier, jobs_at_once=1)
    try:
        assert run(box, "print(1)").stdout == b"1\n"
        (pid,) = box.pids()
        os.kill(pid, signal.SIGKILL)
        assert run(box, "print(2)").stdout == b"2\n"
    finally:
        box.close()


def test_a_sandbox_that_keeps_failing_is_trouble_and_no_verdict() -> None:
    box = Sandbox(Kind(python="/bin/false"), Tier.FULL, jobs_at_once=1)
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
    pids = [pid]
    for parent in pids:
        pids += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
    return pids


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
    own_box = Sandbox(Kind(), box.tier, jobs_at_once=2)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: run(own_box, "import time; time.sleep(0.2)"), range(2)))
    pids, folders = [pid for seat in own_box.pids() for pid in _tree(seat)], own_box.folders()
    own_box.close()
    deadline = time.monotonic() + 10
    while any(_runs(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [pid for pid in pids if _runs(pid)] == []
    assert [folder for folder in folders if Path(folder).exists()] == []


def test_folders_that_a_killed_process_left_are_removed_and_those_in_use_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine, abandoned, other = WorkFolder(), tmp_path / "truegold-box-1-abandoned", tmp_path / "somebody-else"
    for folder in (abandoned / "deep" / "er", other):
        folder.mkdir(parents=True)
    long_ago = time.time() - 3600
    for path in (mine.path, abandoned, other):
        os.utime(path, (long_ago, long_ago))
    just_made = tmp_path / "truegold-box-1-just-made"
    just_made.mkdir()
    remove_abandoned()
    assert {path.name for path in tmp_path.iterdir()} == {Path(mine.path).name, "somebody-else", just_made.name}
    mine.remove()
    mine.forget()
    assert not Path(mine.path).exists()


def test_a_killed_parent_leaves_no_sandbox_behind(box: Sandbox, tmp_path: Path) -> None:
    script = f"""
import sys, threading, time
from truegold.verifiers.sandbox.execution import Limits
from truegold.verifiers.sandbox import Job, Tier, sandbox
from truegold.verifiers.sandbox.pool import Kind
box = sandbox(Kind(Tier({str(box.tier)!r})))
box.run(Job("main", b"print(1)", Limits()))
threading.Thread(target=box.run, args=(Job("main", b"while True: pass", Limits(cpu_s=60)),), daemon=True).start()
time.sleep(0.3)
print(*box.pids(), flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-P", "-c", script], stdout=subprocess.PIPE, text=True)
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


def test_a_job_that_sleeps_leaves_its_core_to_others(box: Sandbox) -> None:
    own_box = Sandbox(Kind(box.tier), box.tier, jobs_at_once=1)
    with contextlib.closing(own_box), ThreadPoolExecutor(2) as threads:
        sleeper = threads.submit(run, own_box, "import time\ntime.sleep(3)\nprint('slept')")
        while not own_box.pids():
            time.sleep(0.01)
        assert run(own_box, "print('ran')").stdout == b"ran\n"
        assert not sleeper.done()
        assert len(own_box.pids()) == 1, "the zygote for the other job ends with it"
        assert sleeper.result().stdout == b"slept\n"
        pids = own_box.pids()
        assert run(own_box, "print('ran')").ok
        assert own_box.pids() == pids, "a zygote that runs is taken first"


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
    assert run(box, "while True: pass", cpu_s=0.3).end is ProgramEnd.CPU_LIMIT
    done = run(box, "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2**60, 2**60))")
    assert b"ValueError" in done.stderr


NO_NAMESPACES = """
import ctypes, struct, sys
from truegold.verifiers.sandbox.inside.confine import kernel, seccomp
LOAD, EQUAL, ANY, RET = 0x20, 0x15, 0x45, 0x06
allow, deny = (RET, 0, 0, 0x7FFF0000), (RET, 0, 0, 0x00050001)
code = [(LOAD, 0, 0, 0)]
for name in ("unshare", "setns", "mount"):
    numbers = {"unshare": (272, 97), "setns": (308, 268), "mount": (165, 40)}[name]
    code += [(EQUAL, 0, 1, numbers[not kernel.HAS_X32]), deny]
code += [(EQUAL, 0, 1, kernel.call_number("clone3")), (RET, 0, 0, 0x00050000 | 38)]
code += [(EQUAL, 0, 3, kernel.call_number("clone")), (LOAD, 0, 0, 16), (ANY, 0, 1, 0x7E020000), deny, allow]
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
assert seccomp.Filter(b"".join(struct.pack("=HBBI", *i) for i in code)).install() == 0
from truegold.verifiers.sandbox.execution import Limits
from truegold.verifiers.sandbox import Job, possible_tiers, sandbox
print(possible_tiers())
box = sandbox()
print(box.tier, box.run(Job("main", b"print(int(input()) + 1)", Limits(), b"6")).stdout)
print(box.run(Job("main", b"open('/etc/hostname')", Limits())).stderr[-40:])
"""


def test_where_namespaces_are_forbidden_the_container_tier_is_chosen_and_says_why() -> None:
    box_of(Tier.CONTAINER)
    done = subprocess.run([sys.executable, "-P", "-c", NO_NAMESPACES], capture_output=True, text=True, check=True)
    assert "unshare: Operation not permitted" in done.stdout
    assert "container b'7\\n'" in done.stdout
    assert "Permission denied" in done.stdout


NO_SECOND_FILTER = """
import struct
from truegold.verifiers.sandbox.inside.confine import kernel, seccomp
number = kernel.call_number("seccomp")
code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
assert seccomp.Filter(b"".join(struct.pack("=HBBI", *i) for i in code)).install() == 0
from truegold.verifiers.sandbox import Tier, possible_tiers
print([possible_tiers()[tier] for tier in (Tier.FULL, Tier.CONTAINER)])
"""


def test_a_tier_in_which_no_program_can_be_locked_in_is_none() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", NO_SECOND_FILTER], capture_output=True, text=True, check=True)
    assert "None" not in done.stdout, done.stdout


AS_ANOTHER_USER = """
import os, sys
if os.getuid() == 0:
    os.setgroups([]); os.setgid(1000); os.setuid(1000)
from truegold.verifiers.sandbox.execution import Limits
from truegold.verifiers.sandbox import Job, Tier, sandbox
from truegold.verifiers.sandbox.pool import Kind
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
    folders = [Path(__file__).parents[3] / "src", Path(sysconfig.get_path("purelib"))]
    return {"PYTHONPATH": os.pathsep.join(map(str, folders)), "PATH": os.environ["PATH"]}


def _python_for_everybody() -> str:
    """An interpreter of this version that an ordinary user may run; ours may lie in root's home folder."""
    if os.getuid() != 0:
        return sys.executable
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        usable = "import os; os.setuid(1000); import encodings.idna, truegold.verifiers.sandbox.execution"
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
    solution, tests = box.run_pair(first, second)
    assert tests.stdout == b"b'HELLO'\n"
    assert solution.ok


def test_the_end_of_the_second_partner_is_the_end_of_both(box: Sandbox) -> None:
    started = time.monotonic()
    solution, tests = box.run_pair(Job("main", b"while True: pass", LIMITS), Job("main", b"print(1)", LIMITS))
    assert tests.ok
    assert not solution.ok
    assert solution.cpu_s is not None
    assert time.monotonic() - started < 60


def test_json_of_a_request_is_never_longer_than_the_zygote_reads() -> None:
    request = describe_job(Job("main", b"x", LIMITS))
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


def test_an_interpreter_below_tmp_has_the_full_tier_and_its_programs_have_tmp() -> None:
    box_of(Tier.FULL)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # Root's programs run as another user.
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        python = f"{folder}/bin/python"
        below_tmp = sandbox(Kind(Tier.FULL, python=python))
        for _ in range(2):
            ran = run(below_tmp, WRITES_TO_TMP)
            assert ran.stdout.decode().split() == [folder, "read-only", "1"], ran.stderr
        below_tmp.close()


WRITES_TO_TMP = """
import os, sys
print(sys.prefix)
try: open(sys.prefix + "/new", "w")
except OSError: print("read-only")
assert os.listdir("/tmp") == [sys.prefix.split("/")[2]] and os.path.isdir(sys.prefix + "/lib")
with open("/tmp/mine", "w") as file: file.write("1")
os.unlink("/tmp/" + sys.prefix.split("/")[2])
assert os.listdir(".") == []
print(open("/tmp/mine").read())
"""


def test_a_weaker_tier_than_the_machine_gives_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for tier in (Tier.FULL, Tier.CONTAINER):
        box_of(tier)
    tests = {"type": "stdio", "cases": [{"input": "", "output": "1"}]}
    assert "stronger_tier" not in CodeVerifier()("```python\nprint(1)\n```", info={"tests": tests}).evidence
    monkeypatch.setenv("TRUEGOLD_SANDBOX", "container")
    seed = 12345  # No other sandbox is of this kind.
    with pytest.warns(UserWarning, match="tier container, though this machine allows full"):
        verdict = CodeVerifier(hash_seed=seed)("```python\nprint(1)\n```", info={"tests": tests})
    assert (verdict.evidence["tier"], verdict.evidence["stronger_tier"]) == ("container", "full")
