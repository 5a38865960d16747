"""Which folders programs cannot read though they may: in tier `container` root's programs run as another user.

closed_folder(["/root/.rustup/toolchains/stable"], Tier.CONTAINER)     "/root", where only root may enter it
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from truegold.verifiers.code.sandbox.tiers import Tier

_GROUP, _OTHERS = stat.S_IRGRP | stat.S_IXGRP, stat.S_IROTH | stat.S_IXOTH


def closed_folder(paths: Iterable[str], tier: Tier) -> str | None:
    """The first folder on the way to a path, or at its end, that programs cannot enter; None where there is none."""
    if tier is not Tier.CONTAINER or os.geteuid() != 0:
        return None
    for path in map(Path, paths):
        for folder in (*reversed(path.parents), path):
            if not _opens(folder, reading=folder == path):
                return str(folder)
    return None


def _opens(folder: Path, reading: bool) -> bool:
    """To a user of root's group."""
    try:
        found = folder.stat()
    except OSError:
        return True
    needed = _GROUP if found.st_gid == 0 else _OTHERS
    if not reading:
        needed &= stat.S_IXGRP | stat.S_IXOTH
    return found.st_mode & needed == needed
