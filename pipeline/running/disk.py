"""Helpers for files: atomic writes, digests, parts of tables, JSON Lines that a killed process left incomplete, and
clear disk errors.

    with written_aside(path) as aside: ...    writes PATH.tmp, and renames it to PATH at the end
    DigestCache(path).path(folder)            returns 32 hex digits for a folder, cached by size and modification time
    with disk_errors_reported(folder): ...    raises "No space left on the disk of /data." instead of an OSError

The digest of a folder, such as a checkpoint, covers only the size, head and tail of files above `SAMPLED_ABOVE` bytes.
Reading 140 GB of weights takes longer than the stage that the cache saves. Data files are read as a whole.

A table is a single file, or a folder with a file for each part. Polars, pandas and PyArrow read both forms by the path
`clean/rows.parquet`. They read parts in the order of their names, so that rows always have the same order:

    clean/rows.parquet                       a table in a single file
    clean/rows.parquet/part-00000.parquet    the first part of a table in several parts
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from truegold.verifiers import ConfigError, SetupError, TruegoldError

PARTS = "part-*.parquet"
"""The names of the files of a table in parts."""
_FULL = re.compile(r"no space left|disk (?:is )?full|disk quota exceeded|requested and \d+ written", re.IGNORECASE)
"""Messages about a full disk from libraries without error numbers, such as numpy: `100 requested and 40 written`."""

_FULL_ERRORS = {errno.ENOSPC, errno.EDQUOT}
"""The error numbers of a full disk or quota."""
_REMEDIES = {
    errno.EACCES: "Allow it with chmod, or name another folder.",
    errno.EPERM: "Allow it with chmod, or name another folder.",
    errno.EROFS: "Name a folder on a disk that can be written to.",
    errno.ENOENT: "Check the spelling, or make the folder.",
    errno.ENOTDIR: "A part of that path is a file; name a folder.",
    errno.EEXIST: "A file is in the way; move it, or name another folder.",
    errno.EISDIR: "It is a folder; name a file.",
    errno.ENAMETOOLONG: "Give a shorter name.",
    errno.EFBIG: "The file is larger than this system or `ulimit -f` allows.",
    errno.EMFILE: "Raise the number of open files: ulimit -n 65536.",
    errno.ENFILE: "Raise the number of open files: ulimit -n 65536.",
    errno.EIO: "The disk fails; look at the system's log, and use another disk.",
    errno.ESTALE: "The network disk was remounted; run the same command again.",
}
"""The advice for each error number of reading or writing a file."""
RUNS_NAMED = 5
"""Maximum number of runs of a folder that an error names."""
SAMPLED_ABOVE = 512 * 2**20
"""If a file in a folder has more bytes, its digest covers only its size, head and tail."""
SAMPLE = 4 * 2**20
"""The number of bytes of the head, and of the tail, that are read for this digest."""


def cache_folder(name: str) -> Path:
    """Return the cache folder `~/.cache/truegold/NAME`, or `$XDG_CACHE_HOME/truegold/NAME` if that variable is set.

    The folder holds compiled operators and the databases of Prefect.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "truegold" / name


@contextmanager
def disk_errors_reported(folder: Path) -> Iterator[None]:
    """Turn system errors about writing below `folder` into a SetupError of one line. Other errors pass unchanged.

    Every command and every stage runs inside this context. The causes of an error are checked as well, because a
    library may wrap a system error in its own exception. An error that was raised while another one was handled
    (`__context__`) is a bug. It passes unchanged, unless the disk was full.
    """
    try:
        yield
    except TruegoldError:
        raise
    except Exception as error:
        for cause, is_stated in _causes(error):
            if (explained := _describe(cause, folder, is_stated)) is not None:
                raise explained from error
        raise


def is_full(error: BaseException) -> bool:
    """Return whether an error, or one of its causes, is about a full disk."""
    return any(_says_full(cause) for cause, _ in _causes(error))


def _says_full(error: BaseException) -> bool:
    code = error.errno if isinstance(error, OSError) else None
    return code in _FULL_ERRORS or (code is None and _FULL.search(str(error)) is not None)


def _causes(error: BaseException) -> Iterator[tuple[BaseException, bool]]:
    """Yield an error and its causes. The flag is true if all links to the cause are explicit (`raise ... from`)."""
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
    if _says_full(error):
        return SetupError(
            f"No space left on the disk of {name}.",
            "Free some space and run the same command again: finished stages are kept.",
        )
    if code is None or not is_stated or (remedy := _REMEDIES.get(code)) is None:
        return None
    # The user named the file, not its temporary name.
    return SetupError(f"{str(name).removesuffix('.tmp')}: {os.strerror(code)}.", remedy)


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, and rename it to `path` when the block ends without an error.

    A kill or an error leaves `path` unchanged. The parent folder of `path` has to exist. Raises ConfigError if `path`
    is a device or a pipe, which the file would replace.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ConfigError(f"{path} is not a file but a device or a pipe.", "Name a file that is to be written.")
    aside = path.with_name(path.name + ".tmp")
    try:
        yield aside
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    aside.replace(path)


def refuse_input(target: Path, *inputs: Path) -> None:
    """Raise ConfigError if the file to write is also an input, possibly under another name."""
    for path in inputs:
        if path.exists() and target.exists() and path.samefile(target):
            raise ConfigError(f"{target} is an input: it would be overwritten.", "Name another file to write.")


