"""Stage `verify_gold`, and the judging of whole files of responses."""

from truegold.pipeline.verify.gold_stage import verify_gold

__all__ = ["verify_gold"]
