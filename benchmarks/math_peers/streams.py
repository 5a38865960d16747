"""A peer's verdicts on a list of rows, saved line by line as they come, so that a killed run goes on where it was.

Each peer has a folder named after its versions, and in it a file for each list of rows, so a new version or another
choice of rows starts anew and everything else is kept. A row on which the peer is silent for too long is a "hang", one
on which its process dies is a "crash": both mean "could not judge", the process is started anew and goes on behind it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from math_peers.cpu import tree_s

HANG_S = 30.0
"""Wall seconds of silence on one row before a peer is killed. Several ship no timeout, or one that does not fire."""

START_S = 300.0
"""For imports and the warm-up, on a busy machine."""

HERE = Path(__file__).parent
Record = dict[str, Any]


class PeerFailed(Exception):
    """A peer's process ended before it judged anything."""


@dataclass(frozen=True)
class Runner:
    """A peer that is installed: what to run, and with which interpreter."""

    name: str
    target: str
    python: str
    versions: dict[str, str]
    kinds: tuple[str, ...] = ("pair", "response")

    def fingerprint(self) -> str:
        """What a peer's verdicts depend on: its code here, and its versions."""
        adapter = HERE.parent / (self.target.partition(":")[0].replace(".", "/") + ".py")
        source = adapter.read_bytes() if adapter.exists() else b""
        identity = json.dumps([self.target, sorted(self.versions.items())]).encode() + source
        return hashlib.sha256(identity).hexdigest()[:12]


def find(name: str, target: str, pythons: Sequence[str]) -> Runner | str:
    """The peer on the first interpreter that has it, or why there is none."""
    why = "no interpreter given"
    for python in pythons:
        command = [python, "-P", "-m", "math_peers.judge", "describe", target]
        asked = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
        if asked.returncode:
            why = asked.stderr.strip().rpartition("\n")[2]
            continue
        description = json.loads(asked.stdout)
        if "versions" in description:
            return Runner(name, target, python, description["versions"], tuple(description["kinds"]))
        why = f"{description['missing']} is not installed"
    return why


def environment() -> dict[str, str]:
    """Return the environment of a peer's process."""
    paths = [str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    # Hash order decides ties inside sympy: with a fixed seed a peer says the same on every run.
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONHASHSEED": "0"}


def verdicts(runner: Runner, rows: Sequence[Record], folder: Path, hang_s: float = HANG_S) -> list[Record]:
    """Every row's record, in the rows' order: read from the folder where it is there, judged where it is not."""
    lines = [json.dumps(row, sort_keys=True) for row in rows]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
    path = folder / f"{runner.name}-{runner.fingerprint()}" / f"{digest}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    done = kept(path)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as rows_file, path.open("a") as out:
        rows_file.write("".join(f"{line}\n" for line in lines))
        rows_file.flush()
        while len(done) < len(rows):
            for record in session(runner, Path(rows_file.name), rows, len(done), hang_s):
                print(json.dumps(record), file=out, flush=True)
                done.append(record)
    return done


def kept(path: Path) -> list[Record]:
    """The records of an earlier run. A last line that was cut off by a kill is taken out of the file."""
    if not path.exists():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    records = [json.loads(line) for line in whole.splitlines()]
    os.truncate(path, len(whole) + 1 if whole else 0)
    return records


def session(runner: Runner, rows_path: Path, rows: Sequence[Record], first: int, hang_s: float) -> Iterator[Record]:
    """The records of one child process: to the last row, or to the one on which it hung or died."""
    command = [runner.python, "-P", "-m", "math_peers.judge", runner.target, str(rows_path), str(first)]
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, env=environment(), start_new_session=True
        )
        try:
            yield from _listen(child, rows, first, hang_s, errors)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _listen(
    child: subprocess.Popen[bytes], rows: Sequence[Record], first: int, hang_s: float, errors: TextIO
) -> Iterator[Record]:
    assert child.stdout is not None
    index, spent_ms, ready = first, 0.0, False
    with child.stdout as pipe:
        for line in _lines(pipe.fileno(), START_S, hang_s):
            if line is None and ready:
                yield _lost(rows[index], "hang", 1000 * tree_s(child.pid) - spent_ms)
                return
            if line is None:
                break
            reply = json.loads(line)
            ready = True
            if "key" in reply:
                spent_ms = reply.pop("spent_ms")
                yield reply
                index += 1
    if not ready:
        errors.seek(0)
        raise PeerFailed(errors.read().strip()[-2000:] or f"no sign of life for {START_S:.0f} s")
    if index < len(rows):
        yield _lost(rows[index], "crash", 0.0)


def _lost(row: Record, note: str, cpu_ms: float) -> Record:
    return {"key": row["key"], "score": None, "note": note, "cpu_ms": round(max(0.0, cpu_ms), 4)}


def _lines(pipe: int, first_s: float, next_s: float) -> Iterator[bytes | None]:
    """Whole lines as they come; None, once, after too long a silence."""
    held, patience = b"", first_s
    while select.select([pipe], [], [], patience)[0]:
        data = os.read(pipe, 1 << 16)
        if not data:
            return
        *lines, held = (held + data).split(b"\n")
        yield from lines
        patience = next_s
    yield None
