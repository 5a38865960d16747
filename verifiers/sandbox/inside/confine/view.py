"""Builds the part of the file system that a program sees: the interpreter, the system's programs and a box.

    /usr /lib /bin ...       the system's programs and libraries
    /opt/venv ...            the interpreter that runs the sandbox, and its packages
    /dev/null zero random urandom full
    /dev/stdin fd/0          links to a file in the box, for programs whose source names these paths
    /etc/passwd ...          one made-up user
    /w/box                   the working folder: empty, private, in memory, limited in size; /tmp leads to it
    /w/.tmp                  a second box, to which /tmp leads if the interpreter lies below /tmp

There are no home folders, no data, no /proc and no /sys. Without mount namespaces, Landlock denies access to them.

`empty_folder` clears a box on disk. A program may have filled it with malicious content: folders nested a thousand
deep, folders without permissions, and links to other places. So no link is followed, nothing recurses, and at most two
folders are open at a time.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping

from . import kernel

BOX_PARENT = "/w"
BOX = "/w/box"
BOX_FOR_TMP = "/w/.tmp"
"""Paths in the new root: the box's parent folder, the box, and the second box."""
STDIN_FILE = ".stdin"
"""The file in the box with the input, for programs that open `/dev/stdin`."""

_STDIN_LINKS = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

BOX_ENTRIES = 1000
"""Maximum number of files and folders in a box. Stops millions of empty files, which take memory of the kernel."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
"""Folders of the system's programs and libraries."""
_SETTINGS = tuple(
    f"/etc/{name}" for name in "ld.so.cache ld.so.conf ld.so.conf.d alternatives localtime ssl/openssl.cnf".split()
)
_MADE_UP = {
    "/etc/passwd": "solution:x:1000:1000::/tmp:/bin/sh\n",
    "/etc/group": "solution:x:1000:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
"""Files of settings with made-up content."""
MADE_UP_PATHS = tuple(_MADE_UP)

_STAGING = ("/mnt", "/media", "/srv", "/run", "/var/tmp", "/tmp", "/opt", "/home", "/var", "/sys")
"""Folders that usually exist. The new root is built over one of them before it becomes the root."""

_TEMPORARY = "/tmp"
_EXPOSED_TEMPORARY = "/old-tmp"
"""The mount point of the visible part of the real /tmp."""

_OLD_PROC, _NEW_PROC = "/old-proc", "/new-proc"
"""Mount points of the old and the new /proc while the view is built."""


def interpreter_paths() -> list[str]:
    """Return the folders of this interpreter and its packages. Folders of editable installs are left out."""
    import site  # Jobs do not need these modules, which would make each job slower if they were loaded earlier.
    import sysconfig

    folders = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *site.getsitepackages()]
    folders += [path for name in ("stdlib", "platstdlib", "purelib", "platlib") if (path := sysconfig.get_path(name))]
    return [*folders, os.path.dirname(os.path.realpath(sys.executable))]


def exposed_paths(extra: Iterable[str]) -> list[str]:
    """Return the existing paths that a program may read. `/`, and paths inside another one, are left out."""
    readable = {os.path.normpath(path) for path in (*_SYSTEM, *_SETTINGS, *loaded_libraries(), *extra)}
    readable |= {os.path.realpath(path) for path in readable}
    existing = sorted(path for path in readable if path != "/" and os.path.lexists(path))
    kept: list[str] = []
    for path in existing:
        is_below = any(path.startswith(f"{folder}/") and not os.path.islink(folder) for folder in kept)
        if not is_below:
            kept.append(path)
    return kept


def loaded_libraries() -> set[str]:
    """Return the folders of loaded shared libraries, such as a conda environment's."""
    try:
        with open("/proc/self/maps") as maps:
            lines = maps.read().splitlines()
    except OSError:
        return set()
    files = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
    return {os.path.dirname(path) for path in files if ".so" in os.path.basename(path) and path.startswith("/")}


