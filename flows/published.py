"""Copies a run between its local folder and a place, which is an address such as s3://bucket/runs in `runs_dir`.

    with published(config, print): ...

At its start, the block fetches the files that this machine lacks. Then it publishes finished work every few seconds:
finished stages, finished parts of stages, samples, replies and decisions.

    s3://bucket/runs/gsm8k/clean/rows.parquet     the run as it is on disk
    s3://bucket/runs/gsm8k/.index/clean.json      {path: [bytes, time in ns]}, written last

A file at the place counts only if an index lists it. Before a file changes, it is removed from its index. So a run that
is killed at any moment leaves whole stages and whole parts, and the same command continues from them on any machine.
Files keep their modification times, because the marker of a finished part records the times of its input files. Only
one machine at a time may work on a run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread

import orjson

from truegold.flows.config import RunConfig
from truegold.flows.execute import held_run
from truegold.pipeline.running.parts import DONE
from truegold.pipeline.running.stage import RECORD, SCRATCH, set_aside
from truegold.pipeline.sources.places import get_files, open_place, place_errors, place_url, working_folder
from truegold.verifiers import InputError, TruegoldError

FILES = "_files"
"""The name of the unit (a group of files with one index) for files directly in the run's folder."""
PARTIAL = ".partial"
"""The folder of unfinished stages in a run's folder."""
INDEX = ".index"
"""The folder of indices at the place."""
FETCHED = ".fetched"
"""The folder in a run's folder for stages while they are fetched, and for copies of files while they are sent."""
STAY = (PARTIAL, FETCHED, ".superseded", "logs")
"""Folders of a run that are not published. The one exception: finished parts in `.partial`."""
EVERY_S = 5.0
"""Seconds between two searches for finished work."""
GROWING_S = 60
"""Seconds after which a growing file, such as the log of new samples, is published again."""

Index = dict[str, list[int]]
"""Maps the path of each file in the run's folder to its size in bytes and its modification time in ns."""

_published: set[Path] = set()
"""The folders of runs that this process publishes."""


@contextmanager
def published(config: RunConfig, tell: Callable[[str], None]) -> Iterator[str | None]:
    """Fetch a run whose `runs_dir` is a place, and publish it during the block and at its end.

    Yields the run's URL. Yields None for a local run, and within another such block for the same run. tell: a function
    that gets a line if publishing fails; publishing is then tried again. Raises SetupError or InputError if the place
    cannot be read or written at the beginning or at the end.
    """
    run_dir, url = config.run_dir, place_url(config.runs_dir)
    if url is None or run_dir in _published:
        yield None
        return
    url = f"{url.rstrip('/')}/{config.name}"
    run = PublishedRun(run_dir, url)
    run.fetch()
    run.check_writing()
    run.publish()
    ended = Event()
    publisher = Thread(target=_keep_publishing, args=(run, ended, tell), daemon=True)
    _published.add(run_dir)
    publisher.start()
    try:
        yield url
    except BaseException:
        with suppress(Exception):  # The error that ended the run is reported instead.
            run.publish(is_last=True)
        raise
    else:
        run.publish(is_last=True)
    finally:
        ended.set()
        publisher.join()
        _published.discard(run_dir)


def fetched_run(run: Path) -> Path:
    """Return the folder of a run, after fetching it if `run` is a URL."""
    if (url := place_url(run)) is None:
        return run
    run = working_folder(url)
    if not PublishedRun(run, url).fetch():
        raise InputError(f"{url}: nothing is published there.", "Name a run's folder: RUNS_DIR/NAME.")
    return run


def _keep_publishing(run: PublishedRun, ended: Event, tell: Callable[[str], None]) -> None:
    last_error = ""
    while not ended.wait(EVERY_S):
        try:
            run.publish()
        except FileNotFoundError:  # The run has just moved the file.
            continue
        except (TruegoldError, OSError) as error:
            if str(error) != last_error:
                last_error = str(error)
                tell(f"not published yet: {error}")


