"""The same text: the response's answer, or the whole response, equals gold.

Both sides are brought to Unicode NFC, runs of blanks count as one, and case does not matter unless
`info["case_sensitive"]` is true. Synonyms, articles and punctuation are not covered; `5` and `5.0` differ.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from truegold.verifiers.answers.base import AnswerVerifier
from truegold.verifiers.extract import committed_answer, final_part
from truegold.verifiers.options import switch_option
from truegold.verifiers.placeholders import refers_elsewhere
from truegold.verifiers.verdict import Reason, Verdict

MAX_GOLD_CHARS = 100_000
"""Above this a text is a document, not an answer. Stops normalising megabytes for each sample of a group."""


@dataclass(frozen=True, slots=True)
class ExactVerifier(AnswerVerifier):
    """Verifier `exact`. Reads `info["case_sensitive"]` (bool, false if absent)."""

    options: ClassVar[tuple[str, ...]] = ("case_sensitive",)

    name: str = "exact"
    version: str = "4"

    def _judge(self, response: str, gold: str | None, info: Mapping[str, Any]) -> Verdict:
        case_sensitive = switch_option(info, "case_sensitive", False)
        if gold is None or not gold.strip() or refers_elsewhere(gold):
            return Verdict(None, Reason.GOLD_MISSING)
        if len(gold) > MAX_GOLD_CHARS:
            return Verdict(None, Reason.LIMIT, evidence={"gold_chars": len(gold), "limit": MAX_GOLD_CHARS})
        final_text = final_part(response)
        if not final_text:
            return Verdict(0.0, Reason.NO_ANSWER)
        normal_gold = _normalize(gold, case_sensitive)
        # The whole text comes first: gold may itself hold a phrase that reads like the announcement of an answer.
        if _normalize(final_text, case_sensitive) == normal_gold:
            return Verdict(1.0, Reason.MATCH, final_text, {"form": "whole_response"})
        answer = committed_answer(response)
        if answer is None:
            return Verdict(0.0, Reason.MISMATCH, None, {"form": "whole_response"})
        match = _normalize(answer.text, case_sensitive) == normal_gold
        return Verdict(float(match), Reason.MATCH if match else Reason.MISMATCH, answer.text, {"form": answer.form})

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        """The gold as it is."""
        return gold


def _normalize(text: str, case_sensitive: bool) -> str:
    text = " ".join(unicodedata.normalize("NFC", text).split())
    return text if case_sensitive else unicodedata.normalize("NFC", text.casefold())
