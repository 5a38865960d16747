"""Runs a stage function in a process of its own: its memory comes back whole, its noise goes to a log file, and a crash
of vLLM or an out-of-memory kill becomes one clear error. The child dies with its parent (see `worker`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel

from truegold.pipeline.cache_folder import cache_folder
from truegold.pipeline.progress import Progress, relay
from truegold.verifiers import SetupError
from truegold.verifiers.errors import ERROR_TYPES

LOG_TAIL = 15
"""Lines of a crashed stage's log that are shown."""

QUIET_ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "PYTHONUNBUFFERED": "1",
}


class StageCrashed(RuntimeError):
    """A stage's process ended by a bug; the message holds the end of its log."""


def call_isolated(
    fn: str, inputs: Mapping[str, Path], config: BaseModel, out_dir: Path, progress: Progress, log: Path
) -> dict[str, Any]:
    """Call the stage function `fn` in a child process and return its report's fields.

    Raises the child's own TruegoldError; SetupError where the child was killed; StageCrashed with the end of the log
    where it ended any other way.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="truegold-") as scratch:
        spec = Path(scratch) / "spec.json"
        answer = Path(scratch) / "answer.json"
        config_type = type(config)
        spec.write_bytes(
            orjson.dumps(
                {
                    "fn": fn,
                    "inputs": {name: str(path.resolve()) for name, path in inputs.items()},
                    "config_type": f"{config_type.__module__}:{config_type.__qualname__}",
                    "config": config.model_dump(mode="json"),
                    "out_dir": str(out_dir.resolve()),
                    "answer": str(answer),
                    "parent": os.getpid(),
                }
            )
        )
        status = _run(spec, log, progress, Path(scratch))
        if answer.exists():
            outcome: dict[str, Any] = orjson.loads(answer.read_bytes())
            if "error" in outcome:
                raise ERROR_TYPES[outcome["error"]](outcome["message"], outcome["hint"])
            report: dict[str, Any] = outcome["report"]
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
    """Quiet, and with a temporary folder that goes with the stage: vLLM leaves sockets and lists of ports behind. What
    torch compiles must outlive it, or every stage would compile again."""
    kept = {"TORCHINDUCTOR_CACHE_DIR": str(cache_folder("torchinductor"))}
    return {**QUIET_ENVIRONMENT, **kept, **os.environ, "TMPDIR": str(scratch)}


def _run(spec: Path, log: Path, progress: Progress, scratch: Path) -> int:
    read_end, write_end = os.pipe()
    # -P: without it the working directory shadows installed packages, such as `verifiers`.
    command = [sys.executable, "-P", "-m", "truegold.pipeline.worker", str(spec), str(write_end)]
    with log.open("ab") as sink:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            pass_fds=(write_end,),
            env=_environment(scratch),
        )
        os.close(write_end)
        try:
            with os.fdopen(read_end, encoding="utf-8") as lines:
                relay(lines, progress)
            return child.wait()
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
