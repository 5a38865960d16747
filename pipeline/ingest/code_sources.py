"""Tells whether a source may hold programs with tests, before anything is run.

    {"type": "file", "path": "humaneval.jsonl"}    True: its columns fit a preset of programs
    {"type": "file", "path": "gsm8k.jsonl"}        False
    {"type": "hf", "name": "openai/gsm8k"}         True: without a preset or a verifier only reading it could tell

A file is looked into as far as `ingest` looks for its columns. A file that cannot be read holds no programs here;
`ingest` says what is wrong with it.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from truegold.pipeline.config.sources import FileSource, HubSource
from truegold.pipeline.ingest.layout import Samples
from truegold.pipeline.ingest.layouts import check_preset, choose_layout
from truegold.pipeline.ingest.readers import open_file
from truegold.pipeline.ingest.records import LOOK_AHEAD, Record, Source
from truegold.pipeline.ingest.stage import LOOK_AHEAD_BYTES
from truegold.verifiers import TruegoldError

VERIFIER = "code"
NEVER_CODE = ("gsm8k", "math")
"""Presets whose rows name another verifier."""


def may_hold_code(config: FileSource | HubSource, data: Path | None) -> bool:
    """Say whether a source may hold programs; `data` is the file of a file source, where it exists already.

    Raises ConfigError for a preset that does not exist.
    """
    check_preset(config.preset)
    if config.verifier is not None:
        return config.verifier == VERIFIER
    if config.columns.verifier is not None or config.columns.tests is not None:
        return True
    if config.preset in NEVER_CODE:
        return False
    return data is None or isinstance(config, HubSource) or _holds_code(config, data)


def _holds_code(config: FileSource, data: Path) -> bool:
    try:
        source = open_file(data, config.format, config.max_row_bytes)
        return choose_layout(config, source.location, _read_samples(source)).verifier == VERIFIER
    except TruegoldError:
        return False


def _read_samples(source: Source) -> Samples:
    samples = []
    size = 0
    for record in islice(source.records, LOOK_AHEAD):
        if isinstance(record, Record):
            samples.append(record.values)
            size += record.size
        if size >= LOOK_AHEAD_BYTES:
            break
    return samples
