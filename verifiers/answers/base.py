"""The call that the verifiers of this folder share: a bad option in `info` becomes a verdict without a score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from truegold.verifiers.options import NO_INFO, BadOption, bad_option_verdict
from truegold.verifiers.verdict import Reason, Verdict


class AnswerVerifier(ABC):
    """A verifier that needs the response, gold and `info`, and nothing of the problem."""

    __slots__ = ()

    options: ClassVar[tuple[str, ...]] = ()
    """The names that it reads of `info`."""
    needed_options: ClassVar[tuple[str, ...]] = ()
    """Those of them without which it judges nothing."""

    def check_options(self, info: Mapping[str, Any]) -> None:
        """Raise BadOption for a value that means nothing. Options are read before gold and response are looked at."""
        verdict = self("", None, info=info)
        if verdict.reason is Reason.VERIFIER_ERROR:
            raise BadOption(verdict.evidence["error"])

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
