"""The command `truegold testcases vet`: are the tests of a data set fit to compute a reward with?

    truegold testcases vet humaneval.jsonl --out vetted

reads the file as `truegold run` would, vets the tests of every row, and writes rows.parquet (with repaired tests),
dropped.parquet, ledger.parquet, suites.parquet and report.md. Killed and started again it goes on where it was; what it
needs for that is in the folder `work`. Exit codes are those of `truegold`.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from truegold.verifiers import ConfigError, InputError

if TYPE_CHECKING:
    from truegold.flows.config import RunConfig
    from truegold.pipeline.running.stage import Stage

WORK = "work"
TABLES = ("rows.parquet", "dropped.parquet", "ledger.parquet", "suites.parquet")

testcases_app = typer.Typer(help="Vet the tests of code problems.", no_args_is_help=True, rich_markup_mode=None)
output = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


@testcases_app.callback()
def testcases() -> None:
    """Vet the tests of code problems."""


@testcases_app.command("vet")
def vet(
    data: Annotated[Path, typer.Argument(help="JSONL, Parquet or CSV: problems with tests.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="The folder to write to.", show_default=False)],
    preset: Annotated[str | None, typer.Option(help="The shape of the file; by its columns where not given.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Take only the first so many rows.")] = None,
    mutants: Annotated[int | None, typer.Option(min=0, help="Faults planted in each worked solution.")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="Runs of each worked solution.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="A setting of vet_tests, or data.FIELD."),
    ] = None,
) -> None:
    """Vet the tests of every problem in a file."""
    from truegold.flows.console import Terminal
    from truegold.flows.execute import execute, open_run, stage_caller
    from truegold.pipeline.verify.vet.report import markdown, read_suites, summary_lines

    given = {"preset": preset, "limit": limit}
    settings = {"mutants": mutants, "runs": runs}
    config = _config(data, out, given, settings, set_ or [])
    stages = _stages(config)
    with open_run(config) as run_dir:
        execute(stages, run_dir, stage_caller(run_dir, Terminal(errors)))
        for name in TABLES:
            shutil.copyfile(run_dir / "vet_tests" / name, out / name)
        suites = read_suites(out / "suites.parquet")
        (out / "report.md").write_text(markdown(data.name, suites), encoding="utf-8")
    for line in summary_lines(suites):
        output.print(line, markup=False, soft_wrap=True)
    output.print(f"report: {out / 'report.md'}", markup=False, soft_wrap=True)


def _config(data: Path, out: Path, given: dict[str, Any], settings: dict[str, Any], overrides: list[str]) -> RunConfig:
    import yaml

    from truegold.flows.config import validate_config

    sections: dict[str, dict[str, Any]] = {
        "data": {"path": str(data), **{name: value for name, value in given.items() if value is not None}},
        "vet_tests": {name: value for name, value in settings.items() if value is not None},
    }
    for override in overrides:
        field, separator, text = override.partition("=")
        section, _, name = field.rpartition(".")
        section = section or "vet_tests"
        if not separator or section not in sections:
            raise ConfigError(f"--set {override}: expected FIELD=VALUE.", "Such as --set min_kill_rate=0.9.")
        try:
            sections[section][name] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"--set {override}: the value is not valid YAML.") from error
    sections["vet_tests"]["enabled"] = True
    return validate_config({"name": WORK, "runs_dir": str(out), **sections}, "truegold testcases vet")


def _stages(config: RunConfig) -> list[Stage]:
    """Of a run's plan, the reading and the vetting."""
    from truegold.flows.plan import plan
    from truegold.pipeline.running.stage import Output

    planned = {stage.name: stage for stage in plan(config, "curate")}
    if "vet_tests" not in planned:
        place = getattr(config.data, "path", "the data")
        raise InputError(
            f"{place} holds no programs with tests, as far as its columns tell.",
            "Name its shape: --preset humaneval; or its tests: --set data.columns='{prompt: question, tests: tests}'",
        )
    rows = {"rows": Output("ingest", "rows.parquet")}
    return [planned["ingest"], replace(planned["vet_tests"], inputs=rows)]
