"""Stages that check golds and tests, and the command that judges files of responses."""

from truegold.pipeline.verify.gold_stage import verify_gold

__all__ = ["verify_gold"]
