"""Starts the processes of an isolated stage, and kills the others when one fails: they would wait for it for ever.

There is one process, one for each rank on this machine, or DeepSpeed's launcher for several machines.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import IO

from truegold.pipeline.config.base import LaunchConfig
from truegold.verifiers import SetupError

WORKER = "truegold.pipeline.running.isolated_child"
PATIENCE = 10.0
"""A process that was asked to end is killed after this many seconds."""
RANK_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
"""A stage does not inherit these: it forms a group of its own, whatever group this process is in."""
NO_PIPE = -1
"""It stands in place of the progress pipe for processes that cannot have it."""


class Ranks:
    """The running processes of one stage."""

    def __init__(
        self, launch: LaunchConfig, spec: Path, pipe: int, environment: Mapping[str, str], sink: IO[bytes]
    ) -> None:
        """Start the processes of the stage that the file `spec` describes, which every rank has to see.

        Rank 0 writes its progress to `pipe`; what the processes print goes to `sink`. Raises SetupError where there is
        a hostfile and no `deepspeed` command.
        """
        environment = {name: value for name, value in environment.items() if name not in RANK_VARIABLES}
        # -P: without it the working directory shadows installed packages, such as `verifiers`.
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
        for follower in self._followers:
            follower.start()

    def wait(self) -> int:
        """Wait for all processes, and return 0 or the status of the one that failed first."""
        for follower in self._followers:
            follower.join()
        return self._first_failure or 0

    def end(self) -> None:
        """End the processes that still run. A launcher is asked first, since it has to end its ranks."""
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
    """Return what torch.distributed reads from the environment of each rank."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    shared = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    # Without it each rank would start a thread for every core.
    shared["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // ranks)))
    return [{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(ranks)]


def _deepspeed_launcher() -> str:
    beside = Path(sys.executable).with_name("deepspeed")
    launcher = str(beside) if beside.exists() else shutil.which("deepspeed")
    if launcher is None:
        raise SetupError("A hostfile needs DeepSpeed's launcher, and there is no command `deepspeed`.", "Install it.")
    return launcher
