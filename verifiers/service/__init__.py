"""Verdicts over HTTP, for trainers that call a service: `make_app` is the application, `Settings` what it is told."""

from truegold.verifiers.service.app import make_app
from truegold.verifiers.service.desk import Settings

__all__ = ["Settings", "make_app"]
