"""The report on rescored rollouts: flips and prompts as tables, the counts, and the same as a page and as Markdown.

Every flip has both readings, the advantage by the logged rewards and by A's, and what the error cost. The page and the
Markdown show the costliest, `flips.parquet` has all. The page is made of the parts of the report on a run: offline, and
nothing of the data runs in it.

**Advantage.** With the group's mean and standard deviation (Shao et al. 2024, DeepSeekMath, equation 3) a wrong reward
moves every completion of its group: `advantage_logged` and `advantage_corrected` are what the group's advantages are by
the logged rewards and by A's scores, 0 where all are equal. `cost` is the distance between the two, which is what the
error did to the gradient's weight.

**J** (Youden 1950) is the share of right responses that are paid less that of wrong ones that are; learning goes
forward where it is above 0 and backward below (arXiv 2601.04411). It is measured on settled rows alone:
responses whose truth somebody else has said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.report.render import render_plain
from truegold.pipeline.report.row_cards import describe_reading, middle_cut, read_evidence
from truegold.pipeline.rescore.rescore import PASSED, Rescored, read_rollouts
from truegold.pipeline.tables.run_files import Fields
from truegold.pipeline.text.shown_text import visible
from truegold.verifiers import InputError
from truegold.verifiers.rates import difference_interval, wilson_interval

MIN_SAMPLES = 4
"""Completions of a prompt that say something about it."""
AGREEING = 0.5
"""The share of a prompt's answers that are the same, above which its gold looks wrong where none is right."""
SPREAD_FLOOR = 1e-4
"""What GRPO adds to a group's standard deviation."""
JUDGES = {"log": "reward", "a": "score_a", "b": "score_b"}
"""The columns of who judges."""


@dataclass(frozen=True)
class Separation:
    """How well a judge tells right responses from wrong ones, on settled rows."""

    judge: str
    right: int
    """Right responses that it judged; `paid_right` of them were paid."""
    paid_right: int
    wrong: int
    paid_wrong: int
    unjudged: int
    j: float | None
    """None where there are no right or no wrong responses."""
    low: float | None
    high: float | None


def with_advantages(rollouts: pl.DataFrame) -> pl.DataFrame:
    """Return the rollouts with what passes by whom, and what an error cost in advantage."""
    judges = {name: column for name, column in JUDGES.items() if rollouts[column].dtype != pl.Null}
    passes = [(pl.col(column) >= PASSED).alias(f"passes_{name}") for name, column in judges.items()]
    corrected = pl.coalesce("score_a", "reward")
    table = rollouts.with_columns(*passes).with_columns(
        advantage_logged=_standardised(pl.col("reward")), advantage_corrected=_standardised(corrected)
    )
    return table.with_columns(cost=(pl.col("advantage_logged") - pl.col("advantage_corrected")).abs())


def _standardised(values: pl.Expr) -> pl.Expr:
    centred = values - values.mean().over("group")
    spread = values.std().over("group").fill_null(0.0)
    return centred / (spread + SPREAD_FLOOR)


