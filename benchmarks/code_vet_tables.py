"""Markdown tables of the results of `code_vet.py`. All numbers are taken from the results."""

from __future__ import annotations

from typing import Any

from code_vet_suites import SOURCES
from math_tables import code, table

OUTCOMES = ("keep", "repair", "drop")
COMMAND = "```\npython benchmarks/code_vet.py DATA_DIR --write benchmarks/results/code_vet.md\n```"
SIGNS = {
    "text": "the text says so",
    "outputs": "the reference gives another answer of the same shape",
    "same_input": "one input stands with two answers",
    "order": "the order is free",
}
Measurements = dict[str, Any]


def report(measurements: Measurements) -> str:
    """Return all tables as Markdown."""
    sets = measurements["sets"]
    parts = [_head(measurements), _outcomes(sets), _reasons(sets), _rates(sets), _null(sets)]
    parts += [_weakest(name, sets[name]) for name in ("humaneval", "mbpp") if name in sets]
    if "humaneval" in sets:
        parts.append(_samples(sets["humaneval"]["samples"]))
    if "codecontests" in sets:
        parts.append(_contests(sets["codecontests"]))
    return "\n\n".join(part for part in parts if part)


def _head(measurements: Measurements) -> str:
    lines = [
        f"Measured on {measurements['machine']}, in tier `{measurements['tier']}`, each suite with its reference "
        "solution, as",
        "`truegold testcases vet` does it with its defaults.",
    ]
    if measurements["limit"]:
        lines.append(f"A subset: at most {measurements['limit']} problems of each set (`--limit`).")
    took = ", ".join(f"{name} {seconds:,} s" for name, seconds in measurements["seconds"].items())
    return "\n".join([*lines, *measurements["missing"], f"It took: {took}.", "", COMMAND])


def _outcomes(sets: Measurements) -> str:
    rows = [
        [
            name,
            f"{it['suites']:,}",
            f"{it['cases']:,}",
            *(f"{it['outcomes'].get(outcome, 0):,}" for outcome in OUTCOMES),
        ]
        for name, it in sets.items()
    ]
    return "## Outcomes\n\n" + table(["set", "suites", "cases", *OUTCOMES], rows)


def _reasons(sets: Measurements) -> str:
    names = list(dict.fromkeys(reason for it in sets.values() for reason in it["reasons"]))
    rows = [[code(name), *(f"{it['reasons'].get(name, 0):,}" for it in sets.values())] for name in names]
    return "Suites by finding; a suite can have several.\n\n" + table(["finding", *sets], rows)


def _rates(sets: Measurements) -> str:
    known = {name: it for name, it in sets.items() if it["rates"]}
    if not known:
        return ""
    bins = next(iter(known.values()))["bins"]
    rows = [
        [
            name,
            f"{it['rates']:,}",
            f"{it['mutants']:,}",
            f"{it['mean_rate']:.3f}",
            f"{it['median_rate']:.3f}",
            *(f"{it['bins'][name_of_bin]:,}" for name_of_bin in bins),
        ]
        for name, it in known.items()
    ]
    text = (
        "## Kill rates\n\nThe share of the planted faults that a suite catches, up to 30 in each reference solution. "
        "Faults that change nothing on any input tried are not counted. Suites that are dropped are not measured.\n\n"
    )
    return text + table(["set", "measured", "mutants", "mean", "median", *bins], rows)


def _null(sets: Measurements) -> str:
    rows = [
        [
            name,
            f"{it['paid']:,}",
            f"{it['paid_constant']:,}",
            f"{it['paid_hack']:,}",
            "; ".join(f"{key} ({code(program)})" for key, program in it["paid_examples"][:4]),
        ]
        for name, it in sets.items()
    ]
    text = "## Programs that solve nothing\n\nSuites that pay one of them, of those not dropped before.\n\n"
    return text + table(["set", "suites", "null or constant", "hack", "such as"], rows)


def _weakest(name: str, measured: Measurements) -> str:
    rows = [
        [
            it["id"],
            f"{it['rate']:.2f} ({it['interval'][0]:.2f} to {it['interval'][1]:.2f})",
            f"{it['survivors']} of {it['mutants']}",
            str(it["cases"]),
            code(it["example"].replace("`", "'")),
        ]
        for it in measured["weakest"]
    ]
    header = ["problem", "kill rate (95 %)", "survivors", "cases", "one of them"]
    return f"## The weakest of {name}\n\n" + table(header, rows)


def _samples(samples: dict[str, dict[str, int]]) -> str:
    def share(counts: dict[str, int], name: str) -> str:
        return f"{counts.get(f'{name}_as_labelled', 0):,} of {counts[name]:,}" if counts.get(name) else "none"

    rows = [
        [SOURCES[source], share(counts, "wrong"), share(counts, "subtle"), share(counts, "right")]
        for source, counts in samples.items()
    ]
    if not rows:
        return ""
    text = (
        "## Programs of known worth\n\nHumanEval with up to 10 programs of each source and worth for each problem. "
        "Subtly wrong: caught by HumanEval+ alone, according to their labels.\n\n"
    )
    header = ["source", "wrong: caught", "subtly wrong: caught", "right: accepted"]
    return text + table(header, rows)


def _contests(measured: Measurements) -> str:
    passing, failing = measured["passing"], measured["failing"]
    rows = [
        [
            label,
            str(it["problems"]),
            str(it["recognised"]),
            _signs(it["signs"]),
        ]
        for label, it in failing.items()
    ]
    header = ["why it fails, by hand", "problems", "said to have several answers", "by what sign"]
    single = [[it["id"], it["label"], it["outcome"], code(it["reason"]), it["why"]] for it in measured["examples"]]
    return "\n\n".join(
        [
            "## CodeContests: problems with several right answers",
            f"Of {measured['suites']} reference solutions {measured['plain_passing']} pass under plain Python, "
            f"{measured['plain_failing']} give a wrong answer, {measured['plain_no_answer']} crash or take too long. "
            "Of half of the problems (by a hash of the name) a person read why the reference fails; `not read`: the "
            "other half, which is only counted.",
            table(header, rows),
            f"Of the {passing['problems']} whose reference solution passes, {passing['called']} are said to have "
            f"several right answers ({_signs(passing['signs']) or 'none'}); of these {passing['truly']} were read and "
            f"do have, {passing['false']} were read and do not (of {passing['read']} that may be read), "
            f"{passing['not_read']} were not read.",
            table(["problem", "why it fails", "outcome", "finding", ""], single),
        ]
    )


def _signs(counts: dict[str, int]) -> str:
    return ", ".join(f"{SIGNS[sign]} ({count})" for sign, count in counts.items())
