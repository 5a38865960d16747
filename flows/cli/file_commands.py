"""Commands on one file: `truegold dedup`, `decontaminate`, `flag`, `verify` and `rescore`.

    truegold dedup --data train.jsonl --out deduplicated
    truegold decontaminate --data train.jsonl --against math500 --against evals.jsonl --out decontaminated

`dedup` finds equal problems in one file, and writes clusters.parquet and flags.parquet
(`truegold.pipeline.dedup.clusters`). `decontaminate` finds problems of evaluation sets in a file, and writes
matches.parquet (`truegold.pipeline.decontaminate.matches`). Both also write the records of the file into kept.jsonl and
dropped.jsonl, or with the suffix of the file.

    truegold flag --data train.jsonl --samples answers.jsonl --out flagged

`flag` reads the file as `truegold run` does. It writes the findings of the rules to flags.parquet, and the probability
that each row is wrong to suspicion.parquet. The columns of the latter are id, suspicion, ill_posed and label_wrong (0
to 1), tier, evidence and suggestion. A sample is a row with the id of a problem, the system that answered it, and the
answer or response. Samples may also come from runs:

    --samples small=runs/a/profile/samples.parquet     the profile of a model, here called `small`
    --samples policy=runs/a/train/completions          the completions of a training; its rows name their steps

With `--model` a language model is asked whether each problem can be answered. `flag.model` has further settings of the
model, such as --set flag.model.engine={type: server, url: http://localhost:8000/v1}. `--replies` reads earlier replies
of a model instead, and `--known` measures the model's errors. The folder `work` is a run: its report shows every row,
`truegold review` opens it, and the same command resumes it.

`verify` judges a file of responses. `rescore` judges the stored rollouts of trainers, with one verifier or with two to
compare. Each command prints a summary and writes a report.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from truegold.flows.cli.options import (
    DeadlineS,
    GoldColumn,
    IdColumn,
    LastTurnOnly,
    Limit,
    OutFolder,
    Preset,
    PromptColumn,
    SecondOpinion,
    Workers,
)
from truegold.flows.console import Terminal, errors, print_line, write_summary
from truegold.pipeline.running.disk import disk_errors_reported, refuse_input
from truegold.verifiers import ConfigError
from truegold.verifiers.running.batch import DEADLINE_S, MAX_TIMEOUTS

DataFile = Annotated[Path, typer.Option("--data", help="JSONL, Parquet or CSV with problems.", show_default=False)]

WORK = "work"
"""The name of the run that does the work, and of its folder."""


def dedup(
    data: DataFile,
    out: OutFolder,
    prompt_column: PromptColumn = None,
    gold_column: GoldColumn = None,
    id_column: IdColumn = None,
    template_cap: Annotated[
        int | None, typer.Option(min=1, help="Problems of one template to keep, at most; if not given, all.")
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            help="Compare on a Ray cluster: its address, or local. All its machines have to see the folder of --out."
        ),
    ] = None,
) -> None:
    """Find copies, rewordings and templates among the problems of a file."""
    from truegold.pipeline.dedup.clusters import find_clusters
    from truegold.pipeline.near.related_pairs import ShardRunner, run_in_threads
    from truegold.pipeline.problems import ProblemColumns, describe_reading

    columns = ProblemColumns(prompt_column, gold_column, id_column)
    run_shards: ShardRunner = run_in_threads
    if ray is not None:
        from truegold.pipeline.near.ray_shards import on_ray

        run_shards = on_ray(None if ray == "local" else ray)
    with disk_errors_reported(out), Terminal(errors).stage("dedup") as terminal:
        terminal.note(describe_reading(data, columns))
        counts = find_clusters(data, out.absolute(), columns, template_cap, terminal, run_shards)
    line = f"The problems of {data} were compared with each other."
    _print_outcome(data, out, ("clusters", "flags"), f"Duplicates in {data.name}", line, counts)


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
    against_prompt_column: Annotated[str | None, typer.Option(help="--prompt-column of the evaluation sets.")] = None,
    against_gold_column: Annotated[str | None, typer.Option(help="--gold-column of the evaluation sets.")] = None,
    against_id_column: Annotated[str | None, typer.Option(help="--id-column of the evaluation sets.")] = None,
    embedder: Annotated[
        str | None,
        typer.Option(help="An encoder on the hub or in a folder that proposes further pairs; none if not given."),
    ] = None,
) -> None:
    """Find problems of evaluation sets in a file: copies, parts of longer texts, rewordings."""
    from truegold.pipeline.decontaminate.matches import find_leaks_in_file
    from truegold.pipeline.engines.text_vectors import load_text_encoder
    from truegold.pipeline.problems import ProblemColumns, describe_reading

    columns = ProblemColumns(prompt_column, gold_column, id_column)
    against_columns = ProblemColumns(
        against_prompt_column, against_gold_column, against_id_column, spelling="--against-{role}-column COLUMN"
    )
    with disk_errors_reported(out), _gone_if_empty(out), Terminal(errors).stage("decontaminate") as terminal:
        terminal.note(describe_reading(data, columns))
        encoder = None if embedder is None else load_text_encoder(embedder)
        counts = find_leaks_in_file(data, dict.fromkeys(against, against_columns), out, columns, terminal, encoder)
    line = f"The problems of {data} were looked for in {', '.join(against)}."
    _print_outcome(data, out, ("matches",), f"Leaks in {data.name}", line, counts)


@contextmanager
def _gone_if_empty(folder: Path) -> Iterator[None]:
    """Remove the folder at the end if nothing was written into it."""
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()


def _print_outcome(
    data: Path, out: Path, tables: tuple[str, ...], title: str, line: str, counts: Mapping[str, int]
) -> None:
    """Write the summary, and print the paths of the summary, the tables, and the kept and dropped records."""
    from truegold.pipeline.sources.data_files import split_names

    report = write_summary(out, title, [line], {"Counts": (("what", "rows"), list(counts.items()))})
    kept, dropped = split_names(data, out)
    print_line("".join(f"{name}: {out / name}.parquet\n" for name in tables) + f"report: {report}")
    print_line(f"kept: {kept}\ndropped: {dropped}")


def flag(
    data: Annotated[
        Path, typer.Option("--data", help="JSONL, Parquet or CSV: problems with gold.", show_default=False)
    ],
    out: OutFolder,
    samples: Annotated[
        list[str] | None,
        typer.Option(
            "--samples",
            metavar="[SYSTEM[@STEP]=]PATH",
            help="Rows of id, system, and answer or response: a file or a folder; may be repeated.",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", help="A checkpoint that is asked whether each problem can be answered (slow)."),
    ] = None,
    replies: Annotated[
        Path | None,
        typer.Option("--replies", help="Earlier replies of a model, used instead of one: id, model and reply."),
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option("--known", help="Problems with `ill_posed`, true or false, to measure the model."),
    ] = None,
    preset: Preset = None,
    limit: Limit = None,
    last_turn_only: LastTurnOnly = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="A setting of data or flag: data.columns={gold: label}."),
    ] = None,
) -> None:
    """Find suspicious rows, by rules and by the answers of one or several systems."""
    from truegold.flows.config import section_config
    from truegold.flows.execute import execute, open_run, stage_caller
    from truegold.flows.plan import GROUP_SIZE, report_stage
    from truegold.pipeline.curation.plan import flagging_stages, last_flagging
    from truegold.pipeline.flag.fault_likelihood import MEASURED_FILE
    from truegold.pipeline.flag.well_posed import UNANSWERED_FILE
    from truegold.pipeline.running.stage import load_record
    from truegold.pipeline.suspicion.stage import sample_files, summary_lines
    from truegold.pipeline.tables.ledger import FLAGS_FILE
    from truegold.pipeline.tables.reasons import SUSPICION_FILE
    from truegold.pipeline.tables.rows import copy_table

    source: dict[str, Any] = {"path": str(data), "preset": preset, "limit": limit, "last_turn_only": last_turn_only}
    settings: dict[str, Any] = {"model": _asked_model(model, replies)}
    # --known comes last, since a setting of --set may replace the whole of flag.model.
    changes = [*(set_ or []), *([] if known is None else [f"flag.model.known={json.dumps(str(known))}"])]
    config = section_config("truegold flag", out, WORK, {"data": source, "flag": settings}, changes)
    stages = flagging_stages(config, sample_files(samples or []))
    with open_run(config) as run_dir:
        page = report_stage(f"flags of {data.name}", [stage.name for stage in stages], GROUP_SIZE)
        execute([*stages, page], run_dir, stage_caller(run_dir, Terminal(errors)))
        copy_table(run_dir / last_flagging(config) / FLAGS_FILE, out / FLAGS_FILE)
        shutil.copyfile(run_dir / "suspect" / SUSPICION_FILE, out / SUSPICION_FILE)
        names = {"flag", last_flagging(config), "suspect"}
        reports = {name: (load_record(run_dir / name) or {})["report"] for name in names}
    counts = reports["flag"]["counts"] | reports[last_flagging(config)]["counts"]
    by_count = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    reasons = [(name.removeprefix("flag:"), count) for name, count in by_count]
    for name in (MEASURED_FILE, UNANSWERED_FILE):
        (out / name).unlink(missing_ok=True)
        if (made := out / WORK / last_flagging(config) / name).exists():
            shutil.copyfile(made, out / name)
    lines = [
        f"{reports['flag']['rows_in']:,} rows of {data} were looked at{'.' if reasons else '; no rule flagged any.'}",
        *summary_lines(reports["suspect"]["facts"], reports["suspect"]["counts"]),
    ]
    report = write_summary(out, f"Flags of {data.name}", lines, {"Flags by reason": (("reason", "rows"), reasons)})
    print_line(f"flags: {out / FLAGS_FILE}\nsuspicion: {out / SUSPICION_FILE}\nreport: {report}")
    print_line(f"every row: {out / WORK / 'report' / 'index.html'}")
    print_line(f"to decide about them: truegold review {shlex.quote(str(out / WORK))}")


def _asked_model(model: Path | None, replies: Path | None) -> dict[str, Any] | None:
    """Return the settings of the model that is asked, or None."""
    from truegold.pipeline.engines.scripted import name_model

    if model is not None and replies is not None:
        raise ConfigError("--model and --replies exclude each other: replies are used instead of a model.")
    if replies is not None:
        return {"name": name_model(replies), "engine": {"type": "replies", "path": str(replies)}}
    return {"name": model.name, "model": str(model)} if model is not None else None


def verify(
    input_: Annotated[
        Path,
        typer.Option("--input", help="JSONL, Parquet or CSV with a response and a gold column.", show_default=False),
    ],
    output_: Annotated[
        Path,
        typer.Option("--output", help="The file of verdicts to write: .parquet, .jsonl or .csv.", show_default=False),
    ],
    verifier: Annotated[
        str | None,
        typer.Option(help="The verifier of rows that name none.", show_default="math; code for a file with tests"),
    ] = None,
    workers: Workers = 0,
    deadline_s: DeadlineS = DEADLINE_S,
    max_timeouts: Annotated[
        float, typer.Option(min=0, max=1, help="The share of timeouts that is allowed.")
    ] = MAX_TIMEOUTS,
    response_column: Annotated[
        str | None, typer.Option(help="The column of the response; else found by its name.")
    ] = None,
    gold_column: GoldColumn = None,
    prompt_column: PromptColumn = None,
    id_column: IdColumn = None,
    second_opinion: SecondOpinion = None,
) -> None:
    """Judge responses against gold answers."""
    from truegold.flows.config import read_opinion
    from truegold.pipeline.problems import ProblemColumns
    from truegold.pipeline.verify.responses import verify_file

    refuse_input(output_, input_)
    opinion = None if second_opinion is None else read_opinion(second_opinion)
    with disk_errors_reported(output_), Terminal(errors).stage("verify") as terminal:
        columns = ProblemColumns(
            prompt_column, gold_column, id_column, response_column, spelling="--{role}-column COLUMN"
        )
        counts = verify_file(input_, output_, verifier, workers, terminal, columns, deadline_s, max_timeouts, opinion)
    responses = sum(counts.values())
    rejected = sum(count for reason, count in counts.items() if reason.startswith("rejected:"))
    rows = [
        (reason, count, f"{count / responses:.1%}") for reason, count in sorted(counts.items(), key=lambda e: -e[1])
    ]
    default = verifier or "math (programs by code)"
    of_all = f" of {responses:,}" if rejected else ""
    lines = [
        f"{responses - rejected:,}{of_all} responses of {input_} were judged by {default} where they name no verifier."
    ]
    report = write_summary(
        output_, f"Verdicts on {input_.name}", lines, {"Reasons": (("reason", "responses", "share"), rows)}
    )
    print_line(f"verdicts: {output_}\nreport: {report}")


def rescore(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Logs of TRL, verl, verifiers, NeMo-Gym or truegold: files or folders.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder for tables and report.", show_default=False)],
    verifier: Annotated[
        list[str] | None, typer.Option(help="The verifier, one or two; `row` is each row's own.", show_default="row")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The set of the training: golds and verifiers by prompt.", show_default=False),
    ] = None,
    settled: Annotated[
        Path | None,
        typer.Option(help="Responses with their truth (prompt or id, completion, correct), to measure J."),
    ] = None,
    decisions: Annotated[
        Path | None,
        typer.Option(help="Reviewers' decisions to measure J; for a run, those in its folder.", show_default=False),
    ] = None,
    prompt_column: PromptColumn = None,
    gold_column: GoldColumn = None,
    reward: Annotated[str | None, typer.Option(help="The column of TRL's reward, if there are several.")] = None,
    workers: Workers = 0,
    deadline_s: DeadlineS = DEADLINE_S,
    second_opinion: SecondOpinion = None,
) -> None:
    """Judge stored rollouts again, and report which rewards were wrong and what that cost."""
    from truegold.flows.config import read_opinion
    from truegold.pipeline.config.sources import Columns
    from truegold.pipeline.rescore import rescore as judge_again
    from truegold.pipeline.rescore.rollout_report import describe, write_report
    from truegold.pipeline.review.reviewed_run import decided_rows

    names = verifier or ["row"]
    if len(names) > 2:
        raise ConfigError(f"There are {len(names)} verifiers.", "Name one, or two to compare.")
    opinion = None if second_opinion is None else read_opinion(second_opinion)
    with disk_errors_reported(out), Terminal(errors).stage("rescore") as terminal:
        decide = decided_rows(data, decisions) if data is not None else None
        rescored = judge_again(
            runs,
            out,
            terminal,
            data=data,
            columns=Columns.model_validate({"prompt": prompt_column, "gold": gold_column}),
            verifiers=names,
            reward=reward,
            workers=workers,
            deadline_s=deadline_s,
            decide=decide or (lambda row: None),
            second_opinion=opinion,
        )
        summary = write_report(out, rescored, settled)
    for line in describe(summary):
        print_line(line)
    print_line(f"report: {out / 'report.html'}")
