"""Test suites to vet, the kept fields of each vetting, and the numbers of a set.

problems = humaneval(records["humaneval"], records)
summary([vet_problem(problem) for problem in problems])["outcomes"]         {"keep": 150, ...}
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import code_rows
from code_rows import Record, Row

from truegold.verifiers.audit.suites import VetReason, Vetting, vet

WEAKEST = 10
SAMPLES = 10
"""Programs of known worth for one problem, of each source."""

SOURCES = {"codet": "model programs", "mutants": "mutants"}
BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
HACKS = ("exits with", "equals everything", "success messages")
"""In the names of null programs: what reaches for the tests or their judge."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A program known to be right or wrong. source: of `SOURCES`. caught_before: the set's own tests catch it."""

    source: str
    program: str
    right: bool
    caught_before: bool


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem with its suite, and programs of known worth."""

    row: Row
    prompt: str
    samples: Sequence[Sample] = ()

    @property
    def set_name(self) -> str:
        """The set that it is of."""
        return self.row.set_name


@dataclass(frozen=True, slots=True)
class Vetted:
    """A problem and what vetting said of its suite."""

    problem: Problem
    vetting: Vetting
    seconds: float

    @property
    def key(self) -> str:
        """The problem's name."""
        return self.problem.row.key

    def has(self, reason: VetReason) -> bool:
        """Return whether vetting found this."""
        return reason in self.vetting.reasons

    def evidence(self, reason: VetReason) -> Mapping[str, Any]:
        """Return the evidence of a finding; empty where there is none."""
        matching_evidence = (each.evidence for each in self.vetting.findings if each.reason is reason)
        return next(iter(matching_evidence), {})


def humaneval(records: Iterable[Record], others: Mapping[str, list[Record]]) -> list[Problem]:
    """Return the problems of HumanEval. others: the sets with programs of models and mutants."""
    records = list(records)
    samples: dict[str, list[Sample]] = {}
    for source in SOURCES:
        for record in others.get(source, []):
            right = bool(record["base_pass"] and record["plus_pass"])
            sample = Sample(source, record["code"], right, not record["base_pass"])
            samples.setdefault(record["task_id"], []).append(sample)
    prompts = [record["prompt"] for record in records]
    rows = code_rows.humaneval(records)
    return [Problem(row, text, _few(samples.get(row.key, []))) for row, text in zip(rows, prompts, strict=True)]


def mbpp(records: Iterable[Record]) -> list[Problem]:
    """Return MBPP's problems."""
    records = list(records)
    pairs = zip(code_rows.mbpp(records), records, strict=True)
    return [Problem(row, record["text"]) for row, record in pairs]


def vet_problem(problem: Problem) -> Vetted:
    """Vet a problem's suite as `truegold testcases vet` does."""
    began = time.monotonic()
    vetting = vet(
        problem.row.info,
        prompt=problem.prompt,
        references=[problem.row.program],
        wrong=[sample.program for sample in problem.samples if not sample.right],
        right=[sample.program for sample in problem.samples if sample.right],
    )
    return Vetted(problem, vetting, time.monotonic() - began)


def summary(vetted: Sequence[Vetted]) -> dict[str, Any]:
    """The numbers of a set."""
    vettings = [each.vetting for each in vetted]
    rates = sorted(rate for vetting in vettings if (rate := vetting.kill_rate) is not None)
    measured = [each for each in vetted if each.vetting.kill_rate is not None]
    paid = [each for each in vetted if each.vetting.paid]
    weakest = sorted(measured, key=lambda each: (each.vetting.kill_rate or 0.0, -each.vetting.kills.mutants))
    return {
        "suites": len(vetted),
        "cases": sum(vetting.cases for vetting in vettings),
        "outcomes": dict(Counter(str(vetting.outcome) for vetting in vettings).most_common()),
        "reasons": dict(Counter(reason for vetting in vettings for reason in vetting.reasons).most_common()),
        "mutants": sum(vetting.kills.mutants for vetting in vettings),
        "survivors": sum(len(vetting.kills.survivors) for vetting in vettings),
        "rates": len(rates),
        "mean_rate": sum(rates) / len(rates) if rates else None,
        "median_rate": rates[len(rates) // 2] if rates else None,
        "bins": _bins(rates),
        "paid": len(paid),
        "paid_constant": sum(any(not _is_hack(name) for name in each.vetting.paid) for each in paid),
        "paid_hack": sum(any(map(_is_hack, each.vetting.paid)) for each in paid),
        "paid_examples": [[each.key, each.vetting.paid[0]] for each in paid[:WEAKEST]],
        "weakest": [_weak(each) for each in weakest[:WEAKEST]],
        "samples": _samples(vetted),
        "slowest_s": round(max((each.seconds for each in vetted), default=0.0), 1),
    }


def _few(samples: Sequence[Sample]) -> list[Sample]:
    """The first ones of each source and worth; of wrong ones, those first that the set's own tests let pass."""
    chosen = []
    for source in SOURCES:
        for right in (False, True):
            candidates = [sample for sample in samples if (sample.source, sample.right) == (source, right)]
            chosen += sorted(candidates, key=lambda sample: sample.caught_before)[:SAMPLES]
    return chosen


def _is_hack(name: str) -> bool:
    return any(word in name for word in HACKS)


def _bins(rates: Sequence[float]) -> dict[str, int]:
    """Return a histogram of kill rates: the number of suites between two bounds, and separately those of exactly 1."""
    counts, before = {}, 0
    for bound in BINS:
        below = sum(rate < bound for rate in rates)
        counts[f"below {bound:g}"] = below - before
        before = below
    return {**counts, "1": len(rates) - before}


def _weak(each: Vetted) -> dict[str, Any]:
    kills = each.vetting.kills
    return {
        "id": each.key,
        "rate": kills.rate,
        "interval": kills.interval,
        "mutants": kills.mutants,
        "survivors": len(kills.survivors),
        "example": kills.survivors[0].description if kills.survivors else "",
        "cases": each.vetting.cases,
    }


def _samples(vetted: Sequence[Vetted]) -> dict[str, dict[str, int]]:
    """By source: known-wrong programs and how many of them fail, right ones and how many pass."""
    counts_by_source = {source: Counter[str]() for source in SOURCES}
    for each in vetted:
        if each.vetting.caught is None and each.vetting.accepted is None:
            continue  # none were tried
        for right, reason in ((False, VetReason.WRONG_ACCEPTED), (True, VetReason.RIGHT_REJECTED)):
            odd = set(each.evidence(reason).get("programs", ()))
            labelled = [sample for sample in each.problem.samples if sample.right is right]
            for index, sample in enumerate(labelled):
                wrong_name = "wrong" if sample.caught_before else "subtle"
                name = "right" if right else wrong_name
                counts_by_source[sample.source][name] += 1
                counts_by_source[sample.source][f"{name}_as_labelled"] += index not in odd
    return {source: dict(counts) for source, counts in counts_by_source.items() if counts}
