"""Pass rates: what the judged samples of one problem say of it, and running totals over problems.

A problem sampled eight times with three right answers becomes one row in `profile.parquet`:

    n=8  judged=8  passes=3  pass_rate=0.375  low=0.137  high=0.694  pass_at={"1":0.375,"2":0.643,...}
    tokens_mean=41.2  tokens_max=77  truncated=0.0  majority_answer="18"  majority_agreement=0.375

Samples that could not be judged are left out of the pass rate and counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from truegold.pipeline.profile.sampling import SampleRow
from truegold.pipeline.rows import Int32, Row, RowReference, arrow_schema, dump_json
from truegold.verifiers import Item, Reason, gold_response, judges_solutions, resolve
from truegold.verifiers.rates import wilson_interval
from truegold.verifiers.running.single import verify_one


class ProfileRow(RowReference):
    """A row of `profile.parquet`: the pass rates of one problem."""

    split: str
    n: Int32
    """The problem's samples."""
    judged: Int32
    """The samples that have a score."""
    passes: Int32
    pass_rate: float | None
    """Passes of the judged samples, None where there are none."""
    low: float
    high: float
    """The ends of Wilson's 95 % interval of the pass rate."""
    pass_at: str
    """A JSON object: k (1, 2, 4, ...) to pass@k."""
    tokens_mean: float
    tokens_max: Int32
    truncated: float
    """The share of samples that ended at a length limit."""
    majority_answer: str | None
    majority_agreement: float
    """The share of all samples that give the majority answer."""


PROFILE_SCHEMA = arrow_schema(ProfileRow)


def summarise(row: Row, samples: Sequence[SampleRow]) -> ProfileRow:
    """Return the pass rates of one problem from its judged samples."""
    scores = [sample["score"] for sample in samples if sample["score"] is not None]
    passes = sum(score == 1.0 for score in scores)
    low, high = wilson_interval(passes, len(scores))
    lengths = [len(sample["token_ids"]) for sample in samples]
    answer, votes = _majority(row, samples)
    return {
        "id": row["id"],
        "source": row["source"],
        "source_row": row["source_row"],
        "split": row["split"],
        "n": len(samples),
        "judged": len(scores),
        "passes": passes,
        "pass_rate": passes / len(scores) if scores else None,
        "low": low,
        "high": high,
        "pass_at": dump_json({str(k): round(pass_at_k(passes, len(scores), k), 6) for k in powers_up_to(len(scores))}),
        "tokens_mean": sum(lengths) / len(lengths),
        "tokens_max": max(lengths),
        "truncated": sum(sample["finish_reason"] == "length" for sample in samples) / len(samples),
        "majority_answer": answer,
        "majority_agreement": votes / len(samples),
    }


def is_suspect(summary: ProfileRow, agreement: float) -> bool:
    """Return whether no sample passes and at least `agreement` of all samples give one and the same other answer."""
    return bool(summary["judged"] and not summary["passes"] and summary["majority_agreement"] >= agreement)


def pass_at_k(passes: int, n: int, k: int) -> float:
    """Return the unbiased estimate 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374, eq. 1)."""
    if not 1 <= k <= n:
        raise ValueError(f"k must lie in 1..n, got k={k}, n={n}")
    return 1.0 - math.comb(n - passes, k) / math.comb(n, k)


def powers_up_to(n: int) -> list[int]:
    """Return 1, 2, 4, ... up to n: the k that pass@k is reported at."""
    return [2**exponent for exponent in range(n.bit_length()) if 2**exponent <= n]


def largest_cluster(answers: Sequence[str], same: Callable[[str, str], bool]) -> tuple[str | None, int]:
    """Return the answer that most samples agree on and how many do, `same` deciding whether two forms are one answer.

    Equal strings vote together before `same` is asked, so that it is asked once for each pair of distinct forms at
    most. Ties go to the answer seen first.
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
    return max(clusters, key=lambda cluster: cluster[1], default=(None, 0))


def _majority(row: Row, samples: Sequence[SampleRow]) -> tuple[str | None, int]:
    """Return the answer most samples give and its votes; the row's verifier says which forms are one answer."""
    verifier = resolve(row["verifier"])

    def same(representative: str, answer: str) -> bool:
        if judges_solutions(verifier):
            # Programs are alike when they are the same text.
            return representative == answer
        response = gold_response(verifier, answer, None)
        return response is not None and verify_one(Item(response, representative, row["verifier"])).passed

    return largest_cluster([s["extracted"] for s in samples if s["extracted"] is not None], same)


@dataclass
class PassRateTotals:
    """Running totals over the problems of one split."""

    problems: int = 0
    judged: int = 0
    """Problems with a pass rate."""
    rates: float = 0.0
    """The sum of their pass rates."""
    never: int = 0
    always: int = 0
    unjudged_samples: int = 0
    timeouts: int = 0
    """Samples whose verifier hit its deadline."""
    truncated: float = 0.0
    """The sum of the problems' shares of truncated samples."""

    def add(self, summary: ProfileRow, samples: Sequence[SampleRow] = ()) -> None:
        """Count one problem with its samples."""
        self.problems += 1
        self.timeouts += sum(sample["reason"] == Reason.TIMEOUT for sample in samples)
        self.unjudged_samples += summary["n"] - summary["judged"]
        self.truncated += summary["truncated"]
        rate = summary["pass_rate"]
        if rate is not None:
            self.judged += 1
            self.rates += rate
            self.never += rate == 0
            self.always += rate == 1

    def facts(self) -> dict[str, object]:
        """Return the totals as the stage reports them."""
        return {
            "problems": self.problems,
            "mean_pass_rate": round(self.rates / self.judged, 4) if self.judged else None,
            "never_passed": self.never,
            "always_passed": self.always,
            "unjudged_samples": self.unjudged_samples,
            "timeouts": self.timeouts,
            "truncated": round(self.truncated / self.problems, 4) if self.problems else None,
        }
