"""Provides a `VerifierFunction` of open-instruct called `truegold`, for rows with `dataset: truegold`.

Importing this module is enough: open-instruct instantiates every imported subclass of `VerifierFunction`. The label of
a row is the exported row, a gold, or a list of accepted golds. open-instruct needs a score for every response, so a
response that could not be judged scores 0. `masked_share()` returns the share of such responses.
"""

from __future__ import annotations

from typing import Any

from truegold.verifiers.adapters.row_truth import truth_of_label
from truegold.verifiers.adapters.scoring import Scorer

try:
    from open_instruct.ground_truth_utils import VerificationResult, VerifierFunction
except ImportError:
    from dataclasses import dataclass

    @dataclass
    class VerificationResult:  # type: ignore[no-redef]
        """The result of open-instruct's verifiers."""

        score: float
        cost: float = 0.0
        reasoning: str | None = None

    class VerifierFunction:  # type: ignore[no-redef]
        """The base class of open-instruct's verifiers."""

        def __init__(self, name: str, weight: float = 1.0, verifier_config: Any = None) -> None:
            self.name, self.weight = name, weight


class TruegoldVerifier(VerifierFunction):  # type: ignore[misc]
    """Judges each response by its row's verifier."""

    def __init__(self, verifier_config: Any = None) -> None:
        super().__init__("truegold", weight=1.0)
        self._scorer = Scorer(unjudged=0.0)
        self.judged = 0
        """The number of responses with a score."""
        self.masked = 0
        """The number of responses that could not be judged."""

    def __call__(
        self,
        tokenized_prediction: list[int],
        prediction: str,
        label: Any,
        query: str | None = None,
        rollout_state: Any = None,
    ) -> VerificationResult:
        """Return the score of one response."""
        if isinstance(label, list) and len(label) == 1:
            label = label[0]
        (verdict,) = self._scorer.judge([truth_of_label(label, query).question(prediction)])
        if verdict.score is None:
            self.masked += 1
        else:
            self.judged += 1
        score = self._scorer.paid(verdict)
        return VerificationResult(score=0.0 if score is None else score, reasoning=str(verdict.reason))

    def masked_share(self) -> float:
        """Return the share of all responses so far that could not be judged."""
        return self.masked / max(self.masked + self.judged, 1)
