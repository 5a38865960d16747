"""Commands that inspect a run or a model.

    report      writes a run's report again, a page on it for others, or a comparison of two runs
    explain     shows the history of a row
    diff        shows what changed between two runs
    clean       shows what a run holds on disk, and frees some of it
    template    tests a model's chat template

`clean` frees what a run no longer needs:

    runs/gsm8k
      profile        1.2 GB   a stage of the run
      .superseded    3.4 GB   stages of earlier settings
      .partial       0.2 GB   unfinished work; the same command continues it
    freed 3.4 GB

A run that returns to earlier settings uses their stages again, as long as these are on disk.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from truegold.flows.cli.review_commands import first_that_has, runs_by_age
from truegold.flows.console import Terminal, errors, output, print_line
from truegold.pipeline.running.disk import check_page_name, disk_errors_reported, write_whole
from truegold.verifiers import ConfigError

SUPERSEDED, UNFINISHED = ".superseded", ".partial"
KINDS = {
    SUPERSEDED: "stages of earlier settings",
    UNFINISHED: "unfinished work; the same command continues it",
}
"""Descriptions of folders in a run that are not stages."""
KILO = 1000

YES_NO = {True: "yes", False: "no", None: "-"}
TEMPLATE_TRAITS = {
    "has_system": "takes a system message",
    "needs_system": "refuses a dialogue without one",
    "keeps_turns": "keeps earlier answers as they were written",
    "keeps_thoughts": "keeps earlier thoughts",
    "keeps_thoughts_in_tool_loops": "keeps thoughts when a tool has answered",
    "opens_thought": "opens a thought at the end of the prompt",
    "doubles_bos": "text of the template gets a second BOS",
}
"""The words that `template` prints for each field of `TemplateProfile` with the values true, false or unknown."""


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
        typer.Option(help="With --share: `none` leaves out the texts of rows, `redacted` names, addresses and keys."),
    ] = "none",
    compare: Annotated[bool, typer.Option("--compare", help="Write one page that compares two runs.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="The file for the page; else in the run's folder, or compare.html.", show_default=False),
    ] = None,
) -> None:
    """Write the report on the finished stages of a run, or a page that compares two runs."""
    for option, page in (("--out", out), ("--share", share)):
        if page is not None:
            check_page_name(page, option)
    if compare:
        _compare(runs, out or Path("compare.html"))
        return
    if len(runs) != 1:
        raise ConfigError(f"A report is about one run, not {len(runs)}.", "Add --compare to compare two runs.")
    if share is not None:
        _share(runs[0], share, texts)
        return
    from truegold.flows.execute import report_again
    from truegold.flows.published import fetched_run

    result = report_again(fetched_run(runs[0]), Terminal(errors))
    page = result.path / "index.html"
    if out is not None:
        with disk_errors_reported(out.parent):
            write_whole(out, page.read_bytes())
    print_line(f"report: {out or page}")


def _compare(runs: list[Path], out: Path) -> None:
    from truegold.pipeline.report.run_diff import diff_page

    if len(runs) != 2:
        raise ConfigError(f"--compare takes two runs, not {len(runs)}.", "truegold report --compare runs/a runs/b")
    with disk_errors_reported(out.parent):
        write_whole(out, diff_page(*runs).encode())
    print_line(f"comparison: {out}")


def _share(run_dir: Path, target: Path, texts: str) -> None:
    from truegold.pipeline.report.sharing import SharedTexts, shared_page

    if texts not in set(SharedTexts):
        raise ConfigError(f"--texts {texts}: the texts of rows are left out (`none`) or `redacted`.")
    with disk_errors_reported(target.parent):
        write_whole(target, shared_page(run_dir, SharedTexts(texts)).encode())
    print_line(f"report to be shared: {target}")


def explain(
    row: Annotated[
        str,
        typer.Argument(
            help="A row's id, its first 6 digits or more, source:row, or the source's own id.", show_default=False
        ),
    ],
    run_dir: Annotated[
        Path | None,
        typer.Option("--run", help="The run's directory; the newest in `runs` that has the row if not given."),
    ] = None,
) -> None:
    """Show a row's whole history: every edit, flag, sample and decision."""
    from truegold.pipeline.report import explain as explanations

    run_dirs = [run_dir] if run_dir is not None else runs_by_age()
    for line in explanations.explain_lines(first_that_has(run_dirs, lambda folder: explanations.explain(folder, row))):
        print_line(line)


