"""Measures suspicion against human reviews: GSM8K-Platinum and MMLU-Redux.

    python benchmarks/curation_suspicion.py DATA_DIR          DATA_DIR holds gsm8k_platinum.jsonl, mmlu_redux_helm.jsonl

gsm8k_platinum.jsonl: id, question, gold_original, gold_solution, status (kept, revised, rejected), preds {system:
answer}; bad are the revised and the rejected. mmlu_redux_helm.jsonl: id, question, gold_original, error_type, preds.
Suspicion uses no labels of bad items, so nothing is fitted to them; its constants were chosen on the rows whose
sha256(file name + id) begins with an even hex digit. "odd" is the other half.

    1-pass     1 - share of systems that agree with the label (the usual filter)
    alt        share of the most frequent other answer minus that of the label
    suspicion  truegold.pipeline.suspicion
    reachable  a perfect order of the items on which any system disagrees with the label, and a random order of the rest

Histories: there is no training run with reviewed labels, so models of one series and rising size stand for the
checkpoints of one model, in four ways: the last alone; all as samples of one system, without order; as checkpoints with
their order; as independent systems.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ranking_scores import area_under_roc, average_precision, interval

from truegold.pipeline.suspicion.answer_classes import LabelledProblem, Sample
from truegold.pipeline.suspicion.assess import Assessment, assess
from truegold.pipeline.suspicion.joined import UNKNOWN_MODEL, OtherEvidence, SuspicionTier
from truegold.pipeline.suspicion.votes import VoteCounter, Votes
from truegold.pipeline.tables.reasons import AskedModel

WEAK, MID = 0.72, 0.88
"""Systems below WEAK are weak, from there to MID middling, by agreement with the labels."""
STRONG = 0.90
HARD = 0.10
"""Hard items: weak systems pass at most this share of the time."""
_ZERO = "zeroeval/"
SERIES = (
    ("gsmplus/abel_7b", "gsmplus/abel_13b", "gsmplus/abel_70b"),
    ("gsmplus/metamath_7b", "gsmplus/metamath_13b", "gsmplus/metamath_70b"),
    ("gsmplus/tora_7b", "gsmplus/tora_13b", "tora/tora-70b"),
    (
        f"{_ZERO}Meta-Llama-3.1-8B-Instruct",
        f"{_ZERO}Meta-Llama-3.1-70B-Instruct",
        f"{_ZERO}Meta-Llama-3.1-405B-Instruct@hyperbolic",
    ),
    (f"{_ZERO}gemma-2-2b-it", f"{_ZERO}gemma-2-9b-it", f"{_ZERO}gemma-2-27b-it@together"),
    (f"{_ZERO}claude-3-haiku-20240307", f"{_ZERO}claude-3-sonnet-20240229", f"{_ZERO}claude-3-opus-20240229"),
    (f"{_ZERO}gpt-3.5-turbo-0125", f"{_ZERO}gpt-4o-mini-2024-07-18", f"{_ZERO}gpt-4o-2024-08-06"),
    ("6b_finetuning", "175b_finetuning"),
)
"""Models of rising size, each series of one maker."""
GSM8K, MMLU = "gsm8k_platinum.jsonl", "mmlu_redux_helm.jsonl"

DRAWS = 10
"""Random halves of the items, and random sets of systems, that robustness is averaged over."""
SOME = 20
"""Systems in a random set."""

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Measured:
    """Scores of every item of a file from some of its systems."""

    suspicion: Array
    ill_posed: Array
    one_pass: Array
    alt: Array
    dropped: Mask
    review: Mask
    weak_pass: Array


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSON Lines file."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def is_even(file: str, identity: object) -> bool:
    """Return whether a row is in the even half."""
    return int(hashlib.sha256(f"{file}{identity}".encode()).hexdigest()[0], 16) % 2 == 0


Others = Mapping[str, OtherEvidence]
"""What is known beside votes, by the rows' ids."""
NOTHING: Others = MappingProxyType({})


