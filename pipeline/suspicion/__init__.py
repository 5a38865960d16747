"""Tells hard, mislabeled and ambiguous problems apart, from the answers of one or several systems."""

from truegold.pipeline.suspicion.stage import suspect

__all__ = ["suspect"]
