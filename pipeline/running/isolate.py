"""Runs a stage function in another process, which gives all its memory back and writes its noise to a log file.

A crash of vLLM or an out-of-memory kill becomes one clear error. The child (`isolated_child`) dies with its parent.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel

from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.running.disk import cache_folder
from truegold.pipeline.running.progress import Progress, relay
from truegold.pipeline.running.ranks import Ranks
from truegold.verifiers import SetupError
from truegold.verifiers.sandbox.errors import ERROR_TYPES

LOG_TAIL = 15
"""The error of a crashed stage shows this many lines of its log."""

QUIET_ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "PYTHONUNBUFFERED": "1",
    # They would be compiled into the temporary folder, which is another one for each stage: 6 CPU-seconds of its start.
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
}


class StageCrashed(RuntimeError):
    """A stage's process ended because of a bug; the message holds the end of its log."""


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

    `shared` is a folder for temporary files that ranks on other machines see as well. Raises the error of the first
    rank that reported one, SetupError where a child was killed, StageCrashed where one ended any other way.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    if launch.hostfile:
        shared.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="truegold-", dir=shared if launch.hostfile else None) as scratch:
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
                }
            )
        )
        status = _run_ranks(spec, log, progress, launch)
        outcomes: list[dict[str, Any]] = [
            orjson.loads(answer.read_bytes()) for answer in sorted(spec.parent.glob("answer-*.json"))
        ]
        for outcome in outcomes:
            if "error" in outcome:
                raise ERROR_TYPES[outcome["error"]](*outcome["arguments"])
        if outcomes and not status:
            report: dict[str, Any] = outcomes[0]["report"]
            return report
    if status == -signal.SIGINT:
        raise KeyboardInterrupt
    if status < 0:
        raise SetupError(
            f"The process of {fn} was killed by {signal.Signals(-status).name}; its log is {log}.",
            "Out of memory is the usual cause: lower the batch or the model size, or free memory, and run again.",
        )
    with log.open(encoding="utf-8", errors="replace") as file:
        tail = "".join(deque(file, maxlen=LOG_TAIL))
    raise StageCrashed(f"The process of {fn} ended with status {status}. The end of {log}:\n{tail}")


def _environment(scratch: Path) -> dict[str, str]:
    """Return an environment that keeps libraries quiet and has a temporary folder which goes with the stage.

    vLLM leaves sockets and lists of ports behind there. What torch compiles has to outlive the stage, or every stage
    would compile again.
    """
    lasting = {"TORCHINDUCTOR_CACHE_DIR": str(cache_folder("torchinductor"))}
    return {**QUIET_ENVIRONMENT, **lasting, **os.environ, "TMPDIR": str(scratch)}


def _run_ranks(spec: Path, log: Path, progress: Progress, launch: LaunchConfig) -> int:
    read_end, write_end = os.pipe()
    with log.open("ab") as sink:
        try:
            ranks = Ranks(launch, spec, write_end, _environment(spec.parent), sink)
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        try:
            with os.fdopen(read_end, encoding="utf-8") as lines:
                relay(lines, progress)
            return ranks.wait()
        finally:
            ranks.end()
