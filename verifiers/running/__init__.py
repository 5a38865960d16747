"""Many verdicts: batches in worker processes, with deadlines that hold whatever a verifier does."""
