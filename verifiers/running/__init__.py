"""Many verdicts: batches in worker processes, with deadlines that hold for any verifier."""
