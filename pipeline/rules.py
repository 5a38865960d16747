"""The import path of rules for users, who write a detector of their own with `truegold.pipeline.rules`."""

from truegold.pipeline.flag.rules import Detector, Finding, detector

__all__ = ["Detector", "Finding", "detector"]
