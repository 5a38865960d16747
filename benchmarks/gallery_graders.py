"""Graders that are commonly used for training and evaluation, as verifiers of truegold:

    truegold verifiers audit benchmarks/gallery_graders.py:verl_prime --data train.jsonl

Each calls the adapter of `math_peers` on a whole response. A grader that cannot judge returns None. They need `verl`,
`pylatexenc` and `mathruler`; string equality is the built-in `exact`, Math-Verify `math_verify`.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from math_peers import ADAPTERS, Peer, adapter_class
from math_peers.installed import load

from truegold.verifiers import verifier


@cache
def _peer(name: str) -> Peer:
    made: Peer = adapter_class(ADAPTERS[name])()
    return made


def _score(name: str, response: str, gold: str) -> float | None:
    score, _ = _peer(name).response(gold, response)
    return None if score is None else float(score)


@verifier(gold_response="\\boxed{{{gold}}}")
def verl_math(response: str, gold: str) -> float | None:
    """Judge by verl's `math_reward`."""
    return _score("verl-math-reward", response, gold)


@verifier(gold_response="Answer: {gold}")
def verl_dapo(response: str, gold: str) -> float | None:
    """Judge by verl's `math_dapo`."""
    return _score("verl-dapo", response, gold)


@verifier(gold_response="\\boxed{{{gold}}}")
def verl_prime(response: str, gold: str) -> float | None:
    """Judge by verl's `prime_math`."""
    return _score("verl-prime", response, gold)


@verifier(gold_response="\\boxed{{{gold}}}")
def mathruler(response: str, gold: str) -> float | None:
    """Judge by MathRuler's grader."""
    return _score("mathruler", response, gold)


@cache
def _gsm8k() -> object:
    return load("verl", "verl.utils.reward_score.gsm8k", "verl", "verl.utils", "verl.utils.reward_score")


@verifier(gold_response="#### {gold}")
def verl_gsm8k(response: str, gold: str) -> float:
    """Judge by verl's `gsm8k`, gold without commas as verl prepares it."""
    return float(_gsm8k().compute_score(response, gold.replace(",", "")))  # type: ignore[attr-defined]
