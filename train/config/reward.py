"""The section `train.reward`: what a completion is rewarded for."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator, model_validator

from truegold.pipeline.config.base import StageConfig, VerdictConfig, moved_error
from truegold.verifiers import Term
from truegold.verifiers.reward import find_mistakes


def _check_range(bounds: tuple[float, float]) -> tuple[float, float]:
    if not bounds[0] < bounds[1]:
        raise ValueError("must be [lowest, highest]")
    return bounds


Range = Annotated[tuple[float, float], AfterValidator(_check_range)]


class RewardTerm(StageConfig):
    """One term of the reward: it adds weight * (score + offset)."""

    name: str
    """Its name in metrics, completions and gates."""
    verifier: str | None = None
    """A built-in name, an entry point or an import string; without it, the row's own verifier: correctness."""
    weight: float = Field(default=1.0, allow_inf_nan=False)
    """0: measured, and no part of the reward."""
    offset: float = Field(default=0.0, allow_inf_nan=False)
    """Added to the score; -1 turns a score of 0 to 1 into a punishment of -1 to 0."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Arguments for the verifier it names, the same for every row; `length`, the completion's tokens, is added."""
    gate: str | None = None
    """The name of another term: this one counts only where that one passed."""

    def as_term(self) -> Term:
        """Return the term as the composition of rewards takes it."""
        return Term(self.name, self.verifier, self.weight, self.offset, self.args, self.gate)


class RewardConfig(VerdictConfig):
    """What a completion is rewarded for."""

    terms: tuple[RewardTerm, ...] = (RewardTerm(name="correct"),)
    """The terms of the reward. Exactly one of them leaves `verifier` out: it is what pass rates are measured by."""
    clip: Range | None = None
    """The lowest and the highest value of the sum of the terms."""
    workers: int = Field(default=1, ge=0)
    """Processes that judge completions, for each rank; 0 for one a core. One will do for mathematics, programs want
    more."""

    @model_validator(mode="before")
    @classmethod
    def _check_terms_are_in_their_field(cls, values: Any) -> Any:
        if isinstance(values, list | tuple):
            raise moved_error("reward.terms")
        return values

    @field_validator("terms")
    @classmethod
    def _check_terms(cls, terms: tuple[RewardTerm, ...]) -> tuple[RewardTerm, ...]:
        mistakes = find_mistakes([term.as_term() for term in terms])
        if sum(term.verifier is None for term in terms) != 1:
            mistakes.append(
                "exactly one term must leave `verifier` out, to be judged by the row's own (weight 0 is fine)"
            )
        if mistakes:
            raise ValueError("; ".join(mistakes))
        return terms

    @property
    def composition(self) -> tuple[Term, ...]:
        """The terms as the composition of rewards takes them."""
        return tuple(term.as_term() for term in self.terms)
