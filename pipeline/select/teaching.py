"""How many groups of a selection will teach, told before a GPU is spent on training: a group that is all wrong or all
right has no gradient.

    1,200 rows at pass rates like Beta(.8, 1.4), groups of 8      61 % are expected to teach
    400 rows of which none ever passed                            .3 %: refused, with what would help
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from truegold.pipeline.config.stages import SelectConfig
from truegold.pipeline.profile.pass_rates import ProfileRow
from truegold.pipeline.profile.posterior import expected_shares, fit_prior
from truegold.verifiers import InputError

OFTEN_CUT = 0.2
"""With a larger share of samples that were cut, more room for an answer is the first thing to try."""


def teaching_facts(
    selected: Sequence[ProfileRow], profiled: Iterable[ProfileRow], config: SelectConfig
) -> dict[str, object]:
    """Return what share of the selection's groups is expected to teach, for the stage's record.

    profiled: all training rows, whose pass rates say what those of the selected ones are likely to be. Raises
    InputError where the share is below `config.min_teaching_share`.
    """
    size = config.group_size
    prior = fit_prior(_counts(profiled))
    if prior is None:
        return {}
    _, dead, saturated = expected_shares(_counts(selected), prior, size)
    teaching = max(0.0, 1 - dead - saturated)
    if teaching < config.min_teaching_share:
        raise InputError(
            f"Of the groups of {size} that training would sample from the {len(selected)} selected rows {teaching:.1%} "
            f"are expected to teach, {dead:.1%} to be all wrong and {saturated:.1%} all right.",
            f"{remedy(selected, dead > saturated)} The bound is select.min_teaching_share: "
            f"{config.min_teaching_share:g}.",
        )
    return {"expected_teaching_share": round(teaching, 4), "group_size": size}


def _counts(rows: Iterable[ProfileRow]) -> Counter[tuple[int, int]]:
    return Counter((row["judged"], row["passes"]) for row in rows if row["judged"])


def remedy(selected: Sequence[ProfileRow], is_too_hard: bool) -> str:
    """Return what would help rows that are too hard, or too easy, to teach anything."""
    if not is_too_hard:
        return "Take a harder source, or set select.max_pass_rate lower."
    cut = sum(row["truncated"] for row in selected) / len(selected)
    room = f"{cut:.0%} of their samples were cut: raise profile.max_tokens. Else take" if cut > OFTEN_CUT else "Take"
    return f"{room} an easier source, an SFT cold start (`sft`), or more samples of each row (profile.samples)."
