"""Stage `ingest`: reads files and hub sets of any supported layout into canonical rows."""

from truegold.pipeline.ingest.stage import ingest

__all__ = ["ingest"]
