"""Reads both texts of a pair: what differs between them, and how likely they still are the same problem."""

from truegold.pipeline.near.reading.differences import Differences, compare_texts, count_changed_words
from truegold.pipeline.near.reading.groups import DEFAULT_CUTS, Cuts, GroupReading, PairGroup, read_group
from truegold.pipeline.near.reading.text import ReadText, read_text

__all__ = [
    "DEFAULT_CUTS",
    "Cuts",
    "Differences",
    "GroupReading",
    "PairGroup",
    "ReadText",
    "compare_texts",
    "count_changed_words",
    "read_group",
    "read_text",
]
