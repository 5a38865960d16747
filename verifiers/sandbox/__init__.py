"""Runs programs that nobody has read, in processes of their own that can do nothing else. No Docker, no privileges."""

from truegold.verifiers.sandbox.execution import Job, Tier
from truegold.verifiers.sandbox.local import Local, Ready, closed_languages, installed_languages, summarize_languages
from truegold.verifiers.sandbox.pool import Kind, Sandbox, close_all, possible_tiers, sandbox

__all__ = [
    "Job",
    "Kind",
    "Local",
    "Ready",
    "Sandbox",
    "Tier",
    "close_all",
    "closed_languages",
    "installed_languages",
    "possible_tiers",
    "sandbox",
    "summarize_languages",
]
