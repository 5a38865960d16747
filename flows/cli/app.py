"""The command line `truegold`.

Exit codes: 0 done; 1 a bug (with its traceback); 2 the configuration or the command line is wrong; 3 the data is;
4 the machine lacks something; 5 a training guard stopped the run; 6 a verifier breaks its contract;
7 it errs more often than was allowed; 130 interrupted.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from truegold.flows.cli.dedup import decontaminate, dedup
from truegold.flows.cli.flag import flag
from truegold.flows.cli.options import GoldColumn, IdColumn, PromptColumn
from truegold.flows.cli.testcases import testcases_app
from truegold.flows.cli.verifiers import verifiers_app
from truegold.flows.console import Terminal, errors, output, print_line
from truegold.pipeline.running.disk import disk_errors_reported
from truegold.pipeline.running.stage_table import Phase
from truegold.verifiers import ConfigError, TruegoldError
from truegold.verifiers.extras import missing_extra
from truegold.verifiers.running.batch import DEADLINE_S
from truegold.verifiers.running.deadlines import MAX_TIMEOUTS

app = typer.Typer(
    help="Makes sure gold is true before anyone spends GPU hours on it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(verifiers_app, name="verifiers")
app.add_typer(testcases_app, name="testcases")
app.command()(flag)
app.command("dedup")(dedup)
app.command("decontaminate")(decontaminate)
INTERRUPTED = 130


class EngineChoice(StrEnum):
    """The two ways to call the stages."""

    PREFECT = "prefect"
    LOCAL = "local"


ConfigPath = Annotated[Path, typer.Argument(help="The run's YAML file.", show_default=False)]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="Override a setting, such as data.limit=200.")
]
EngineOption = Annotated[EngineChoice, typer.Option("--engine", help="Run as Prefect flows, or without Prefect.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the resolved configuration and the plan, and stop.")]

PHASE_COMMANDS = {
    "run": (Phase.REPORT, "The main job: curate, profile, select, train, report; whatever the configuration has."),
    "curate": (Phase.CURATE, "Clean, deduplicate, verify gold and flag; report on every row."),
    "profile": (Phase.PROFILE, "Curate, then measure pass rates with the model."),
    "select": (Phase.SELECT, "Curate and profile, then choose the rows worth training on."),
    "synth": (Phase.SYNTH, "Everything up to positives for the rows that hardly ever pass."),
}


def _phase_command(until: Phase) -> Callable[..., None]:
    def command(
        config: ConfigPath, set_: Overrides = None, engine: EngineOption = EngineChoice.PREFECT, dry_run: DryRun = False
    ) -> None:
        _run_until(until, config, set_, engine, dry_run)

    return command


for _name, (_until, _help) in PHASE_COMMANDS.items():
    app.command(_name, help=_help)(_phase_command(_until))


@app.command()
def train(
    config: Annotated[Path | None, typer.Argument(help="The run's YAML file.", show_default=False)] = None,
    set_: Overrides = None,
    engine: EngineOption = EngineChoice.PREFECT,
    dry_run: DryRun = False,
    doctor: Annotated[
        Path | None,
        typer.Option(
            "--doctor",
            metavar="LOG",
            help="Train nothing: say what went wrong in a finished run, by its "
            "metrics. A run's folder, or a metrics file of truegold, TRL or verl.",
            show_default=False,
        ),
    ] = None,
    ablate: Annotated[
        Path | None,
        typer.Option(
            "--ablate",
            metavar="COMPLETIONS",
            help="Train nothing: show how two objectives weigh one recorded batch, a file of completions/. They are "
            "set by --set first.advantage=grpo --set second.advantage=maxrl, by the names of train.objective.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Everything up to and including GRPO."""
    if ablate is not None:
        from truegold.train.grpo.ablate import compare

        for line in compare(ablate, _objective(set_, "first."), _objective(set_, "second.")):
            print_line(line)
        return
    if doctor is not None:
        from truegold.train.guards.doctor import examine_log

        for line in examine_log(doctor):
            print_line(line)
        return
    if config is None:
        raise ConfigError("There is no configuration to train by.", "truegold train RUN.yaml")
    _run_until(Phase.TRAIN, config, set_, engine, dry_run)


