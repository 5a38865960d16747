"""Stage `flag`: what is suspicious about a row, by rules (`rules`) and by the answers of systems (`suspicion`)."""

from truegold.pipeline.flag.stage import flag

__all__ = ["flag"]
