"""Stage `profile`: completions of every problem, their verdicts, and pass rates with intervals."""

from truegold.pipeline.profile.stage import profile

__all__ = ["profile"]
