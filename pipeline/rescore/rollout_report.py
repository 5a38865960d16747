"""Writes the report on rescored rollouts: tables of flips and prompts, the counts, and a page in HTML and Markdown.

flips.parquet, flips.jsonl    every rollout on which two judges differ, with their readings (`reward_errors`)
prompts.parquet               every prompt, with a mark on those that look faulty
summary.json                  the counts
report.html, report.md        the counts, and the costliest flips and prompts
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.report.render import render_plain
from truegold.pipeline.report.row_cards import describe_reading, middle_cut, read_evidence
from truegold.pipeline.rescore import reward_errors
from truegold.pipeline.rescore.flip_causes import BETWEEN, PAID, REFUSED, group_flips, with_causes
from truegold.pipeline.rescore.rescore import Rescored, find_settled, read_rollouts, with_texts
from truegold.pipeline.tables.run_files import Fields
from truegold.pipeline.text.templates import join_table, markdown_cell

FLIPS_SHOWN, PROMPTS_SHOWN = 100, 50
"""The maximum number of flips of each kind on the page, and of prompts."""
CAUSES_SHOWN, FEWEST_SHOWN = 60, 2
"""The maximum number of causes of each kind on the page. At least 2 flips are shown for each cause."""
GROUPS_LISTED = 60
"""The maximum number of causes in the Markdown."""
TITLES = {
    PAID: "Paid by the log, wrong by A",
    REFUSED: "Refused by the log, right by A",
    # The log and A agree, or one of them has no score.
    BETWEEN: "Only B differs from the log or A",
}
FLIPS_LISTED, PROMPTS_LISTED = 25, 20
"""The maximum numbers of flips and of prompts in the Markdown."""
TEXT_CHARS, ANSWER_CHARS, CELL_CHARS = 4_000, 300, 120
"""The maximum numbers of characters of a prompt or completion, of an answer, and of a cell in Markdown."""


def write_report(out_dir: Path, rescored: Rescored, settled: Path | None) -> dict[str, Any]:
    """Analyse the rollouts in `out_dir`, write flips, prompts, summary and report, and return the summary."""
    table = reward_errors.with_advantages(read_rollouts(out_dir))
    flips = with_causes(with_texts(reward_errors.find_flips(table), out_dir))
    prompts = reward_errors.find_prompts(table)
    groups = group_flips(flips)
    separations = []
    if settled is not None:
        truths = find_settled(reward_errors.read_settled(settled), out_dir)
        separations = reward_errors.measure_separation(table, truths)
    by_decisions = reward_errors.measure_by_decisions(table)
    flips.write_parquet(out_dir / "flips.parquet")
    flips.write_ndjson(out_dir / "flips.jsonl")
    prompts.write_parquet(out_dir / "prompts.parquet")
    summary = {
        "rollouts": rescored.rollouts,
        "without_gold": rescored.unknown,
        "verifiers": list(rescored.verifiers),
        "second_opinion": rescored.opinion,
        **reward_errors.summarise(table, flips, prompts),
        "causes": groups.select("kind", "cause", "flips", "prompts", "cost").to_dicts(),
        "separation": list(map(asdict, separations)),
        "decided": {**reward_errors.count_decided(table), "separation": list(map(asdict, by_decisions))},
    }
    (out_dir / "summary.json").write_bytes(orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
    measured = {"On settled responses": separations, "By reviewers' decisions": by_decisions}
    (out_dir / "report.md").write_text(_markdown(summary, measured, flips, groups, prompts), encoding="utf-8")
    page = _render_page(summary, measured, flips, groups, prompts)
    (out_dir / "report.html").write_text(page, encoding="utf-8")
    return summary


def describe(summary: dict[str, Any]) -> list[str]:
    """Return the summary in a few lines."""
    judged, wrong = summary["judged_by_both"], summary["wrong_rewards"]
    share = f" ({wrong / judged:.1%})" if judged else ""
    lines = [
        f"{summary['rollouts']:,} rollouts, {summary['without_gold']:,} of them without a gold to judge by.",
        f"Wrong rewards by A ({summary['verifiers'][0]}): {wrong:,} of {judged:,}{share}; "
        f"{summary['wrongly_paid']:,} paid but wrong, {summary['wrongly_refused']:,} refused but right.",
        f"Not judged: {summary['unjudged_in_log']:,} in the log, {summary['unjudged_by_a']:,} by A.",
        f"{summary['groups_with_errors']:,} of {summary['groups']:,} groups have a wrong reward. The mean error of an "
        f"advantage is {summary['mean_cost']:.3f}; the mean size of an advantage is {summary['mean_advantage']:.3f}.",
    ]
    if summary["prompts"]:
        lines.append("Prompts: " + ", ".join(f"{count:,} look {looks}" for looks, count in summary["prompts"].items()))
    decided = summary["decided"]
    if decided["rollouts"]:
        lines.append(
            f"{decided['rollouts']:,} rollouts are of rows that reviewers decided about. Of the rollouts of dropped "
            f"rows, {decided['of_dropped_rows_paid']:,} of {decided['of_dropped_rows']:,} were paid."
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


def _render_page(
    summary: dict[str, Any],
    measured: Mapping[str, Sequence[reward_errors.Separation]],
    flips: pl.DataFrame,
    groups: pl.DataFrame,
    prompts: pl.DataFrame,
) -> str:
    """Return the page. `measured` maps the titles of kinds of settled responses to the measured J."""
    kinds = []
    for name, title in TITLES.items():
        causes = groups.filter(pl.col("kind") == name).head(CAUSES_SHOWN).to_dicts()
        each = max(FEWEST_SHOWN, FLIPS_SHOWN // max(len(causes), 1))
        for cause in causes:
            chosen = flips.filter((pl.col("kind") == name) & (pl.col("cause") == cause["cause"])).head(each)
            cause["shown"] = list(map(_flip, chosen.to_dicts()))
        if causes:
            kinds.append({"name": name, "title": title, "count": sum(c["flips"] for c in causes), "causes": causes})
    return render_plain(
        "rescore.html.jinja",
        "Rollouts judged again",
        lines=describe(summary),
        summary=summary,
        measured=measured,
        kinds=kinds,
        prompts=prompts.filter(pl.col("looks").is_not_null()).head(PROMPTS_SHOWN).to_dicts(),
        all_prompts=prompts["looks"].count(),
    )


def _flip(record: Fields) -> Fields:
    """Return a flip for the page, with the reading and verdict of each judge as `sides`."""
    reward = record["reward"]
    paid = "no reward" if reward is None else f"paid {reward:g}"
    logged = {"judge": "log", "gold": None, "answer": record["logged_reading"], "verdict": paid, "score": reward}
    sides = [_side(record, side) for side in "ab" if record[f"reason_{side}"] is not None]
    decision = record["decision"]
    return record | {
        "origin": f"{record['file']}:{record['line']}",
        "prompt": middle_cut(record["prompt"] or "", TEXT_CHARS),
        "decision": f"fix to {record['decided_gold']}" if decision == "fix" else decision,
        "completion": middle_cut(record["completion"], TEXT_CHARS),
        "sides": [logged, *sides],
    }


def _side(record: Fields, side: str) -> Fields:
    """Return one judge's reading of a completion."""
    reading = describe_reading(read_evidence(record[f"evidence_{side}"])) or {}
    extracted = record[f"extracted_{side}"]
    return {
        "judge": side.upper(),
        "gold": reading.get("gold"),
        "answer": reading.get("answer") or (None if extracted is None else middle_cut(extracted, ANSWER_CHARS)),
        "verdict": ": ".join(filter(None, (record[f"reason_{side}"].replace("_", " "), reading.get("how")))),
        "score": record[f"score_{side}"],
    }


