"""One hostile case, and the text of an answer that runs as code where somebody evaluates it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

EXECUTED = "TRUEGOLD_AUDIT_EXECUTED"
"""The environment variable that the injected code sets: harmless, and proof that the answer was run as code."""

INJECTION = f"__import__('os').environ.__setitem__('{EXECUTED}', '1')"


@dataclass(frozen=True, slots=True)
class HostileCase:
    """A gold and an answer that is hard on whoever reads it."""

    name: str
    expected: Literal["match", "no_match", "any"]
    make_gold: Callable[[], str]
    make_answer: Callable[[], str]

    @property
    def gold(self) -> str:
        return self.make_gold()

    @property
    def answer(self) -> str:
        return self.make_answer()


def no_match(name: str, gold: str, answer: str | Callable[[], str]) -> HostileCase:
    """A case whose answer is certainly wrong."""
    return _case(name, "no_match", gold, answer)


def match(name: str, gold: str, answer: str | Callable[[], str]) -> HostileCase:
    """A case whose answer is certainly right."""
    return _case(name, "match", gold, answer)


def either(name: str, gold: str | Callable[[], str], answer: str | Callable[[], str]) -> HostileCase:
    """A case where only the cost matters."""
    return _case(name, "any", gold, answer)


def _case(
    name: str,
    expected: Literal["match", "no_match", "any"],
    gold: str | Callable[[], str],
    answer: str | Callable[[], str],
) -> HostileCase:
    return HostileCase(name, expected, _maker(gold), _maker(answer))


def _maker(text: str | Callable[[], str]) -> Callable[[], str]:
    return (lambda: text) if isinstance(text, str) else text
