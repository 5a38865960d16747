"""The command `truegold decide`, which settles one row from a terminal.

    truegold decide 9f0c21 keep
    truegold decide train.jsonl:17 fix=16 --note "she keeps 3 eggs" --reviewer ann
    truegold decide 9f0c21 undo

appends a line to decisions/REVIEWER.jsonl. The next `truegold curate` of the run acts on it.
"""

from __future__ import annotations

import getpass
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truegold.flows.console import errors, print_line
from truegold.verifiers import ConfigError, InputError

if TYPE_CHECKING:
    from truegold.pipeline.review.run import ReviewedRun

RUNS = Path("runs")
"""The folder of runs that is searched where no run is named."""
ACTIONS = ("keep", "drop", "fix", "unsure", "undo")

Reviewer = Annotated[
    str | None, typer.Option("--reviewer", help="Your name; git's user.name, or the login, where not given.")
]
DecisionsFolder = Annotated[
    Path | None,
    typer.Option("--decisions", help="The folder of decisions; the one of the run's configuration where not given."),
]


def decide(
    row: Annotated[str, typer.Argument(help="A row's id, its first 6 digits or more, or source:row.")],
    action: Annotated[str, typer.Argument(metavar="keep|drop|fix=GOLD|unsure|undo", help="What becomes of it.")],
    note: Annotated[str | None, typer.Option("--note", help="Why, for whoever reads it later.")] = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", help="The run's directory; the newest in `runs` that has the row if not given."),
    ] = None,
    reviewer: Reviewer = None,
    decisions: DecisionsFolder = None,
) -> None:
    """Settle a row: keep it, drop it, fix its gold, or take your last word on it back."""
    from truegold.pipeline.review.decisions import DecisionKind, reviewer_file
    from truegold.pipeline.review.reading import read_gold
    from truegold.pipeline.tables.rows import row_key

    word, equals, gold = action.partition("=")
    if word not in ACTIONS or bool(equals) != (word == "fix"):
        raise ConfigError(f"{action!r} is no decision.", "Type keep, drop, fix=GOLD, unsure or undo.")
    name = reviewer or default_reviewer()
    reviewed, row_id = _find(run, row, decisions)
    kind = DecisionKind(word)
    before = reviewed.standing(row_id, name)
    if kind is DecisionKind.UNDO and before is None:
        raise InputError(f"{name} has no decision about {row_id} to take back.")
    made = reviewed.decide(row_id, kind, name, gold=gold or None, note=note)
    subject = reviewed.rows_of(row_id)[0]
    print_line(f"{row_id}  {_describe(made.decision, made.gold)}  in {reviewer_file(reviewed.folder, name)}")
    if kind is DecisionKind.UNDO:
        stands = reviewed.standing(row_id, name)
        print_line(f"what stands now: {_describe(stands.decision, stands.gold) if stands else 'nothing'}")
    if kind is DecisionKind.FIX:
        read = read_gold(subject, gold, reviewed.responses(row_key(subject)))
        if read.reading is not None:
            print_line(
                f"read as {read.reading}; of {read.judged} samples {read.passes_after} pass, {read.passes_before} did"
            )
        if read.message is not None:
            print_line(f"note: {read.message}", errors)
    print_line(f"The next `truegold curate` of {reviewed.run_dir} acts on it.")


def default_reviewer() -> str:
    """Return who git says the user is, else the login name."""
    try:
        answer = subprocess.run(["git", "config", "user.name"], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return getpass.getuser()
    return answer.stdout.strip() or getpass.getuser()


def _describe(decision: str, gold: str | None) -> str:
    return decision if gold is None else f"{decision} {gold}"


def _find(run: Path | None, row: str, decisions: Path | None) -> tuple[ReviewedRun, str]:
    """Return the run that has the row, and the row's id."""
    from truegold.pipeline.review.run import ReviewedRun

    if run is not None:
        reviewed = ReviewedRun.open(run, decisions)
        return reviewed, reviewed.resolve(row)
    manifests = sorted(RUNS.glob("*/manifest.json"), key=lambda path: -path.stat().st_mtime)
    if not manifests:
        raise InputError("There is no run in `runs`.", "Name the run's folder: --run PATH.")
    problem: InputError | None = None
    for manifest in manifests:
        try:
            reviewed = ReviewedRun.open(manifest.parent, decisions)
            return reviewed, reviewed.resolve(row)
        except InputError as error:
            problem = problem or error
    assert problem is not None
    raise problem
