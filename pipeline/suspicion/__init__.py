"""Tells hard, mislabeled and ill-posed problems apart, by the answers of systems, by rules and by an asked model."""

from truegold.pipeline.suspicion.stage import suspect

__all__ = ["suspect"]
