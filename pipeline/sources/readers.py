"""Opens a file in the format that its name or the configuration says, or fails with one line that says what to do.

`open_file(Path("data/train.jsonl.gz"), "auto", 2**23)` gives a `Source(name="train.jsonl.gz", ...)` whose `records`
stream. Formats: JSON Lines (`.jsonl`, `.ndjson`, `.json`), Parquet (`.parquet`, `.pq`), CSV (`.csv`, `.tsv`, with
commas, semicolons, tabs or bars); JSON Lines and CSV also as gzip.
"""

from __future__ import annotations

from pathlib import Path

from truegold.pipeline.sources.csv import read_csv
from truegold.pipeline.sources.jsonl import read_jsonl
from truegold.pipeline.sources.parquet import open_parquet, read_parquet
from truegold.pipeline.sources.records import Source, beginning
from truegold.verifiers import InputError

SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
}
"""The format that the end of a file's name stands for."""

FILE_NAME_CHARS = 255
"""The longest name that a file can have. It is taken as an excerpt, since a name may hold bytes that are no text."""


def open_file(path: Path, form: str, max_row_bytes: int) -> Source:
    """Open a file in a format (`auto`: by its name) for its records.

    Raises InputError where the file cannot be read, or its name does not say its format.
    """
    check_file(path)
    if form == "auto":
        form = form_by_suffix(path)
    name = beginning(path.name, FILE_NAME_CHARS)
    if form == "parquet":
        with open_parquet(path) as file:
            total = file.metadata.num_rows
        return Source(name, str(path), read_parquet(path, max_row_bytes), unit="row", total=total)
    read = read_csv if form == "csv" else read_jsonl
    return Source(name, str(path), read(path, max_row_bytes))


def check_file(path: Path) -> None:
    """Raise InputError for a file that is missing, empty, not to be read, or none."""
    if path.is_dir():
        raise InputError(
            f"{path} is a folder, not a file.",
            "Name a file in it; for a Hugging Face dataset saved to disk set type: hf and name: to the folder.",
        )
    if not path.exists():
        raise InputError(f"{path} does not exist.", _list_siblings(path))
    if not path.is_file():
        raise InputError(f"{path} is no regular file.", "Write the data to a file first.")
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except PermissionError:
        raise InputError(f"{path} may not be read by this user.", f"Allow it: chmod u+r {path}") from None
    if empty:
        raise InputError(f"{path} is empty.")


def _list_siblings(path: Path) -> str:
    """Say which data files lie where the file was looked for."""
    if not path.parent.is_dir():
        return f"Nor does its folder; relative paths start at {Path.cwd()}."
    names = sorted(other.name for other in path.parent.iterdir() if _suffix_of(other) in SUFFIXES)
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"Data files in that folder: {shown}." if names else f"There is no data file in {path.parent.absolute()}."


def _suffix_of(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def form_by_suffix(path: Path) -> str:
    """Return the format that a file's name says: jsonl, parquet or csv; raise InputError where it says none."""
    form = SUFFIXES.get(_suffix_of(path))
    if form is None:
        raise InputError(f"{path}: its name does not say its format.", "Set format: to one of jsonl, parquet, csv.")
    return form
