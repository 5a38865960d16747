"""The command `truegold rescore`: stored rollouts judged again, by one verifier or two."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truegold.flows.console import Terminal, errors, print_line
from truegold.verifiers import ConfigError
from truegold.verifiers.running.batch import DEADLINE_S


def rescore(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Logs of TRL, verl, verifiers, NeMo-Gym or truegold: files or folders.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder for tables and report.", show_default=False)],
    verifier: Annotated[
        list[str] | None, typer.Option(help="Who judges, once or twice; `row` is each row's own.", show_default="row")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The set that was trained on: golds and verifiers by prompt.", show_default=False),
    ] = None,
    settled: Annotated[
        Path | None,
        typer.Option(help="Responses with their truth (prompt or id, completion, correct), to measure J on."),
    ] = None,
    decisions: Annotated[
        Path | None,
        typer.Option(help="Reviewers' decisions to measure J by; of a run, those in its folder.", show_default=False),
    ] = None,
    reward: Annotated[str | None, typer.Option(help="TRL's column of the reward, where there are several.")] = None,
    workers: Annotated[int, typer.Option(help="Processes; 0 takes one per core.")] = 0,
    deadline_s: Annotated[float, typer.Option(help="Seconds for one verdict; later it is a timeout.")] = DEADLINE_S,
) -> None:
    """Judge stored rollouts again: which rewards were wrong, and what that cost."""
    from truegold.pipeline.rescore import rescore as judge_again
    from truegold.pipeline.rescore.report import describe, write_report
    from truegold.pipeline.review.settled_golds import decided_rows
    from truegold.pipeline.running.disk import disk_errors_reported

    if decisions is not None and data is None:
        raise ConfigError("--decisions needs the set that they are about.", "Name it: --data SET.")
    names = verifier or ["row"]
    if len(names) > 2:
        raise ConfigError(f"There are {len(names)} verifiers.", "Name one, or two to compare.")
    with disk_errors_reported(out), Terminal(errors).stage("rescore") as terminal:
        decide = decided_rows(data, decisions) if data is not None else None
        rescored = judge_again(
            runs,
            out,
            terminal,
            data=data,
            verifiers=names,
            reward=reward,
            workers=workers,
            deadline_s=deadline_s,
            decide=decide or (lambda row: None),
        )
        summary = write_report(out, rescored, settled)
    for line in describe(summary):
        print_line(line)
    print_line(f"report: {out / 'report.html'}")
