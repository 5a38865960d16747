"""The commands `truegold dedup` and `truegold decontaminate`, which find equal problems in one file or in two.

    truegold dedup --data train.jsonl --out deduplicated
    truegold decontaminate --data train.jsonl --against math500 --against evals.jsonl --out decontaminated

The first writes clusters.parquet and flags.parquet (`truegold.pipeline.dedup.file`), the second matches.parquet
(`truegold.pipeline.decontaminate.file`); both end with a summary, which is kept in
report.md. Exit codes are those of `truegold`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truegold.flows.cli.options import GoldColumn, IdColumn, OutFolder, PromptColumn
from truegold.flows.cli.summary import write_summary
from truegold.flows.console import Terminal, errors, print_line

DataFile = Annotated[Path, typer.Option("--data", help="JSONL, Parquet or CSV with problems.", show_default=False)]


def dedup(
    data: DataFile,
    out: OutFolder,
    prompt_column: PromptColumn = None,
    gold_column: GoldColumn = None,
    id_column: IdColumn = None,
    template_cap: Annotated[
        int | None, typer.Option(min=1, help="Keep at most so many problems of one template; all where not given.")
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            help="Compare on a Ray cluster, through Prefect: its address, or local. The folder of --out has to be"
            " visible to all of it."
        ),
    ] = None,
) -> None:
    """Find copies, rewordings and templates among the problems of a file."""
    from truegold.pipeline.dedup.file import dedup_file
    from truegold.pipeline.near import ShardRunner, run_in_threads
    from truegold.pipeline.running.disk import disk_errors_reported
    from truegold.pipeline.sources.problem_batches import ProblemColumns, describe_reading

    columns = ProblemColumns(prompt_column, gold_column, id_column)
    run_shards: ShardRunner = run_in_threads
    if ray is not None:
        from truegold.flows.ray_shards import on_ray

        run_shards = on_ray(None if ray == "local" else ray)
    with disk_errors_reported(out), Terminal(errors).stage("dedup") as terminal:
        terminal.note(describe_reading(data, columns))
        counts = dedup_file(data, out.absolute(), columns, template_cap, terminal, run_shards)
    lines = [f"The problems of {data} were compared with each other."]
    report = write_summary(
        out, f"Duplicates in {data.name}", lines, {"Counts": (("what", "rows"), list(counts.items()))}
    )
    print_line(f"clusters: {out / 'clusters.parquet'}\nflags: {out / 'flags.parquet'}\nreport: {report}")


def decontaminate(
    data: DataFile,
    against: Annotated[
        list[str],
        typer.Option(help="A file, a hub set owner/name:subset@split, or a name such as math500.", show_default=False),
    ],
    out: OutFolder,
    prompt_column: PromptColumn = None,
    gold_column: GoldColumn = None,
    id_column: IdColumn = None,
    against_prompt_column: Annotated[str | None, typer.Option(help="The same for what is compared against.")] = None,
    against_gold_column: Annotated[str | None, typer.Option(help="The same for what is compared against.")] = None,
    against_id_column: Annotated[str | None, typer.Option(help="The same for what is compared against.")] = None,
    embedder: Annotated[
        str | None,
        typer.Option(help="An encoder on the hub or in a folder that proposes more pairs to compare; none by default."),
    ] = None,
) -> None:
    """Find problems of evaluation sets in a file: copies, parts of longer texts, rewordings."""
    from truegold.pipeline.decontaminate.file import decontaminate_file
    from truegold.pipeline.engines.encoder import load_encoder
    from truegold.pipeline.running.disk import disk_errors_reported
    from truegold.pipeline.sources.problem_batches import ProblemColumns, describe_reading

    columns = ProblemColumns(prompt_column, gold_column, id_column)
    against_columns = ProblemColumns(
        against_prompt_column, against_gold_column, against_id_column, spelling="--against-{role}-column COLUMN"
    )
    with disk_errors_reported(out), Terminal(errors).stage("decontaminate") as terminal:
        terminal.note(describe_reading(data, columns))
        encoder = None if embedder is None else load_encoder(embedder)
        counts = decontaminate_file(data, against, out, columns, against_columns, terminal, encoder)
    lines = [f"The problems of {data} were looked for in {', '.join(against)}."]
    report = write_summary(out, f"Leaks in {data.name}", lines, {"Counts": (("what", "rows"), list(counts.items()))})
    print_line(f"matches: {out / 'matches.parquet'}\nreport: {report}")
