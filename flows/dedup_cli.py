"""The command `truegold dedup`: which problems of a file are the same, and which one of them should stay?

    truegold dedup --data train.jsonl --out deduplicated

writes clusters.parquet and flags.parquet (`truegold.pipeline.dedup_file`) and prints what was found. Exit codes are
those of `truegold`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

output = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

DataFile = Annotated[Path, typer.Option("--data", help="JSONL, Parquet or CSV with problems.", show_default=False)]
OutFolder = Annotated[Path, typer.Option("--out", help="The folder to write to.", show_default=False)]
PromptColumn = Annotated[str | None, typer.Option(help="The column with the problem; by its name where not given.")]
GoldColumn = Annotated[str | None, typer.Option(help="The column with the answer; by its name where not given.")]
IdColumn = Annotated[str | None, typer.Option(help="The column with the id; by its name, else the record's number.")]


def dedup(
    data: DataFile,
    out: OutFolder,
    prompt_column: PromptColumn = None,
    gold_column: GoldColumn = None,
    id_column: IdColumn = None,
    template_cap: Annotated[
        int | None, typer.Option(min=1, help="Keep at most so many problems of one template; all where not given.")
    ] = None,
) -> None:
    """Find copies, rewordings and templates among the problems of a file."""
    from truegold.flows.console import Terminal
    from truegold.pipeline.dedup_file import dedup_file
    from truegold.pipeline.disk import full_disk_told
    from truegold.pipeline.problem_file import ProblemColumns

    columns = ProblemColumns(prompt_column, gold_column, id_column)
    with full_disk_told(out), Terminal(errors).stage("dedup") as terminal:
        counts = dedup_file(data, out, columns, template_cap, terminal)
    for name, count in counts.items():
        output.print(f"{count:>10,}  {name}")
    output.print(f"clusters: {out / 'clusters.parquet'}", markup=False, soft_wrap=True)
