"""Rules that flag suspicious rows without a model. They never change or drop a row."""

from truegold.pipeline.flag.rules.detector import Detector, Finding, detector
from truegold.pipeline.flag.rules.registry import BUILT_IN, GROUPS, detector_versions, load_detectors

__all__ = ["BUILT_IN", "GROUPS", "Detector", "Finding", "detector", "detector_versions", "load_detectors"]
