"""The orderly end of a training after a signal (SIGTERM of a preemption, SIGINT of Ctrl-C) or with a full disk.

    with listening(): ...          signals are noted and do not kill the process
        with interruptible(): ...  sampling and judging of this rank, which a signal interrupts at once
        end_if_asked()             between two steps
        write_anyway(out, write)   writes files of a step, with a full disk into reserved space

`interruptible` and `end_if_asked` raise EndAsked on every rank if any rank got a signal or has a full disk. An update
that has begun to change weights is not interrupted. The stage catches EndAsked and saves a checkpoint of the last
finished step.
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
"""EndAsked is raised again after this number of seconds, because a library's callback may have swallowed it."""
CHECKPOINTED = "the training has ended with a checkpoint of all {step} finished steps."
"""The end of the message of every ended training."""


class EndAsked(BaseException):
    """A signal or a full disk asks this training to end. It is not an Exception, so handlers of errors do not catch
    it."""


class _Noticed:
    """The signals and failures that this process has noticed."""

    signum: int | None = None
    """The first signal that asked for the end."""
    may_break = False
    """Whether a signal may interrupt the running code."""
    raised = -math.inf
    """The time, by the monotonic clock, when EndAsked was last raised."""
    full_disk: Path | None = None
    """The folder whose disk was full."""


def _note_signal(signum: int, frame: object) -> None:
    """Note a signal, and raise EndAsked if the running code may be interrupted."""
    if signum in ENDINGS:
        _Noticed.signum = _Noticed.signum or signum
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S, AGAIN_S)
    now = time.monotonic()
    # Samplers pass on signals that the trainer already has. A second EndAsked would interrupt the handling of the
    # first.
    if _Noticed.may_break and now - _Noticed.raised > AGAIN_S / 2:
        _Noticed.raised = now
        raise EndAsked


@contextmanager
def listening() -> Iterator[None]:
    """Note signals that ask for the end, within the context. Call in the main thread only."""
    _Noticed.signum, _Noticed.full_disk, _Noticed.raised = None, None, -math.inf
    earlier = {signum: signal.signal(signum, _note_signal) for signum in (*ENDINGS, signal.SIGALRM)}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for signum, handler in earlier.items():
            signal.signal(signum, handler)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let a signal interrupt this rank's work within the context.

    The work must have no collective operations, because other ranks would wait in them. All ranks call this together.
    Raises EndAsked on all ranks if one of them was asked to end.
    """
    try:
        if _Noticed.signum is None:
            _Noticed.may_break = True
            yield
        else:
            raise EndAsked
    except EndAsked:
        _Noticed.may_break = False
    except Exception:
        # After a signal, errors are ignored. Child processes may have got the signal and ended.
        if _Noticed.signum is None:
            raise
    finally:
        _Noticed.may_break = False
    end_if_asked()


def write_anyway(folder: Path, write: Callable[[], object]) -> None:
    """Write files of a step below a stage's folder, by calling `write`.

    If the disk is full, the stage's reserved space is freed and `write` is called again. Then the training ends after
    the step.
    """
    try:
        write()
    except Exception as error:
        if not is_full(error) or _Noticed.full_disk is not None:
            raise
        free_reserve(folder)
        write()
        _Noticed.full_disk = folder


def save_on_full_gpu(save: Callable[[], object], note: Note) -> None:
    """Write a checkpoint after an update that had no room on its GPU.

    If the checkpoint has no room either, the next start continues from an earlier checkpoint, and `note` shows a line.
    """
    return_memory()
    try:
        save()
    except RuntimeError as error:
        reason = str(error).strip().rsplit("\n", 1)[-1][:200]
        note(f"the GPU has no room for a checkpoint either: steps after the last one are taken again ({reason})")


def is_end_asked() -> bool:
    """Return whether this process got a signal to end or has a full disk."""
    return _Noticed.signum is not None or _Noticed.full_disk is not None


def end_if_asked() -> None:
    """Raise EndAsked on all ranks if any rank was asked to end. All ranks call this together."""
    if all_max(float(is_end_asked())):
        raise EndAsked


def ended(step: int) -> TruegoldError:
    """Return the error that ends a training after EndAsked. All ranks call this together.

    step: the number of finished steps, which the checkpoint has.
    """
    ranks = gathered((_Noticed.signum, _Noticed.full_disk))
    signals = [signum for signum, _ in ranks if signum is not None]
    disks = [folder for _, folder in ranks if folder is not None]
    if disks and not signals:
        return full_disk(disks[0], step)
    signum = signal.Signals(signals[0])
    return Preempted(f"{ENDINGS[signum]}: {CHECKPOINTED.format(step=step)}", GO_ON, signum)


def full_disk(folder: Path, step: int) -> SetupError:
    """Return the error that ends a training with a full disk. step: the number of finished steps in the checkpoint."""
    return SetupError(
        f"No space left on the disk of {folder}: {CHECKPOINTED.format(step=step)}", f"Free some space. {GO_ON}"
    )
