"""The disk: where several runs share what they make, and one line for whatever keeps a file from being written."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from truegold.verifiers import SetupError, TruegoldError

_FULL = re.compile(r"no space left|disk (?:is )?full|disk quota exceeded|requested and \d+ written", re.IGNORECASE)
"""What libraries say of a full disk without an error number: numpy `100 requested and 40 written`, SQLite, Polars."""

_FULL_ERRORS = {errno.ENOSPC, errno.EDQUOT}
_REMEDIES = {
    errno.EACCES: "Allow it with chmod, or name another folder.",
    errno.EPERM: "Allow it with chmod, or name another folder.",
    errno.EROFS: "Name a folder on a disk that can be written to.",
    errno.ENOENT: "Look at the spelling, or make the folder.",
    errno.ENOTDIR: "A part of that path is a file; name a folder.",
    errno.EEXIST: "A file is in the way; move it, or name another folder.",
    errno.EISDIR: "It is a folder; name a file.",
    errno.ENAMETOOLONG: "Give a shorter name.",
    errno.EFBIG: "The file is larger than this system or `ulimit -f` allows.",
    errno.EMFILE: "Raise the number of open files: ulimit -n 65536.",
    errno.ENFILE: "Raise the number of open files: ulimit -n 65536.",
    errno.EIO: "The disk fails; look at the system's log, and name another one.",
    errno.ESTALE: "The network disk was mounted anew; run the same command again.",
}
"""What to do about each way in which a file cannot be written or read."""


def cache_folder(name: str) -> Path:
    """Return `~/.cache/truegold/NAME`, or the same below XDG_CACHE_HOME where that is set.

    Compiled operators and Prefect's databases are kept there.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "truegold" / name


@contextmanager
def disk_errors_reported(folder: Path) -> Iterator[None]:
    """Turn what the system says against writing below `folder` into a SetupError of one line; other errors pass.

    Every command and every stage works inside of it. A library may wrap the error of the system in one of its kinds, or
    give a text alone, so that the causes of an error are looked at too. An error that came up while another one was
    handled is a bug of its own, unless the disk was full then.
    """
    try:
        yield
    except TruegoldError:
        raise
    except Exception as error:
        for cause, is_stated in _causes(error):
            explained = _describe(cause, folder, is_stated)
            if explained is not None:
                raise explained from error
        raise


def _causes(error: BaseException) -> Iterator[tuple[BaseException, bool]]:
    """Yield an error and those behind it, each with whether it is stated to be the cause (`raise ... from`)."""
    seen: set[int] = set()
    cause: BaseException | None = error
    is_stated = True
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause, is_stated
        is_stated = is_stated and cause.__cause__ is not None
        cause = cause.__cause__ or cause.__context__


def _describe(error: BaseException, folder: Path, is_stated: bool) -> SetupError | None:
    code = error.errno if isinstance(error, OSError) else None
    name = error.filename if isinstance(error, OSError) and error.filename is not None else folder
    if code in _FULL_ERRORS or (code is None and _FULL.search(str(error))):
        return SetupError(
            f"No space left on the disk of {name}.",
            "Free some space and run the same command again: finished stages are kept.",
        )
    if code is None or not is_stated or (remedy := _REMEDIES.get(code)) is None:
        return None
    return SetupError(f"{name}: {os.strerror(code)}.", remedy)
