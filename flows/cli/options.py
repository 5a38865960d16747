"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from truegold.verifiers import ConfigError


def _on_disk(folder: Path) -> Path:
    """Return the folder. Raises ConfigError if it is a URL or the standard output."""
    from truegold.pipeline.sources.places import place_url

    if (url := place_url(folder)) is not None:
        raise ConfigError(f"--out {url} is not a folder on disk.", "Write to a folder, and copy it there.")
    if str(folder) == "-":
        raise ConfigError("--out - is the standard output.", "Several files are written: name a folder.")
    return folder


def options_of(command: Any) -> set[str]:
    """Return the options of a command of Typer, such as `--out`."""
    return {name for parameter in getattr(command, "params", ()) for name in parameter.opts}


def setting_of(option: str) -> str | None:
    """Return the setting for an option of the commands on one file, such as `data.columns.gold` for `--gold-column`."""
    name = option.removeprefix("--")
    if name.endswith("-column"):
        return f"data.columns.{name.removesuffix('-column')}"
    return f"data.{name}" if name in ("preset", "verifier", "limit") else None


OutFolder = Annotated[
    Path, typer.Option("--out", help="The folder to write to.", show_default=False, callback=_on_disk)
]
PromptColumn = Annotated[str | None, typer.Option(help="The column of the problem; found by its name if not given.")]
GoldColumn = Annotated[str | None, typer.Option(help="The column of the answer; found by its name if not given.")]
IdColumn = Annotated[str | None, typer.Option(help="The column of the id; found by its name, or else row numbers.")]
Preset = Annotated[str | None, typer.Option(help="The shape of the file; found by its columns if not given.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Take only this many rows, from the start.")]
Workers = Annotated[int, typer.Option(min=0, help="Processes; 0 takes one per core.")]
DeadlineS = Annotated[float, typer.Option(min=0.001, help="Seconds for one verdict, after which it is a timeout.")]
VerifierColumn = Annotated[
    str | None,
    typer.Option(
        help="The column that names each row's verifier; `verifier` if not given. A row may name code, which is run."
    ),
]
SplitColumn = Annotated[
    str | None, typer.Option(help="The column of the split (train, test, ...); `split` if not given.")
]
SecondOpinion = Annotated[
    str | None,
    typer.Option(
        metavar="WHO",
        help="A second opinion on answers that rules could not read: a verifier such as math_verify, or a YAML file.",
        show_default=False,
    ),
]
LastTurnOnly = Annotated[
    bool,
    typer.Option(
        "--last-turn-only",
        help="Keep the last user message of rows with system messages, earlier turns, pictures or tools.",
    ),
]
MaxRejected = Annotated[
    float | None,
    typer.Option(
        "--max-rejected", min=0, max=1, metavar="SHARE", help="Exit code 3 if a larger share of records is rejected."
    ),
]
MaxHeld = Annotated[
    float | None,
    typer.Option(
        "--max-held", min=0, max=1, metavar="SHARE", help="Exit code 3 if a larger share of rows is held for review."
    ),
]
