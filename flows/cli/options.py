"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truegold.verifiers import ConfigError


def _on_disk(folder: Path) -> Path:
    """Return the folder; raise ConfigError if it is a URL."""
    from truegold.pipeline.sources.places import place_url

    if (url := place_url(folder)) is not None:
        raise ConfigError(f"--out {url} is not a folder on disk.", "Write to a folder, and copy it there.")
    return folder


OutFolder = Annotated[
    Path, typer.Option("--out", help="The folder to write to.", show_default=False, callback=_on_disk)
]
PromptColumn = Annotated[str | None, typer.Option(help="The column with the problem; by its name where not given.")]
GoldColumn = Annotated[str | None, typer.Option(help="The column with the answer; by its name where not given.")]
IdColumn = Annotated[str | None, typer.Option(help="The column with the id; by its name, else the record's number.")]
Preset = Annotated[str | None, typer.Option(help="The shape of the file; by its columns where not given.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Take only the first so many rows.")]
VerifierColumn = Annotated[
    str | None,
    typer.Option(
        help="The column that names each row's verifier; `verifier` where not given. Rows may name code by it."
    ),
]
SplitColumn = Annotated[
    str | None, typer.Option(help="The column that says train, test, validation, ...; `split` where not given.")
]
SecondOpinion = Annotated[
    str | None,
    typer.Option(
        metavar="WHO",
        help="The second opinion where rules could not read an answer: a verifier such as math_verify, or a YAML file.",
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
        "--max-rejected", min=0, max=1, metavar="SHARE", help="End with exit code 3 where more records are rejected."
    ),
]
MaxHeld = Annotated[
    float | None,
    typer.Option(
        "--max-held", min=0, max=1, metavar="SHARE", help="End with exit code 3 where more rows are held for review."
    ),
]
