"""Tells hard, mislabeled and ill-posed problems apart, from the answers of systems, rules and an asked model."""

from truegold.pipeline.suspicion.stage import suspect

__all__ = ["suspect"]
