"""Counts of where every row of a run went."""
