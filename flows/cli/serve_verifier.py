"""The command `truegold serve-verifier`: verdicts and programs over HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from truegold.flows.console import errors, print_line
from truegold.verifiers import ConfigError
from truegold.verifiers.extras import require
from truegold.verifiers.running.batch import DEADLINE_S

TOKEN = "TRUEGOLD_SERVICE_TOKEN"
PORT = 8630


def serve_verifier(
    host: Annotated[
        str, typer.Option(help="The address to listen on; beyond loopback a token is needed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = PORT,
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0 takes one per core.")] = 0,
    queue: Annotated[int, typer.Option(min=1, help="Responses that may wait; more are refused (429).")] = 4096,
    max_mb: Annotated[int, typer.Option(min=1, help="A larger request is refused (413).")] = 16,
    deadline_s: Annotated[float, typer.Option(help="Seconds for one verdict; later it is a timeout.")] = DEADLINE_S,
    request_s: Annotated[float, typer.Option(help="Seconds for one request, with its time in the queue.")] = 300.0,
    token_file: Annotated[
        Path | None, typer.Option(help=f"A file with the token that clients send; else {TOKEN} of the environment.")
    ] = None,
    verifier: Annotated[
        list[str] | None, typer.Option(help="A verifier of yours that requests may name; may be repeated.")
    ] = None,
) -> None:
    """Give verdicts and run programs over HTTP: /verify, /run_code, /test_program."""
    for package in ("starlette", "uvicorn"):
        require(package)
    import uvicorn

    from truegold.verifiers import resolve
    from truegold.verifiers.service import Settings, make_app
    from truegold.verifiers.service.desk import check_settings

    token = token_file.read_text(encoding="utf-8").strip() if token_file else os.environ.get(TOKEN)
    if token_file is not None and not token:
        raise ConfigError(f"{token_file} is empty.", "Write the token into it.")
    for name in verifier or ():
        resolve(name)
    settings = Settings(
        token or None,
        workers,
        queue,
        max_mb * 2**20,
        deadline_s=deadline_s,
        request_s=request_s,
        verifiers=tuple(verifier or ()),
    )
    check_settings(settings, host)
    print_line(f"truegold serves verdicts on http://{host}:{port} ({'with' if token else 'without'} a token)", errors)
    uvicorn.run(make_app(settings), host=host, port=port, log_level="warning", access_log=False)
