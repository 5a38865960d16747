"""Gets second opinions on verdicts from a language model or another verifier, and grades by a language model."""
