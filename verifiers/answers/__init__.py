"""Verifiers of answers that need no mathematics: choices, exact texts, numbers, patterns, formats and lengths."""
