"""The command line `truegold`.

Exit codes: 0 done; 1 a bug (with its traceback); 2 the configuration or the command line is wrong; 3 the data is;
4 the machine lacks something; 5 a training guard stopped the run; 6 a verifier breaks its contract;
7 it errs more often than was allowed; 8 a data set fails its gate; 130 interrupted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated

import typer

from truegold.flows.cli.clean import clean
from truegold.flows.cli.decide import decide
from truegold.flows.cli.dedup import decontaminate, dedup
from truegold.flows.cli.demo import demo
from truegold.flows.cli.export import export
from truegold.flows.cli.flag import flag
from truegold.flows.cli.gate import gate
from truegold.flows.cli.options import LastTurnOnly
from truegold.flows.cli.rescore import rescore
from truegold.flows.cli.review import review
from truegold.flows.cli.running import AsJson, DryRun, EngineChoice, EngineOption, Overrides, run_until
from truegold.flows.cli.serve_verifier import serve_verifier
from truegold.flows.cli.starter import init
from truegold.flows.cli.template import template
from truegold.flows.cli.testcases import testcases_app
from truegold.flows.cli.verifiers import verifiers_app
from truegold.flows.cli.verify import verify
from truegold.flows.console import Terminal, errors, output, print_line
from truegold.pipeline.running.disk import disk_errors_reported
from truegold.pipeline.running.stage_table import Phase
from truegold.verifiers import ConfigError, TruegoldError
from truegold.verifiers.extras import missing_extra

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich")


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print_line(f"truegold {installed_version('truegold')}")
        raise typer.Exit


RUN, LOOK, FILES, SETUP = "A run", "Look at a run", "Work on one file", "Verifiers and this machine"
"""The groups of commands in the help, in their order."""


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Makes sure gold is true before anyone spends GPU hours on it."""


INTERRUPTED = 130
RESUMED = ("train", "demo", "flag", "testcases")
"""The commands besides those of the phases whose finished stages are kept."""


ConfigPath = Annotated[Path, typer.Argument(help="The run's YAML file.", show_default=False)]
PHASE_COMMANDS = {
    "run": (Phase.REPORT, "The main job: curate, profile, select, train, report; whatever the configuration has."),
    "curate": (Phase.CURATE, "Clean, deduplicate, verify gold and flag; report on every row."),
    "profile": (Phase.PROFILE, "Curate, then measure pass rates with the model."),
    "select": (Phase.SELECT, "Curate and profile, then choose the rows worth training on."),
    "synth": (Phase.SYNTH, "Everything up to positives for the rows that hardly ever pass."),
}


def _phase_command(until: Phase) -> Callable[..., None]:
    def command(
        config: ConfigPath,
        set_: Overrides = None,
        engine: EngineOption = EngineChoice.PREFECT,
        dry_run: DryRun = False,
        as_json: AsJson = False,
        last_turn_only: LastTurnOnly = False,
    ) -> None:
        from truegold.flows.config import load_config

        loaded = load_config(config, set_ or (), last_turn_only=last_turn_only)
        run_until(until, loaded, engine, dry_run, as_json)

    return command


for _name, (_until, _help) in PHASE_COMMANDS.items():
    app.command(_name, help=_help, rich_help_panel=RUN)(_phase_command(_until))


@app.command(rich_help_panel=RUN)
def train(
    config: Annotated[Path | None, typer.Argument(help="The run's YAML file.", show_default=False)] = None,
    set_: Overrides = None,
    engine: EngineOption = EngineChoice.PREFECT,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    last_turn_only: LastTurnOnly = False,
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
) -> None:
    """Everything up to and including GRPO."""
    if doctor is not None:
        from truegold.train.guards.doctor import examine_log

        for line in examine_log(doctor):
            print_line(line)
        return
    from truegold.flows.config import load_config

    if config is None:
        raise ConfigError("There is no configuration to train by.", "truegold train RUN.yaml")
    loaded = load_config(config, set_ or (), last_turn_only=last_turn_only)
    run_until(Phase.TRAIN, loaded, engine, dry_run, as_json)


