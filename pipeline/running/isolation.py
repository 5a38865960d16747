"""Runs a stage function in one or more child processes, which free all memory when they end and print to a log file.

    python -m truegold.pipeline.running.isolation SPEC.json PROGRESS_FD       the command of a child

A stage has one child. A training may have one child for each rank on this machine, or start its ranks on several
machines by DeepSpeed's launcher. If a rank fails, the others are killed, since they wait for it forever. A crash of
vLLM and an out-of-memory kill are reported as one clear error.

The children end with their parent. SIGTERM and SIGINT are passed on to them: a training then saves a checkpoint before
it ends, and other stages end immediately. Only rank 0 reports progress.
"""

from __future__ import annotations

import gc
import os
import pkgutil
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from threading import Thread, Timer, current_thread, main_thread
from typing import IO, Any

import orjson
from pydantic import BaseModel

from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.running.disk import cache_folder, disk_errors_reported, write_whole
from truegold.pipeline.running.progress import NullProgress, PipeProgress, Progress, relay
from truegold.pipeline.running.tether import DONE, FAILED, Tether, hold
from truegold.verifiers import SetupError
from truegold.verifiers.sandbox.child_process import die_with_parent, usable_cores
from truegold.verifiers.sandbox.errors import ERROR_TYPES, Preempted, TruegoldError

LOG_TAIL = 15
"""The number of lines of the log that the error of a crashed stage shows."""

QUIET_ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "PYTHONUNBUFFERED": "1",
    # Precompiling headers takes 6 seconds of CPU time for each stage, because its temporary folder is deleted.
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
}
"""Environment variables that turn off messages, telemetry and needless work of libraries."""
WORKER = "truegold.pipeline.running.isolation"
PATIENCE = 10.0
"""A process that does not end within this number of seconds is killed."""
GC_THRESHOLDS = (50_000, 20, 100)
"""The thresholds of Python's garbage collector. With the defaults, it runs for a fifth of the time of a vLLM import."""
RANK_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
"""Environment variables of process groups. A stage does not inherit them, because it forms its own group."""
HANDED_ON = ("WANDB_", "HF_", "HUGGING_FACE_", "MLFLOW_", "TRACKIO_")
"""Environment variables with these prefixes, of trackers and the hub, are passed to ranks on other machines."""
NO_PIPE = -1
"""The value of PROGRESS_FD for a process that reports no progress."""

ENDINGS: dict[int, str] = {signal.SIGTERM: "preempted (SIGTERM)", signal.SIGINT: "interrupted (SIGINT)"}
"""Signal -> the description of a run that the signal ended."""
GO_ON = "The same command goes on from here."
"""The advice after an interrupted run, which can be resumed."""
LESS_MEMORY = "Set engine.gpu_memory_utilization or optimizer.micro_batch_tokens lower, and run the same command again."


class _Late:
    """Stores a signal that arrives after the stage has finished. The next stage raises it as an error."""

    signum: int | None = None


class StageCrashed(RuntimeError):
    """A stage process ended because of a bug. The message has the end of its log."""


def call_isolated(
    fn: str,
    inputs: Mapping[str, Path],
    config: BaseModel,
    out_dir: Path,
    progress: Progress,
    log: Path,
    launch: LaunchConfig,
    shared: Path,
) -> dict[str, Any]:
    """Call the stage function `fn` in a child process for each rank, and return the fields of rank 0's report.

    `shared` is a folder for temporary files that all machines can see. Raises the error of the first rank that reported
    one, Preempted after a signal, SetupError if a child was killed, and StageCrashed if it ended in another way.
    """
    if (signum := _Late.signum) is not None:
        _Late.signum = None
        raise Preempted(f"{ENDINGS[signum]} after the previous stage had finished.", GO_ON, signum)
    log.parent.mkdir(parents=True, exist_ok=True)
    if launch.hostfile:
        shared.mkdir(exist_ok=True)
    tether = None if launch.hostfile is None else Tether(_hosts(Path(launch.hostfile)))
    with (
        nullcontext() if tether is None else closing(tether),
        tempfile.TemporaryDirectory(prefix="truegold-", dir=shared if launch.hostfile else None) as scratch,
    ):
        spec = Path(scratch).resolve() / "spec.json"
        config_type = type(config)
        spec.write_bytes(
            orjson.dumps(
                {
                    "fn": fn,
                    "inputs": {name: str(path.resolve()) for name, path in inputs.items()},
                    "config_type": f"{config_type.__module__}:{config_type.__qualname__}",
                    "config": config.model_dump(mode="json"),
                    "out_dir": str(out_dir.resolve()),
                    "answers": str(spec.parent),
                    "parent": None if launch.hostfile else os.getpid(),
                    "tether": None if tether is None else (tether.addresses, tether.token),
                    # DeepSpeed's launcher passes few variables, and passes them on command lines, which every user can
                    # read.
                    "variables": {name: value for name, value in os.environ.items() if name.startswith(HANDED_ON)},
                }
            )
        )
        status = _run_ranks(spec, log, progress, launch, tether)
        outcomes: list[dict[str, Any]] = [
            orjson.loads(answer.read_bytes()) for answer in sorted(spec.parent.glob("answer-*.json"))
        ]
        for outcome in outcomes:
            if "error" in outcome:
                raise ERROR_TYPES[outcome["error"]](*outcome["arguments"])
        if outcomes and not status:
            report: dict[str, Any] = outcomes[0]["report"]
            return report
    with log.open(encoding="utf-8", errors="replace") as file:
        tail = "".join(deque(file, maxlen=LOG_TAIL))
    if tether is not None and tether.is_broken:
        raise SetupError(f"A process of {fn}, or its machine, was lost. The end of {log}:\n{tail}", GO_ON)
    if -status in ENDINGS:
        raise Preempted(f"{ENDINGS[-status]} in {fn.rpartition(':')[2]}.", GO_ON, -status)
    if status < 0:
        raise SetupError(
            f"The process of {fn} was killed by {signal.Signals(-status).name}; its log is {log}.",
            "Out of memory is the usual cause: lower the batch or the model size, or free memory, and run again.",
        )
    raise StageCrashed(f"The process of {fn} ended with status {status}. The end of {log}:\n{tail}")


