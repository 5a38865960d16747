"""The command `truegold flag`, which finds suspicious rows of a file by rules and by the answers of systems.

    truegold flag --data train.jsonl --samples answers.jsonl --out flagged

reads the file as `truegold run` would and writes flags.parquet (what the rules say) and suspicion.parquet (id,
suspicion in [0, 1], tier, evidence, suggestion). Samples are rows of id, system, and answer or response; `id` is the
id column of the data, where it has one. Profiles of several models, and the completions of a training, are given as

    --samples small=runs/a/profile/samples.parquet --samples large=runs/b/profile/samples.parquet
    --samples policy=runs/a/train/completions          a folder; its rows name their steps

With `--model` a language model is asked in steps whether each problem can be answered; its other settings are those of
`flag.model`, such as --set flag.model.engine={type: server, url: http://localhost:8000/v1}. The folder `work` is a
run: its page has every row, `truegold review` opens it, and a second run can use it again. Exit codes are those of
`truegold`.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from truegold.flows.cli.options import LastTurnOnly, Limit, OutFolder, Preset
from truegold.flows.cli.summary import write_summary
from truegold.flows.console import Terminal, errors, print_line

WORK = "work"
"""The name of the run that does the work, and of its folder."""


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
            help="Rows of id, system, and answer or response: a file, or a folder of them; several may be given.",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", help="A checkpoint that is asked whether each problem can be answered (slow)."),
    ] = None,
    preset: Preset = None,
    limit: Limit = None,
    last_turn_only: LastTurnOnly = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="A setting of data or flag: data.columns={gold: label}."),
    ] = None,
) -> None:
    """Say which rows are suspicious: rules, and the answers of one or several systems."""
    from truegold.flows.config import section_config
    from truegold.flows.execute import execute, open_run, stage_caller
    from truegold.flows.plan import GROUP_SIZE, report_stage
    from truegold.pipeline.curation.plan import flagging_stages, last_flagging
    from truegold.pipeline.running.stage import load_record
    from truegold.pipeline.sources.problem_batches import guess_columns_with_options
    from truegold.pipeline.suspicion.stage import summary_lines
    from truegold.pipeline.suspicion.tables import sample_files
    from truegold.pipeline.tables.ledger import FLAGS_FILE
    from truegold.pipeline.tables.reasons import SUSPICION_FILE

    source: dict[str, Any] = {"path": str(data), "preset": preset, "limit": limit, "last_turn_only": last_turn_only}
    if preset is None and (columns := guess_columns_with_options(data)) is not None:
        source["columns"] = columns
    settings: dict[str, Any] = {"model": {"name": model.name, "model": str(model)} if model is not None else None}
    config = section_config("truegold flag", out, WORK, {"data": source, "flag": settings}, set_ or [])
    stages = flagging_stages(config, sample_files(samples or []))
    with open_run(config) as run_dir:
        page = report_stage(f"flags of {data.name}", [stage.name for stage in stages], GROUP_SIZE)
        execute([*stages, page], run_dir, stage_caller(run_dir, Terminal(errors)))
        shutil.copyfile(run_dir / last_flagging(config) / FLAGS_FILE, out / FLAGS_FILE)
        shutil.copyfile(run_dir / "suspect" / SUSPICION_FILE, out / SUSPICION_FILE)
        names = {"flag", last_flagging(config), "suspect"}
        reports = {name: (load_record(run_dir / name) or {})["report"] for name in names}
    counts = reports["flag"]["counts"] | reports[last_flagging(config)]["counts"]
    by_count = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    reasons = [(name.removeprefix("flag:"), count) for name, count in by_count]
    lines = [
        f"{reports['flag']['rows_in']:,} rows of {data} were looked at{'.' if reasons else '; no rule flagged any.'}",
        *summary_lines(reports["suspect"]["facts"], reports["suspect"]["counts"]),
    ]
    report = write_summary(out, f"Flags of {data.name}", lines, {"Flags by reason": (("reason", "rows"), reasons)})
    print_line(f"flags: {out / FLAGS_FILE}\nsuspicion: {out / SUSPICION_FILE}\nreport: {report}")
    print_line(f"every row: {out / WORK / 'report' / 'index.html'}\nto decide about them: truegold review {out / WORK}")