def _objective(overrides: Sequence[str] | None, prefix: str) -> dict[str, Any]:
    """Return the settings of an objective among the overrides, nested by their dotted names."""
    from truegold.flows.settings_text import parse_settings

    settings: dict[str, Any] = {}
    for override in overrides or ():
        name, is_setting, value = override.partition("=")
        if not is_setting or not name.startswith(("first.", "second.")):
            raise ConfigError(f"--set {override} is no setting of an objective.", "--set first.advantage=grpo")
        if name.startswith(prefix):
            *sections, field = name.removeprefix(prefix).split(".")
            section = settings
            for part in sections:
                section = section.setdefault(part, {})
            section[field] = parse_settings(value)
    return settings


@app.command()
def report(run_dir: Annotated[Path, typer.Argument(help="The run's directory.", show_default=False)]) -> None:
    """Write the report on whatever stages of a run are finished."""
    from truegold.flows.execute import report_again

    result = report_again(run_dir, Terminal(errors))
    print_line(f"report: {result.path / 'index.html'}")


@app.command()
def explain(
    row: Annotated[
        str, typer.Argument(help="A row's id, its first 6 digits or more, or source:row.", show_default=False)
    ],
    run_dir: Annotated[Path, typer.Option("--run", help="The run's directory.", show_default=False)],
) -> None:
    """Tell a row's whole story: every edit, flag, sample and decision."""
    from truegold.pipeline.report import explain as explanations

    for line in explanations.explain_lines(explanations.explain(run_dir, row)):
        print_line(line)


@app.command()
def diff(
    run_a: Annotated[Path, typer.Argument(help="A run's directory.", show_default=False)],
    run_b: Annotated[Path, typer.Argument(help="Another one.", show_default=False)],
    json_: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    examples: Annotated[int, typer.Option(min=0, help="Ids named for each kind of change.")] = 5,
) -> None:
    """Tell what changed between two runs, and why: rows, texts, flags, pass rates, settings."""
    from dataclasses import asdict

    from truegold.pipeline.report.diff import diff_lines, diff_runs

    difference = diff_runs(run_a, run_b, examples)
    if json_:
        output.print_json(json.dumps(asdict(difference)))
        return
    for line in diff_lines(difference):
        print_line(line)


@app.command()
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
    from truegold.pipeline.ingest.problem_batches import ProblemColumns
    from truegold.pipeline.verify.file import verify_file

    with disk_errors_reported(output_), Terminal(errors).stage("verify") as terminal:
        columns = ProblemColumns(
            prompt_column, gold_column, id_column, response_column, spelling="--{role}-column COLUMN"
        )
        counts = verify_file(input_, output_, verifier, workers, terminal, columns, deadline_s, max_timeouts)
    for reason, count in sorted(counts.items(), key=lambda entry: -entry[1]):
        output.print(f"{count:>10,}  {reason}")
    print_line(f"verdicts: {output_}")


@app.command()
def doctor() -> None:
    """Tell what this machine can do, and the line that installs what is missing."""
    from truegold.flows.doctor import examine

    marks = {True: "ok", False: "no", None: "  "}
    for finding in examine():
        fix = f"  ->  {finding.fix}" if finding.ok is False and finding.fix else ""
        print_line(f"{marks[finding.ok]} {finding.name:<16} {finding.detail}{fix}")


