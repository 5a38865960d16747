"""One logged completion, whichever trainer wrote it."""

from __future__ import annotations

from dataclasses import dataclass

from truegold.pipeline.tables.rows import normalise_for_id


@dataclass(frozen=True, slots=True)
class Rollout:
    """A completion with the reward that it earned."""

    file: str
    """The name of the log file."""
    line: int
    """The number of the record in it, from 1."""
    step: int | None
    prompt: str
    """The question, without a chat template where the log tells it apart."""
    completion: str
    reward: float | None
    """What was logged; None where nothing could be judged."""
    advantage: float | None = None
    gold: str | None = None
    """As logged; a set that is named beside the logs counts first."""
    verifier: str | None = None
    verifier_args: str = "{}"
    logged_reading: str | None = None
    """The answer that the logged reward was for, where the log has it."""

    @property
    def question(self) -> str:
        """The prompt as rows are told apart by it."""
        return normalise_for_id(self.prompt)
