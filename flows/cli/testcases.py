"""The command `truegold testcases vet`, which tells whether a data set's tests are fit to compute a reward with.

    truegold testcases vet humaneval.jsonl --out vetted

reads the file as `truegold run` would, vets the tests of every row, and writes rows.parquet (with repaired tests),
dropped.parquet, ledger.parquet, suites.parquet and report.md. Killed and started again it goes on where it was, with
what it keeps in the folder `work`. Exit codes are those of `truegold`.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truegold.flows.cli.options import LastTurnOnly, Limit, OutFolder, Preset
from truegold.flows.console import Terminal, errors, print_line
from truegold.verifiers import InputError

if TYPE_CHECKING:
    from truegold.flows.config import RunConfig
    from truegold.pipeline.running.stage import Stage

WORK = "work"
"""The name of the run that does the work, and of its folder."""
TABLES = ("rows.parquet", "dropped.parquet", "ledger.parquet", "suites.parquet")
"""The tables of the stage that the command gives out."""

testcases_app = typer.Typer(help="Vet the tests of code problems.", no_args_is_help=True, rich_markup_mode=None)


@testcases_app.callback()
def testcases() -> None:
    """Vet the tests of code problems."""


@testcases_app.command("vet")
def vet(
    data: Annotated[Path, typer.Argument(help="JSONL, Parquet or CSV: problems with tests.", show_default=False)],
    out: OutFolder,
    preset: Preset = None,
    limit: Limit = None,
    last_turn_only: LastTurnOnly = False,
    mutants: Annotated[int | None, typer.Option(min=0, help="Faults planted in each worked solution.")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="Runs of each worked solution.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="A setting of vet_tests, or data.FIELD."),
    ] = None,
) -> None:
    """Vet the tests of every problem in a file."""
    from truegold.flows.config import section_config
    from truegold.flows.execute import execute, open_run, stage_caller
    from truegold.pipeline.verify.vet.report import markdown, read_suites, summary_lines

    sections: dict[str, dict[str, Any]] = {
        "vet_tests": {"enabled": True, "mutants": mutants, "runs": runs},
        "data": {"path": str(data), "preset": preset, "limit": limit, "last_turn_only": last_turn_only},
    }
    config = section_config("truegold testcases vet", out, WORK, sections, set_ or [])
    stages = _plan_stages(config)
    with open_run(config) as run_dir:
        execute(stages, run_dir, stage_caller(run_dir, Terminal(errors)))
        for name in TABLES:
            shutil.copyfile(run_dir / "vet_tests" / name, out / name)
        suites = read_suites(out / "suites.parquet")
        (out / "report.md").write_text(markdown(data.name, suites), encoding="utf-8")
    for line in summary_lines(suites):
        print_line(line)
    print_line(f"report: {out / 'report.md'}")


def _plan_stages(config: RunConfig) -> list[Stage]:
    """Return the stages `ingest` and `vet_tests` of a run's plan."""
    from truegold.pipeline.curation.plan import curation_stages, rows_of

    planned = {stage.name: stage for stage in curation_stages(config)}
    if "vet_tests" not in planned:
        raise InputError(
            f"{getattr(config.data, 'path', 'the data')} holds no programs with tests, as far as its columns tell.",
            "Name its shape: --preset humaneval; or its tests: --set data.columns='{prompt: question, tests: tests}'",
        )
    return [planned["ingest"], replace(planned["vet_tests"], inputs=rows_of("ingest"))]
