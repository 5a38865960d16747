"""Downloads and uploads files by URL: `s3://`, `gs://`, `hf://`, `https://` and other schemes of fsspec.

    local_copy("s3://bucket/train.jsonl")      ~/.cache/truegold/places/s3/bucket/3f2a.../train.jsonl
    local_copy("s3://bucket/sets/*.parquet")   ~/.cache/truegold/places/s3/bucket/sets/91c0..., a folder of those files
    local_copy("train.jsonl")                  train.jsonl

An object is downloaded once, and then read from disk. It is downloaded again if its etag, size or time changes. Stages
are cached by the content of files, so results do not depend on the location of the files.

Credentials and endpoints are set as the libraries expect them: AWS_PROFILE, AWS_ENDPOINT_URL, `gcloud auth`, `hf auth
login`, FSSPEC_S3_ANON.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.request import getproxies

from truegold.pipeline.running.disk import cache_folder, digest_json, is_pattern
from truegold.pipeline.sources.records import first_line
from truegold.verifiers import InputError, SetupError, TruegoldError
from truegold.verifiers.extras import require

_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9]+):/{1,2}(?P<rest>[^/].*)", re.DOTALL)
"""A URL, also as `Path` spells it: s3:/bucket/train.jsonl."""
_FILE_URL = re.compile(r"file:/+")
"""The beginning of file:///data/train.jsonl, also as `Path` spells it."""
_WEB = ("http", "https")
_HUB_PAGE = re.compile(r"https://huggingface\.co/datasets/([\w.-]+/[\w.-]+)/?(?:(?:tree|viewer|blob)/.*)?")
"""The page of a set or of one of its files, which is not the file itself."""
_OF_EXTRA = ("aiohttp", "fsspec", "gcsfs", "huggingface_hub", "s3fs")
"""The packages that the extra `places` installs."""
_GOOGLE = ("gs://", "gcs://")
_GOOGLE_KEY = "application_default_credentials.json"
_GOOGLE_STORAGE = ("storage.googleapis.com", 443)
_METADATA_SERVER = ("169.254.169.254", 80)
"""The server that gives virtual machines of clouds their keys."""
_PROBE_S = 3.0
"""The timeout of a connection that only shows whether a server is there, in seconds."""
_ACCESS = {
    "s3": "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; for a public bucket FSSPEC_S3_ANON=true.",
    "gs": "Sign in: gcloud auth application-default login; for a public bucket set FSSPEC_GS_TOKEN=anon.",
    "hf": "Sign in: hf auth login. A gated set has to be asked for on its page, too.",
}
"""The remedy for denied access, by scheme."""
_IDENTITY = (
    "etag content-md5 md5hash blob_id xet_hash generation last-modified lastmodified updated mtime created".split()
)
"""The lower-case names of metadata that change with an object's content."""
_CLIENTS = "aiohttp aiobotocore botocore fsspec gcsfs google httpx httpx2 huggingface_hub".split()
"""The packages whose errors are about remote files."""
_DENIED = (
    "PermissionError NoCredentialsError PartialCredentialsError CredentialRetrievalError ProfileNotFound"
    " DefaultCredentialsError".split()
)
"""The names of errors about missing or insufficient credentials."""
TOLD_BYTES = 100 * 10**6
"""The number of bytes above which a download is announced."""


def place_url(path: Path | str) -> str | None:
    """Return the URL that a path contains, or None for a local path."""
    match = _URL.fullmatch(str(path))
    return f"{match['scheme']}://{match['rest']}" if match and match["scheme"] != "file" else None


def working_folder(folder: str) -> Path:
    """Return the local folder for the runs of a folder: the folder itself, or for a URL a folder of the cache."""
    if (url := place_url(folder)) is None:
        return Path(folder)
    scheme, _, path = url.partition("://")
    return cache_folder("runs").joinpath(scheme, *PurePosixPath(path).parts)


