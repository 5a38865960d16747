"""The call that the verifiers of this folder share: a bad option in `info` becomes a verdict without a score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from truegold.verifiers.options import NO_INFO, BadOption, bad_option_verdict
from truegold.verifiers.verdict import Verdict


class AnswerVerifier(ABC):
    """A verifier that needs the response, gold and `info`, and nothing of the problem."""

    __slots__ = ()

    def __call__(
        self,
        response: str,
        gold: str | None,
        *,
        problem: str | None = None,
        info: Mapping[str, Any] = NO_INFO,
    ) -> Verdict:
        """Judge `response` against `gold`; `problem` decides nothing."""
        try:
            return self._judge(response, gold, info)
        except BadOption as error:
            return bad_option_verdict(error)

    @abstractmethod
    def _judge(self, response: str, gold: str | None, info: Mapping[str, Any]) -> Verdict:
        """Return the verdict. Raises BadOption."""