class PublishedRun:
    """A run's local folder, and the same run at a place."""

    def __init__(self, run_dir: Path, url: str) -> None:
        self._run_dir, self._url = run_dir, url.rstrip("/")
        with place_errors(self._url):
            self._fs, self._root = open_place(self._url)
        self._indices: dict[str, Index] = {}
        """The files at the place, by unit: a folder of the run, or FILES for the files directly in it."""
        self._lock = Lock()

    def fetch(self) -> bool:
        """Fetch the files that this machine lacks. If a local stage differs from the one at the place, set it aside.

        Returns whether there is a run at the place. Raises ConfigError if a run is working in the folder.
        """
        with place_errors(self._url):
            indices = self._fs.find(self._remote(INDEX))
            contents = self._fs.cat(indices) if indices else {}
        for path, content in contents.items():
            unit = path.partition(f"/{INDEX}/")[2].removesuffix(".json")
            self._indices[unit] = orjson.loads(content)
        self._run_dir.mkdir(parents=True, exist_ok=True)
        with held_run(self._run_dir):
            shutil.rmtree(self._run_dir / FETCHED, ignore_errors=True)
            for unit, index in self._indices.items():
                if f"{unit}/{RECORD}" in index:
                    self._fetch_stage(unit, index)
                else:
                    self._fetch_files(index)
        return bool(self._indices)

    def check_writing(self) -> None:
        """Check that the place can be written, by writing an empty index and removing it."""
        with place_errors(self._url):
            self._fs.pipe_file(self._remote(f"{INDEX}/nothing.json"), b"{}")
            self._fs.rm_file(self._remote(f"{INDEX}/nothing.json"))

    def _fetch_stage(self, unit: str, index: Index) -> None:
        record = f"{unit}/{RECORD}"
        if _state(self._run_dir / record) == index[record]:
            return
        self._get(index, index, self._run_dir / FETCHED)
        set_aside(self._run_dir, unit)
        (self._run_dir / FETCHED / unit).rename(self._run_dir / unit)

    def _fetch_files(self, index: Index) -> None:
        """Fetch files that are missing or older here. Markers of parts are fetched after the files of the parts."""
        states = {path: _state(self._run_dir / path) for path in index}
        newer = [path for path, state in states.items() if state is None or state[1] < index[path][1]]
        for are_markers in (False, True):
            self._get([path for path in newer if _is_marker(path) == are_markers], index, self._run_dir)

    def _get(self, paths: Iterable[str], index: Index, folder: Path) -> None:
        targets = {path: folder / path for path in paths}
        with place_errors(self._url):
            get_files(self._fs, self._url, {self._remote(path): (to, index[path][0]) for path, to in targets.items()})
        for path, target in targets.items():
            os.utime(target, ns=(index[path][1], index[path][1]))

    def publish(self, is_last: bool = False) -> None:
        """Copy finished work to the place, and remove what no longer exists here."""
        with self._lock, place_errors(self._url):
            units = self._finished()
            for unit, files in units.items():
                self._publish(unit, files, is_last)
            for unit in self._indices.keys() - units.keys():
                self._publish(unit, {}, is_last)

    def _finished(self) -> dict[str, list[Path]]:
        units: dict[str, list[Path]] = {}
        # Unfinished work comes first. If a stage finishes meanwhile, its files are found twice instead of being missed.
        for folder in (self._run_dir / PARTIAL).glob("*"):
            markers = folder.glob(f"{SCRATCH}/{DONE}/*.json")
            parts = [_files_of_part(folder, marker) for marker in markers]
            if files := [file for part in parts if all(file.exists() for file in part) for file in part]:
                units[f"{PARTIAL}/{folder.name}"] = files
        for entry in self._run_dir.iterdir():
            if entry.name in STAY:
                continue
            if entry.is_dir():
                units[entry.name] = [file for file in entry.rglob("*") if file.is_file() and file.suffix != ".tmp"]
            elif not entry.name.startswith("."):
                units.setdefault(FILES, []).append(entry)
        return units

    def _publish(self, unit: str, files: Iterable[Path], is_last: bool) -> None:
        index = {str(file.relative_to(self._run_dir)): _stamp(file.stat()) for file in files}
        before = self._indices.get(unit, {})
        # Files outside of stages may grow, so they are published again only after GROWING_S.
        is_loose = f"{unit}/{RECORD}" not in index and not unit.startswith(PARTIAL)
        if is_loose and not is_last:
            soon = {path: state for path, state in before.items() if path in index and _is_soon(index[path], state)}
            index |= soon
        if index == before:
            return
        kept = {path: state for path, state in before.items() if index.get(path) == state}
        if stale := [path for path in before if path not in kept]:
            self._write_index(unit, kept)
            self._fs.rm([self._remote(path) for path in stale])
        new = [path for path in index if path not in kept]
        if is_loose:
            self._put_growing(new, index)
        else:
            self._put(unit, new, index)
        self._write_index(unit, index)

    def _put(self, unit: str, paths: Iterable[str], index: Index) -> None:
        """Copy files to the place, the stage's record last. Parts that are already there as unfinished work are copied
        within the place."""
        works = [work for work in self._indices if work.startswith(f"{PARTIAL}/{unit}-")]
        copied: dict[str, str] = {}
        for path in paths:
            sources = (f"{work}/{path.removeprefix(f'{unit}/')}" for work in works)
            if source := next((name for name in sources if self._has(name, index[path])), None):
                copied[path] = source
        if copied:
            self._fs.copy(list(map(self._remote, copied.values())), list(map(self._remote, copied)))
        for are_records in (False, True):
            sent = [path for path in paths if path not in copied and path.endswith(f"/{RECORD}") == are_records]
            if sent:
                self._fs.put([str(self._run_dir / path) for path in sent], list(map(self._remote, sent)))

    def _has(self, path: str, state: list[int]) -> bool:
        return any(index.get(path) == state for index in self._indices.values())

    def _put_growing(self, paths: Iterable[str], index: Index) -> None:
        """Copy files that may grow meanwhile to the place. Each is copied up to its length at the beginning."""
        for path in paths:
            aside = self._run_dir / FETCHED / path
            aside.parent.mkdir(parents=True, exist_ok=True)
            with (self._run_dir / path).open("rb") as source, aside.open("wb") as target:
                index[path] = _stamp(os.fstat(source.fileno()))
                left = index[path][0]
                while left and (chunk := source.read(min(left, 2**20))):
                    left -= target.write(chunk)
            self._fs.put_file(str(aside), self._remote(path))
            aside.unlink()

    def _write_index(self, unit: str, index: Index) -> None:
        path = self._remote(f"{INDEX}/{unit}.json")
        if index:
            self._fs.pipe_file(path, orjson.dumps(index))
            self._indices[unit] = index
        elif self._indices.pop(unit, None):
            self._fs.rm_file(path)

    def _remote(self, path: str) -> str:
        return f"{self._root}/{path}"


def _stamp(state: os.stat_result) -> list[int]:
    return [state.st_size, state.st_mtime_ns]


def _state(path: Path) -> list[int] | None:
    return _stamp(path.stat()) if path.is_file() else None


def _is_soon(state: list[int], before: list[int]) -> bool:
    """Return whether a file changed less than GROWING_S after its published state, so that it can wait."""
    return state[1] - before[1] < GROWING_S * 10**9


def _is_marker(path: str) -> bool:
    return f"/{SCRATCH}/{DONE}/" in path


def _files_of_part(folder: Path, marker: Path) -> list[Path]:
    """Return the files of a finished part, the marker last."""
    tables = [folder / name for name in orjson.loads(marker.read_bytes())["files"]]
    return [*(table / f"part-{marker.stem}.parquet" if table.is_dir() else table for table in tables), marker]