def open_place(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for a URL, and the path of the URL on it."""
    require("fsspec", "places")
    if url.startswith(_GOOGLE):
        _prepare_google(url)
    import fsspec

    fs, path = fsspec.url_to_fs(url)
    fs.invalidate_cache()
    return fs, str(path)


def _prepare_google(url: str) -> None:
    """Find out in seconds whether Google's storage can be reached, and whether this machine has a key to it.

    Without a key, gcsfs asks the metadata server of a virtual machine for almost a minute, and retries each request for
    half a minute. Raises SetupError if the storage cannot be reached.
    """
    from fsspec.config import conf

    logging.getLogger("gcsfs").setLevel(logging.CRITICAL)  # It logs errors that are raised as well, over many lines.
    folder = Path(os.environ.get("CLOUDSDK_CONFIG", "~/.config/gcloud")).expanduser()
    is_signed_in = "GOOGLE_APPLICATION_CREDENTIALS" in os.environ or (folder / _GOOGLE_KEY).exists()
    if not is_signed_in and not any("token" in conf.get(name, {}) for name in ("gs", "gcs")):
        # Buckets of the newer kind are recognised by a request that needs a key.
        os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        if not _is_there(_METADATA_SERVER):
            os.environ.setdefault("NO_GCE_CHECK", "true")
    if getproxies() or "STORAGE_EMULATOR_HOST" in os.environ:
        return
    if not _is_there(_GOOGLE_STORAGE):
        raise SetupError(
            f"{url} cannot be reached: no connection to {_GOOGLE_STORAGE[0]}.",
            "Check the network, and run the same command again.",
        )


def _is_there(server: tuple[str, int]) -> bool:
    try:
        socket.create_connection(server, timeout=_PROBE_S).close()
    except OSError:
        return False
    return True


def local_copy(path: Path | str, is_wanted: Callable[[str], bool] = lambda name: True) -> Path:
    """Return the local path of a URL's object, after a download if needed. Local paths are returned unchanged.

    A folder or a pattern becomes a local folder; `is_wanted` selects its files by name. Raises InputError if the object
    does not exist, and SetupError if it cannot be downloaded.
    """
    if (url := place_url(path)) is None:
        return Path(_FILE_URL.sub("/", str(path)))
    if (page := _HUB_PAGE.fullmatch(url)) is not None:
        raise InputError(f"{url} is a page, not a file.", f"Name the set: {{type: hf, name: {page[1]}}}")
    with place_errors(url):
        fs, root = open_place(url)
        objects, is_one = _find(fs, url, root, is_wanted)
        scheme, _, rest = url.partition("://")
        above = PurePosixPath(rest.partition("?")[0] if scheme in _WEB else rest).parent
        fixed = [part for part in above.parts if part not in ("..", "/") and not is_pattern(Path(part))]
        cache = cache_folder("places")
        stamps = {name: _stamp(url, name, info) for name, info in objects.items()}
        folder = cache.joinpath(scheme, *fixed, digest_json(stamps)[:12])
        stored = {name: cache / "objects" / digest_json(stamp) for name, stamp in stamps.items()}
        _fetch(fs, url, [(info, stored[name], _is_telling(stamps[name])) for name, info in objects.items()])
    for name, file in stored.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or not target.samefile(file):
            target.unlink(missing_ok=True)
            os.link(file, target)
    return folder / next(iter(objects)) if is_one else folder


def _find(fs: Any, url: str, root: str, is_wanted: Callable[[str], bool]) -> tuple[dict[str, Mapping[str, Any]], bool]:
    """Return the objects of a URL by their names below its folder, and whether the URL is a single object."""
    if url.partition(":")[0] in _WEB:
        return {PurePosixPath(root.partition("?")[0]).name or "data": fs.info(root)}, True
    above = root.rstrip("/")
    if is_pattern(Path(root)) and not fs.exists(root):
        parts = PurePosixPath(root).parts
        above = "/".join(parts[: next(index for index, part in enumerate(parts) if is_pattern(Path(part)))])
        entries = fs.glob(root, detail=True).values()
    elif (info := fs.info(root))["type"] != "directory":
        return {PurePosixPath(root).name: info}, True
    else:
        entries = [info for info in fs.find(root, detail=True).values() if is_wanted(info["name"])]
    files = {info["name"].removeprefix(above).lstrip("/"): info for info in entries if info["type"] == "file"}
    objects = {name: info for name, info in files.items() if name and ".." not in name.split("/")}
    if not objects:
        raise InputError(f"{url} has no data file.", "Check the spelling, and the files there.")
    return objects, False


def _stamp(url: str, name: str, info: Mapping[str, Any]) -> dict[str, str]:
    """Return the identity and the state of an object."""
    lower = {key.lower(): value for key, value in info.items()}
    state = {key: str(lower[key]) for key in ("size", *_IDENTITY) if lower.get(key)}
    return {"url": url, "name": name, "object": str(info["name"]), **state}


def _is_telling(stamp: Mapping[str, str]) -> bool:
    """Return whether a stamp changes with the content of the object."""
    return any(key in stamp for key in _IDENTITY)


def _fetch(fs: Any, url: str, objects: Sequence[tuple[Mapping[str, Any], Path, bool]]) -> None:
    """Download the missing objects, each given with its remote metadata and its local path."""
    missing = [(info, file) for info, file, is_telling in objects if not (is_telling and file.exists())]
    if (total := sum(info.get("size") or 0 for info, _ in missing)) > TOLD_BYTES:
        print(f"fetching {url}: {len(missing)} files, {total / 10**9:.1f} GB", file=sys.stderr)
    get_files(fs, url, {str(info["name"]): (file, info.get("size")) for info, file in missing})


def get_files(fs: Any, url: str, files: Mapping[str, tuple[Path, int | None]]) -> None:
    """Download each object to a path, atomically. `url` is the name for errors.

    Raises SetupError if an object is shorter than its known size.
    """
    asides = {name: file.with_name(f"{file.name}.{os.getpid()}.tmp") for name, (file, _) in files.items()}
    for aside in asides.values():
        aside.parent.mkdir(parents=True, exist_ok=True)
    try:
        if asides:
            fs.get(list(asides), list(map(str, asides.values())))
        for name, (file, size) in files.items():
            if size is not None and (got := asides[name].stat().st_size) != size:
                raise SetupError(f"{url}: {name} ended after {got:,} of {size:,} bytes.", "Run the same command again.")
            asides[name].replace(file)
    finally:
        for aside in asides.values():
            aside.unlink(missing_ok=True)


@contextmanager
def outgoing(path: Path) -> Iterator[Path]:
    """Yield the folder to write to: `path`, or for a URL a local folder whose files are uploaded at the end.

    After an error, nothing is uploaded.
    """
    if (url := place_url(path)) is None:
        yield path
        return
    with place_errors(url):
        fs, root = open_place(url)
    with tempfile.TemporaryDirectory(prefix="truegold-") as name:
        folder = Path(name)
        yield folder
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        with place_errors(url):
            fs.put(list(map(str, files)), [f"{root}/{file.relative_to(folder)}" for file in files])


@contextmanager
def place_errors(url: str) -> Iterator[None]:
    """Turn errors of a remote file system's library into one line.

    Errors of the local disk, and bugs, pass unchanged.
    """
    try:
        yield
    except TruegoldError:
        raise
    except ImportError as error:
        named = re.match(r"Install (\w+) ", str(error))
        package = named[1] if named and named[1] not in _OF_EXTRA else "'truegold[places]'"
        raise SetupError(f"{url}: {first_line(error)}.", f"Install it: pip install {package}") from error
    except Exception as error:
        if (explained := _explain(url, error)) is None:
            raise
        raise explained from error


def _explain(url: str, error: Exception) -> TruegoldError | None:
    """Return an error that explains an exception of a library, or None if it is not about the remote file."""
    if isinstance(error, ValueError) and str(error).startswith("Protocol not known"):
        return InputError(
            f"{url}: URLs of this kind cannot be read.", "Known are s3://, gs://, hf://, https:// and more."
        )
    causes = [error]
    while isinstance(cause := causes[-1].__cause__, Exception):
        causes.append(cause)
    client = next((cause for cause in causes if type(cause).__module__.partition(".")[0] in _CLIENTS), None)
    if getattr(error, "filename", None) is not None or not (isinstance(error, OSError) or client is not None):
        return None
    codes = (getattr(client, name, None) for name in ("status", "code"))
    status = next((code for code in codes if code), getattr(getattr(client, "response", None), "status_code", None))
    is_boto = hasattr(client, "operation_name")
    reason = first_line(error if is_boto or client is None else client)
    is_denied = any(type(cause).__name__ in _DENIED for cause in causes) or reason.startswith("Forbidden")
    if status in (401, 403) or is_denied:
        hint = _ACCESS.get(url.partition(":")[0], "Check its permissions.")
        return SetupError(f"{url}: access is denied: {reason}.", hint)
    if isinstance(error, FileNotFoundError) and (is_boto or client is None or status == 404):
        return InputError(
            f"{url} does not exist{'' if reason in url or status else f': {reason}'}.", "Look at its spelling."
        )
    return SetupError(f"{url} cannot be reached: {reason}.", "Check the network, and run the same command again.")
