"""Reads Hugging Face datasets, streamed from the hub by name or from a folder.

`HubSource(name="openai/gsm8k", subset="main", split="train")` gives a `Source(name="openai/gsm8k", ...)` with records
like `Record(1, {"question": "Natalia sold ...", "answer": "... #### 72"}, 401)`.

A folder with `state.json` or `dataset_dict.json` was written by `save_to_disk`. Any other folder is given to
`load_dataset`, which finds data files in it. Images and audio are never decoded, so their packages need not be
installed.

If the hub cannot be reached, the packages of Hugging Face retry for half a minute, and print a line each time.
`quick_hub` checks the connection first. Without a connection, it makes the packages use only their caches.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
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
"""The number of rows in memory at a time. It is low, because a row may have pictures."""
HUB_TIMEOUT_S = 20.0
"""The timeout of a request to the hub, in seconds."""


def transport_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of the hub's package for an unreachable hub. They depend on the package's version."""
    return tuple(import_module(name).HTTPError for name in ("httpx", "httpx2") if find_spec(name) is not None)


class UnreachableHubError(SetupError):
    """An error for data that is not cached while the hub cannot be reached."""


@contextlib.contextmanager
def quick_hub() -> Iterator[bool]:
    """Yield whether the hub can be reached. If not, its packages use only their caches, as with HF_HUB_OFFLINE=1."""
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        yield False
        return
    unreachable: tuple[type[Exception], ...] = (OSError, *transport_errors())
    try:
        get_session().head(constants.ENDPOINT, timeout=HUB_TIMEOUT_S)
    except unreachable:
        pass
    else:
        yield True
        return
    with contextlib.ExitStack() as stack:
        # `datasets` copies the setting at import, and may be imported already.
        for module in ("huggingface_hub.constants", "datasets.config"):
            if module in sys.modules:
                stack.callback(setattr, sys.modules[module], "HF_HUB_OFFLINE", False)
                vars(sys.modules[module])["HF_HUB_OFFLINE"] = True
        stack.callback(os.environ.pop, "HF_HUB_OFFLINE", None)
        os.environ["HF_HUB_OFFLINE"] = "1"
        yield False


def open_hub(config: HubSource) -> Source:
    """Open one split of a dataset.

    Raises InputError if the dataset or split does not exist, SetupError if `datasets` or the network is missing.
    """
    folder = Path(config.name).expanduser()
    if not (local := folder.is_dir()):
        _check_name(config.name, folder)
    datasets = _import_datasets()
    with contextlib.nullcontext() if local else quick_hub():
        dataset, total = _open_dataset(datasets, config, folder, local)
    name = folder.resolve().name if local else config.name
    location = f"{config.name} (split {config.split})"
    return Source(name, location, _read_records(dataset, location, config, datasets), unit="row", total=total)


def _open_dataset(datasets: ModuleType, config: HubSource, folder: Path, local: bool) -> tuple[Any, int | None]:
    try:
        if (folder / "state.json").is_file() or (folder / "dataset_dict.json").is_file():
            return _load_from_disk(datasets, folder, config.split)
        name = str(folder) if local else config.name
        dataset = datasets.load_dataset(
            name, config.subset, split=config.split, revision=config.revision, streaming=True
        )
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise _cannot_open(config, local, error) from None
    return dataset, None


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
    """Return an error with the first line of the message of `datasets`, which lists the splits, and a remedy."""
    if isinstance(error, ConnectionError):
        return UnreachableHubError(
            f"Cannot open the dataset {config.name}: the hub cannot be reached.",
            "On a machine with a network, write the dataset to a file, and name that file: " + _export_line(config),
        )
    reason = first_line(error)
    message = f"Cannot open the dataset {config.name}: {reason}."
    if not local and "split" not in reason:
        return InputError(message, "A hub name has the form owner/name; gated datasets need `hf auth login`.")
    return InputError(message)


def _export_line(config: HubSource) -> str:
    """Return a command that writes a split of the hub to a JSON Lines file."""
    subset = f", {config.subset!r}" if config.subset else ""
    loading = f"load_dataset({config.name!r}{subset}, split={config.split!r})"
    file = f"{config.name.rpartition('/')[2]}.jsonl"
    return f'python -c "from datasets import load_dataset; {loading}.to_json({file!r})"'


def _read_records(dataset: Any, location: str, config: HubSource, datasets: ModuleType) -> Iterator[Record | Reject]:
    row_number = 0
    with contextlib.suppress(AttributeError, NotImplementedError):  # `datasets` 4.0 has no `decode`.
        dataset = dataset.decode(False)
    try:
        # Tables are read in place of rows. So one text with invalid UTF-8 does not prevent reading the other rows.
        for table in dataset.with_format("arrow").iter(TABLE_ROWS):
            for values in decode_rows(table):
                row_number += 1
                yield as_record(row_number, values, config.max_row_bytes)
    except (OSError, ValueError, TypeError, pa.ArrowInvalid, datasets.exceptions.DatasetsError) as error:
        raise InputError(f"{location} cannot be read after row {row_number}: {first_line(error)}.") from None