def assess_samples(
    rows: Sequence[Mapping[str, Any]],
    samples: Iterable[Sample],
    verifier: str,
    others: Others = NOTHING,
    asked_model: AskedModel = UNKNOWN_MODEL,
) -> tuple[list[Assessment], Votes]:
    """Return the assessments of the rows, and the votes."""
    labelled_items = [
        LabelledProblem(str(row["id"]), row["gold_original"], row["question"], row.get("gold_solution"), verifier)
        for row in rows
    ]
    counter = VoteCounter(labelled_items)
    counter.add(samples)
    votes = counter.count()
    return list(assess(labelled_items, votes, others, asked_model)[1]), votes


def measure(
    rows: Sequence[Mapping[str, Any]],
    systems: Sequence[str],
    verifier: str,
    called: str | None = None,
    others: Others = NOTHING,
    asked_model: AskedModel = UNKNOWN_MODEL,
) -> Measured:
    """Assess `rows` from the answers of `systems`; `called`: as if all were samples of one system; `others`:
    what is known beside them."""
    samples = (
        Sample(str(row["id"]), called or system, answer=str(row["preds"][system]))
        for row in rows
        for system in systems
        if row["preds"].get(system) is not None
    )
    assessments, votes = assess_samples(rows, samples, verifier, others, asked_model)
    n = len(rows)
    total = np.maximum(np.bincount(votes.item, weights=votes.samples, minlength=n), 1)
    label = np.bincount(
        votes.item[votes.answer_class == 0], weights=votes.samples[votes.answer_class == 0], minlength=n
    )
    other = np.bincount(
        votes.item[votes.answer_class == 1], weights=votes.samples[votes.answer_class == 1], minlength=n
    )
    return Measured(
        np.array([entry.suspicion or 0.0 for entry in assessments]),
        np.array([entry.ill_posed or 0.0 for entry in assessments]),
        1 - label / total,
        (other - label) / total,
        np.array([entry.tier is SuspicionTier.DROP for entry in assessments]),
        np.array([entry.tier is not SuspicionTier.KEEP for entry in assessments]),
        label / total,
    )


def rates(rows: Sequence[Mapping[str, Any]], verifier: str) -> dict[str, float]:
    """Each system's share of answered labels that it agrees with."""
    names = sorted({name for row in rows for name in row["preds"]})
    labelled_items = [LabelledProblem(str(row["id"]), row["gold_original"], None, None, verifier) for row in rows]
    counter = VoteCounter(labelled_items)
    counter.add(
        Sample(str(row["id"]), name, answer=str(row["preds"][name]))
        for row in rows
        for name in names
        if row["preds"].get(name) is not None
    )
    votes = counter.count()
    seen = np.bincount(votes.system, weights=votes.samples, minlength=len(votes.systems))
    right = np.bincount(votes.system, weights=votes.samples * (votes.answer_class == 0), minlength=len(votes.systems))
    return {name: float(right[n] / seen[n]) for n, name in enumerate(votes.systems)}


