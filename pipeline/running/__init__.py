"""Runs stages, cached by content: heavy stages in separate processes, and tables in parts."""
