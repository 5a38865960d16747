"""Verdicts over HTTP, for trainers that call a service: `make_app` is the application, `Settings` what it is told."""

from truegold.verifiers.service.app import Settings, make_app

__all__ = ["Settings", "make_app"]
