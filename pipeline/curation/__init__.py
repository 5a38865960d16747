"""Curation as a whole: the plan of its stages (`plan`), the Python API (`api`), and gates (`gate`)."""
