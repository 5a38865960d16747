"""Best of n, hotter: the bare prompt again at a higher temperature. Nothing has to be distilled away."""

from truegold.synth.strategies.base import Strategy

HOTTER = Strategy("hotter", "1", hot=True)
RESAMPLE = Strategy("resample", "1")
"""The bare prompt again as it was sampled before: what the other strategies are compared with."""