def find_flips(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rollouts on which two judges differ; `between` says which, such as `log:0 a:1`."""
    pairs = [("log", "a"), ("log", "b"), ("a", "b")]
    differences = [pl.col(f"passes_{first}") != pl.col(f"passes_{second}") for first, second in pairs]
    scores = [
        pl.when(pl.col(f"passes_{name}").is_not_null()).then(pl.format(f"{name}:{{}}", pl.col(column)))
        for name, column in JUDGES.items()
    ]
    flips = table.filter(pl.any_horizontal(*(difference.fill_null(False) for difference in differences)))
    return flips.with_columns(between=pl.concat_str(scores, separator=" ", ignore_nulls=True)).sort(
        "cost", descending=True, nulls_last=True, maintain_order=True
    )


def find_prompts(table: pl.DataFrame) -> pl.DataFrame:
    """Return every prompt with what its completions say of it: `mislabeled`, `dead`, `saturated` or null.

    Mislabeled: none is right by A, and most give one other answer. Dead: none is right. Saturated: all are.
    """
    answers = table.filter(pl.col("extracted_a").is_not_null() & (pl.col("score_a") < PASSED))
    key = ["prompt", "gold"]
    votes = (
        answers.group_by(*key, pl.col("extracted_a").str.strip_chars().alias("majority"))
        .len("votes")
        .sort("votes", "majority", descending=[True, False])
        .group_by(key, maintain_order=True)
        .first()
    )
    counts = table.group_by(key, maintain_order=True).agg(
        id=pl.col("id").first(),
        samples=pl.len(),
        judged=pl.col("score_a").count(),
        right=pl.col("passes_a").sum(),
        paid=pl.col("passes_log").sum(),
        errors=(pl.col("passes_log") != pl.col("passes_a")).sum(),
        cost=pl.col("cost").sum(),
    )
    joined = counts.join(votes, on=key, how="left", nulls_equal=True)
    enough = pl.col("judged") >= MIN_SAMPLES
    looks = (
        pl.when(enough & (pl.col("right") == 0) & (pl.col("votes") > AGREEING * pl.col("judged")))
        .then(pl.lit("mislabeled"))
        .when(enough & (pl.col("right") == 0))
        .then(pl.lit("dead"))
        .when(enough & (pl.col("right") == pl.col("judged")))
        .then(pl.lit("saturated"))
    )
    return joined.with_columns(looks=looks).sort("errors", "cost", descending=True, maintain_order=True)


def read_settled(path: Path) -> pl.DataFrame:
    """Read settled responses: `correct`, `completion`, and `prompt` or `id`. Raises InputError for other columns."""
    table = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_ndjson(path)
    if not {"completion", "correct"} <= set(table.columns) or not {"prompt", "id"} & set(table.columns):
        raise InputError(
            f"{path} has the columns {', '.join(table.columns)}.",
            "Settled responses have correct (true or false), completion, and prompt or id.",
        )
    return table


def measure_separation(table: pl.DataFrame, settled: pl.DataFrame) -> list[Separation]:
    """Return J of the log and of each verifier, on the rollouts whose truth is settled."""
    key = "id" if "id" in settled.columns and table["id"].null_count() < table.height else "prompt"
    truths = settled.filter(pl.col("correct").is_not_null()).unique([key, "completion"])
    return _separations(table.join(truths.select(key, "completion", "correct"), on=[key, "completion"]))


def measure_by_decisions(table: pl.DataFrame) -> list[Separation]:
    """Return J of the log and of each verifier, on the rollouts of rows that reviewers kept or fixed."""
    known = table.filter(pl.col("decided_score").is_not_null())
    return _separations(known.with_columns(correct=pl.col("decided_score") >= PASSED))


def count_decided(table: pl.DataFrame) -> dict[str, int]:
    """Return how many rollouts are of rows that reviewers decided about, and how many of dropped rows were paid."""
    dropped = table.filter(pl.col("decision") == "drop")
    return {
        "rollouts": table["decision"].count(),
        "unjudged": table.filter((pl.col("decision") != "drop") & pl.col("decided_score").is_null()).height,
        "of_dropped_rows": dropped.height,
        "of_dropped_rows_paid": int(dropped["passes_log"].sum()),
    }


def _separations(known: pl.DataFrame) -> list[Separation]:
    return [_separation(known, judge) for judge in JUDGES if known.height and known[JUDGES[judge]].count()]


def _separation(known: pl.DataFrame, judge: str) -> Separation:
    judged = known.filter(pl.col(JUDGES[judge]).is_not_null())
    counts: dict[bool, tuple[int, int]] = {}
    for truth in (True, False):
        part = judged.filter(pl.col("correct") == truth)
        counts[truth] = (part.height, int(part[f"passes_{judge}"].sum()))
    (right, paid_right), (wrong, paid_wrong) = counts[True], counts[False]
    j = low = high = None
    if right and wrong:
        j = paid_right / right - paid_wrong / wrong
        low, high = difference_interval(
            paid_right / right,
            wilson_interval(paid_right, right),
            paid_wrong / wrong,
            wilson_interval(paid_wrong, wrong),
        )
    return Separation(judge, right, paid_right, wrong, paid_wrong, known.height - judged.height, j, low, high)


def summarise(table: pl.DataFrame, flips: pl.DataFrame, prompts: pl.DataFrame) -> dict[str, Any]:
    """Return the counts of a report."""
    judged = table.filter(pl.col("reward").is_not_null() & pl.col("score_a").is_not_null())
    wrong = judged.filter(pl.col("passes_log") != pl.col("passes_a"))
    reasons = wrong["reason_a"].value_counts()
    return {
        "judged_by_both": judged.height,
        "unjudged_in_log": table["reward"].null_count(),
        "unjudged_by_a": table["score_a"].null_count(),
        "wrong_rewards": wrong.height,
        "wrongly_paid": wrong.filter("passes_log").height,
        "wrongly_refused": wrong.filter(~pl.col("passes_log")).height,
        "flips": flips.height,
        "groups": table["group"].n_unique(),
        "groups_with_errors": wrong["group"].n_unique(),
        "mean_cost": _mean(table["cost"]),
        "mean_advantage": _mean(table["advantage_corrected"].abs()),
        "reasons": dict(reasons.sort("count", "reason_a", descending=[True, False]).iter_rows()),
        "prompts": dict(prompts.drop_nulls("looks")["looks"].value_counts().sort("looks").iter_rows()),
    }


def _mean(values: pl.Series) -> float:
    mean = values.mean()
    return float(mean) if isinstance(mean, int | float) else 0.0


FLIPS_SHOWN, PROMPTS_SHOWN = 100, 50
"""The flips of each kind, and the prompts, that the page shows."""
FLIPS_LISTED, PROMPTS_LISTED = 25, 20
"""The flips and prompts that the Markdown lists."""
TEXT_CHARS, ANSWER_CHARS, CELL_CHARS = 4_000, 300, 120


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
        "separation": list(map(asdict, separations)),
        "decided": {**count_decided(table), "separation": list(map(asdict, by_decisions))},
    }
    (out_dir / "summary.json").write_bytes(orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
    measured = {"On settled responses": separations, "By reviewers' decisions": by_decisions}
    (out_dir / "report.md").write_text(_markdown(summary, measured, flips, prompts), encoding="utf-8")
    page = _render_page(summary, measured, flips, prompts)
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


def _render_page(
    summary: dict[str, Any], measured: Mapping[str, Sequence[Separation]], flips: pl.DataFrame, prompts: pl.DataFrame
) -> str:
    """Return the page. `measured` has J by what it was measured on."""
    paid, right = pl.col("passes_log"), pl.col("passes_a")
    named = {
        "paid": ("Paid and wrong, says A", paid & ~right),
        "refused": ("Refused and right, says A", ~paid & right),
        # What log and A agree on, or one of them could not judge, has come here because of B.
        "between": ("B differs from A or from the log alone", (paid == right).fill_null(value=True)),
    }
    kinds = []
    for name, (title, is_kind) in named.items():
        if (chosen := flips.filter(is_kind.fill_null(value=False))).height:
            shown = list(map(_flip, chosen.head(FLIPS_SHOWN).to_dicts()))
            kinds.append({"name": name, "title": title, "count": chosen.height, "flips": shown})
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
    """Return a flip as the page shows it: with a side for each judge."""
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
    """Return how one judge read a completion."""
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
    shown = flips.head(FLIPS_LISTED)
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
    notable = prompts.filter(pl.col("looks").is_not_null() & (pl.col("looks") != "saturated")).head(PROMPTS_LISTED)
    names = ("looks", "samples", "right", "paid", "gold", "majority", "votes", "prompt")
    parts.append(_table(names, notable.select(names).rows()) if notable.height else "None looks mislabeled or dead.")
    return "\n\n".join(parts) + "\n"


def _separation_cells(separation: Separation) -> tuple[Any, ...]:
    judge, right, paid_right, wrong, paid_wrong, unjudged, j, low, high = astuple(separation)
    interval = ("", "") if j is None else (j, f"{low:.3f} to {high:.3f}")
    return (judge, right, paid_right, wrong, paid_wrong, unjudged, *interval)


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
