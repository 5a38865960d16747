"""Runs all of curation: the plan of its stages (`plan`), the Python functions (`api`), and gates (`gate`)."""
