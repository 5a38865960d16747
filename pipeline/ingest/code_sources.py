"""Whether a source may hold programs with tests, told before anything is run.

    {"type": "file", "path": "humaneval.jsonl"}    True: its columns fit a preset of programs
    {"type": "file", "path": "gsm8k.jsonl"}        False
    {"type": "hf", "name": "openai/gsm8k"}         True: only reading it could tell, without a preset or a verifier

A file is looked into, no farther than its ingest looks for columns. One that cannot be read holds no programs; its
ingest says what is wrong with it.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from truegold.pipeline.config.sources import FileSource, HubSource
from truegold.pipeline.ingest.layout import Samples
from truegold.pipeline.ingest.layouts import check_preset, choose_layout
from truegold.pipeline.ingest.readers import open_file
from truegold.pipeline.ingest.records import Record, Source
from truegold.pipeline.ingest.stage import PEEK_BYTES, PEEK_RECORDS
from truegold.verifiers import TruegoldError

VERIFIER = "code"
NEVER_CODE = ("gsm8k", "math")
"""Presets whose rows name another verifier."""


def may_hold_code(config: FileSource | HubSource, data: Path | None) -> bool:
    """data: the file of a file source, where it is there already. ConfigError for a preset that does not exist."""
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
        return choose_layout(config, source.location, _first(source)).verifier == VERIFIER
    except TruegoldError:
        return False


def _first(source: Source) -> Samples:
    found = []
    size = 0
    for record in islice(source.records, PEEK_RECORDS):
        if isinstance(record, Record):
            found.append(record.values)
            size += record.size
        if size >= PEEK_BYTES:
            break
    return found
