"""Reads Hugging Face datasets, streamed from the hub by name or from a folder.

`HubSource(name="openai/gsm8k", subset="main", split="train")` gives a `Source(name="openai/gsm8k", ...)` with records
like `Record(1, {"question": "Natalia sold ...", "answer": "... #### 72"}, 401)`.

A folder with `state.json` or `dataset_dict.json` was written by `save_to_disk`; any other folder is given to
`load_dataset`, which finds data files in it. Images and audio are never decoded: their packages need not be installed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson
import pyarrow as pa

from truegold.pipeline.config.sources import HubSource
from truegold.pipeline.sources.data_files import as_record, decode_rows
from truegold.pipeline.sources.records import Record, Reject, Source, first_line
from truegold.verifiers import InputError, SetupError

TABLE_ROWS = 100
"""Rows that are held at a time; a row may have pictures."""


def open_hub(config: HubSource) -> Source:
    """Open one split of a dataset.

    Raises InputError for a dataset or split that does not exist, SetupError without `datasets` or without a network.
    """
    folder = Path(config.name).expanduser()
    if not (local := folder.is_dir()):
        _check_name(config.name, folder)
    datasets = _import_datasets()
    try:
        if (folder / "state.json").is_file() or (folder / "dataset_dict.json").is_file():
            dataset, total = _load_from_disk(datasets, folder, config.split)
        else:
            total = None
            dataset = datasets.load_dataset(
                str(folder) if local else config.name,
                config.subset,
                split=config.split,
                revision=config.revision,
                streaming=True,
            )
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise _cannot_open(config, local, error) from None
    name = folder.resolve().name if local else config.name
    location = f"{config.name} (split {config.split})"
    return Source(name, location, _read_records(dataset, location, config, datasets), unit="row", total=total)


def _check_name(name: str, folder: Path) -> None:
    if folder.is_file():
        raise InputError(
            f"{name} is a file.", "Set type: file and path: for files; type: hf takes hub names and folders."
        )
    if name.startswith(("/", "./", "../", "~")) or name.count("/") > 1:
        raise InputError(f"There is no folder {name}.", "A hub name has the form owner/name.")


def _import_datasets() -> ModuleType:
    try:
        import datasets
    except ImportError:
        raise SetupError(
            "Hugging Face datasets need the package `datasets`.", "Install it: pip install 'truegold[hub]'"
        ) from None
    return datasets  # type: ignore[no-any-return]


def _load_from_disk(datasets: ModuleType, folder: Path, split: str) -> tuple[Any, int]:
    listing = folder / "dataset_dict.json"
    if listing.is_file():
        splits = orjson.loads(listing.read_bytes())["splits"]
        if split not in splits:
            raise InputError(f"{folder} has no split {split!r}.", f"It has: {', '.join(splits)}.")
        folder = folder / split
    dataset = datasets.load_from_disk(str(folder))
    if dataset.split is not None and str(dataset.split) != split:
        raise InputError(
            f"{folder} holds the split {str(dataset.split)!r}, not {split!r}.", f"Set split: {dataset.split}"
        )
    return dataset.to_iterable_dataset(), len(dataset)


def _cannot_open(config: HubSource, local: bool, error: Exception) -> InputError | SetupError:
    """Return what `datasets` says in its first line (which lists the splits), with a line on what to do about it."""
    reason = first_line(error)
    message = f"Cannot open the dataset {config.name}: {reason}."
    if isinstance(error, ConnectionError):
        return SetupError(
            message,
            "Check the name and the network. Where there is one, this writes a file to name instead: "
            + _export_line(config),
        )
    if not local and "split" not in reason:
        return InputError(message, "A hub name has the form owner/name; gated datasets need `hf auth login`.")
    return InputError(message)


def _export_line(config: HubSource) -> str:
    """Return the command that writes a split of the hub to a JSON Lines file."""
    subset = f", {config.subset!r}" if config.subset else ""
    loading = f"load_dataset({config.name!r}{subset}, split={config.split!r})"
    file = f"{config.name.rpartition('/')[2]}.jsonl"
    return f'python -c "from datasets import load_dataset; {loading}.to_json({file!r})"'


def _read_records(dataset: Any, location: str, config: HubSource, datasets: ModuleType) -> Iterator[Record | Reject]:
    row_number = 0
    with contextlib.suppress(AttributeError, NotImplementedError):  # `datasets` 4.0 has no `decode`.
        dataset = dataset.decode(False)
    try:
        # Tables rather than rows: of a table with one text that is not UTF-8 the other rows can be read.
        for table in dataset.with_format("arrow").iter(TABLE_ROWS):
            for values in decode_rows(table):
                row_number += 1
                yield as_record(row_number, values, config.max_row_bytes)
    except (OSError, ValueError, TypeError, pa.ArrowInvalid, datasets.exceptions.DatasetsError) as error:
        raise InputError(f"{location} cannot be read after row {row_number}: {first_line(error)}.") from None
