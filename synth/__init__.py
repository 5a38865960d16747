"""Where positives for hard problems come from: feedback, reflection, and what is left of an attempt without them."""

from truegold.synth.stage import synth

__all__ = ["synth"]
