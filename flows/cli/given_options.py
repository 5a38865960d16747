"""Refuses options that a command would ignore: given twice, without the option they belong to, or with one that
leaves them out.

    truegold dedup --data a.jsonl --data b.jsonl    --data takes one value
    truegold init train.jsonl --model Qwen/Qwen3-4B --model has no effect without --train
    truegold review runs/a --status --random 100    --status leaves --random out
    truegold run run.yaml --max-held 0.1 --set max_held=0.2    both set max_held
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from truegold.verifiers import ConfigError

ONE_PATH = "Several files are given as a folder, or as a pattern in quotes: 'data/*.jsonl'"
"""The advice for several files, or for a pattern that the shell has replaced by names of files."""
_ROWS = ("--data", "--input", "DATA")
"""Names of parameters whose file may also be a folder or a pattern."""

_RUN = {"--json": ("--dry-run",)}
_EXPORTED = (
    *("--system", "--license", "--origin", "--preset", "--prompt-column", "--gold-column", "--id-column"),
    *("--verifier", "--verifier-column", "--split-column", "--last-turn-only", "--limit", "--per-row", "--seed"),
    *("--completions", "--max-rejected"),
)
NEEDED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("run", "curate", "profile", "select", "synth", "train", "demo"), _RUN),
    "init": {"--model": ("--train",)},
    "report": {"--texts": ("--share",)},
    "review": {"--seed": ("--random", "--second"), "--among": ("--random",)},
    "flag": {"--known": ("--model", "--replies", "--set")},
    "rescore": dict.fromkeys(("--decisions", "--prompt-column", "--gold-column"), ("--data",)),
    "export": dict.fromkeys(_EXPORTED, ("--out",)),
}
"""For the options of a command: the options of which one has to be given too."""
LEFT_OUT: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "review": {"--status": ("--decisions",)},
    "train": {"--doctor": ()},
    "push": {"--card": ()},
    "report": {"--compare": ("--out",), "--share": ("--texts",)},
}
"""For the options of a command that leave out other options: those that still count."""
_COLUMNS = {f"--{role}-column": f"data.columns.{role}" for role in ("prompt", "gold", "id")}
SETTINGS: Mapping[str, str] = {
    **{"--max-rejected": "max_rejected", "--max-held": "max_held", "--decisions": "decisions"},
    **{"--runner": "run.runner", "--limit": "data.limit", "--preset": "data.preset", **_COLUMNS},
    **{"--mutants": "vet_tests.mutants", "--runs": "vet_tests.runs", "--last-turn-only": "data.last_turn_only"},
    **{"--known": "flag.model.known"},
}
"""The settings of a configuration that options set."""


class CarefulCommand(TyperCommand):
    """A command that refuses options which it would ignore."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Raises ConfigError for an option that would be ignored."""
        raw_values, _, order = self.make_parser(ctx).parse_args(list(args))
        # An argument that is not on the command line is in `order` too.
        named = [parameter for parameter in order if raw_values.get(parameter.name) not in (None, ())]
        names = [_spelling(parameter) for parameter in named]
        if not ctx.resilient_parsing and not {*ctx.help_option_names} & {*names}:
            _refuse_repeated(named)
            refuse_unused(self.name or "", names, [s.partition("=")[0] for s in raw_values.get("set_") or ()])
        left = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            _refuse_empty_paths(named, raw_values, ctx.params)
        return left


def _spelling(parameter: Any) -> str:
    """Return the name of an option, such as `--out`, or of an argument, such as `DATA`."""
    spelling = max(parameter.opts, key=len)
    return str(spelling if spelling.startswith("-") else spelling.upper())


def _refuse_repeated(named: list[Any]) -> None:
    for index, parameter in enumerate(named):
        if parameter in named[:index] and not parameter.multiple and not parameter.is_flag:
            name = _spelling(parameter)
            advice = f"{ONE_PATH}." if name in _ROWS else "Leave one of them out."
            raise ConfigError(f"{name} is given twice, and takes one value.", advice)


def _refuse_empty_paths(named: list[Any], raw_values: Mapping[str, Any], parsed: Mapping[str, Any]) -> None:
    """Raise ConfigError for a path that is an empty text, which would be the current folder."""
    for parameter in named:
        raw, value = raw_values[parameter.name], parsed.get(parameter.name)
        is_path = isinstance(value[0] if isinstance(value, list | tuple) else value, Path)
        if is_path and (raw == "" or (isinstance(raw, list | tuple) and "" in raw)):
            raise ConfigError(f"{_spelling(parameter)} is an empty text.", "Is a variable of the shell not set?")


def refuse_unused(command: str, names: Collection[str], settings: Collection[str] = ()) -> None:
    """Raise ConfigError if one of the named options would be ignored. settings: the fields that `--set` changes."""
    for option, others in LEFT_OUT.get(command, {}).items():
        ignored = [name for name in names if name not in (option, *others) and name not in ("RUN", "RUN_DIR", "RUNS")]
        if option in names and ignored:
            raise ConfigError(f"{option} leaves out {ignored[0]}, which has no effect beside it.", "Give one of them.")
    for option, needed in NEEDED.get(command, {}).items():
        if option in names and not {*needed} & {*names}:
            raise ConfigError(
                f"{option} has no effect without {' or '.join(needed)}.", "Add it, or leave the other out."
            )
    for option, setting in SETTINGS.items():
        if option in names and {setting, setting.removeprefix("vet_tests.")} & {*settings}:
            raise ConfigError(f"{option} and --set {setting} say the same thing.", "Leave one of them out.")
