"""Real vLLM servers, in processes that a test may kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

from truegold.pipeline.running.isolation import free_port

STARTUP_SECONDS = 240
OPTIONS = (
    "--dtype float32 --max-model-len 64 --enforce-eager --no-enable-chunked-prefill --generation-config vllm "
    "--logprobs-mode processed_logprobs"
)


class ServerProcess:
    """A server of the model in a folder, which takes new weights."""

    def __init__(self, model: Path, log: Path) -> None:
        """Start it; `await_health` has to follow."""
        self.log = log
        port = free_port()
        command = [sys.executable, "-P", "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
        command += ["--port", str(port), *OPTIONS.split()]
        environment = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
        # Threads that wait for each other spin, and several servers share the cores here.
        environment |= {"VLLM_SERVER_DEV_MODE": "1", "OMP_NUM_THREADS": "1"}
        with log.open("wb") as sink:
            # It is the first of a session, so that all of its processes can be killed at once.
            self.process = subprocess.Popen(command, env=environment, stdout=sink, stderr=sink, start_new_session=True)
        self._base = f"http://127.0.0.1:{port}"
        self.url = f"{self._base}/v1"

    def await_health(self) -> None:
        """Wait until it serves."""
        deadline = time.monotonic() + STARTUP_SECONDS
        while not self._is_healthy():
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, self.log.read_text()[-3000:]
            time.sleep(0.5)

    def kill(self) -> None:
        """Kill all of its processes at once, as where its machine is lost."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=60)

    def stop(self) -> None:
        """End it, if it has not ended."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=60)

    def _is_healthy(self) -> bool:
        try:
            return httpx.get(f"{self._base}/health", timeout=2).status_code == 200
        except httpx.TransportError:
            return False
