"""Stage `dedup`: drops copies and rewordings, and flags conflicting labels."""

from truegold.pipeline.dedup.stage import dedup

__all__ = ["dedup"]
