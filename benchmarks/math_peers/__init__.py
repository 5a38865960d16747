"""The graders that `math_verifier.py` compares, one adapter class each, in one file for each package.

An adapter has `packages` (the distributions whose versions are reported; where one is missing the peer is left out), is
made without arguments (which does all imports), and judges

    pair(gold, answer, options)      two answers; `options` are a multiple-choice row's, most peers have no use for them
    response(gold, response)         a whole completion; a peer that cannot read those has no such method

Both return (score, note): True, False, or None for "could not judge". An exception counts as None. Adapters call the
public entry point that the package's own users call, with its defaults, and mend nothing. They never import
`truegold`: peers run on an interpreter of their own.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol

Judgement = tuple[bool | None, str]


class Peer(Protocol):
    """A grader under a common interface."""

    packages: tuple[str, ...]

    def pair(self, gold: str, answer: str, options: list[str] | None) -> Judgement:
        """Judge an extracted answer."""

    def response(self, gold: str, response: str) -> Judgement:
        """Judge a whole response."""


TRUEGOLD = "truegold"
REFERENCE = "math-verify-boxed"

ADAPTERS = {
    TRUEGOLD: "math_peers.ours:Truegold",
    REFERENCE: "math_peers.math_verify:Boxed",
    "math-verify-dollar": "math_peers.math_verify:Dollar",
    "evalscope": "math_peers.evalscope:Evalscope",
    "inspect-ai": "math_peers.inspect_ai:InspectAI",
    "lm-eval-minerva": "math_peers.lm_eval:Minerva",
    "lm-eval-score": "math_peers.lm_eval:Score",
    "mathruler": "math_peers.mathruler:Mathruler",
    "verl-prime": "math_peers.verl:Prime",
    "verl-dapo": "math_peers.verl:Dapo",
    "verl-math-reward": "math_peers.verl:MathReward",
}


def adapter_class(target: str) -> Any:
    """The class that `module:Class` names."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)
