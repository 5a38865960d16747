"""Second opinions on verdicts: a language model that compares answers, other verifiers, and what they may decide."""
