"""The command `truegold gate`: a data set passes, or fails for named reasons, as code does in CI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from truegold.flows.cli.options import GoldColumn, LastTurnOnly, PromptColumn, VerifierColumn
from truegold.flows.console import Terminal, errors, print_line
from truegold.verifiers import ConfigError
from truegold.verifiers.running.batch import DEADLINE_S

GATE_FAILED = 8
EXAMPLES_SHOWN = 3


def gate(
    data: Annotated[Path, typer.Argument(help="A file, a run's folder or an exported set.", show_default=False)],
    fail_on: Annotated[
        str | None,
        typer.Option(help="Checks, with commas: gold, empty, null, skipped, hack, unusable, leak, flags, card."),
    ] = None,
    against: Annotated[
        list[str] | None, typer.Option(help="An evaluation set that no row may stand in: a name or a file.")
    ] = None,
    card: Annotated[Path | None, typer.Option(help="The set's card; else README.md beside it.")] = None,
    max_: Annotated[
        list[str] | None,
        typer.Option("--max", metavar="CHECK=SHARE", help="The share of rows that may violate a check."),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write the outcome as JUnit XML.")] = None,
    sarif: Annotated[Path | None, typer.Option(help="Write the outcome as SARIF.")] = None,
    verifier: Annotated[str | None, typer.Option(help="The verifier of all rows; else as the data says.")] = None,
    preset: Annotated[str | None, typer.Option(help="The shape of a file; else by its columns.")] = None,
    prompt_column: PromptColumn = None,
    gold_column: GoldColumn = None,
    verifier_column: VerifierColumn = None,
    last_turn_only: LastTurnOnly = False,
    workers: Annotated[int, typer.Option(help="Processes; 0 takes one per core.")] = 0,
    deadline_s: Annotated[float, typer.Option(help="Seconds for one verdict; later it is a timeout.")] = DEADLINE_S,
) -> None:
    """Check a data set as code is checked: exit code 8 where a check fails."""
    from truegold.pipeline.config.sources import Columns, FileSource
    from truegold.pipeline.curation.gate import Options
    from truegold.pipeline.curation.gate import gate as run_gate
    from truegold.pipeline.curation.gate import junit as as_junit
    from truegold.pipeline.curation.gate import sarif as as_sarif
    from truegold.pipeline.curation.gate.checks import Check
    from truegold.pipeline.running.disk import refuse_input, write_whole

    def check_of(name: str) -> Check:
        if name not in list(Check):
            raise ConfigError(f"There is no check {name!r}.", f"There are: {', '.join(Check)}.")
        return Check(name)

    columns = {"prompt": prompt_column, "gold": gold_column, "verifier": verifier_column}
    source = FileSource(
        path=str(data),
        preset=preset,
        verifier=verifier,
        last_turn_only=last_turn_only,
        columns=Columns.model_validate({role: column for role, column in columns.items() if column}),
    )
    options = Options(
        fail_on=[check_of(name.strip()) for name in (fail_on or "").split(",") if name.strip()],
        against=against or (),
        card=card,
        max_share={check_of(name): share for name, share in map(_parse_share, max_ or ())},
        source=source,
        workers=workers,
        deadline_s=deadline_s,
    )
    if Check.LEAK in options.fail_on and not options.against:
        raise ConfigError("The check leak has no evaluation set.", "Name one: --against math500")
    for target in filter(None, (junit, sarif)):
        refuse_input(target, data, *([card] if card else []), *map(Path, against or ()))
    with Terminal(errors).stage("gate") as terminal:
        gated = run_gate(data, options, terminal)
    for check in gated.checks:
        state = "FAILED" if gated.fails(check) else "ok"
        detail = gated.tally(check) if gated.count(check) else ""
        print_line(f"{state:<8} {check:<9} {detail}".rstrip())
        examples = [violation for violation in gated.violations if violation.check is check][:EXAMPLES_SHOWN]
        for violation in examples:
            print_line(f"           {violation.source}:{violation.row or ''}: {violation.message}")
    if Check.HACK in gated.checks:
        print_line(f"Gaming responses were tried on {gated.hacked_rows:,} of {gated.rows:,} rows.")
    if junit is not None:
        write_whole(junit, as_junit(gated))
    if sarif is not None:
        write_whole(sarif, json.dumps(as_sarif(gated), indent=1).encode() + b"\n")
    if gated.failed:
        raise typer.Exit(GATE_FAILED)


def _parse_share(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ConfigError(f"--max {text} is no share.", "--max gold=0.01 lets one row in a hundred fail.")
    return name, share
