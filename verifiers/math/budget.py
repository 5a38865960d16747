"""One budget a verdict: all of its work is charged here before it is done.

A sum of sums, a list of powers, an environment in an environment: each part may be cheap, and what they multiply to may
not be. So terms, digits, nodes, readings and comparisons are all paid in steps of about a microsecond, from one purse.
Counting steps, unlike a clock, gives the same verdict on every machine.

What is remembered between verdicts (`remembered`) is charged again whenever it is used, so that no verdict depends on
those before it. Outside of a verdict nothing is limited.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Self, TypeVar

MAX_STEPS = 25_000
"""What a verdict may cost: six times as much as the dearest of ten thousand labelled rows. Stops nested sums."""

MAX_GOLD_STEPS = MAX_STEPS // 2
"""Where a budget is used up, gold is at fault if it costs more than this on its own; else the answer is."""

SECONDS_A_STEP = 1e-6
_UNLIMITED = 1 << 60

T = TypeVar("T")


class Spent(Exception):
    """The budget of a verdict is used up."""


class _Account(threading.local):
    """What the verdict that this thread is working on may still cost."""

    steps_left: int = _UNLIMITED
    is_open: bool = False


_ACCOUNT = _Account()


def charge(steps: int) -> None:
    """Charge work that is about to be done. Raises Spent where it goes beyond the budget."""
    steps_left = _ACCOUNT.steps_left - steps
    _ACCOUNT.steps_left = steps_left
    if steps_left < 0:
        raise Spent


def seconds_left() -> float:
    """Return what is left of the budget of a verdict as CPU time, for work that counts no steps."""
    return min(_ACCOUNT.steps_left, MAX_STEPS) * SECONDS_A_STEP


def digit_steps(bits: int) -> int:
    """Return the price of one operation on rationals of so many bits, whose common divisor has to be found."""
    return 1 + bits * bits // 1_000_000


class Budget:
    """All work inside a `with` statement draws on one budget: that of the verdict around it, where there is one."""

    __slots__ = ("_account_before", "_is_separate", "_steps")

    def __init__(self, steps: int = MAX_STEPS, *, separate: bool = False) -> None:
        """separate: the budget is a new one in any case."""
        self._steps = steps
        self._is_separate = separate

    def __enter__(self) -> Self:
        self._account_before = _ACCOUNT.steps_left, _ACCOUNT.is_open
        if self._is_separate or not _ACCOUNT.is_open:
            _ACCOUNT.steps_left, _ACCOUNT.is_open = self._steps, True
        return self

    def __exit__(self, *_: object) -> None:
        steps_before, was_open = self._account_before
        if self._is_separate or not was_open:
            _ACCOUNT.steps_left, _ACCOUNT.is_open = steps_before, was_open


def remembered(maxsize: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Remember what a function returns together with its price, which is charged each time."""

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        known: dict[tuple[Any, ...], tuple[T, int]] = {}

        @wraps(function)
        def call(*args: Any) -> T:
            entry = known.get(args)
            if entry is not None:
                value, price = entry
                if price:
                    charge(price)
                return value
            before = _ACCOUNT.steps_left
            value = function(*args)
            if len(known) >= maxsize:
                # To forget all at once is quicker than to keep account of what was used last.
                known.clear()
            known[args] = value, before - _ACCOUNT.steps_left
            return value

        return call

    return decorate
