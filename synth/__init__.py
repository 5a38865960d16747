"""Makes positives for hard problems: attempts with feedback or a reflection in the prompt, verified without them."""

from truegold.synth.stage import synth

__all__ = ["synth"]
