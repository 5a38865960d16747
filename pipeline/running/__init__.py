"""Runs stages, cached by content: heavy stages in separate processes, tables in parts, with progress and clear errors."""