def build_root(paths: list[str]) -> str:
    """Mount the new root in this process's mount namespace and return its path, without entering it."""
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    root = _staging_folder(paths)
    kernel.mount("truegold", root, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=1m,nr_inodes=4k")
    for path in paths:
        _expose(path, root + inner_path(path))
    for device in DEVICES:
        _expose(device, root + device)
    for path, text in _MADE_UP.items():
        _write(root + path, text)
    for folder in (BOX, BOX_FOR_TMP, _NEW_PROC, _OLD_PROC, *map(os.path.dirname, _STDIN_LINKS)):
        os.makedirs(root + folder, exist_ok=True)
    for link in _STDIN_LINKS:
        os.symlink(f"{BOX}/{STDIN_FILE}", root + link)
    if not os.path.lexists(root + _TEMPORARY):
        links = temporary_links(paths)
        os.symlink(BOX_FOR_TMP if links else BOX, root + _TEMPORARY)
        for name, target in links.items():
            os.symlink(target, f"{root}{BOX_FOR_TMP}/{name}")
    kernel.mount("/proc", root + _OLD_PROC, None, kernel.MS_BIND | kernel.MS_REC)
    return root


def enter_root(root: str) -> None:
    """Make the new root the only one, and read-only."""
    kernel.pivot_into(root)
    flags = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("none", "/", None, flags)


def open_proc() -> int | None:
    """Mount a /proc of this pid namespace, open it and hide it. Return its descriptor, or None if that is forbidden."""
    try:
        kernel.mount("proc", _NEW_PROC, "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        return os.open(_NEW_PROC, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    finally:
        for path in (_NEW_PROC, _OLD_PROC):
            kernel.mount("nothing", path, "tmpfs", kernel.MS_RDONLY | kernel.MS_NOSUID, "mode=555,size=4k")


def inner_path(path: str) -> str:
    """Return the path in the new root for a path in the old root."""
    return _EXPOSED_TEMPORARY + path.removeprefix(_TEMPORARY) if path.startswith(f"{_TEMPORARY}/") else path


def temporary_links(paths: Iterable[str]) -> dict[str, str]:
    """Return links for /tmp with their targets, through which visible parts of the real /tmp are reached."""
    names = {path.split("/")[2] for path in paths if path.startswith(f"{_TEMPORARY}/")}
    return {name: f"{_EXPOSED_TEMPORARY}/{name}" for name in sorted(names)}


def private_box_steps(size: int, links: Mapping[str, str]) -> list[Callable[[], int]]:
    """Return calls that give a job an empty box in its own mount namespace. Both end with the job's last process."""
    steps = [kernel.step("unshare", kernel.CLONE_NEWNS)]
    data = _box_data(size).encode()
    for folder in _boxes(links):
        steps.append(kernel.step("mount", b"box", folder.encode(), b"tmpfs", ctypes.c_ulong(_BOX_FLAGS), data))
    for name, target in links.items():
        steps.append(kernel.step("symlink", os.fsencode(target), os.fsencode(f"{BOX_FOR_TMP}/{name}")))
    return [*steps, enter_box_step()]


def enter_box_step() -> Callable[[], int]:
    """Return a call that changes to the box."""
    return kernel.step("chdir", BOX.encode())


@contextlib.contextmanager
def shared_box(size: int, links: Mapping[str, str]) -> Iterator[None]:
    """Give one empty box to all jobs that are forked inside the `with` block. They must end before the block does."""
    folders = _boxes(links)
    for folder in folders:
        kernel.mount("box", folder, "tmpfs", _BOX_FLAGS, _box_data(size))
    try:
        for name, target in links.items():
            os.symlink(target, f"{BOX_FOR_TMP}/{name}")
        yield
    finally:
        for folder in folders:
            kernel.detach(folder)


def _boxes(links: Mapping[str, str]) -> tuple[str, ...]:
    return (BOX, BOX_FOR_TMP) if links else (BOX,)


def _box_data(size: int) -> str:
    return f"mode=700,size={size},nr_inodes={BOX_ENTRIES}"


_BOX_FLAGS = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOATIME


def _staging_folder(paths: list[str]) -> str:
    for folder in _STAGING:
        clashes = any(
            path == folder or path.startswith(f"{folder}/") or folder.startswith(f"{path}/") for path in paths
        )
        if os.path.isdir(folder) and not os.path.islink(folder) and not clashes:
            return folder
    raise OSError(f"no folder over which to build the sandbox's root: tried {', '.join(_STAGING)}")


def _expose(path: str, target: str) -> None:
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
    except OSError:  # Kernels before 5.12 can only change the topmost mount.
        flags = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | _kept_flags(target)
        kernel.mount("none", target, None, flags)


def _kept_flags(path: str) -> int:
    """Return the flags that restrict a mount already. A user namespace may not remove them."""
    present = os.statvfs(path).f_flag
    same_bits = kernel.MS_NODEV | kernel.MS_NOEXEC | kernel.MS_NOATIME | os.ST_NODIRATIME
    return kernel.MS_NOSUID | (present & same_bits) | (kernel.MS_RELATIME if present & os.ST_RELATIME else 0)


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


MAX_ROUNDS = 1_000_000
"""Maximum number of folders that are removed. Stops a folder that grows as fast as it is emptied."""


def empty_folder(box: str) -> None:
    """Remove all removable content. Subfolders are moved up into the box first, so that paths stay short."""
    # The program has ended, so no entry can have a name that is chosen now.
    prefix = os.urandom(8).hex()
    spare_paths = (os.path.join(box, f"{prefix}-{count}") for count in itertools.count())
    pending = [box]
    for _ in range(MAX_ROUNDS):
        if not pending:
            return
        folder = pending.pop()
        for entry in _entries(folder):
            with contextlib.suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                os.chmod(entry.path, 0o700)
                moved = next(spare_paths)
                os.rename(entry.path, moved)
                pending.append(moved)
        if folder != box:
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
