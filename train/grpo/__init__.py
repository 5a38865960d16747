"""Stage `train`: GRPO and its family on a curated set."""

from truegold.train.grpo.stage import grpo

__all__ = ["grpo"]
