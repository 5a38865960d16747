"""What Go's compiler makes of its own library, kept for all programs.

From 1.20 on Go comes without its library compiled. Each program would compile it anew, which takes half a minute and
more room than a program's folder has. So the packages that programs use are compiled here once, outside of the sandbox,
with no program near them; in there the folder is for reading alone, and only the program itself is compiled.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

PACKAGES = """
bufio bytes cmp container/heap container/list container/ring context crypto/md5 crypto/sha1 crypto/sha256
encoding/base64 encoding/binary encoding/hex encoding/json errors fmt hash/fnv io iter maps math math/big
math/bits math/cmplx math/rand math/rand/v2 os reflect regexp runtime slices sort strconv strings sync
sync/atomic text/tabwriter time unicode unicode/utf16 unicode/utf8
""".split()
"""A program that imports others compiles those itself."""

BUILD_S = 900.0
FOLDER_FOR_ALL = Path("/var/cache")
"""Where root puts it: in the tier `container` root's programs run as somebody who may not enter root's home folder."""

_DONE = "truegold-done"


def cache_folder(version: str) -> Path | None:
    """Return the folder for a version of Go, empty as long as `fill` was not called; None where none can be made."""
    base = FOLDER_FOR_ALL if os.geteuid() == 0 else _users_folder()
    folder = base / "truegold" / f"go-{version}"
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


def fill(folder: Path, tool: str, environment: Mapping[str, str]) -> None:
    """Compile the packages into the folder, unless that was done. environment: what programs are compiled with.

    Packages that this version does not have are left out.
    """
    if (folder / _DONE).exists():
        return
    # Whoever cannot write there finds what another user has put there, or nothing.
    with contextlib.suppress(OSError, subprocess.SubprocessError), (folder / "truegold-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / _DONE).exists():
            return
        with tempfile.TemporaryDirectory() as home:
            settings = {"PATH": os.defpath, "HOME": home, **environment, "GOCACHE": str(folder)}
            built = subprocess.run(
                [tool, "build", *PACKAGES], env=settings, cwd=home, capture_output=True, timeout=BUILD_S, check=False
            )
            if built.returncode != 0:
                for package in PACKAGES:
                    command = [tool, "build", package]
                    subprocess.run(command, env=settings, cwd=home, capture_output=True, timeout=BUILD_S, check=False)
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        (folder / _DONE).touch()


def _users_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
