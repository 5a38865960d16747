"""Reads files and data sets into records, and records into canonical rows."""
