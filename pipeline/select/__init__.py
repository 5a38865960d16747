"""Stage `select`: the rows worth training on, by their pass rates."""

from truegold.pipeline.select.stage import select

__all__ = ["select"]
