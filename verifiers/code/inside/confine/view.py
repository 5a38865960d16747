"""What a sandboxed program sees of the file system: the interpreter and the system's programs, read-only, and a box.

    /usr /lib /bin ...       the system's programs and libraries
    /opt/venv ...            the interpreter that runs the sandbox, and its packages
    /dev/null zero random urandom full
    /etc/passwd ...          one made-up user
    /w/box                   the working folder: empty, private, in memory, limited in size; /tmp is the same

No home folders, no data, no /proc, no /sys. With mount namespaces the rest does not exist; without them Landlock
refuses to open it.
"""

from __future__ import annotations

import ctypes
import os
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable

from . import kernel

BOX_PARENT = "/w"
BOX = "/w/box"
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

BOX_ENTRIES = 1000
"""Files and folders in a box. Stops millions of empty files, which take kernel memory and no space."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
_SETTINGS = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/ssl/openssl.cnf",
)
_MADE_UP = {
    "/etc/passwd": "solution:x:1000:1000::/tmp:/bin/sh\n",
    "/etc/group": "solution:x:1000:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
MADE_UP_PATHS = tuple(_MADE_UP)

_STAGING = ("/mnt", "/media", "/srv", "/run", "/var/tmp", "/tmp", "/opt", "/home", "/var", "/sys")
"""Folders that usually exist, over one of which the new root is built before it becomes the root."""

_OLD_PROC = "/old-proc"
_PROC = "/proc"


def interpreter_paths() -> list[str]:
    """The folders that this interpreter and its packages need. Folders of editable installs are not among them."""
    places = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *site.getsitepackages()]
    places += [path for name in ("stdlib", "platstdlib", "purelib", "platlib") if (path := sysconfig.get_path(name))]
    places += [os.path.dirname(os.path.realpath(sys.executable)), *_loaded_libraries()]
    return places


def exposed(extra: Iterable[str]) -> list[str]:
    """Every path that a program may read, outermost only, existing ones only, and never the root folder itself."""
    wanted = {os.path.normpath(path) for path in (*_SYSTEM, *_SETTINGS, *interpreter_paths(), *extra)}
    wanted |= {os.path.realpath(path) for path in wanted}
    existing = sorted(path for path in wanted if path != "/" and os.path.lexists(path))
    kept: list[str] = []
    for path in existing:
        inside = any(path.startswith(f"{folder}/") and not os.path.islink(folder) for folder in kept)
        if not inside:
            kept.append(path)
    return kept


def _loaded_libraries() -> set[str]:
    """Folders of shared libraries in use, such as a conda environment's."""
    try:
        with open("/proc/self/maps") as maps:
            lines = maps.read().splitlines()
    except OSError:
        return set()
    files = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
    return {os.path.dirname(path) for path in files if ".so" in os.path.basename(path) and path.startswith("/")}


def build(paths: list[str]) -> str:
    """Mount the new root, in a mount namespace of this process's own, and return where. Nothing is entered yet."""
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    root = _staging(paths)
    kernel.mount("truegold", root, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=1m,nr_inodes=4k")
    for path in paths:
        _expose(root, path)
    for device in DEVICES:
        _expose(root, device)
    for path, text in _MADE_UP.items():
        _write(root + path, text)
    for folder in (BOX, _PROC, _OLD_PROC):
        os.makedirs(root + folder, exist_ok=True)
    os.symlink(BOX, root + "/tmp")
    kernel.mount(_PROC, root + _OLD_PROC, None, kernel.MS_BIND | kernel.MS_REC)
    return root


def enter(root: str) -> None:
    """Make the new root the only one, and read-only."""
    kernel.pivot_into(root)
    flags = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("none", "/", None, flags)


def own_proc() -> int | None:
    """A descriptor of a /proc of this pid namespace, hidden again at once; None where the kernel does not allow one.

    It allows one only while another, whole /proc is to be seen, which is why the old one was carried along.
    """
    try:
        kernel.mount("proc", _PROC, "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        return os.open(_PROC, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    finally:
        for place in (_PROC, _OLD_PROC):
            kernel.mount("nothing", place, "tmpfs", kernel.MS_RDONLY | kernel.MS_NOSUID, "mode=555,size=4k")


def own_box_steps(size: int) -> list[Callable[[], int]]:
    """An empty working folder for one job, in a mount namespace of its own; gone when its last process is."""
    return [
        kernel.step("unshare", kernel.CLONE_NEWNS),
        kernel.step("mount", b"box", BOX.encode(), b"tmpfs", ctypes.c_ulong(_BOX_FLAGS), _box_data(size).encode()),
        *enter_box_steps(),
    ]


def enter_box_steps() -> list[Callable[[], int]]:
    return [kernel.step("chdir", BOX.encode())]


class SharedBox:
    """A working folder for one job after the other. What a job does to it is gone before the next one comes: most do
    nothing, and for the others a mount takes the old one's place."""

    def __init__(self) -> None:
        self._size = 0
        self._untouched: os.stat_result | None = None

    def ready(self, size: int) -> None:
        """See to it that it is as new. No process of an earlier job runs any more."""
        if self._size == size and self._is_untouched():
            return
        if self._size:
            kernel.detach(BOX)
        kernel.mount("box", BOX, "tmpfs", _BOX_FLAGS, _box_data(size))
        os.utime(BOX, (0, 0))
        self._size, self._untouched = size, os.stat(BOX)

    def _is_untouched(self) -> bool:
        # A program can set all times but that of the change back; that one may be too coarse to tell.
        found, wanted = os.stat(BOX), self._untouched
        return wanted is not None and _told(found) == _told(wanted) and not os.listdir(BOX)


def _told(found: os.stat_result) -> tuple[int, ...]:
    return found.st_mtime_ns, found.st_atime_ns, found.st_ctime_ns, found.st_mode, found.st_nlink


_BOX_FLAGS = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOATIME


def _box_data(size: int) -> str:
    return f"mode=700,size={size},nr_inodes={BOX_ENTRIES}"


def _staging(paths: list[str]) -> str:
    for folder in _STAGING:
        clashes = any(
            path == folder or path.startswith(f"{folder}/") or folder.startswith(f"{path}/") for path in paths
        )
        if os.path.isdir(folder) and not os.path.islink(folder) and not clashes:
            return folder
    raise OSError(f"no folder to build the sandbox's root over: tried {', '.join(_STAGING)}")


def _expose(root: str, path: str) -> None:
    target = root + path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    elif os.path.exists(path):
        _write(target, "")
    else:
        return
    kernel.mount(path, target, None, kernel.MS_BIND | kernel.MS_REC)
    try:
        kernel.make_read_only(target)
    except OSError:  # a kernel before 5.12, which can do so for the uppermost mount only
        flags = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | _kept_flags(target)
        kernel.mount("none", target, None, flags)


def _kept_flags(path: str) -> int:
    """What a mount already forbids must stay forbidden: a user namespace may not loosen it."""
    found = os.statvfs(path).f_flag
    flags = kernel.MS_NOSUID
    for have, keep in (
        (os.ST_NODEV, kernel.MS_NODEV),
        (os.ST_NOEXEC, kernel.MS_NOEXEC),
        (os.ST_NOATIME, kernel.MS_NOATIME),
    ):
        flags |= keep if found & have else 0
    for have, keep in ((os.ST_NOATIME, kernel.MS_NOATIME), (os.ST_NODIRATIME, 2048), (os.ST_RELATIME, 1 << 21)):
        flags |= keep if found & have else 0
    return flags


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
