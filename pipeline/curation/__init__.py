"""Curation as a whole: its stages wired (`plan`), and the functions that Python users call (`api`)."""
