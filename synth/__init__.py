"""Makes positives (right completions to train on) for problems that the model hardly ever solves."""

from truegold.synth.stage import synth

__all__ = ["synth"]
