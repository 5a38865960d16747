"""Prefect flows and the command line. They connect stages and contain no decisions of their own."""
