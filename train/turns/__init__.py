"""Dialogues with an environment: many turns, each in the context that the model really saw."""
