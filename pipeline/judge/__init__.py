"""Second opinions on verdicts, by a language model or another verifier, and grading by a language model."""
