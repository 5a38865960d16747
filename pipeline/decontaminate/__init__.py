"""Stage `decontaminate`: finds problems of evaluation sets in the data, as copies, in longer texts, and reworded."""

from truegold.pipeline.decontaminate.stage import decontaminate

__all__ = ["decontaminate"]
