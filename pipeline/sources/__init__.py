"""Reads files and columns into records."""
