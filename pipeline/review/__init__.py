"""Stage `settle`: applies reviewers' decisions to rows, and holds back rows that still need a decision."""

from truegold.pipeline.review.stage import settle

__all__ = ["settle"]