def gsm8k(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Lines of the report on GSM8K-Platinum."""
    bad = np.array([row["status"] != "kept" for row in rows])
    rejected = np.array([row["status"] == "rejected" for row in rows])
    ill_posed: list[str] = []
    even = np.array([is_even(GSM8K, row["id"]) for row in rows])
    rate = rates(rows, "math")
    ranked = sorted(rate, key=lambda name: (-rate[name], name))
    groups = {
        "all": ranked,
        "weak + mid": [name for name in ranked if rate[name] < MID],
        "mid": [name for name in ranked if WEAK <= rate[name] < MID],
        "weak": [name for name in ranked if rate[name] < WEAK],
        "top 15": ranked[:15],
        "top 5": ranked[:5],
        "best one": ranked[:1],
    }
    weak = measure(rows, groups["weak"], "math").weak_pass <= HARD if groups["weak"] else np.zeros(len(rows), bool)
    yield f"{len(rows)} items, {bad.sum()} bad ({(bad & even).sum()} even, {(bad & ~even).sum()} odd)"
    yield (
        f"{'systems':<12}{'n':>3}  {'AP 1-pass':>9} {'AP alt':>7} {'AP susp':>8}  {'95 %':>12} {'even':>6} {'odd':>6}"
        f"  {'hard AP':>7} {'odd':>6}  drop P / R (odd)            review P / R"
    )
    for name, systems in groups.items():
        if not systems:
            continue
        measured = measure(rows, systems, "math")
        score = measured.suspicion
        low, high = interval(average_precision, bad, score)
        ill_posed.append(f"{name} {with_interval(rejected, measured.ill_posed)}")
        yield (
            f"{name:<12}{len(systems):>3}  {average_precision(bad, measured.one_pass):>9.3f}"
            f" {average_precision(bad, measured.alt):>7.3f} {average_precision(bad, score):>8.3f}"
            f"  [{low:.2f}, {high:.2f}] {average_precision(bad[even], score[even]):>6.3f}"
            f" {average_precision(bad[~even], score[~even]):>6.3f}"
            f"  {average_precision(bad[weak], score[weak]):>7.3f}"
            f" {average_precision(bad[weak & ~even], score[weak & ~even]):>6.3f}"
            f"  {hits(measured.dropped, bad)} ({hits(measured.dropped & ~even, bad & ~even)})"
            f"  {hits(measured.review, bad)}"
        )
    yield f"rejected items others from revised and kept ones, AP of ill_posed: {', '.join(ill_posed)}"
    yield f"hard items (weak pass <= {HARD:.0%}): {weak.sum()}, of them bad {(weak & bad).sum()}"
    every = measure(rows, ranked, "math")
    yield from _calibration(every.suspicion, bad)
    strong = measure(rows, [name for name in ranked if rate[name] >= STRONG], "math").one_pass
    shown = strong > 0
    yield (
        f"bad items on whose label all strong systems (>= {STRONG:.0%}) agree: {(bad & ~shown).sum()} of {bad.sum()};"
        f" reachable AP {average_precision(bad, np.where(shown, 1.0 + bad, 0.0)):.3f} where one of them dissents"
    )
    yield from _robustness(rows, bad, ranked)
    yield from _histories(rows, bad, even)


def _histories(rows: Sequence[Mapping[str, Any]], bad: Mask, even: Mask) -> Iterator[str]:
    """Models of one series as the checkpoints of one; a line for each way of taking them, over the series."""
    present = {name for row in rows for name in row["preds"]}
    series = [models for models in SERIES if present.issuperset(models)]
    if not series:
        return
    ways: dict[str, Callable[[int], tuple[str, int | None]]] = {
        "as samples of one": lambda position: ("one", None),
        "as checkpoints": lambda position: ("one", position),
        "as independent": lambda position: (f"model {position}", None),
    }
    for way, placement in {"last alone": ways["as samples of one"], **ways}.items():
        scores, dropped, right = [], 0, 0
        for models in series:
            taken = list(enumerate(models))[-1:] if way == "last alone" else list(enumerate(models))
            samples = (
                Sample(
                    str(row["id"]), placement(position)[0], answer=str(row["preds"][model]), step=placement(position)[1]
                )
                for row in rows
                for position, model in taken
                if row["preds"].get(model) is not None
            )
            assessments, _ = assess_samples(rows, samples, "math")
            score = np.array([entry.suspicion or 0.0 for entry in assessments])
            drop = np.array([entry.tier is SuspicionTier.DROP for entry in assessments])
            scores.append([average_precision(bad[half], score[half]) for half in (even, ~even)])
            dropped, right = dropped + int(drop.sum()), right + int((drop & bad).sum())
        ap_even, ap_odd = np.mean(scores, axis=0)
        yield f"{len(series)} series, {way}: AP even {ap_even:.3f}, odd {ap_odd:.3f}; dropped {dropped}, right {right}"


def _robustness(rows: Sequence[Mapping[str, Any]], bad: Mask, ranked: Sequence[str]) -> Iterator[str]:
    """Fewer items, other systems, repeated samples of one system."""
    rng = np.random.default_rng(0)
    halves, sets = [], []
    for _ in range(DRAWS):
        part = np.sort(rng.choice(len(rows), len(rows) // 2, replace=False))
        measured = measure([rows[index] for index in part], ranked, "math")
        halves.append(
            (average_precision(bad[part], measured.one_pass), average_precision(bad[part], measured.suspicion))
        )
        some = [ranked[index] for index in np.sort(rng.choice(len(ranked), min(SOME, len(ranked)), replace=False))]
        measured = measure(rows, some, "math")
        sets.append((average_precision(bad, measured.one_pass), average_precision(bad, measured.suspicion)))
    alone = measure(rows, ranked[:8], "math", called="one")
    for name, pairs in (("half of the items", halves), (f"{SOME} random systems", sets)):
        one_pass, suspicion = np.array(pairs).T
        yield (
            f"{name}, {DRAWS} draws: AP {suspicion.mean():.3f} (1-pass {one_pass.mean():.3f}),"
            f" better in {(suspicion > one_pass).sum()}"
        )
    yield (
        f"the best 8 as samples of one system: AP {average_precision(bad, alone.suspicion):.3f}"
        f" (1-pass {average_precision(bad, alone.one_pass):.3f}), dropped {alone.dropped.sum()}"
    )


def mmlu(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Lines of the report on MMLU-Redux."""
    kinds = np.array([row["error_type"] for row in rows])
    wrong, good = kinds == "wrong_groundtruth", kinds == "ok"
    even = np.array([is_even(MMLU, row["id"]) for row in rows])
    measured = measure(rows, sorted({name for row in rows for name in row["preds"]}), "choice")
    yield f"{len(rows)} items, {wrong.sum()} with a wrong label, {(~good).sum()} bad of any kind"
    for name, score in (("1-pass", measured.one_pass), ("alt", measured.alt), ("suspicion", measured.suspicion)):
        low, high = interval(area_under_roc, wrong, score)
        yield (
            f"{name:<10} wrong label: AUC {area_under_roc(wrong, score):.3f} [{low:.3f}, {high:.3f}]"
            f" (even {area_under_roc(wrong[even], score[even]):.3f},"
            f" odd {area_under_roc(wrong[~even], score[~even]):.3f})"
            f" AP {average_precision(wrong, score):.3f}; any: AP {average_precision(~good, score):.3f}"
        )
    clear = wrong | good
    yield f"against good items alone: AUC {area_under_roc(wrong[clear], measured.suspicion[clear]):.3f}"
    silent = wrong & (measured.one_pass == 0)
    reachable = np.where(measured.one_pass > 0, 1.0 + wrong, 0.0)
    yield (
        f"wrong labels that no system disagrees with: {silent.sum()} of {wrong.sum()};"
        f" reachable AUC {area_under_roc(wrong, reachable):.3f}"
    )
    yield f"review: {hits(measured.review, ~good)}; dropped: {measured.dropped.sum()}"


def with_interval(bad: Mask, score: Array) -> str:
    """Return the average precision with its 95 % interval."""
    low, high = interval(average_precision, bad, score)
    return f"{average_precision(bad, score):.3f} [{low:.2f}, {high:.2f}]"


def hits(chosen: Mask, bad: Mask) -> str:
    """Return how many of the chosen items are bad, as precision and recall."""
    n, right = int(chosen.sum()), int((chosen & bad).sum())
    precision = f"{right / n:.2f}" if n else "-"
    return f"{right}/{n} = {precision} / {right / max(1, int(bad.sum())):.2f}"


def _calibration(score: Array, bad: Mask) -> Iterator[str]:
    edges = [0.0, 0.02, 0.1, 0.3, 0.6, 1.01]
    parts = []
    for low, high in pairwise(edges):
        here = (score >= low) & (score < high)
        if here.any():
            parts.append(f"{score[here].mean():.2f}->{bad[here].mean():.2f} (n={here.sum()})")
    yield "calibration (mean suspicion -> share bad): " + ", ".join(parts)


def main() -> None:
    """Print the reports on each file that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path)
    folder: Path = parser.parse_args().data_dir
    for name, report in ((GSM8K, gsm8k), (MMLU, mmlu)):
        path = folder / name
        print(f"\n{name}")
        for line in report(read(path)) if path.exists() else ["not there: left out"]:
            print(line)


if __name__ == "__main__":
    main()
