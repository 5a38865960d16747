"""An S3 server on this machine, of moto, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from truegold.pipeline.running.isolation import free_port


@contextmanager
def s3_server(**settings: str) -> Iterator[dict[str, str]]:
    """Yield the environment in which `s3://` means a server that is empty; `settings` are variables of its own."""
    pytest.importorskip("moto", reason="moto is not installed")
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    port = free_port()
    command = [sys.executable, "-P", "-m", "moto.server", "-p", str(port)]
    server = subprocess.Popen(
        command, env={**os.environ, **settings}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        address = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 120
        while not _answers(address):
            assert time.monotonic() < deadline and server.poll() is None, "moto did not start"
            time.sleep(0.2)
        yield {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
    finally:
        server.terminate()
        server.wait(timeout=60)


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/moto-api/", timeout=2).status_code == 200
    except httpx.TransportError:
        return False
