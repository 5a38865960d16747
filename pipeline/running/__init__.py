"""Runs the stages of a run and caches their results. Tables are processed in parts, on one or several machines."""
