"""Runs the command line as `python -m truegold.flows.cli`."""

from truegold.flows.cli import main

main()
