"""The stages of a run: their phases, and the order of the stages that rows pass through.

The version of a stage, and whether it runs isolated, are declared at its function (`stage_function`). The configuration
and the inputs of a stage are set where a run is planned.
"""

from __future__ import annotations

from enum import StrEnum

CURATION_ROW_STAGES = ("clean", "decontaminate", "dedup", "verify_gold", "vet_tests", "flag", "well_posed", "settle")
"""The stages of curation that rows pass through after `ingest`. Each writes rows.parquet and dropped.parquet."""

DROPPING_STAGES = CURATION_ROW_STAGES[: CURATION_ROW_STAGES.index("settle")]
"""The stages whose dropped rows a reviewer may restore."""

ROW_STAGES = (*CURATION_ROW_STAGES, "profile")
"""The stages that rows pass through between ingest and selection. A run may lack some of them."""


class Phase(StrEnum):
    """A phase of a run, after which a command can stop. Phases are in the order of a run."""

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
