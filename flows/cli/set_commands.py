"""Commands on a whole data set: `truegold gate`, `export` and `testcases vet`.

`gate` checks a set as tests check code in CI: it passes, or fails with named reasons. `export` writes a set in the
format of a trainer; with `--check` it also reads the set back as the trainer will. `testcases vet` checks whether the
tests of programs are good enough for computing a reward:

    truegold testcases vet humaneval.jsonl --out vetted

The command reads the file as `truegold run` does, vets the tests of every row, and writes rows.parquet (with repaired
tests), dropped.parquet, ledger.parquet, suites.parquet and report.md. If it is killed, the same command resumes it from
the folder `work`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truegold.flows.cli.given_options import CarefulCommand
from truegold.flows.cli.options import (
    DeadlineS,
    GoldColumn,
    IdColumn,
    LastTurnOnly,
    Limit,
    MaxRejected,
    OutFolder,
    Preset,
    PromptColumn,
    SplitColumn,
    VerifierColumn,
    Workers,
)
from truegold.flows.console import Terminal, errors, print_line
from truegold.pipeline.running.disk import disk_errors_reported, refuse_input, write_whole
from truegold.verifiers import ConfigError, InputError
from truegold.verifiers.running.batch import DEADLINE_S

if TYPE_CHECKING:
    from truegold.flows.config import RunConfig
    from truegold.pipeline.curation.gate import Gated, GateOptions
    from truegold.pipeline.export.completions import CompletionChoice
    from truegold.pipeline.export.formats import Format
    from truegold.pipeline.running.stage import Stage

GATE_FAILED = 8
EXAMPLES_SHOWN = 3

FormatName = StrEnum(
    "FormatName",
    "trl trl-sft trl-dpo verl openrlhf open-instruct verifiers inspect nemo-gym nemo-rl hf",
)
"""The formats of trainers. They repeat the names of `pipeline.export.formats`, whose import takes a second."""

WORK = "work"
"""The name of the run that does the work, and of its folder."""
TABLES = ("rows.parquet", "dropped.parquet", "ledger.parquet", "suites.parquet")
"""The tables of the stage that are copied to the output."""

testcases_app = typer.Typer(help="Vet the tests of code problems.", no_args_is_help=True, rich_markup_mode=None)


def gate(
    data: Annotated[
        list[Path],
        typer.Argument(help="Files, folders of runs or exported sets.", metavar="DATA...", show_default=False),
    ],
    fail_on: Annotated[
        str | None,
        typer.Option(
            help="Checks, with commas: gold, empty, null, skipped, hack, unusable, leak, held, flags, dropped, edited,"
            " card."
        ),
    ] = None,
    against: Annotated[
        list[str] | None, typer.Option(help="An evaluation set that no row may come from: a name or a file.")
    ] = None,
    card: Annotated[Path | None, typer.Option(help="The set's card; else README.md next to it.")] = None,
    max_: Annotated[
        list[str] | None,
        typer.Option(
            "--max",
            metavar="KIND=N",
            help="How many rows may fail a check or have a reason: a number, 3, or a share, 0.01 or 1%.",
        ),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write the outcome as JUnit XML.")] = None,
    sarif: Annotated[Path | None, typer.Option(help="Write the outcome as SARIF.")] = None,
    skip_others: Annotated[
        bool, typer.Option("--skip-others", help="Skip files without a column of prompts, with a note.")
    ] = False,
    verifier: Annotated[str | None, typer.Option(help="The verifier of all rows; else as the data says.")] = None,
    preset: Annotated[str | None, typer.Option(help="The shape of a file; else by its columns.")] = None,
    prompt_column: PromptColumn = None,
    gold_column: GoldColumn = None,
    verifier_column: VerifierColumn = None,
    last_turn_only: LastTurnOnly = False,
    workers: Workers = 0,
    deadline_s: DeadlineS = DEADLINE_S,
) -> None:
    """Check data sets as code is checked. Exit code 8 if a check fails."""
    from truegold.pipeline.config.sources import Columns, FileSource
    from truegold.pipeline.curation.gate import Check, GateOptions, junit_xml, parse_bound, sarif_log

    columns = {"prompt": prompt_column, "gold": gold_column, "verifier": verifier_column}
    names = [name.strip() for name in (fail_on or "").split(",") if name.strip()]
    for name in names:
        if name not in list(Check):
            raise ConfigError(f"There is no check {name!r}.", f"There are: {', '.join(Check)}.")
    options = GateOptions(
        fail_on=[Check[name.upper()] for name in names],
        against=against or (),
        card=card,
        bounds=dict(map(parse_bound, max_ or ())),
        source=FileSource(
            path="data",
            preset=preset,
            verifier=verifier,
            last_turn_only=last_turn_only,
            columns=Columns.model_validate(columns),
        ),
        workers=workers,
        deadline_s=deadline_s,
    )
    if Check.LEAK in options.fail_on and not options.against:
        raise ConfigError("The check leak has no evaluation set.", "Name one: --against math500")
    for target in filter(None, (junit, sarif)):
        refuse_input(target, *data, *([card] if card else []), *map(Path, against or ()))
    outcomes = _gate_each(data, options, skip_others)
    kinds = {violation.kind for gated in outcomes for violation in gated.violations}
    for name in options.bounds.keys() - kinds - set(Check):
        print_line(f"--max {name}: no row has this reason.")
    if junit is not None:
        write_whole(junit, junit_xml(outcomes))
    if sarif is not None:
        write_whole(sarif, json.dumps(sarif_log(outcomes), indent=1).encode() + b"\n")
    if any(gated.failed for gated in outcomes):
        raise typer.Exit(GATE_FAILED)
    if (error := next((gated.error for gated in outcomes if gated.error is not None), None)) is not None:
        raise error


def _gate_each(data: list[Path], options: GateOptions, skip_others: bool) -> list[Gated]:
    """Gate each set and print its outcome. A set that cannot be read gets an outcome too."""
    from truegold.pipeline.curation.gate import Gated, why_no_problems
    from truegold.pipeline.curation.gate import gate as run_gate

    outcomes: list[Gated] = []
    for path in data:
        try:
            if skip_others and (why := why_no_problems(path, options.source)) is not None:
                print_line(f"skipped  {path}: {why}.")
                continue
            with Terminal(errors).stage("gate") as terminal:
                outcomes.append(run_gate(path, options, terminal))
            _warn_of_unapplied(path)
        except InputError as error:
            outcomes.append(Gated(path, error=error))
        if len(data) > 1:
            print_line(str(path))
        if len(data) > 1 or outcomes[-1].error is None:
            _print_outcome(outcomes[-1])
    return outcomes


def _warn_of_unapplied(data: Path) -> None:
    from truegold.pipeline.review.reviewed_run import describe_unapplied

    if (unapplied := describe_unapplied(data)) is not None:
        print_line(f"note: {unapplied}", errors)


def _print_outcome(gated: Gated) -> None:
    if gated.error is not None:
        print_line(f"ERROR    {gated.error}")
    for check in gated.checks:
        violations = gated.errors(check) or gated.of_check(check)
        state, allowed = "FAILED" if gated.fails(check) else "ok", gated.allowance(check)
        tally = " ".join(filter(None, (gated.tally(check), allowed and f"({allowed})"))) if violations else ""
        print_line(f"{state:<8} {check:<9} {tally}".rstrip())
        # One example of each kind comes first, so that fifty rows of one kind do not hide the others.
        by_kind = {violation.kind: violation for violation in reversed(violations)}
        for violation in list(dict.fromkeys([*reversed(by_kind.values()), *violations]))[:EXAMPLES_SHOWN]:
            print_line(f"           {violation.line}")
    if gated.hacked_rows:
        print_line(f"Gaming responses were tried on {gated.hacked_rows:,} of {gated.rows:,} rows.")


def export(
    data: Annotated[
        Path,
        typer.Argument(help="A run's folder, an exported set, or a file: JSONL, Parquet, CSV.", show_default=False),
    ],
    form: Annotated[FormatName, typer.Option("--format", help="The trainer that reads it.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(help="The folder to write, or its URL; none to only --check a file.", show_default=False),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Read it back: with the target's own code if installed, and its schema.")
    ] = False,
    system: Annotated[str | None, typer.Option(help="A system message before every prompt.")] = None,
    license_: Annotated[str | None, typer.Option("--license", help="The licence of rows that state none.")] = None,
    origin: Annotated[str | None, typer.Option(help="The origin of rows that do not state it.")] = None,
    preset: Annotated[str | None, typer.Option(help="The shape of a file; else by its columns.")] = None,
    prompt_column: PromptColumn = None,
    gold_column: GoldColumn = None,
    id_column: IdColumn = None,
    verifier: Annotated[str | None, typer.Option(help="The verifier of all rows; else as the data says.")] = None,
    verifier_column: VerifierColumn = None,
    split_column: SplitColumn = None,
    last_turn_only: LastTurnOnly = False,
    limit: Limit = None,
    per_row: Annotated[
        int | None, typer.Option(min=1, help="For trl-sft and trl-dpo: completions or pairs per row; 1.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="For trl-sft and trl-dpo: selects completions; 0.")] = None,
    completions: Annotated[
        list[str] | None,
        typer.Option(help="For trl-sft and trl-dpo: profile, synth, train, profile_after; the first two."),
    ] = None,
    max_rejected: MaxRejected = None,
) -> None:
    """Write a set for a trainer: TRL, verl, OpenRLHF, open-instruct, verifiers, inspect, NeMo-Gym, NeMo-RL, hf."""
    from truegold.pipeline.config.sources import Columns, FileSource
    from truegold.pipeline.export import convert as conversion
    from truegold.pipeline.export.formats import FORMATS
    from truegold.pipeline.sources.places import outgoing, place_url
    from truegold.pipeline.tables.losses import LossBounds

    target = FORMATS[form]
    if out is None and not check:
        raise ConfigError("There is no folder to write to.", "truegold export DATA --format FORMAT --out FOLDER")
    if out is None:
        _check([data], target)
        return
    named = {"prompt": prompt_column, "gold": gold_column, "id": id_column, "verifier": verifier_column}
    named["split"] = split_column
    source = FileSource(
        path="data",
        preset=preset,
        verifier=verifier,
        last_turn_only=last_turn_only,
        license=license_,
        origin=origin,
        limit=limit,
        columns=Columns.model_validate(named),
    )
    choice = _choice(target, per_row, seed, completions)
    bounds = LossBounds(max_rejected)
    with outgoing(out) as folder:
        with disk_errors_reported(folder), Terminal(errors).stage("export") as terminal:
            written = conversion.convert(data, target, folder, terminal, source, system, choice, bounds)
        for line in written.lines(target):
            print_line(line)
        _warn_of_unapplied(data)
        if check:
            _check(list(written.splits), target)
    if (url := place_url(out)) is not None:
        print_line(f"sent to {url}")


def _check(paths: list[Path], target: Format) -> None:
    """Read sets as their target does, and print the result. Raises InputError for a mistake."""
    from truegold.pipeline.export import convert as conversion

    mistakes = 0
    for path in paths:
        checked = conversion.check(path, target)
        print_line(f"{path}: {checked.rows:,} rows read by {' and '.join(checked.readers)}")
        for mistake in checked.mistakes:
            print_line(f"  {mistake}")
        mistakes += len(checked.mistakes)
    if mistakes:
        raise InputError(f"The set is not in the format of {target.title}.", "The lines above name the mistakes.")


def _choice(target: Format, per_row: int | None, seed: int | None, completions: list[str] | None) -> CompletionChoice:
    """Return the choice of completions to export. Raises ConfigError if the format has no completions."""
    from truegold.pipeline.export.completions import BEFORE_TRAINING, ORIGINS, CompletionChoice

    chooses = per_row is not None or seed is not None or bool(completions)
    if chooses and target.completions == "none":
        raise ConfigError(
            f"The format {target.name} has no completions to choose.",
            "--per-row, --seed and --completions are settings of trl-sft and trl-dpo.",
        )
    if unknown := [name for name in completions or () if name not in ORIGINS]:
        raise ConfigError(f"The stage {unknown[0]!r} has no completions.", f"There are: {', '.join(ORIGINS)}.")
    return CompletionChoice(per_row or 1, seed or 0, completions or BEFORE_TRAINING)


@testcases_app.callback()
def testcases() -> None:
    """Vet the tests of code problems."""


@testcases_app.command("vet", cls=CarefulCommand)
def vet(
    data: Annotated[Path, typer.Argument(help="JSONL, Parquet or CSV: problems with tests.", show_default=False)],
    out: OutFolder,
    preset: Preset = None,
    limit: Limit = None,
    last_turn_only: LastTurnOnly = False,
    mutants: Annotated[int | None, typer.Option(min=0, help="Faults planted in each worked solution.")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="Runs of each worked solution.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="A setting of vet_tests, or data.FIELD.")
    ] = None,
) -> None:
    """Vet the tests of every problem in a file."""
    from truegold.flows.config import section_config
    from truegold.flows.execute import execute, open_run, stage_caller
    from truegold.pipeline.tables.rows import copy_table
    from truegold.pipeline.verify.vet import markdown, read_suites, source_lines, summary_lines

    sections: dict[str, dict[str, Any]] = {
        "vet_tests": {"enabled": True, "mutants": mutants, "runs": runs},
        "data": {"path": str(data), "preset": preset, "limit": limit, "last_turn_only": last_turn_only},
    }
    config = section_config("truegold testcases vet", out, WORK, sections, set_ or [])
    stages = _vetting_stages(config)
    with open_run(config) as run_dir:
        vetted = execute(stages, run_dir, stage_caller(run_dir, Terminal(errors)))[-1].report
        for name in TABLES:
            copy_table(run_dir / "vet_tests" / name, out / name)
        suites = read_suites(out / "suites.parquet")
        (out / "report.md").write_text(markdown(data.name, suites), encoding="utf-8")
    for line in (*summary_lines(suites), *source_lines(vetted.facts.get("sources", {}))):
        print_line(line)
    print_line(f"report: {out / 'report.md'}")


def _vetting_stages(config: RunConfig) -> list[Stage]:
    """Return the stages `ingest` and `vet_tests` of a run's plan."""
    from truegold.pipeline.curation.plan import curation_stages, rows_of

    planned = {stage.name: stage for stage in curation_stages(config)}
    if "vet_tests" not in planned:
        raise InputError(
            f"{getattr(config.data, 'path', 'the data')} holds no programs with tests{_described_tests(config)}.",
            "Name its shape: --preset humaneval; or its tests: --set data.columns='{prompt: question, tests: tests}'; "
            "or, where rows have them in verifier_args and name no verifier: --set data.verifier=code",
        )
    return [planned["ingest"], replace(planned["vet_tests"], inputs=rows_of("ingest"))]


def _described_tests(config: RunConfig) -> str:
    """Return what the column of tests holds in place of tests, or that no column has a usual name of tests."""
    from truegold.pipeline.config.sources import FileSource
    from truegold.pipeline.sources.proposal import first_records
    from truegold.verifiers.row_kinds import TESTS, why_no_tests

    if not isinstance(config.data, FileSource):
        return ", as far as its columns tell"
    for record in first_records(config.data, [])[0]:
        for name in TESTS:
            if name in record.values:
                return f": in row {record.row_number} the column {name} {why_no_tests(record.values[name])}"
    return ", as far as its columns tell"
