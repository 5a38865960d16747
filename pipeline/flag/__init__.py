"""Stage `flag`: flags suspicious rows by rules (`rules`) and by a language model (`well_posed`)."""

from truegold.pipeline.flag.stage import flag

__all__ = ["flag"]
