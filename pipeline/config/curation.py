"""The configuration of curation as a whole: everything that needs no model."""

from __future__ import annotations

from truegold.pipeline.config.base import StageConfig
from truegold.pipeline.config.decontaminate import DecontaminateConfig
from truegold.pipeline.config.sources import DataConfig
from truegold.pipeline.config.stages import (
    CleanConfig,
    DedupConfig,
    FlagConfig,
    SettleConfig,
    VerifyGoldConfig,
    VetTestsConfig,
)


class CurationConfig(StageConfig):
    """Everything that `truegold curate` needs. Sections that are left out take their defaults."""

    data: DataConfig
    """Where the raw rows come from: one source, or a list of them with the most trusted first."""
    clean: CleanConfig = CleanConfig()
    """How texts are cleaned."""
    decontaminate: DecontaminateConfig | None = None
    """The evaluation sets that no training row may stand in; nothing is compared with any where it is left out."""
    dedup: DedupConfig = DedupConfig()
    """Which copies and rewordings go."""
    verify_gold: VerifyGoldConfig = VerifyGoldConfig()
    """How gold is put to its own verifier."""
    vet_tests: VetTestsConfig = VetTestsConfig()
    """How the tests of programs are vetted."""
    flag: FlagConfig = FlagConfig()
    """The rules that flag suspicious rows."""
    settle: SettleConfig = SettleConfig()
    """How reviewers' decisions are applied."""
    decisions: str | None = None
    """A folder of reviewers' decisions (JSON Lines, one file a reviewer); `decisions` in the run's folder, if it is
    there, where not given."""
