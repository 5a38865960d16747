"""Stage `settle`: a reviewer's decisions, and what is held back until there is one."""

from truegold.pipeline.review.stage import settle

__all__ = ["settle"]