def _environment(scratch: Path) -> dict[str, str]:
    """Return an environment that keeps libraries quiet, with a temporary folder that is deleted after the stage.

    vLLM leaves sockets and lists of ports in this folder. Code that torch compiles is kept in the cache folder instead,
    so that later stages need not compile it again.
    """
    lasting = {"TORCHINDUCTOR_CACHE_DIR": str(cache_folder("torchinductor"))}
    return {**QUIET_ENVIRONMENT, **lasting, **os.environ, "TMPDIR": str(scratch)}


def _hosts(hostfile: Path) -> list[str]:
    lines = hostfile.read_text(encoding="utf-8").splitlines() if hostfile.exists() else []
    return [line.split()[0] for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _run_ranks(spec: Path, log: Path, progress: Progress, launch: LaunchConfig, tether: Tether | None) -> int:
    read_end, write_end = os.pipe()
    with log.open("ab") as sink:
        try:
            ranks = Ranks(launch, spec, write_end, _environment(spec.parent), sink, tether)
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        try:
            with os.fdopen(read_end, encoding="utf-8") as lines, ranks.told_to_end():
                relay(ranks.watched(lines), progress)
                return ranks.wait()
        finally:
            ranks.end()


class Ranks:
    """The running processes of one stage."""

    def __init__(
        self,
        launch: LaunchConfig,
        spec: Path,
        pipe: int,
        environment: Mapping[str, str],
        sink: IO[bytes],
        tether: Tether | None = None,
    ) -> None:
        """Start the processes of the stage that the file `spec` describes. Every rank must be able to read the file.

        Rank 0 writes its progress to `pipe`, and all processes print to `sink`. Raises SetupError if there is a
        hostfile but no `deepspeed` command.
        """
        environment = {name: value for name, value in environment.items() if name not in RANK_VARIABLES}
        # Without -P, a folder like `verifiers` in the working directory hides an installed package of the same name.
        single = [sys.executable, "-P", "-m", WORKER, str(spec)]
        commands: list[tuple[list[str], dict[str, str]]] = [([*single, str(pipe)], {})]
        if launch.hostfile is not None:
            launcher = [_deepspeed_launcher(), "--hostfile", launch.hostfile, "--module", WORKER]
            commands = [([*launcher, str(spec), str(NO_PIPE)], {})]
        elif launch.ranks > 1:
            commands = [
                ([*single, str(pipe if rank == 0 else NO_PIPE)], variables)
                for rank, variables in enumerate(_rank_variables(launch.ranks))
            ]
        self._children = [
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                pass_fds=(pipe,) if str(pipe) in command else (),
                env={**environment, **variables},
            )
            for command, variables in commands
        ]
        self._followers = [Thread(target=self._follow, args=(child,), daemon=True) for child in self._children]
        self._first_failure: int | None = None
        self._tether = tether
        self._passed_on: int | None = None
        """The signal that was passed on to the processes, or None."""
        self._is_saving = False
        """Whether the processes have reported that they are saving their work after a signal."""
        for follower in self._followers:
            follower.start()

    def wait(self) -> int:
        """Wait for all processes, and return 0 or the status of the first process that failed.

        If a process failed after a signal was passed on, the result is the negative number of the signal.
        """
        for follower in self._followers:
            follower.join()
        if self._first_failure and self._passed_on is not None:
            return -self._passed_on
        if not self._first_failure:
            _Late.signum = self._passed_on
        return self._first_failure or 0

    @contextmanager
    def told_to_end(self) -> Iterator[None]:
        """Within this context, pass the first SIGTERM or SIGINT on to the processes. A second SIGINT ends all of them.

        The processes may save their work, as a training does. If they do not report this soon, they are killed.
        """
        if current_thread() is not main_thread():
            yield
            return

        def pass_on(signum: int, frame: object) -> None:
            if self._passed_on is not None:
                if signum == signal.SIGINT:
                    raise KeyboardInterrupt
                return
            self._passed_on = signum
            if self._tether is not None:
                # Signal the ranks directly. DeepSpeed's launcher would kill them before they can save.
                self._tether.tell(signum)
                return
            for child in self._children:
                if child.poll() is None:
                    child.send_signal(signum)
            killer = Timer(PATIENCE, self._kill_silent)
            killer.daemon = True
            killer.start()

        earlier = {signum: signal.signal(signum, pass_on) for signum in ENDINGS}
        try:
            yield
        finally:
            for signum, handler in earlier.items():
                signal.signal(signum, handler)

    def watched(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines of progress. If a step starts after a signal, note that the processes save their work."""
        for line in lines:
            self._is_saving |= self._passed_on is not None and line.startswith('["start"')
            yield line

    def _kill_silent(self) -> None:
        if not self._is_saving:
            for child in self._children:
                child.kill()

    def end(self) -> None:
        """End the processes that still run by SIGTERM, so that a launcher ends its ranks. After a while, kill them."""
        for child in self._children:
            if child.poll() is None:
                child.terminate()
        for child in self._children:
            with suppress(subprocess.TimeoutExpired):
                child.wait(PATIENCE)
            child.kill()
            child.wait()

    def _follow(self, child: subprocess.Popen[bytes]) -> None:
        status = child.wait()
        if status and self._first_failure is None:
            self._first_failure = status
            for other in self._children:
                if other is not child and other.poll() is None:
                    other.kill()


def _rank_variables(ranks: int) -> list[dict[str, str]]:
    shared = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1"}
    shared["MASTER_PORT"] = str(free_port())
    # Without this variable, each rank starts a thread for every core.
    shared["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", str(max(1, usable_cores() // ranks)))
    return [{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(ranks)]


def _deepspeed_launcher() -> str:
    beside = Path(sys.executable).with_name("deepspeed")
    launcher = str(beside) if beside.exists() else shutil.which("deepspeed")
    if launcher is None:
        raise SetupError("A hostfile needs DeepSpeed's launcher, and there is no command `deepspeed`.", "Install it.")
    return launcher


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    """Run the stage of the specification file, and write its report or its error as the answer of this rank."""
    *_, path, descriptor = sys.argv
    spec = orjson.loads(Path(path).read_bytes())
    if spec["parent"] is not None:
        die_with_parent(spec["parent"])
    last_word = hold(*spec["tether"]) if spec["tether"] is not None else lambda word: None
    os.environ.update(spec["variables"])
    gc.set_threshold(*GC_THRESHOLDS)
    progress = _progress(int(descriptor))
    function, config_type = pkgutil.resolve_name(spec["fn"]), pkgutil.resolve_name(spec["config_type"])
    # SIGINT ends the process, unless the stage sets its own handler. This replaces the handler of polars, which ignores
    # it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    config = config_type.model_validate(spec["config"])
    inputs = {name: Path(path) for name, path in spec["inputs"].items()}
    try:
        with disk_errors_reported(Path(spec["out_dir"])):
            report = function(inputs, config, Path(spec["out_dir"]), progress)
        outcome: dict[str, Any] = {"report": asdict(report)}
    except TruegoldError as error:
        outcome = {"error": _known_type(error), "arguments": error.__reduce__()[1]}
    except BaseException as error:
        # torch is not imported here, so the name of the error is compared.
        if type(error).__name__ != "OutOfMemoryError":
            last_word(FAILED)
            raise
        traceback.print_exception(error)
        message = f"A GPU has no memory left: {str(error).strip().partition('.')[0]}."
        outcome = {"error": SetupError.__name__, "arguments": (message, LESS_MEMORY)}
    answer = Path(spec["answers"]) / f"answer-{int(os.environ.get('RANK', '0')):05d}.json"
    write_whole(answer, orjson.dumps(outcome, option=orjson.OPT_SERIALIZE_NUMPY))
    sys.stdout.flush()
    last_word(FAILED if "error" in outcome else DONE)
    # Exit immediately, because the normal end of engines sometimes hangs or crashes.
    os._exit(int("error" in outcome))


def _progress(pipe: int) -> Progress:
    if pipe == NO_PIPE:
        return NullProgress()
    # Children must not inherit the pipe: the parent reads it until every process that holds it has ended.
    os.set_inheritable(pipe, False)
    return PipeProgress(os.fdopen(pipe, "w", encoding="utf-8"))


def _known_type(error: TruegoldError) -> str:
    """Return the name of the error's class, or of its nearest base class that the parent process knows."""
    return next(cls.__name__ for cls in type(error).__mro__ if cls.__name__ in ERROR_TYPES)


if __name__ == "__main__":
    main()
