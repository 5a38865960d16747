"""The section `select`: which profiled problems are trained on, and in what proportions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Self

from pydantic import Field, field_validator, model_validator

from truegold.pipeline.config.base import ROUNDING, StageConfig


class TargetBand(StageConfig):
    """A band of expected pass rates, from the one before it (0 for the first) up to a bound."""

    up_to: float = Field(gt=0, le=1)
    """Its upper end, which belongs to it."""
    share: float | None = Field(default=None, ge=0, le=1)
    """The share of the selection; 0 keeps the band out, and left out takes what there is."""


class TargetName(StrEnum):
    """Histograms of pass rates with a name."""

    BALANCED = "balanced"
    """Four bands of equal width, as many rows of each."""
    OPEN_R1 = "open-r1"
    """Pass rates of .1 to .6, as open-r1's filter keeps them."""
    SKYWORK = "skywork"
    """1 to 15 failures of 16, as Skywork-OR1 keeps them."""
    CURRICULUM = "curriculum"
    """Three bands, as many rows of each, easy ones first in selected.parquet."""


TARGETS: Mapping[TargetName, tuple[TargetBand, ...]] = {
    TargetName.BALANCED: tuple(TargetBand(up_to=quarter / 4, share=1 / 4) for quarter in range(1, 5)),
    TargetName.OPEN_R1: (
        TargetBand(up_to=0.1, share=0),
        TargetBand(up_to=0.6),
        TargetBand(up_to=1, share=0),
    ),
    TargetName.SKYWORK: (
        TargetBand(up_to=1 / 16, share=0),
        TargetBand(up_to=15 / 16),
        TargetBand(up_to=1, share=0),
    ),
    TargetName.CURRICULUM: tuple(TargetBand(up_to=third / 3, share=1 / 3) for third in range(1, 4)),
}

QUOTA_COLUMNS = ("source", "domain")
"""What a quota may be of."""


class SelectConfig(StageConfig):
    """Which profiled problems are trained on."""

    moved: ClassVar[Mapping[str, str]] = {"bands": "target"}

    group_size: int = Field(default=8, ge=2)
    """The samples of one group in training; `train.group_size` where it is left out."""
    min_teaching: float = Field(default=0.2, ge=0, le=1)
    """A row is dropped where a smaller share of its groups is expected to teach (neither all wrong nor all right)."""
    min_teaching_share: float = Field(default=0.05, ge=0, le=1)
    """A selection of whose groups a smaller share is expected to teach is refused."""
    may_be_empty: bool = False
    """Whether a selection that is empty, or hardly teaches, is no error. A run with a section `synth` sets it: rows
    that hardly ever pass may become trainable."""
    min_pass_rate: float = Field(default=0.0, ge=0, le=1)
    """The lowest expected pass rate that is taken."""
    max_pass_rate: float = Field(default=1.0, ge=0, le=1)
    """The highest one."""
    min_passes: int = Field(default=0, ge=0)
    """A row needs so many right samples, such as 1 where its positives are to be trained on."""
    zero_share: float = Field(default=0.1, ge=0, le=1)
    """Rows without a right sample may make up this share of the selection, the worthiest ones. Wrong labels and broken
    texts are more frequent among them than elsewhere."""
    target: TargetName | tuple[TargetBand, ...] | None = None
    """The histogram of expected pass rates: a name, or bands. Left out: `balanced` as far as rows last where `max_rows`
    makes a choice necessary, and all rows otherwise."""
    quotas: dict[str, float] = Field(default_factory=dict)
    """Shares of the selection by `domain:NAME` or `source:NAME`; what has no quota shares the rest."""
    max_rows: int | None = Field(default=None, ge=1)
    """Rows that are selected at most. Left out: all, or as many as keep the target's shares and the quotas."""
    seed: int = 0
    """It decides between rows of equal worth."""

    @property
    def bands(self) -> tuple[TargetBand, ...]:
        """The bands of the target, from 0 to 1."""
        if self.target is None:
            return TARGETS[TargetName.BALANCED]
        return TARGETS[self.target] if isinstance(self.target, TargetName) else self.target

    @field_validator("target")
    @classmethod
    def _check_bands(
        cls, target: TargetName | tuple[TargetBand, ...] | None
    ) -> TargetName | tuple[TargetBand, ...] | None:
        if target is None or isinstance(target, TargetName):
            return target
        ends = [band.up_to for band in target]
        if not ends or ends != sorted(set(ends)) or ends[-1] != 1:
            raise ValueError("the bands must rise and the last one must go up to 1")
        shares = [band.share for band in target if band.share is not None]
        is_whole = len(shares) == len(target)
        if sum(shares) > 1 + ROUNDING or (is_whole and sum(shares) < 1 - ROUNDING):
            raise ValueError(f"the shares of the bands must add up to 1, not to {sum(shares):g}")
        return target

    @field_validator("quotas")
    @classmethod
    def _check_quotas(cls, quotas: dict[str, float]) -> dict[str, float]:
        totals: defaultdict[str, float] = defaultdict(float)
        for name, share in quotas.items():
            column, separator, value = name.partition(":")
            if column not in QUOTA_COLUMNS or not separator or not value:
                raise ValueError(f"a quota is of `domain:NAME` or `source:NAME`, not of {name!r}")
            if not 0 <= share <= 1:
                raise ValueError(f"the quota of {name} must be a share from 0 to 1, not {share:g}")
            totals[column] += share
        if over := [f"{column} ({total:g})" for column, total in totals.items() if total > 1 + ROUNDING]:
            raise ValueError(f"the quotas by {' and by '.join(over)} add up to more than 1")
        return quotas

    @model_validator(mode="after")
    def _check_band(self) -> Self:
        if self.min_pass_rate >= self.max_pass_rate:
            raise ValueError("min_pass_rate must be below max_pass_rate")
        return self
