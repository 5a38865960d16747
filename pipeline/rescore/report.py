"""The report on rescored rollouts, as a page and as Markdown, and the tables beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.rescore.analysis import (
    Separation,
    as_records,
    count_decided,
    find_flips,
    find_prompts,
    measure_by_decisions,
    measure_separation,
    read_settled,
    summarise,
    with_advantages,
)
from truegold.pipeline.rescore.page import render_page
from truegold.pipeline.rescore.rescore import Rescored, read_rollouts
from truegold.pipeline.text.shown_text import visible

FLIPS_SHOWN, PROMPTS_SHOWN = 25, 20
CELL_CHARS = 120


def write_report(out_dir: Path, rescored: Rescored, settled: Path | None) -> dict[str, Any]:
    """Analyse the rollouts in `out_dir`, write flips, prompts, summary and report, and return the summary."""
    table = with_advantages(read_rollouts(out_dir))
    flips, prompts = find_flips(table), find_prompts(table)
    separations = measure_separation(table, read_settled(settled)) if settled is not None else []
    by_decisions = measure_by_decisions(table)
    flips.write_parquet(out_dir / "flips.parquet")
    flips.write_ndjson(out_dir / "flips.jsonl")
    prompts.write_parquet(out_dir / "prompts.parquet")
    summary = {
        "rollouts": rescored.rollouts,
        "without_gold": rescored.unknown,
        "verifiers": list(rescored.verifiers),
        **summarise(table, flips, prompts),
        "separation": as_records(separations),
        "decided": {**count_decided(table), "separation": as_records(by_decisions)},
    }
    (out_dir / "summary.json").write_bytes(orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
    measured = {"On settled responses": separations, "By reviewers' decisions": by_decisions}
    (out_dir / "report.md").write_text(_markdown(summary, measured, flips, prompts), encoding="utf-8")
    page = render_page(describe(summary), summary, measured, flips, prompts)
    (out_dir / "report.html").write_text(page, encoding="utf-8")
    return summary


def describe(summary: dict[str, Any]) -> list[str]:
    """Return the summary in a few lines."""
    judged, wrong = summary["judged_by_both"], summary["wrong_rewards"]
    share = f" ({wrong / judged:.1%})" if judged else ""
    lines = [
        f"{summary['rollouts']:,} rollouts, {summary['without_gold']:,} of them without a gold to judge by.",
        f"Wrong rewards by A ({summary['verifiers'][0]}): {wrong:,} of {judged:,}{share}; "
        f"{summary['wrongly_paid']:,} paid and wrong, {summary['wrongly_refused']:,} refused and right.",
        f"Not judged: {summary['unjudged_in_log']:,} in the log, {summary['unjudged_by_a']:,} by A.",
        f"{summary['groups_with_errors']:,} of {summary['groups']:,} groups have a wrong reward; advantages are off by "
        f"{summary['mean_cost']:.3f} on average, where they are {summary['mean_advantage']:.3f} in size.",
    ]
    if summary["prompts"]:
        lines.append("Prompts: " + ", ".join(f"{count:,} look {looks}" for looks, count in summary["prompts"].items()))
    decided = summary["decided"]
    if decided["rollouts"]:
        lines.append(
            f"{decided['rollouts']:,} rollouts are of rows that reviewers decided about; of those that they dropped, "
            f"{decided['of_dropped_rows_paid']:,} of {decided['of_dropped_rows']:,} were paid."
        )
    for name, separations in (("settled responses", summary["separation"]), ("decisions", decided["separation"])):
        lines += [_describe_judge(name, separation) for separation in separations]
    return lines


def _describe_judge(name: str, separation: Mapping[str, Any]) -> str:
    judge = "The log" if separation["judge"] == "log" else separation["judge"].upper()
    refused, paid = separation["right"] - separation["paid_right"], separation["paid_wrong"]
    j = "" if separation["j"] is None else f"J {separation['j']:.3f}, "
    return (
        f"{judge} by {name}: {j}{refused:,} of {separation['right']:,} right ones refused, "
        f"{paid:,} of {separation['wrong']:,} wrong ones paid."
    )


def _markdown(
    summary: dict[str, Any], measured: Mapping[str, Sequence[Separation]], flips: pl.DataFrame, prompts: pl.DataFrame
) -> str:
    parts = ["# Rollouts judged again", "\n".join(f"- {line}" for line in describe(summary))]
    for name, separations in measured.items():
        parts.append(f"## J {name[0].lower()}{name[1:]}")
        if separations:
            head = ("judge", "right", "paid", "wrong", "paid", "unjudged", "J", "95 %")
            parts.append(_table(head, [_separation_cells(separation) for separation in separations]))
        else:
            parts.append("Not measured: none of these rollouts is among them.")
    shown = flips.head(FLIPS_SHOWN)
    heads = ("file", "line", "between", "gold", "log read", "A read", "A says", "B read", "B says", "cost")
    columns = (
        *("file", "line", "between", "gold", "logged_reading"),
        *("extracted_a", "reason_a", "extracted_b", "reason_b", "cost"),
    )
    parts += [
        f"## Flips, the costliest {shown.height} of {flips.height:,}",
        _table(heads, shown.select(columns).rows()) if shown.height else "None.",
        "## Prompts",
    ]
    notable = prompts.filter(pl.col("looks").is_not_null() & (pl.col("looks") != "saturated")).head(PROMPTS_SHOWN)
    names = ("looks", "samples", "right", "paid", "gold", "majority", "votes", "prompt")
    parts.append(_table(names, notable.select(names).rows()) if notable.height else "None looks mislabeled or dead.")
    return "\n\n".join(parts) + "\n"


def _separation_cells(separation: Separation) -> tuple[Any, ...]:
    counts = (separation.right, separation.paid_right, separation.wrong, separation.paid_wrong, separation.unjudged)
    if separation.j is None:
        return (separation.judge, *counts, "", "")
    return (separation.judge, *counts, separation.j, f"{separation.low:.3f} to {separation.high:.3f}")


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    text = " ".join(visible(str(value)).split()).replace("|", "\\|").replace("`", "'")
    return f"{text[:CELL_CHARS]}..." if len(text) > CELL_CHARS else text
