"""Stage `settle`: applies reviewers' decisions, and holds back rows that still need one."""

from truegold.pipeline.review.stage import settle

__all__ = ["settle"]
