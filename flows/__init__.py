"""Prefect flows and the command line, which connect the stages of a run."""
