"""A Slurm of this machine alone: its controller and its node, as processes that end with the block."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP
"""


@contextmanager
def slurm_machine(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the environment in which Slurm's commands mean a cluster that keeps its state in a new folder."""
    daemons = ("slurmctld", "slurmd")
    if any(shutil.which(name) is None for name in daemons):
        pytest.skip("needs Slurm (apt-get install slurm-wlm)")
    host, user = socket.gethostname().partition(".")[0], Path.home().owner()
    (folder / "spool").mkdir(parents=True)
    with socket.socket() as first, socket.socket() as second:
        for free in (first, second):
            free.bind(("127.0.0.1", 0))
        ports = [free.getsockname()[1] for free in (first, second)]
    (folder / "slurm.conf").write_text(CONFIG.format(folder=folder, host=host, user=user, ports=ports))
    variables = {"SLURM_CONF": str(folder / "slurm.conf")}
    environment = {**os.environ, **variables}
    with (folder / "log").open("w") as log:
        running = [subprocess.Popen([name, "-D"], stdout=log, stderr=log, env=environment) for name in daemons]
    try:
        ask = ["sinfo", "--noheader", "-o", "%T"]
        for _ in range(60):
            states = subprocess.run(ask, capture_output=True, text=True, check=False, env=environment)
            if states.stdout.strip() == "idle":
                break
            time.sleep(0.5)
        else:
            pytest.skip(f"Slurm does not start here: {(folder / 'log').read_text()[-300:]}")
        yield variables
    finally:
        for daemon in running:
            daemon.terminate()
            daemon.wait()
