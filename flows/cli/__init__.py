"""The command line `truegold`; `main` is its entry point."""

from truegold.flows.cli.app import main

__all__ = ["main"]
