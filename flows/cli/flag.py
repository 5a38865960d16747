"""The command `truegold flag`: which rows of a file are suspicious, by rules and by the answers of systems.

    truegold flag --data train.jsonl --samples answers.jsonl --out flagged

reads the file as `truegold run` would and writes flags.parquet (what the rules say) and suspicion.parquet (id,
suspicion in [0, 1], tier, evidence, suggestion). Samples are rows of id, system, and answer or response; `id` is the
data's own column of that name, where it has one. What a second run needs is in the folder `work`. Exit codes are those
of `truegold`.
"""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from truegold.verifiers import ConfigError

if TYPE_CHECKING:
    from truegold.flows.config import RunConfig
    from truegold.pipeline.running.stage import Stage

WORK = "work"
ID_COLUMNS = ("id", "ID", "_id", "unique_id", "task_id", "question_id", "problem_id", "item_id", "idx")
PEEK = 100
MAX_ROW_BYTES = 8 * 2**20

output = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


def flag(
    data: Annotated[
        Path, typer.Option("--data", help="JSONL, Parquet or CSV: problems with gold.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="The folder to write to.", show_default=False)],
    samples: Annotated[
        Path | None, typer.Option("--samples", help="Rows of id, system, and answer or response.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="The shape of the file; by its columns where not given.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Take only the first so many rows.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="A setting of data or flag: data.columns={gold: label}."),
    ] = None,
) -> None:
    """Say which rows are suspicious: rules, and the answers of one or several systems."""
    from truegold.flows.console import Terminal
    from truegold.flows.execute import execute, open_run, stage_caller
    from truegold.pipeline.flag.suspicion.stage import summary_lines
    from truegold.pipeline.flag.suspicion.tables import SUSPICION_FILE
    from truegold.pipeline.ledger import FLAGS_FILE
    from truegold.pipeline.running.stage import load_record

    config = _config(data, out, preset, limit, set_ or [])
    stages = _stages(config, samples)
    with open_run(config) as run_dir:
        execute(stages, run_dir, stage_caller(run_dir, Terminal(errors)))
        shutil.copyfile(run_dir / "flag" / FLAGS_FILE, out / FLAGS_FILE)
        shutil.copyfile(run_dir / "suspect" / SUSPICION_FILE, out / SUSPICION_FILE)
        reports = {name: (load_record(run_dir / name) or {})["report"] for name in ("flag", "suspect")}
    for name, count in sorted(reports["flag"]["counts"].items(), key=lambda entry: (-entry[1], entry[0])):
        output.print(f"{count:>8,}  {name.removeprefix('flag:')}", markup=False, soft_wrap=True)
    for line in summary_lines(reports["suspect"]["facts"], reports["suspect"]["counts"]):
        output.print(line, markup=False, soft_wrap=True)
    output.print(f"flags: {out / FLAGS_FILE}\nsuspicion: {out / SUSPICION_FILE}", markup=False, soft_wrap=True)


def _config(data: Path, out: Path, preset: str | None, limit: int | None, overrides: list[str]) -> RunConfig:
    import yaml

    from truegold.flows.config import validate_config

    given = {"preset": preset, "limit": limit}
    sections: dict[str, dict[str, Any]] = {
        "data": {"path": str(data), **{name: value for name, value in given.items() if value is not None}},
        "flag": {},
    }
    for override in overrides:
        field, separator, text = override.partition("=")
        section, _, name = field.partition(".")
        if not separator or not name or section not in sections:
            raise ConfigError(
                f"--set {override}: expected data.FIELD=VALUE or flag.FIELD=VALUE.",
                "Such as --set 'data.columns={prompt: question, gold: label}'.",
            )
        try:
            sections[section][name] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"--set {override}: the value is not valid YAML.") from error
    columns = sections["data"].setdefault("columns", {})
    if isinstance(columns, dict):
        sections["data"]["columns"] = _guessed(data, preset) | columns
    return validate_config({"name": WORK, "runs_dir": str(out), **sections}, "truegold flag")


def _guessed(data: Path, preset: str | None) -> dict[str, str]:
    """Columns by their names: the source's own id; and question and gold where answer options stand beside them.

    A run refuses such a file, because the question alone cannot be trained on. Answers can be compared all the same.
    """
    from truegold.pipeline.ingest.presets import CHOICE_COLUMNS, PRESETS
    from truegold.pipeline.ingest.readers import open_file
    from truegold.pipeline.ingest.records import Record

    records = islice(open_file(data, "auto", MAX_ROW_BYTES).records, PEEK)
    values = next((record.values for record in records if isinstance(record, Record)), {})
    guessed: dict[str, str] = {}
    if (own := next((name for name in ID_COLUMNS if name in values), None)) is not None:
        guessed["id"] = own
    if preset is None and any(values.get(name) for name in CHOICE_COLUMNS):
        layout = PRESETS["generic"][0](values.keys(), [values])
        if layout is not None and layout.columns.prompt is not None and layout.columns.gold is not None:
            guessed |= {"prompt": layout.columns.prompt.column, "gold": layout.columns.gold.column}
    return guessed


def _stages(config: RunConfig, samples: Path | None) -> list[Stage]:
    """Of a run's plan the reading and the rules, and the stage that reads samples."""
    from dataclasses import replace

    from truegold.flows.plan import plan
    from truegold.pipeline.config.stages import SuspicionConfig
    from truegold.pipeline.ingest.readers import check_file
    from truegold.pipeline.running.stage import Output, Stage

    planned = {stage.name: stage for stage in plan(config, "curate")}
    rows: dict[str, Path | Output] = {"rows": Output("ingest", "rows.parquet")}
    inputs = dict(rows)
    if samples is not None:
        check_file(samples)
        inputs["samples"] = samples
    return [
        planned["ingest"],
        replace(planned["flag"], inputs=rows),
        Stage("suspect", "truegold.pipeline.flag.suspicion:suspect", 1, SuspicionConfig(), inputs, judges="rows"),
    ]
