"""Finds problems of evaluation sets: copies, parts of longer texts, rewordings. `decontaminate` is the stage."""

from truegold.pipeline.decontaminate.stage import decontaminate

__all__ = ["decontaminate"]
