"""The command `truegold clean`: what a run holds on disk, and freeing what it needs no more.

    runs/gsm8k
      profile        1.2 GB   a stage of the run
      .superseded    3.4 GB   stages of earlier settings
      .partial       0.2 GB   work that is not finished; the same command goes on from it
    freed 3.4 GB

Stages of earlier settings come back without being run where those settings come back; without them they run again.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from truegold.flows.console import print_line
from truegold.verifiers import InputError

SUPERSEDED, UNFINISHED = ".superseded", ".partial"
KINDS = {
    SUPERSEDED: "stages of earlier settings",
    UNFINISHED: "work that is not finished; the same command goes on from it",
}
KILO = 1000


def clean(
    run_dir: Annotated[Path, typer.Argument(help="The run's directory.", show_default=False)],
    unfinished: Annotated[bool, typer.Option("--unfinished", help="Free unfinished work as well.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what there is, and free nothing.")] = False,
) -> None:
    """Say what a run holds on disk, and free what later settings have superseded."""
    from truegold.flows.execute import held_run

    if not (run_dir / "manifest.json").is_file() and not (run_dir / "config.resolved.json").is_file():
        raise InputError(f"{run_dir} is no run of truegold.", "Give the run's folder, such as runs/NAME.")
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
            if folder.is_symlink() or not folder.is_dir():
                continue
            freed += sizes[name]
            if not dry_run:
                shutil.rmtree(folder)
    print_line(
        f"{'would free' if dry_run else 'freed'} {describe_bytes(freed)} of {describe_bytes(sum(sizes.values()))}"
    )


def _measure(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder; links are not followed."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    return sum((Path(folder) / name).lstat().st_size for folder, _, names in os.walk(path) for name in names)


def describe_bytes(size: float) -> str:
    """Return a size as a person says it: `812 B`, `3.4 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < KILO:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= KILO
    return f"{size:.1f} TB"
