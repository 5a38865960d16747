"""The import path for detectors that users write: `from truegold.pipeline.rules import detector`."""

from truegold.pipeline.flag.rules import Detector, Finding, detector

__all__ = ["Detector", "Finding", "detector"]
