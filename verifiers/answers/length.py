"""Soft punishment of overlong responses (DAPO, arXiv 2503.14476, equation 13), shifted into [0, 1].

    length <= max - buffer            score 1        DAPO:  0
    between                           falls to 0     DAPO:  ((max - buffer) - length) / buffer
    length > max                      score 0        DAPO: -1

The score of a verdict lies in [0, 1], so it is DAPO's punishment plus 1; a reward term with `offset: -1` gives the
punishment back. Gold is not read. `info["length"]` is the length in tokens, which training gives; without it the
response is measured in the characters or words that it has. With `info["unit"] = "tokens"` a missing length is an
error rather than a guess. Rewards for brevity among the right answers of a group are not covered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from truegold.verifiers.answers.base import AnswerVerifier
from truegold.verifiers.options import BadOption, integer_option, word_option
from truegold.verifiers.verdict import Verdict, reason_for_score

MAX_LENGTH = 10**9
UNITS = ("tokens", "chars", "words")
BUFFER_SHARE = 5
"""DAPO's buffer is a fifth of the longest length (4,096 of 20,480)."""


@dataclass(frozen=True, slots=True)
class LengthVerifier(AnswerVerifier):
    """Verifier `length`. Reads from `info`: `max` (needed), `buffer` (a fifth of max), `length` (in tokens) and `unit`
    (`tokens` where `length` is given, else `chars`)."""

    options: ClassVar[tuple[str, ...]] = ("max", "buffer", "length", "unit")
    needed_options: ClassVar[tuple[str, ...]] = ("max",)

    name: str = "length"
    version: str = "1"

    def _judge(self, response: str, gold: str | None, info: Mapping[str, Any]) -> Verdict:
        longest = integer_option(info, "max", 1, MAX_LENGTH)
        if longest is None:
            raise BadOption("max must be given: the length from which on the score is 0")
        buffer = integer_option(info, "buffer", 0, longest)
        length, unit = _measure(response, info)
        buffer = longest // BUFFER_SHARE if buffer is None else buffer
        score = 1.0 + punishment(length, longest, buffer)
        evidence = {"length": length, "unit": unit, "max": longest, "buffer": buffer}
        return Verdict(score, reason_for_score(score), None, evidence)

    def check_options(self, info: Mapping[str, Any]) -> None:
        """Raise BadOption for a value that means nothing; what a row or the training has yet to give may be missing."""
        super(LengthVerifier, self).check_options({"max": MAX_LENGTH, "length": 0, **info})

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        """The gold as it is, which is short enough unless `max` is small."""
        return gold


def punishment(length: int, longest: int, buffer: int) -> float:
    """Equation 13 of DAPO: 0 up to `longest - buffer`, then a fall, and -1 beyond `longest`."""
    if length <= longest - buffer:
        return 0.0
    return max(-1.0, ((longest - buffer) - length) / buffer) if buffer and length <= longest else -1.0


def _measure(response: str, info: Mapping[str, Any]) -> tuple[int, str]:
    tokens = integer_option(info, "length", 0, MAX_LENGTH)
    unit = word_option(info, "unit", UNITS, "chars" if tokens is None else "tokens")
    if unit == "tokens":
        if tokens is None:
            raise BadOption("length must be given where unit is tokens: text alone does not say how many it is")
        return tokens, unit
    return (len(response) if unit == "chars" else len(response.split())), unit
