"""Runs verifiers on many rows: batches in child processes, with deadlines that no verifier can exceed."""
