"""Serves verdicts over HTTP, for trainers that call a service: `make_app` makes the application from `Settings`."""

from truegold.verifiers.service.app import Settings, make_app

__all__ = ["Settings", "make_app"]
