"""The command `truegold export`: writes a set in the format of a trainer and reads it back as the trainer will."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from truegold.flows.cli.options import GoldColumn, IdColumn, LastTurnOnly, PromptColumn, VerifierColumn
from truegold.flows.console import Terminal, errors, print_line
from truegold.verifiers import ConfigError, InputError


class FormatName(StrEnum):
    """The formats of trainers, by the names of `pipeline.export.formats`."""

    TRL = "trl"
    VERL = "verl"
    OPENRLHF = "openrlhf"
    OPEN_INSTRUCT = "open-instruct"
    VERIFIERS = "verifiers"
    INSPECT = "inspect"
    NEMO_GYM = "nemo-gym"
    HF = "hf"


def export(
    data: Annotated[
        Path,
        typer.Argument(help="A run's folder, an exported set, or a file: JSONL, Parquet, CSV.", show_default=False),
    ],
    form: Annotated[FormatName, typer.Option("--format", help="Who is to read it.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="The folder to write; none to --check a file as it is.", show_default=False)
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Read it back: by the target's own code where installed, and its schema.")
    ] = False,
    system: Annotated[str | None, typer.Option(help="A system message before every prompt.")] = None,
    license_: Annotated[str | None, typer.Option("--license", help="The licence of rows that state none.")] = None,
    origin: Annotated[str | None, typer.Option(help="What rows were taken from, where they do not say.")] = None,
    preset: Annotated[str | None, typer.Option(help="The shape of a file; else by its columns.")] = None,
    prompt_column: PromptColumn = None,
    gold_column: GoldColumn = None,
    id_column: IdColumn = None,
    verifier: Annotated[str | None, typer.Option(help="The verifier of all rows; else as the data says.")] = None,
    verifier_column: VerifierColumn = None,
    last_turn_only: LastTurnOnly = False,
) -> None:
    """Write a set for a trainer: TRL, verl, OpenRLHF, open-instruct, verifiers, inspect, NeMo-Gym, datasets."""
    from truegold.pipeline.config.sources import Columns, FileSource
    from truegold.pipeline.export import convert as conversion
    from truegold.pipeline.export.formats import FORMATS
    from truegold.pipeline.running.disk import disk_errors_reported
    from truegold.pipeline.sources.reject_lines import describe_rejects

    target = FORMATS[form]
    if out is None and not check:
        raise ConfigError("There is no folder to write to.", "truegold export DATA --format FORMAT --out FOLDER")
    paths = [data]
    if out is not None:
        named = {"prompt": prompt_column, "gold": gold_column, "id": id_column, "verifier": verifier_column}
        source = FileSource(
            path=str(data),
            preset=preset,
            verifier=verifier,
            last_turn_only=last_turn_only,
            license=license_,
            origin=origin,
            columns=Columns.model_validate({role: column for role, column in named.items() if column}),
        )
        with disk_errors_reported(out), Terminal(errors).stage("export") as terminal:
            written = conversion.convert(data, target, out, terminal, source, system)
        for path, rows in written.splits.items():
            print_line(f"{path}: {rows:,} rows")
        records = sum(written.splits.values()) + sum(written.rejected.values())
        for line in describe_rejects(written.rejected, records, written.first_rejects):
            print_line(line)
        paths = list(written.splits)
    mistakes = 0
    for path in paths if check else ():
        checked = conversion.check(path, target)
        print_line(f"{path}: {checked.rows:,} rows read by {' and '.join(checked.readers)}")
        for mistake in checked.mistakes:
            print_line(f"  {mistake}")
        mistakes += len(checked.mistakes)
    if mistakes:
        raise InputError(f"The set is not what {target.title} reads.", "The lines above say where.")
