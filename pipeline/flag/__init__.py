"""Stage `flag`: suspicious rows by rules (`rules`), suspicious labels by the answers of systems (`suspicion`)."""

from truegold.pipeline.flag.stage import flag

__all__ = ["flag"]
