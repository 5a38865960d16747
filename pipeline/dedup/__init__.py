"""Stage `dedup`: exact copies, the same problem in other words, conflicting labels, leaked held-out rows, templates."""

from truegold.pipeline.dedup.stage import dedup

__all__ = ["dedup"]