def _markdown(
    summary: dict[str, Any],
    measured: Mapping[str, Sequence[reward_errors.Separation]],
    flips: pl.DataFrame,
    groups: pl.DataFrame,
    prompts: pl.DataFrame,
) -> str:
    parts = ["# Rollouts judged again", "\n".join(f"- {line}" for line in describe(summary))]
    for name, separations in measured.items():
        parts.append(f"## J {name[0].lower()}{name[1:]}")
        if separations:
            head = ("judge", "right", "paid", "wrong", "paid", "unjudged", "J", "95 %")
            parts.append(_table(head, [_separation_cells(separation) for separation in separations]))
        else:
            parts.append("Not measured: none of these rollouts is among them.")
    listed = groups.head(GROUPS_LISTED)
    group_columns = ("kind", "cause", "flips", "prompts", "cost", "gold", "extracted_a", "file", "line")
    parts += [
        f"## Causes of flips, {listed.height} of {groups.height:,} groups",
        _table((*group_columns[:6], "A read", "file", "line"), listed.select(group_columns).rows())
        if listed.height
        else "None.",
    ]
    # The costliest flip of each group comes before the second one of any group.
    shown = flips.with_columns(rank=pl.int_range(pl.len()).over("kind", "cause")).sort("rank", maintain_order=True)
    shown = shown.head(max(FLIPS_LISTED, min(groups.height, GROUPS_LISTED)))
    heads = ("file", "line", "between", "cause", "gold", "log read", "A read", "A says", "B read", "B says", "cost")
    columns = (
        *("file", "line", "between", "cause", "gold", "logged_reading"),
        *("extracted_a", "reason_a", "extracted_b", "reason_b", "cost"),
    )
    parts += [
        f"## Flips, {shown.height} of {flips.height:,}, the costliest of each group first",
        _table(heads, shown.select(columns).rows()) if shown.height else "None.",
        "## Prompts",
    ]
    notable = prompts.filter(pl.col("looks").is_not_null() & (pl.col("looks") != "saturated")).head(PROMPTS_LISTED)
    names = ("looks", "samples", "right", "paid", "gold", "majority", "votes", "prompt")
    parts.append(_table(names, notable.select(names).rows()) if notable.height else "None looks mislabeled or dead.")
    return "\n\n".join(parts) + "\n"


def _separation_cells(separation: reward_errors.Separation) -> tuple[Any, ...]:
    *counts, j, low, high = astuple(separation)
    return (*counts, "", "") if j is None else (*counts, j, f"{low:.3f} to {high:.3f}")


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    return join_table(heads, (map(_cell, row) for row in rows))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    text = markdown_cell(str(value)).replace("`", "'")
    return f"{text[:CELL_CHARS]}..." if len(text) > CELL_CHARS else text
