"""How strong a sandbox is, from strongest to weakest. Every verdict names its tier."""

from __future__ import annotations

import os
from enum import StrEnum

from truegold.verifiers.sandbox.errors import ConfigError

VARIABLE = "TRUEGOLD_SANDBOX"
"""The environment variable that asks for a tier, such as `weak` on a machine that gives no other."""


class Tier(StrEnum):
    """What holds a program in."""

    FULL = "full"
    """Namespaces of its own (user, mount, pid, network, IPC, UTS), Landlock where there is one, seccomp, limits."""
    CONTAINER = "container"
    """Where namespaces are not allowed, as in most containers: Landlock, seccomp, limits, a private folder."""
    WEAK = "weak"
    """Limits only: a program can read and send what the user can. Never chosen by itself."""


AUTOMATIC_TIERS = (Tier.FULL, Tier.CONTAINER)


def tier_from_environment() -> Tier | None:
    """Return the tier that `TRUEGOLD_SANDBOX` asks for, if any. Raises ConfigError where it names none."""
    name = os.environ.get(VARIABLE, "").strip()
    if not name or name == "auto":
        return None
    try:
        return Tier(name)
    except ValueError:
        raise ConfigError(f"{VARIABLE}={name} names no tier.", f"It may be {', '.join(Tier)} or auto.") from None
