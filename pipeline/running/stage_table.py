"""The stages of a run in their order: the phase that each belongs to, and whether the run's rows pass through it.

What a stage does, its version and how it is run stand beside its function (`stage_function`); which configuration and
inputs it gets is decided where a run is planned.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """A part of a run that a command can stop after, in their order."""

    CURATE = "curate"
    PROFILE = "profile"
    SELECT = "select"
    SYNTH = "synth"
    TRAIN = "train"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class StageEntry:
    """One line of the table."""

    name: str
    phase: Phase
    passes_rows: bool = False
    """Whether the rows that `ingest` has made pass through on their way to selection: it writes rows.parquet, and what
    it drops is in its dropped.parquet."""


STAGES = (
    StageEntry("make_data", Phase.CURATE),
    StageEntry("ingest", Phase.CURATE),
    StageEntry("clean", Phase.CURATE, passes_rows=True),
    StageEntry("decontaminate", Phase.CURATE, passes_rows=True),
    StageEntry("dedup", Phase.CURATE, passes_rows=True),
    StageEntry("verify_gold", Phase.CURATE, passes_rows=True),
    StageEntry("vet_tests", Phase.CURATE, passes_rows=True),
    StageEntry("flag", Phase.CURATE, passes_rows=True),
    StageEntry("well_posed", Phase.CURATE, passes_rows=True),
    StageEntry("settle", Phase.CURATE, passes_rows=True),
    StageEntry("model", Phase.PROFILE),
    StageEntry("sft", Phase.PROFILE),
    StageEntry("profile", Phase.PROFILE, passes_rows=True),
    StageEntry("select", Phase.SELECT),
    StageEntry("take_rows", Phase.SELECT),
    StageEntry("export", Phase.CURATE),
    StageEntry("synth", Phase.SYNTH),
    StageEntry("distill", Phase.TRAIN),
    StageEntry("train", Phase.TRAIN),
    StageEntry("profile_after", Phase.TRAIN),
    StageEntry("report", Phase.REPORT),
)

ROW_STAGES = tuple(entry.name for entry in STAGES if entry.passes_rows)
"""The stages that rows pass through from ingest to selection, whichever of them a run has."""

CURATION_ROW_STAGES = tuple(entry.name for entry in STAGES if entry.passes_rows and entry.phase is Phase.CURATE)
"""Those of them that need no model."""


def phase_of(stage: str) -> Phase:
    """Return the phase that the stage of this name belongs to."""
    return next(entry.phase for entry in STAGES if entry.name == stage)
