"""Summarises the judged samples of one problem: pass rate, lengths, loops and answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypedDict

from truegold.pipeline.profile.drawing import SampleRow
from truegold.pipeline.profile.stopping_rule import decide
from truegold.pipeline.rates import Component, Mixture, Priors
from truegold.pipeline.suspicion.answer_classes import differ_for_certain, key_of
from truegold.pipeline.tables.rows import ProfileRow, Row, dump_json, row_reference
from truegold.verifiers import Item, Reason, gold_response, judges_solutions, resolve
from truegold.verifiers.rates import wilson_interval
from truegold.verifiers.running.batch import verify_one

LONGEST_LOOP = 64
"""A completion ends in a loop if it ends with repetitions of a pattern of at most this number of tokens."""
LOOP_ROUNDS = 4
"""The minimum number of copies of the pattern."""
LOOP_TOKENS = 32
"""The minimum length of all copies together, in tokens."""


def summarise(row: Row, samples: Sequence[SampleRow]) -> ProfileRow:
    """Return the summary of one problem. Its posterior is empty; `describe` adds it."""
    scores = [sample["score"] for sample in samples if sample["score"] is not None]
    passes = sum(score == 1.0 for score in scores)
    low, high = wilson_interval(passes, len(scores))
    lengths = [len(sample["token_ids"]) for sample in samples]
    cut = [sample["token_ids"] for sample in samples if sample["finish_reason"] == "length"]
    loops = sum(sample["finish_reason"] == "repetition" for sample in samples)
    clusters = _answer_clusters(row, samples)
    answer, votes = max(clusters, key=lambda cluster: cluster[1], default=(None, 0))
    return {
        **row_reference(row),
        "split": row["split"],
        "n": len(samples),
        "judged": len(scores),
        "passes": passes,
        "unread": sum(map(_is_unread, samples)),
        "pass_rate": passes / len(scores) if scores else None,
        "low": low,
        "high": high,
        "pass_at": dump_json({str(k): round(pass_at_k(passes, len(scores), k), 6) for k in powers_up_to(len(scores))}),
        **_describe(None),
        "tokens_mean": sum(lengths) / len(lengths),
        "tokens_max": max(lengths),
        "truncated": len(cut) / len(samples),
        "repeating": (loops + sum(map(ends_in_a_loop, cut))) / len(samples),
        "answers": len(clusters),
        "majority_answer": answer,
        "majority_agreement": votes / len(samples),
    }


def describe(summary: ProfileRow, domain: str, priors: Priors | None) -> ProfileRow:
    """Return the summary with the posterior of the problem's pass rate."""
    judged, passes = summary["judged"], summary["passes"]
    known = priors.after(summary["source"], domain, judged, passes) if priors is not None and judged else None
    return {**summary, **_describe(known)}


class _Known(TypedDict):
    """The columns with the posterior of a pass rate."""

    posterior: list[Component]
    expected_rate: float | None
    expected_deviation: float | None
    likely_low: float | None
    likely_high: float | None
    decision: str | None
    decision_probability: float | None


@cache
def _describe(known: Mixture | None) -> _Known:
    """Return the columns of a posterior. The result is cached, since many rows have the same counts."""
    if known is None:
        return {**dict.fromkeys(_Known.__annotations__), "posterior": []}  # type: ignore[typeddict-item]
    low, high = known.interval()
    decision, probability = decide(known)
    return {
        "posterior": known.components(),
        "expected_rate": known.mean,
        "expected_deviation": math.sqrt(known.variance),
        "likely_low": low,
        "likely_high": high,
        "decision": decision,
        "decision_probability": probability,
    }


def _is_unread(sample: SampleRow) -> bool:
    return sample["finish_reason"] == "stop" and sample["reason"] == str(Reason.UNREAD)


def is_suspect(summary: ProfileRow, agreement: float) -> bool:
    """Return True if no sample passes and at least `agreement` of all samples agree on one other answer."""
    return bool(summary["judged"] and not summary["passes"] and summary["majority_agreement"] >= agreement)


def pass_at_k(passes: int, n: int, k: int) -> float:
    """Return the unbiased estimate of pass@k: 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374, eq. 1)."""
    if not 1 <= k <= n:
        raise ValueError(f"k must lie in 1..n, got k={k}, n={n}")
    return 1.0 - math.comb(n - passes, k) / math.comb(n, k)


def powers_up_to(n: int) -> list[int]:
    """Return 1, 2, 4, ... up to n: the values of k for pass@k."""
    return [2**exponent for exponent in range(n.bit_length()) if 2**exponent <= n]


def ends_in_a_loop(token_ids: Sequence[int]) -> bool:
    """Return True if the last tokens are a loop, as LONGEST_LOOP describes."""
    for period in range(1, LONGEST_LOOP + 1):
        span = max(LOOP_ROUNDS * period, LOOP_TOKENS)
        if len(token_ids) < span:
            continue
        if token_ids[-span + period :] == token_ids[-span:-period]:
            return True
    return False


def answer_clusters(answers: Sequence[str], same: Callable[[str, str], bool]) -> list[tuple[str, int]]:
    """Return each distinct answer with its number of votes: `["1/2", "0.5", "3"]` gives `[("1/2", 2), ("3", 1)]`.

    `same` decides whether two forms are the same answer. It is called at most once for each pair of distinct forms. The
    first form of an answer represents it, and answers are in the order of these forms.
    """
    counts: dict[str, int] = {}
    for answer in answers:
        counts[answer] = counts.get(answer, 0) + 1
    clusters: list[tuple[str, int]] = []
    for answer, count in counts.items():
        for cluster_index, (representative, votes) in enumerate(clusters):
            if same(representative, answer):
                clusters[cluster_index] = (representative, votes + count)
                break
        else:
            clusters.append((answer, count))
    return clusters


def _answer_clusters(row: Row, samples: Sequence[SampleRow]) -> list[tuple[str, int]]:
    """Return the samples' answers with their votes. The row's verifier decides which forms are the same answer."""
    verifier = resolve(row["verifier"])

    def same(representative: str, answer: str) -> bool:
        if judges_solutions(verifier) or differ_for_certain(representative, answer):
            # Programs are the same only if their texts are equal. Equal texts are already counted together.
            return False
        if key_of(representative) == key_of(answer):
            return True
        response = gold_response(verifier, answer, None)
        return response is not None and verify_one(Item(response, representative, row["verifier"])).passed

    return answer_clusters([s["extracted"] for s in samples if s["extracted"] is not None], same)
