"""Completions for training: vLLM engines that load new weights, and the probe that compares them with the trainer."""
