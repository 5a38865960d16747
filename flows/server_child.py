"""The Prefect API server as a child that dies with its parent: `python -m truegold.flows.server_child PARENT PORT`."""

from __future__ import annotations

import os
import sys

from truegold.verifiers.processes.lifetime import die_with_parent


def main() -> None:
    parent, port = int(sys.argv[1]), sys.argv[2]
    die_with_parent(parent)  # survives the exec below
    factory = "prefect.server.api.server:create_app"
    arguments = ["-P", "-m", "uvicorn", "--factory", factory, "--host", "127.0.0.1", "--port", port]
    os.execv(sys.executable, [sys.executable, *arguments, "--timeout-keep-alive", "60", "--log-level", "warning"])


if __name__ == "__main__":
    main()
