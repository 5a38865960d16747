"""Prefect flows and the command line: they wire stages together and decide nothing."""
