"""Dialogues with an environment, in which each turn is trained on in the context that it was sampled in."""