def diff(
    run_a: Annotated[Path, typer.Argument(help="A run's directory.", show_default=False)],
    run_b: Annotated[Path, typer.Argument(help="Another one.", show_default=False)],
    json_: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    examples: Annotated[int, typer.Option(min=0, help="Ids named for each kind of change.")] = 5,
) -> None:
    """Show what changed between two runs, and why: rows, texts, flags, pass rates, settings."""
    from truegold.pipeline.report.run_diff import diff_lines, diff_runs

    difference = diff_runs(run_a, run_b, examples)
    if json_:
        output.print_json(json.dumps(asdict(difference)))
        return
    for line in diff_lines(difference):
        print_line(line)


def clean(
    run_dir: Annotated[Path, typer.Argument(help="The run's directory.", show_default=False)],
    unfinished: Annotated[bool, typer.Option("--unfinished", help="Free unfinished work too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be freed.")] = False,
) -> None:
    """Show what a run holds on disk, and free stages that later settings have replaced."""
    from truegold.flows.execute import held_run
    from truegold.pipeline.tables.run_files import read_manifest

    if not (run_dir / "config.resolved.json").is_file():
        read_manifest(run_dir)
    with held_run(run_dir):
        print_line(str(run_dir))
        sizes = {entry.name: _measure(entry) for entry in sorted(run_dir.iterdir())}
        for name, size in sorted(sizes.items(), key=lambda entry: -entry[1]):
            is_stage = (run_dir / name / "stage.json").is_file()
            kind = KINDS.get(name, "a stage of the run" if is_stage else "kept for the next run")
            print_line(f"  {name:<22} {describe_bytes(size):>9}  {kind}")
        freed = 0
        for name in (SUPERSEDED, *((UNFINISHED,) if unfinished else ())):
            folder = run_dir / name
            if folder.is_dir() and not folder.is_symlink():
                freed += sizes[name]
                if not dry_run:
                    shutil.rmtree(folder)
    print_line(
        f"{'would free' if dry_run else 'freed'} {describe_bytes(freed)} of {describe_bytes(sum(sizes.values()))}"
    )


def _measure(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder. Links are not followed."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    return sum((Path(folder) / name).lstat().st_size for folder, _, names in os.walk(path) for name in names)


def describe_bytes(size: float) -> str:
    """Return a size in words: `812 B`, `3.4 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < KILO:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= KILO
    return f"{size:.1f} TB"


def template(
    model: Annotated[Path, typer.Argument(help="The folder of a checkpoint.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Test a model's chat template on earlier thoughts, tool calls and answers."""
    from truegold.pipeline.config.engines import ChatConfig
    from truegold.pipeline.engines.chat import load_encoder
    from truegold.train.turns.template import TurnTemplate
    from truegold.train.turns.template_profile import profile_template

    # An encoder that uses the template could refuse it here, before the template is examined.
    encoder = load_encoder(model, ChatConfig(use_template=False))
    profile = profile_template(TurnTemplate(encoder.tokenizer, encoder.stop_token_ids), model)
    if as_json:
        print_line(json.dumps({**asdict(profile), "advice": profile.advice()}, indent=2, ensure_ascii=False))
        return
    sampling = ", ".join(f"{name} {value:g}" for name, value in profile.stated_sampling.items())
    facts = {trait: YES_NO[getattr(profile, name)] for name, trait in TEMPLATE_TRAITS.items()}
    facts["think tags of one token each"] = " ".join(profile.think_tags or ["none"])
    facts["sampling, as the checkpoint states it"] = sampling or "not stated"
    facts["longest context"] = str(profile.max_positions or "-")
    for name, value in facts.items():
        print_line(f"{name:<48} {value}")
    for line in profile.advice():
        print_line(f"- {line}")
