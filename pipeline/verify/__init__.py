"""The stages `verify_gold` and `vet_tests`, which check golds and tests, and the command `truegold verify`."""

from truegold.pipeline.verify.gold_stage import verify_gold

__all__ = ["verify_gold"]
