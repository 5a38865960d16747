"""The stages of a run: the phase that each belongs to, and those that the run's rows pass through, in their order.

What a stage does, its version and how it is run stand next to its function (`stage_function`); which configuration and
inputs it gets is decided where a run is planned.
"""

from __future__ import annotations

from enum import StrEnum

CURATION_ROW_STAGES = ("clean", "decontaminate", "dedup", "verify_gold", "vet_tests", "flag", "well_posed", "settle")
"""The stages of curation that the rows of `ingest` pass through. Each writes rows.parquet, and what it drops is in its
dropped.parquet."""

DROPPING_STAGES = CURATION_ROW_STAGES[: CURATION_ROW_STAGES.index("settle")]
"""The stages whose drops a reviewer may take back."""

ROW_STAGES = (*CURATION_ROW_STAGES, "profile")
"""The stages that rows pass through from ingest to selection, as far as a run has them."""


class Phase(StrEnum):
    """A part of a run that a command can stop after, in their order."""

    CURATE = "curate"
    PROFILE = "profile"
    SELECT = "select"
    SYNTH = "synth"
    TRAIN = "train"
    REPORT = "report"


PHASES = {
    **dict.fromkeys(("make_data", "ingest", *CURATION_ROW_STAGES, "suspect", "export"), Phase.CURATE),
    **dict.fromkeys(("model", "sft", "profile"), Phase.PROFILE),
    **dict.fromkeys(("select", "take_rows"), Phase.SELECT),
    "synth": Phase.SYNTH,
    **dict.fromkeys(("distill", "train", "profile_after"), Phase.TRAIN),
    "report": Phase.REPORT,
}
"""The phase that each stage belongs to."""


def phase_of(stage: str) -> Phase:
    """Return the phase that the stage of this name belongs to."""
    return PHASES[stage]
