"""What a page is about: when its run ended, by which version, on which data; and where the run's own files lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from truegold.pipeline.running.stage import RECORD
from truegold.pipeline.tables.run_files import RunFiles

LINKED = {
    "configuration": "config.resolved.json",
    "manifest": "manifest.json",
    "data card": "export/README.md",
    "verifier card": "verifier_card.md",
}
"""Files of a run that the page links to, where the run has them."""


@dataclass(frozen=True)
class Provenance:
    """Where the numbers of a page come from."""

    date: str
    """When the last stage ended, in UTC."""
    truegold: str
    """The version that made the rows."""
    data: tuple[str, ...]
    """The files or sets that were read."""
    digest: str | None
    """The digest of the rows as they were read; None of a run that has none on record."""
    links: Mapping[str, str]
    """Files of the run by what they are, as paths from the report's folder."""


def read_provenance(files: RunFiles) -> Provenance:
    """Return what the records of a run say of it."""
    ended = max((folder / RECORD).stat().st_mtime for folder in files.folders.values())
    ingest = files.records["ingest"]
    run_dir = files.folders["ingest"].parent
    return Provenance(
        date=f"{datetime.fromtimestamp(ended, UTC):%Y-%m-%d %H:%M} UTC",
        truegold=str(ingest.get("truegold", version("truegold"))),
        data=tuple(_paths(ingest.get("config", {}))),
        digest=ingest.get("outputs", {}).get("rows.parquet", {}).get("digest"),
        links={name: f"../{path}" for name, path in LINKED.items() if (run_dir / path).exists()},
    )


def _paths(config: Mapping[str, Any]) -> list[str]:
    """Return the data that `ingest` was configured to read."""
    sources = config.get("sources") or [config]
    paths: list[str] = []
    for source in sources:
        paths += [str(source[name]) for name in ("path", "heldout_path", "name") if source.get(name)]
    return paths