@app.command(rich_help_panel=LOOK)
def report(
    runs: Annotated[list[Path], typer.Argument(help="The run's directory; two with --compare.", show_default=False)],
    share: Annotated[
        Path | None,
        typer.Option(
            "--share", metavar="FILE", help="Write a page that may be given away into this file.", show_default=False
        ),
    ] = None,
    texts: Annotated[
        str,
        typer.Option(help="With --share: `none` leaves the texts of rows out, `redacted` names, addresses and keys."),
    ] = "none",
    compare: Annotated[bool, typer.Option("--compare", help="One page on two runs.")] = False,
    out: Annotated[Path, typer.Option("--out", help="Where the page of --compare is written.")] = Path("compare.html"),
) -> None:
    """Write the report on whatever stages of a run are finished, or a page that compares two runs."""
    if compare:
        from truegold.pipeline.report.compare import compare_runs
        from truegold.pipeline.running.disk import write_whole

        if len(runs) != 2:
            raise ConfigError(f"--compare takes two runs, not {len(runs)}.", "truegold report --compare runs/a runs/b")
        with disk_errors_reported(out.parent):
            write_whole(out, compare_runs(*runs).encode())
        print_line(f"comparison: {out}")
        return
    if len(runs) != 1:
        raise ConfigError(f"There is one report a run, and {len(runs)} are named.", "Two are compared with --compare.")
    if share is not None:
        _share(runs[0], share, texts)
        return
    from truegold.flows.execute import report_again

    result = report_again(runs[0], Terminal(errors))
    print_line(f"report: {result.path / 'index.html'}")


def _share(run_dir: Path, target: Path, texts: str) -> None:
    from truegold.pipeline.report.sharing import SharedTexts, shared_page
    from truegold.pipeline.running.disk import write_whole

    if texts not in set(SharedTexts):
        raise ConfigError(f"--texts {texts}: the texts of rows are left out (`none`) or `redacted`.")
    if target.is_dir():
        raise ConfigError(f"--share {target} is a folder.", f"Name a file in it: {target / 'report.html'}.")
    with disk_errors_reported(target.parent):
        write_whole(target, shared_page(run_dir, SharedTexts(texts)).encode())
    print_line(f"report to be shared: {target}")


@app.command(rich_help_panel=LOOK)
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


@app.command(rich_help_panel=LOOK)
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


def doctor() -> None:
    """Tell what this machine can do, and the line that installs what is missing."""
    from truegold.flows.doctor import examine

    findings = examine()
    for finding in findings:
        state = {True: "works", False: "MISSING", None: ""}[finding.ok]
        print_line(f"{finding.name:<16} {state:<8} {finding.detail}".rstrip())
    troubles = [finding for finding in findings if finding.ok is False]
    print_line("")
    if not troubles:
        print_line("Everything that truegold can do will work here.")
    for finding in troubles:
        print_line(f"{finding.name.strip()}: {finding.detail}. {finding.loss}")
        if finding.fix:
            print_line(f"    {finding.fix}")


app.command(rich_help_panel=RUN)(init)
app.command(rich_help_panel=RUN)(demo)
app.command(rich_help_panel=LOOK)(review)
app.command(rich_help_panel=LOOK)(decide)
app.command(rich_help_panel=LOOK)(clean)
app.command(rich_help_panel=LOOK)(template)
app.command(rich_help_panel=FILES)(verify)
app.command(rich_help_panel=FILES)(flag)
app.command(rich_help_panel=FILES)(dedup)
app.command(rich_help_panel=FILES)(decontaminate)
app.command(rich_help_panel=FILES)(export)
app.command(rich_help_panel=FILES)(rescore)
app.command(rich_help_panel=FILES)(gate)
app.add_typer(testcases_app, name="testcases", rich_help_panel=FILES)
app.command(rich_help_panel=SETUP)(doctor)
app.command("serve-verifier", rich_help_panel=SETUP)(serve_verifier)
app.add_typer(verifiers_app, name="verifiers", rich_help_panel=SETUP)


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
            keeps_stages = bool({*RESUMED, *PHASE_COMMANDS} & set(sys.argv[1:2]))
            errors.print(f"interrupted; the same command {'goes on from here' if keeps_stages else 'begins anew'}.")
        raise


def _fail(message: str, code: int) -> None:
    # A message may quote data, and data may hold what a terminal acts on.
    shown = "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in message)
    errors.print(f"error: {shown}", markup=False, soft_wrap=True, style="red")
    sys.exit(code)
