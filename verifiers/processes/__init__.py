"""Child processes that can be killed and that never outlive their parent: what batches, sympy and sandboxes run in."""