STARTER = """\
# A truegold run: truegold run {file}
# Any setting can be overridden: truegold run {file} --set data.limit=200
name: {name}

data:
  path: {data}
  # preset: gsm8k             # gsm8k, math, humaneval, mbpp, apps, codecontests, verl, trl ...; found by the columns
  # columns:                  # or say which column is which
  #   prompt: question
  #   gold: {{column: answer, extract: "after ####"}}
  #   solution: answer
  # verifier: math            # or choice, exact, your_package.module:object, path/to/file.py:object
  heldout: 0.1                # share of rows kept back for evaluation
  # limit: 200

model:
  path: {model}

chat:
  user: |-
    {{prompt}}
    Put your final answer in \\boxed{{}}.

profile:
  samples: 8                  # completions per problem
  max_tokens: 512

select:
  min_teaching: 0.2           # rows of which fewer groups are expected to teach are dropped
  # max_rows: 20000
  # target: balanced          # or open-r1, skywork, curriculum, or bands of pass rates with their shares

# sft: {{}}                     # SFT cold start on the verified worked solutions

train:
  steps: 100
  prompts_per_step: 32
  group_size: 8
  sampling:                   # max_tokens comes from the profile's right completions
    refills: 1                # once more from the reserve, for groups that are all right or all wrong
  optimizer:
    lr: 1.0e-6
    zero_stage: 1
  # launch: {{ranks: 8}}        # training processes, one for each GPU
"""
"""The configuration that `truegold init` writes: short, commented, and valid as it stands."""


def run_name(path: Path) -> str:
    """Return a name for the run of a configuration file: its own, without what a folder's name should not have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._") or "run"


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("truegold.yaml"),
    data: Annotated[str, typer.Option(help="The data file.")] = "train.jsonl",
    model: Annotated[str, typer.Option(help="A checkpoint's folder or a hub name.")] = "Qwen/Qwen3-0.6B",
) -> None:
    """Write a commented starter configuration."""
    if path.exists():
        raise ConfigError(f"{path} exists already.", "Give another name.")
    # JSON's texts are YAML's as well, whatever is in them.
    name, data_text, model_text = (json.dumps(text, ensure_ascii=False) for text in (run_name(path), data, model))
    path.write_text(STARTER.format(file=path, name=name, data=data_text, model=model_text), encoding="utf-8")
    print_line(f"wrote {path}; next: truegold run {path} --dry-run")


def _run_until(until: Phase, path: Path, overrides: Sequence[str] | None, engine: EngineChoice, dry_run: bool) -> None:
    from truegold.flows.config import load_config
    from truegold.flows.execute import all_cached, describe, execute, open_run, stage_caller, write_manifest
    from truegold.flows.plan import plan

    config = load_config(path, overrides or ())
    stages = plan(config, until)
    if dry_run:
        output.print_json(json.dumps(config.resolved().model_dump(mode="json")))
        for stage in stages:
            process = " (own process)" if stage.isolated else ""
            print_line(f"{stage.name:<14} {stage.fn}{process}")
        return
    run_dir = config.run_dir
    cached = all_cached(stages, run_dir) if run_dir.exists() else None
    if cached is not None:
        for result in cached:
            print_line(describe(result), errors)
        write_manifest(run_dir, cached)
        errors.print(f"nothing to do: all {len(cached)} stages come from the cache")
    elif engine is EngineChoice.LOCAL:
        with open_run(config):
            execute(stages, run_dir, stage_caller(run_dir, Terminal(errors)))
    else:
        from truegold.flows.server import prefect_api

        with open_run(config):
            pass  # A directory in use should not cost the start of a server to find out.

        errors.print(
            "starting Prefect (about 20 s; --engine local runs without it)"
            if "PREFECT_API_URL" not in os.environ
            else "using the Prefect server of PREFECT_API_URL"
        )
        with prefect_api():
            from truegold.flows.prefect_flows import FLOWS

            FLOWS[until](config)
    print_line(f"run: {run_dir}\nreport: {run_dir / 'report' / 'index.html'}")


def main() -> None:
    """Run the command line: an error that the user can act on is one line, a bug has its traceback."""
    try:
        with disk_errors_reported(Path.cwd()):
            app()
    except TruegoldError as error:
        _fail(str(error), error.exit_code)
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            raise
        _fail(str(missing), missing.exit_code)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            errors.print("interrupted; the same command goes on from here.")
        raise


def _fail(message: str, code: int) -> None:
    errors.print(f"error: {message}", markup=False, soft_wrap=True, style="red")
    sys.exit(code)
