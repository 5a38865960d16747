"""Ends a training in order when a signal asks for it, SIGTERM of a preemption or SIGINT of Ctrl-C, or a full disk.

    with listening(): ...          either is noted from now on, instead of killing the process
        with interruptible(): ...  sampling and judging of this rank: it is broken off at once
        end_if_asked()             between two steps
        write_anyway(out, write)   what a step writes: where the disk is full, into the room that was reserved

Either of the second and third raises EndAsked, on every rank, where any rank was asked to end or has a full disk. In
between, an update is not broken off once it has changed weights. The stage catches it, and saves what the last finished
step has left.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from truegold.pipeline.running.disk import is_full
from truegold.pipeline.running.isolation import ENDINGS, GO_ON
from truegold.pipeline.running.stage import free_reserve
from truegold.train.model.distributed import Note, all_max, gathered
from truegold.train.model.optimizer_states import return_memory
from truegold.verifiers import SetupError
from truegold.verifiers.sandbox.errors import Preempted, TruegoldError

AGAIN_S = 2.0
"""Seconds after which work that is to be broken off is told so again: a callback of a library may swallow the first."""
CHECKPOINTED = "the training has ended with a checkpoint of all {step} finished steps."


class EndAsked(BaseException):
    """Somebody has asked this training to end. No `except Exception` on the way takes it for an error."""


class _Ear:
    """The signals and failures that this process has noticed."""

    heard: int | None = None
    """The first signal that asked for the end."""
    may_break = False
    """Whether what runs now may be broken off."""
    raised = -math.inf
    """When EndAsked was raised last."""
    full_disk: Path | None = None
    """The folder whose disk was full."""


def _hear(signum: int, frame: object) -> None:
    if signum in ENDINGS:
        _Ear.heard = _Ear.heard or signum
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S, AGAIN_S)
    now = time.monotonic()
    # Samplers pass on what the trainer has heard already: a second one would break off what handles the first.
    if _Ear.may_break and now - _Ear.raised > AGAIN_S / 2:
        _Ear.raised = now
        raise EndAsked


@contextmanager
def listening() -> Iterator[None]:
    """Note the signals that ask for the end while it lasts. Only a main thread can."""
    _Ear.heard, _Ear.full_disk, _Ear.raised = None, None, -math.inf
    earlier = {signum: signal.signal(signum, _hear) for signum in (*ENDINGS, signal.SIGALRM)}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for signum, handler in earlier.items():
            signal.signal(signum, handler)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let a signal break off what this rank does alone; without collective operations, which others would wait in.

    Every rank comes here. Raises EndAsked on all of them where one was asked to end.
    """
    try:
        if _Ear.heard is None:
            _Ear.may_break = True
            yield
        else:
            raise EndAsked
    except EndAsked:
        _Ear.may_break = False
    except Exception:
        # Its own processes may have heard the signal too, and ended.
        if _Ear.heard is None:
            raise
    finally:
        _Ear.may_break = False
    end_if_asked()


def write_anyway(folder: Path, write: Callable[[], object]) -> None:
    """Write a step's files below a stage's folder. Where the disk is full, the room that the stage has reserved is
    given up, and they are written again; the training ends after the step then."""
    try:
        write()
    except Exception as error:
        if not is_full(error) or _Ear.full_disk is not None:
            raise
        free_reserve(folder)
        write()
        _Ear.full_disk = folder


def save_on_full_gpu(save: Callable[[], object], note: Note) -> None:
    """Write a checkpoint after an update that had no room on its GPU. Where there is none for this either, the next
    start goes on from an earlier checkpoint, and `note` is told."""
    return_memory()
    try:
        save()
    except RuntimeError as error:
        reason = str(error).strip().rsplit("\n", 1)[-1][:200]
        note(f"the GPU has no room for a checkpoint either: steps after the last one are taken again ({reason})")


def is_heard() -> bool:
    """Return whether this process was asked to end, or has to."""
    return _Ear.heard is not None or _Ear.full_disk is not None


def end_if_asked() -> None:
    """Raise EndAsked, on every rank, where any was asked to end; every rank calls it."""
    if all_max(float(is_heard())):
        raise EndAsked


def ended(step: int) -> TruegoldError:
    """Return the error of a training that was asked to end, whose checkpoint has everything before step `step`; every
    rank calls it."""
    ranks = gathered((_Ear.heard, _Ear.full_disk))
    signals = [signum for signum, _ in ranks if signum is not None]
    disks = [folder for _, folder in ranks if folder is not None]
    if disks and not signals:
        return full_disk(disks[0], step)
    signum = signal.Signals(signals[0])
    return Preempted(f"{ENDINGS[signum]}: {CHECKPOINTED.format(step=step)}", GO_ON, signum)


def full_disk(folder: Path, step: int) -> SetupError:
    """Return the error of a training that a full disk has ended, whose checkpoint has everything before a step."""
    return SetupError(
        f"No space left on the disk of {folder}: {CHECKPOINTED.format(step=step)}", f"Free some space. {GO_ON}"
    )
