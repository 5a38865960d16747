"""How the commands of a run call its stages: with Prefect or without, or not at all for a dry run."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from truegold.flows.console import Terminal, errors, output, print_line
from truegold.pipeline.running.stage_table import Phase
from truegold.verifiers.extras import check_torch_builds

if TYPE_CHECKING:
    from truegold.flows.config import RunConfig


class EngineChoice(StrEnum):
    """The two ways to call the stages."""

    PREFECT = "prefect"
    LOCAL = "local"


Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="Override a setting, such as data.limit=200.")
]
EngineOption = Annotated[EngineChoice, typer.Option("--engine", help="Run as Prefect flows, or without Prefect.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say rows, stages and expected time, and stop.")]
AsJson = Annotated[bool, typer.Option("--json", help="With --dry-run: print every setting of every stage as JSON.")]


def run_until(until: Phase, config: RunConfig, engine: EngineChoice, dry_run: bool, as_json: bool) -> None:
    """Run a configuration up to a phase, or say what that would be."""
    from truegold.flows.execute import (
        all_cached,
        describe,
        execute,
        open_run,
        rejects_in_words,
        stage_caller,
        write_manifest,
    )
    from truegold.flows.plan import plan
    from truegold.flows.remote import check_remote

    stages = plan(config, until)
    if dry_run:
        check_remote(stages, config.run_dir)
        from truegold.flows.cli.preview import preview_json, preview_lines

        if as_json:
            output.print_json(json.dumps(preview_json(config, stages)))
        else:
            for line in preview_lines(config, stages):
                print_line(line)
        return
    if config.model is not None and until is not Phase.CURATE:
        check_torch_builds()
    run_dir = config.run_dir
    cached = all_cached(stages, run_dir) if run_dir.exists() else None
    if cached is not None:
        for result in cached:
            for line in (describe(result), *rejects_in_words(result)):
                print_line(line, errors)
        write_manifest(run_dir, cached)
        errors.print(f"nothing to do: all {len(cached)} stages come from the cache")
    elif engine is EngineChoice.LOCAL:
        with open_run(config):
            execute(stages, run_dir, stage_caller(run_dir, Terminal(errors)))
    else:
        from truegold.flows.server import prefect_api

        with open_run(config):
            pass  # A directory in use should not cost the start of a server to find out.

        errors.print(
            "starting Prefect (about 20 s; --engine local runs without it)"
            if "PREFECT_API_URL" not in os.environ
            else "using the Prefect server of PREFECT_API_URL"
        )
        with prefect_api():
            from truegold.flows.prefect_flows import FLOWS, flush_logs

            try:
                FLOWS[until](config)
            finally:
                # Afterwards the server is gone, and with it the last lines of the log.
                flush_logs()
    print_line(f"run: {run_dir}\nreport: {run_dir / 'report' / 'index.html'}")
