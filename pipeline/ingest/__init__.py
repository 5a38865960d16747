"""Stage `ingest`: files and hub sets of any supported shape become canonical rows."""

from truegold.pipeline.ingest.stage import ingest

__all__ = ["ingest"]
