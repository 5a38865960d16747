"""How many groups of a selection will teach, told before a GPU is spent on training: a group that is all wrong or all
right has no gradient.

    1,200 rows at pass rates like Beta(.8, 1.4), groups of 8      61 % are expected to teach
    400 rows of which none ever passed                            .3 %: refused, with what would help
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from truegold.pipeline.config.stages import SelectConfig
from truegold.pipeline.rates.posterior import Beta
from truegold.pipeline.tables.profile import ProfileRow
from truegold.verifiers import InputError

OFTEN_CUT = 0.2
"""With a larger share of samples that were cut, more room for an answer is the first thing to try."""


def known_pass_rate(row: ProfileRow) -> Beta | None:
    """Return what the profile knows of a row's pass rate, None where none of its samples could be judged."""
    a, b = row["posterior_a"], row["posterior_b"]
    return Beta(a, b) if a is not None and b is not None else None


def teaching_facts(selected: Sequence[ProfileRow], config: SelectConfig) -> dict[str, object]:
    """Return what share of the selection's groups is expected to teach, for the stage's record.

    Raises InputError where the share is below `config.min_teaching_share`, unless `config.may_be_empty`.
    """
    size = config.group_size
    known = [beta for row in selected if (beta := known_pass_rate(row)) is not None]
    dead = fmean(beta.dead_share(size) for beta in known)
    saturated = fmean(beta.saturated_share(size) for beta in known)
    teaching = max(0.0, 1 - dead - saturated)
    if teaching < config.min_teaching_share and not config.may_be_empty:
        raise InputError(
            f"Of the groups of {size} that training would sample from the {len(selected)} selected rows {teaching:.1%} "
            f"are expected to teach, {dead:.1%} to be all wrong and {saturated:.1%} all right.",
            f"{remedy(selected, dead > saturated)} The bound is select.min_teaching_share: "
            f"{config.min_teaching_share:g}.",
        )
    return {"expected_teaching_share": round(teaching, 4), "group_size": size}


def remedy_for_none(rows: Sequence[ProfileRow], drops: Mapping[str, int], rows_in: int) -> str:
    """Return what would help where none of `rows_in` rows is left, by the reason for which most of them went.

    rows: those of training.
    """
    if not rows_in:
        return "An earlier stage has dropped them all: its dropped.parquet has each row with the reason."
    if not rows:
        return "All rows are held out: lower data.heldout."
    reason = max(drops, key=lambda name: (drops[name], name != "too_easy"), default="")
    others = {
        "held_for_review": "Decide about them (`decisions`), or let flags advise only (flag.advise_only).",
        "unjudged": "truegold explain ID --run RUN says why verdicts have no score; profile.judge asks a model.",
        "outside_band": "Select other pass rates: select.target.",
        "zero_quota": "Raise the quotas in select.quotas.",
        "over_zero_share": "Raise select.zero_share.",
        "not_sampled": "Raise profile.budget_tokens.",
    }
    return others[reason] if reason in others else remedy(rows, reason != "too_easy")


def remedy(rows: Sequence[ProfileRow], is_too_hard: bool) -> str:
    """Return what would help rows that are too hard, or too easy, to teach anything."""
    if not is_too_hard:
        return "Take a harder source, or set select.max_pass_rate lower."
    cut = sum(row["truncated"] for row in rows) / len(rows)
    room = f"{cut:.0%} of their samples were cut: raise profile.max_tokens. Else take" if cut > OFTEN_CUT else "Take"
    return f"{room} an easier source, an SFT cold start (`sft`), or more samples of each row (profile.samples)."
