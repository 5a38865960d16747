"""Child processes that can be killed and that never outlive their parent: batches, sympy and sandboxes run in them."""
