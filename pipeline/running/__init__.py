"""Runs a stage: cached by content, in a process of its own where it is heavy, with progress and clear errors."""
