"""The symbolic worker: it can be killed, it is replaced, and any thread or process may use it."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from truegold.verifiers import MathVerifier, Reason, SetupError, equivalent
from truegold.verifiers.math import worker
from truegold.verifiers.math.reading.answers import read

SYMBOLIC = (read(r"\int_0^1 x^2 dx"), read(r"\int_0^1 (1-x)^2 dx"))
SLOW = (read(r"\int_0^1 x^{x^x} dx"), read(r"\int_0^1 \sin(x^{x^x}) \ln(1+x^{\sin x}) dx"))


def test_a_comparison_that_takes_too_long_is_killed_and_the_next_one_works():
    worker.compare(*SYMBOLIC)
    child = worker._worker.child.pid
    start = time.monotonic()
    reply = worker.compare(*SLOW, cpu_s=60, deadline_s=0.3)
    assert reply.reason is Reason.TIMEOUT
    assert time.monotonic() - start < 3
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    assert worker.compare(*SYMBOLIC).reason is Reason.MATCH


def test_a_comparison_that_uses_up_its_cpu_time_ends_and_the_child_stays():
    worker.compare(*SYMBOLIC)
    child = worker._worker.child.pid
    reply = worker.compare(*SLOW, cpu_s=0.1)
    assert (reply.reason, reply.evidence) == (Reason.TIMEOUT, {"cpu_s": 0.1})
    assert worker.compare(*SYMBOLIC).reason is Reason.MATCH
    assert worker._worker.child.pid == child


def test_a_worker_that_was_killed_is_replaced_without_loss():
    worker.compare(*SYMBOLIC)
    os.kill(worker._worker.child.pid, signal.SIGKILL)
    assert worker.compare(*SYMBOLIC).reason is Reason.MATCH


def test_a_worker_that_dies_twice_is_reported_as_a_limit(monkeypatch):
    class Dying:
        def send(self, message, deadline):
            raise worker.ChildDied("ended by signal 9")

        def kill(self):
            pass

    monkeypatch.setattr(worker._worker, "_running_child", Dying)
    reply = worker.compare(*SYMBOLIC)
    assert reply.reason is Reason.LIMIT
    assert "signal 9" in reply.evidence["error"]


def test_a_worker_that_cannot_start_is_a_setup_error(monkeypatch):
    module = "truegold.verifiers.math.no_such_module"
    with pytest.raises(SetupError, match=r"did not start: .*No module named"):
        worker.ChildWorker(module, "the worker", ("", "")).ask({}, deadline_s=1)


def test_memory_beyond_the_limit_is_refused():
    module = "truegold.verifiers.sandbox.child_process"
    code = f"from {module} import limit_memory; limit_memory(1 << 29); bytearray(1 << 30)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert "MemoryError" in done.stderr


def test_a_lower_limit_of_memory_that_a_process_was_started_with_stays():
    module = "truegold.verifiers.sandbox.child_process"
    code = (
        f"import resource; from {module} import limit_memory; limit_memory(1 << 29); limit_memory(1 << 31);"
        "print(resource.getrlimit(resource.RLIMIT_AS) == (1 << 29, 1 << 29))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_threads_share_it():
    with ThreadPoolExecutor(4) as threads:
        verdicts = list(
            threads.map(lambda n: equivalent(f"\\int_{{-{n}}}^0 (-2x) dx", gold=f"\\int_0^{n} 2x dx").score, range(12))
        )
    assert verdicts == [1.0] * 12


def test_it_outlives_the_thread_that_started_it():
    worker.stop()
    thread = threading.Thread(target=worker.compare, args=SYMBOLIC)
    thread.start()
    thread.join()
    child = worker._worker.child.pid
    time.sleep(0.2)
    assert worker.compare(*SYMBOLIC).reason is Reason.MATCH
    assert worker._worker.child.pid == child


def test_a_forked_process_has_a_worker_of_its_own():
    worker.compare(*SYMBOLIC)
    pid_before_fork = worker._worker.child.pid
    with warnings.catch_warnings():
        # Newer Pythons warn of a fork with threads, which is the case under test.
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            matches = worker.compare(*SYMBOLIC).reason is Reason.MATCH
            status = 0 if matches and worker._worker.child.pid != pid_before_fork else 2
            worker.stop()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert worker.compare(*SYMBOLIC).reason is Reason.MATCH
    assert worker._worker.child.pid == pid_before_fork


def test_it_dies_with_a_parent_that_is_killed():
    code = (
        "import time; from truegold.verifiers.math import worker\n"
        "from truegold.verifiers.math.reading.answers import read\n"
        "worker.compare(read('x'), read('y'))\n"
        "print(worker._worker.child.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-P", "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 10
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(child)


def is_running(pid):
    """Tell whether a process is alive and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_spawned_process_can_use_a_pickled_verifier():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        verdict = pool.apply(
            pickle.loads(pickle.dumps(MathVerifier())), ("\\boxed{\\int_0^1 x dx}", "\\int_0^1 (1-x) dx")
        )
    assert verdict.score == 1.0
