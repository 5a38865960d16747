"""Makes right completions to train on, called positives, for problems that the model hardly ever solves."""

from truegold.synth.stage import synth

__all__ = ["synth"]
