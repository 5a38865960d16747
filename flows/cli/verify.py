"""The command `truegold verify`, which judges a file of responses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truegold.flows.cli.options import GoldColumn, IdColumn, PromptColumn
from truegold.flows.cli.summary import write_summary
from truegold.flows.console import Terminal, errors, print_line
from truegold.pipeline.running.disk import disk_errors_reported, refuse_input
from truegold.verifiers.running.batch import DEADLINE_S
from truegold.verifiers.running.deadlines import MAX_TIMEOUTS


def verify(
    input_: Annotated[
        Path,
        typer.Option("--input", help="JSONL, Parquet or CSV with a response and a gold column.", show_default=False),
    ],
    output_: Annotated[
        Path,
        typer.Option("--output", help="The file of verdicts to write: .parquet, .jsonl or .csv.", show_default=False),
    ],
    verifier: Annotated[str, typer.Option(help="The verifier of rows that name none.")] = "math",
    workers: Annotated[int, typer.Option(help="Processes; 0 takes one per core.")] = 0,
    deadline_s: Annotated[float, typer.Option(help="Seconds for one verdict; later it is a timeout.")] = DEADLINE_S,
    max_timeouts: Annotated[float, typer.Option(help="The share of timeouts that is allowed.")] = MAX_TIMEOUTS,
    response_column: Annotated[str | None, typer.Option(help="The column with the response; else by its name.")] = None,
    gold_column: GoldColumn = None,
    prompt_column: PromptColumn = None,
    id_column: IdColumn = None,
) -> None:
    """Judge responses against gold answers."""
    from truegold.pipeline.sources.problem_batches import ProblemColumns
    from truegold.pipeline.verify.file import verify_file

    refuse_input(output_, input_)
    with disk_errors_reported(output_), Terminal(errors).stage("verify") as terminal:
        columns = ProblemColumns(
            prompt_column, gold_column, id_column, response_column, spelling="--{role}-column COLUMN"
        )
        counts = verify_file(input_, output_, verifier, workers, terminal, columns, deadline_s, max_timeouts)
    judged = sum(counts.values())
    rows = [(reason, count, f"{count / judged:.1%}") for reason, count in sorted(counts.items(), key=lambda e: -e[1])]
    lines = [f"{judged:,} responses of {input_} were judged by {verifier} where they name no verifier."]
    report = write_summary(
        output_, f"Verdicts on {input_.name}", lines, {"Reasons": (("reason", "rows", "share"), rows)}
    )
    print_line(f"verdicts: {output_}\nreport: {report}")
