"""The page on rescored rollouts, made of the parts of the report on a run: offline, and nothing of the data runs in it.

Every flip has both readings, the advantage by the logged rewards and by A's, and what the error cost; the costliest of
each kind are shown, and `flips.parquet` has all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from truegold.pipeline.report.render import render_plain
from truegold.pipeline.report.row_cards import describe_reading, middle_cut, read_evidence
from truegold.pipeline.rescore.analysis import Separation

FLIPS_SHOWN = 100
"""The flips of each kind that the page shows."""
PROMPTS_SHOWN = 50
TEXT_CHARS, ANSWER_CHARS = 4_000, 300


@dataclass(frozen=True)
class Side:
    """How one judge read a completion."""

    judge: str
    gold: str | None
    answer: str | None
    verdict: str
    score: float | None


@dataclass(frozen=True)
class Flip:
    """A completion on which two judges differ."""

    origin: str
    step: int | None
    prompt: str
    gold: str | None
    decision: str | None
    completion: str
    sides: tuple[Side, ...]
    logged: float | None
    """The advantage by the logged rewards."""
    corrected: float | None
    """The advantage by A's scores."""
    cost: float | None


@dataclass(frozen=True)
class FlipKind:
    """The flips of one kind, the costliest first."""

    name: str
    title: str
    count: int
    flips: tuple[Flip, ...]


def render_page(
    lines: Sequence[str],
    summary: Mapping[str, Any],
    measured: Mapping[str, Sequence[Separation]],
    flips: pl.DataFrame,
    prompts: pl.DataFrame,
) -> str:
    """Return the page. `measured` has J by what it was measured on, `lines` is the summary in words."""
    looks = prompts.filter(pl.col("looks").is_not_null()).head(PROMPTS_SHOWN)
    return render_plain(
        "rescore.html.jinja",
        "Rollouts judged again",
        lines=lines,
        summary=summary,
        measured=measured,
        kinds=_kinds(flips),
        prompts=looks.to_dicts(),
        all_prompts=prompts["looks"].count(),
    )


def _kinds(flips: pl.DataFrame) -> list[FlipKind]:
    log, a = pl.col("passes_log"), pl.col("passes_a")
    named = {
        "paid": ("Paid and wrong, says A", log & ~a),
        "refused": ("Refused and right, says A", ~log & a),
    }
    kinds = [
        FlipKind(name, title, chosen.height, tuple(map(_flip, chosen.head(FLIPS_SHOWN).to_dicts())))
        for name, (title, is_kind) in named.items()
        if (chosen := flips.filter(is_kind.fill_null(value=False))).height
    ]
    # What log and A agree on, or one of them could not judge, has come here because of B.
    is_other = (log != a).fill_null(value=False)
    if (rest := flips.filter(~is_other)).height:
        shown = tuple(map(_flip, rest.head(FLIPS_SHOWN).to_dicts()))
        kinds.append(FlipKind("between", "B differs from A or from the log alone", rest.height, shown))
    return kinds


def _flip(record: Mapping[str, Any]) -> Flip:
    sides = [Side("log", None, record["logged_reading"], _paid(record["reward"]), record["reward"])]
    for side in "ab":
        if record[f"reason_{side}"] is None:
            continue
        reading = describe_reading(read_evidence(record[f"evidence_{side}"])) or {}
        verdict = ": ".join(filter(None, (record[f"reason_{side}"].replace("_", " "), reading.get("how"))))
        extracted = record[f"extracted_{side}"]
        answer = reading.get("answer") or (None if extracted is None else middle_cut(extracted, ANSWER_CHARS))
        sides.append(Side(side.upper(), reading.get("gold"), answer, verdict, record[f"score_{side}"]))
    decision = record["decision"]
    if decision == "fix":
        decision = f"fix to {record['decided_gold']}"
    return Flip(
        origin=f"{record['file']}:{record['line']}",
        step=record["step"],
        prompt=middle_cut(record["prompt"] or "", TEXT_CHARS),
        gold=record["gold"],
        decision=decision,
        completion=middle_cut(record["completion"], TEXT_CHARS),
        sides=tuple(sides),
        logged=record["advantage_logged"],
        corrected=record["advantage_corrected"],
        cost=record["cost"],
    )


def _paid(reward: float | None) -> str:
    return "no reward" if reward is None else f"paid {reward:g}"
