"""Reads both texts of a pair: what differs between them, and how likely they still are the same problem."""

from truegold.pipeline.dedup.near.reading.differences import Differences, compare_texts
from truegold.pipeline.dedup.near.reading.score import score_pairs
from truegold.pipeline.dedup.near.reading.text import ReadText, read_text

__all__ = ["Differences", "ReadText", "compare_texts", "read_text", "score_pairs"]
