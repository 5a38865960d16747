"""Compiles the packages of Go's library once on a machine, for all programs.

    folder = go_cache_folder("1.22")                           ~/.cache/truegold/go-1.22; for root in /var/cache
    fill_go_cache(folder, "/usr/lib/go/bin/go", environment)   half a minute the first time, then at once

Since version 1.20 Go ships its library as source only. The compiled library needs more space than a program's folder.
Packages are compiled outside of the sandbox, away from any program. In the sandbox the cache is read-only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

GO_PACKAGES = """
bufio bytes cmp container/heap container/list container/ring context crypto/md5 crypto/sha1 crypto/sha256
encoding/base64 encoding/binary encoding/hex encoding/json errors fmt hash/fnv io iter maps math math/big
math/bits math/cmplx math/rand math/rand/v2 os reflect regexp runtime slices sort strconv strings sync
sync/atomic text/tabwriter time unicode unicode/utf16 unicode/utf8
""".split()
"""Packages that programs usually import. A program that imports others compiles those itself."""

BUILD_S = 900.0
"""Maximum time for compiling all packages, in seconds. Programs compile the packages that are left."""

FOLDER_FOR_ALL = Path("/var/cache")
"""Root's cache folder. In the tier `container` programs of root run as a user who may not enter root's home."""

_DONE = "truegold-done"
"""The name of an empty file which marks that the packages are compiled."""


def go_cache_folder(version: str) -> Path | None:
    """Return the cache folder of a version of Go, or None if it cannot be made. `fill_go_cache` fills it."""
    users_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    base = FOLDER_FOR_ALL if os.geteuid() == 0 else users_folder
    folder = base / "truegold" / f"go-{version}"
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


def fill_go_cache(folder: Path, tool: str, environment: Mapping[str, str]) -> None:
    """Compile the packages into the folder, unless that was done. environment: variables for the compiler.

    After a failure the next process tries again. After a timeout no process does.
    """
    if (folder / _DONE).exists():
        return
    # A user without write access uses the packages that another user has compiled, if any.
    with (
        contextlib.suppress(OSError),
        (folder / "truegold-lock").open("w") as lock,
        tempfile.TemporaryDirectory() as home,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / _DONE).exists():
            return
        ask = partial(
            subprocess.run,
            env={"PATH": os.defpath, **environment, "GOCACHE": str(folder), "HOME": home},
            cwd=home,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=BUILD_S,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            known = ask([tool, "list", "-e", "-f", "{{if not .Error}}{{.ImportPath}}{{end}}", *GO_PACKAGES]).stdout
            if ask([tool, "build", *known.split()]).returncode != 0:
                return
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        (folder / _DONE).touch()
