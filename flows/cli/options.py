"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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


def describe_unknown(option: str, command: Any, words: Sequence[str], commands: Mapping[str, Any]) -> str | None:
    """Return what an option of other commands or programs is called here, or None.

    words: the command line after the name of the program. commands: all commands by name.
    """
    if command is None:  # The option stands before the command.
        return None
    options, name = options_of(command), f"{words[0]} {words[1]}" if words[0] in GROUPED else words[0]
    alike = next((names for names in SAME_OPTIONS if option in names), ())
    if (here := next((other for other in alike if other in options), None)) is not None:
        return f"Here it is {here}"
    arguments = [parameter.opts[0].upper() for parameter in command.params if not parameter.opts[0].startswith("-")]
    if alike is DATA_OPTIONS and {*arguments} & {"DATA", "CONFIG"}:
        return f"The file is named alone: truegold {name} FILE"
    if option in ("--run", "--runs") and arguments and arguments[0].startswith("RUN"):
        return f"The run is named alone: truegold {name} RUN"
    is_setting = alike is not DATA_OPTIONS and "--set" in options
    if is_setting and (settings := _settings_meant(option.lstrip("-").replace("-", "_"), words[0])):
        return f"It is a setting here: --set {' or --set '.join(f'{setting}=VALUE' for setting in settings)}"
    owners = [f"truegold {other}" for other, each in commands.items() if option in options_of(each)]
    return f"It is an option of {', '.join(owners[:OWNERS_SHOWN])}" if owners else None


def describe_extra(words: Sequence[str]) -> str | None:
    """Return how a word such as `train.steps=5` is given with `--set`, or None if no word has this form."""
    for word in words[1:]:
        if (setting := re.fullmatch(r"\+{0,2}([A-Za-z_][\w.]*)=(.*)", word)) is not None:
            meant = _settings_meant(setting[1], words[0])
            if meant or "/" not in word:  # Folders may have names such as year=2026.
                return f"Settings are given in the file, or by --set: --set {[*meant, setting[1]][0]}={setting[2]}"
    return None


def _settings_meant(name: str, command: str) -> list[str]:
    from truegold.flows.config import RunConfig
    from truegold.pipeline.config.mistakes import settings_meant

    section = "vet_tests" if command == "testcases" else command
    settings = settings_meant(name, section, RunConfig)
    has_sections = command not in ("testcases", "flag")  # These two set only their own section and the data.
    return [setting for setting in settings if has_sections or setting.startswith((f"{section}.", "data."))]


GROUPED = ("testcases", "verifiers")
"""The commands with commands of their own."""
OWNERS_SHOWN = 4
"""The largest number of commands that are named for an option of theirs."""
DATA_OPTIONS = ("--data", "--input", "--file", "--path", "--dataset", "--data-path", "--config")
"""Names for the data file."""
SAME_OPTIONS = (
    DATA_OPTIONS,
    ("--out", "--output", "--output-dir", "--out-dir", "--output-file", "--save-to", "-o"),
    ("--deadline-s", "--timeout", "--seconds", "--request-s", "--cpu-s"),
    ("--limit", "--max-rows", "--max-samples", "--num-samples", "--head", "-n"),
    ("--workers", "--num-workers", "--num-proc", "--processes", "--jobs", "--cores", "-j"),
    ("--prompt-column", "--question-column", "--problem-column", "--prompt-key", "--input-key"),
    ("--gold-column", "--answer-column", "--label-column", "--target-column", "--answer-key", "--label-key"),
    ("--response-column", "--completion-column", "--output-column", "--response-key"),
    ("--gold", "--gold-response", "--answer"),
    ("--against", "--benchmark", "--benchmarks", "--reference"),
    ("--verifier", "--judge", "--reward-fn"),
)
"""Groups of options with the same meaning: names of commands here, and usual names of other programs."""

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
