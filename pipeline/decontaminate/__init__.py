"""Stage `decontaminate`: finds problems of evaluation sets in the data: copied, within longer texts, or reworded."""

from truegold.pipeline.decontaminate.stage import decontaminate

__all__ = ["decontaminate"]
