"""The import path of rules for users: a detector of one's own is written against `truegold.pipeline.rules`."""

from truegold.pipeline.flag.rules import Detector, Finding, detector

__all__ = ["Detector", "Finding", "detector"]
