"""Ends a training in order when a signal asks for it: SIGTERM of a preemption, SIGINT of Ctrl-C.

    with listening(): ...          either is noted from now on, instead of killing the process
        with interruptible(): ...  sampling and judging of this rank: it is broken off at once
        end_if_asked()             between two steps

Either raises EndAsked, on every rank, where any rank was asked to end. In between, an update is not broken off once it
has changed weights. The stage catches it, and saves what the last finished step has left.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from truegold.pipeline.running.isolation import ENDINGS, GO_ON
from truegold.train.model.distributed import all_max
from truegold.verifiers.sandbox.errors import Preempted

AGAIN_S = 2.0
"""What is to be broken off is told so again after so many seconds: a callback of a library may swallow the first."""


class EndAsked(BaseException):
    """Somebody has asked this training to end. No `except Exception` on the way takes it for an error."""


class _Ear:
    """What this process has heard."""

    heard: int | None = None
    """The first signal that asked for the end."""
    may_break = False
    """Whether what runs now may be broken off."""


def _hear(signum: int, frame: object) -> None:
    if signum in ENDINGS:
        _Ear.heard = _Ear.heard or signum
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S, AGAIN_S)
    if _Ear.may_break:
        raise EndAsked


@contextmanager
def listening() -> Iterator[None]:
    """Note the signals that ask for the end while it lasts. Only a main thread can."""
    _Ear.heard = None
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


def is_heard() -> bool:
    """Return whether this process was asked to end."""
    return _Ear.heard is not None


def end_if_asked() -> None:
    """Raise EndAsked, on every rank, where any was asked to end; every rank calls it."""
    if all_max(float(is_heard())):
        raise EndAsked


def preempted(step: int) -> Preempted:
    """Return the error of a training that was asked to end, whose checkpoint has everything before step `step`."""
    signum = signal.Signals(_Ear.heard or signal.SIGTERM)
    message = f"{ENDINGS[signum]}: the training has ended with a checkpoint of all {step} finished steps."
    return Preempted(message, GO_ON, signum)
