"""Stage `select`: chooses the rows to train on by their pass rates."""

from truegold.pipeline.select.stage import select

__all__ = ["select"]
