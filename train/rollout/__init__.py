"""Completions for training: vLLM engines that take new weights, and the probe that says when the two sides disagree."""
