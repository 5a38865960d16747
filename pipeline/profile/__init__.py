"""Stage `profile`: samples completions of every problem, verifies them, and measures pass rates."""

from truegold.pipeline.profile.stage import profile

__all__ = ["profile"]
