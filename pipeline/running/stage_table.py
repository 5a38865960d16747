"""Lists the stages of a run: the phase of each stage, and the order of the stages that rows pass through."""

from __future__ import annotations

from enum import StrEnum

CURATION_ROW_STAGES = ("clean", "decontaminate", "dedup", "verify_gold", "vet_tests", "flag", "well_posed", "settle")
"""The stages of curation that rows pass through after `ingest`. Each writes rows.parquet and dropped.parquet."""

DROPPING_STAGES = CURATION_ROW_STAGES[: CURATION_ROW_STAGES.index("settle")]
"""The stages whose dropped rows a reviewer may restore."""

ROW_STAGES = (*CURATION_ROW_STAGES, "profile")
"""The stages that rows pass through between `ingest` and `select`. A run may have only some of them."""


class Phase(StrEnum):
    """A phase of a run. Commands such as `truegold curate` stop after a phase. Phases are listed in order."""

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
"""The phase of each stage."""


def phase_of(stage: str) -> Phase:
    """Return the phase of the stage with this name."""
    return PHASES[stage]