def is_run(folder: Path) -> bool:
    """Return whether a folder is a finished run of truegold."""
    return (folder / "manifest.json").exists() and (folder / "config.resolved.json").exists()


def runs_in(folder: Path) -> str | None:
    """Return the finished runs in a folder as a text, or None if there are none."""
    runs = sorted(config.parent for config in folder.glob("*/config.resolved.json") if is_run(config.parent))
    return ", ".join(map(str, runs[:RUNS_NAMED])) or None


def check_page_name(target: Path, label: str) -> None:
    """Raise ConfigError if the file for a page is a folder, or does not end in .html. label: the argument's name."""
    if target.is_dir():
        raise ConfigError(f"{label} {target} is a folder.", f"Name a file in it: {target / 'report.html'}.")
    is_device = target.exists() and not target.is_file()
    if target.suffix.lower() not in (".html", ".htm") and not is_device:
        page = target.with_suffix(".html") if target.name.strip(".-") else target / "report.html"
        raise ConfigError(f"{label} {target}: the page is HTML, which that name does not say.", f"Name it {page}.")


def write_whole(path: Path, content: bytes) -> None:
    """Write a small file atomically."""
    with written_aside(path) as aside:
        aside.write_bytes(content)


def append_lines(path: Path, *records: object) -> None:
    """Append records as lines of JSON. If not all of them can be written, the file stays unchanged."""
    lines = "".join(json.dumps(record) + "\n" for record in records).encode()
    with path.open("ab", buffering=0) as file:
        end = file.tell()
        if file.write(lines) < len(lines):
            file.truncate(end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def read_whole_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file up to the first incomplete line, or nothing if there is no file.

    The module `json` reads the file, because it accepts NaN, the value of a diverged loss.
    """
    if not path.exists():
        return []
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return lines


_PATTERN = re.compile(r"[*?\[]")
"""A character of a file name pattern."""


def is_pattern(path: Path) -> bool:
    """Return whether a path is a pattern for file names, such as `data/*.jsonl`."""
    return _PATTERN.search(str(path)) is not None


def matching_files(path: Path) -> list[Path]:
    """Return the files that a pattern matches, sorted by name. For any other path, return the path itself."""
    if path.exists() or not is_pattern(path):
        return [path]
    fixed = next(index for index, part in enumerate(path.parts) if is_pattern(Path(part)))
    folder = Path(*path.parts[:fixed])
    return sorted(file for file in folder.glob(str(Path(*path.parts[fixed:]))) if file.is_file())


def digest_bytes(data: bytes) -> str:
    """Return a digest of `data` (BLAKE2b) as 32 hex digits."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def digest_json(value: object) -> str:
    """Return a digest of a value as JSON. The order of keys has no effect."""
    import orjson  # Imported here, because this module is also used without orjson.

    return digest_bytes(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


def digest_file(path: Path, *, sample_large: bool = False) -> str:
    """Return a digest of a file. With `sample_large`, it covers only size, head and tail of a large file."""
    hasher = hashlib.blake2b(digest_size=16)
    size = path.stat().st_size
    with path.open("rb") as file:
        if sample_large and size > SAMPLED_ABOVE:
            hasher.update(str(size).encode())
            hasher.update(file.read(SAMPLE))
            file.seek(-SAMPLE, os.SEEK_END)
            hasher.update(file.read(SAMPLE))
        else:
            while chunk := file.read(2**20):
                hasher.update(chunk)
    return hasher.hexdigest()


class DigestCache:
    """A cache of digests in a JSON file. A digest is valid while size, modification time and inode are unchanged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, list[object]] = {}
        if path.exists():
            try:
                self._known = json.loads(path.read_bytes())
            except ValueError:
                self._known = {}  # A kill has cut the file short. It is a cache, so start with an empty one.

    def file(self, path: Path, *, sample_large: bool = False) -> str:
        """Return the digest of a file, from the cache if it is valid."""
        stat = path.stat()
        stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        name = str(path.resolve())
        known = self._known.get(name)
        if known and known[:3] == stamp:
            return str(known[3])
        digest = digest_file(path, sample_large=sample_large)
        self._known[name] = [*stamp, digest]
        write_whole(self._path, json.dumps(self._known).encode())
        return digest

    def path(self, path: Path) -> str:
        """Return the digest of a file, or of the names and digests of all files of a folder or pattern."""
        if path.is_file():
            return self.file(path)
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.exists() else matching_files(path)
        names = [str(p.relative_to(path)) if path.exists() else str(p) for p in files]
        return digest_json([[name, self.file(p, sample_large=True)] for name, p in zip(names, files, strict=True)])


def table_parts(table: Path) -> list[Path]:
    """Return the files of a table in order. For a single file or a missing table, return the path itself."""
    return sorted(table.glob(PARTS)) if table.is_dir() else [table]


def part_path(table: Path, index: int, parts: int) -> Path:
    """Return the path of one part of a table."""
    return table if parts == 1 else table / f"part-{index:05d}.parquet"


def make_room(table: Path, parts: int) -> None:
    """Make the folder for a table of several parts. Delete an earlier table that had the other form."""
    if parts == 1 and table.is_dir():
        shutil.rmtree(table)
    elif parts > 1:
        if table.is_file():
            table.unlink()
        table.mkdir(exist_ok=True)
