"""The same text: the response's answer, or the whole response, equals gold.

Both sides are brought to Unicode NFC, runs of blanks count as one, and case does not matter unless
`info["case_sensitive"]` is true. Not covered: synonyms, articles, punctuation; `5` and `5.0` differ.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from truegold.verifiers.extract import committed_answer, final_part
from truegold.verifiers.verdict import Reason, Verdict

MAX_GOLD_CHARS = 100_000
"""Above this a text is a document, not an answer. Stops normalising megabytes for each sample of a group."""

_NO_INFO: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class ExactVerifier:
    """Verifier `exact`. Reads `info["case_sensitive"]` (bool, false if absent)."""

    name: str = "exact"
    version: str = "1"

    def __call__(
        self,
        response: str,
        gold: str | None,
        *,
        problem: str | None = None,
        info: Mapping[str, Any] = _NO_INFO,
    ) -> Verdict:
        if gold is None or not gold.strip():
            return Verdict(None, Reason.GOLD_MISSING)
        if len(gold) > MAX_GOLD_CHARS:
            return Verdict(None, Reason.LIMIT, evidence={"gold_chars": len(gold), "limit": MAX_GOLD_CHARS})
        whole = final_part(response)
        if not whole:
            return Verdict(0.0, Reason.NO_ANSWER)
        case_sensitive = bool(info.get("case_sensitive", False))
        wanted = _normal(gold, case_sensitive)
        # The whole first: gold may itself hold a phrase that reads like the announcement of an answer.
        if _normal(whole, case_sensitive) == wanted:
            return Verdict(1.0, Reason.MATCH, whole, {"form": "whole_response"})
        found = committed_answer(response)
        if found is None:
            return Verdict(0.0, Reason.MISMATCH, None, {"form": "whole_response"})
        match = _normal(found.text, case_sensitive) == wanted
        return Verdict(float(match), Reason.MATCH if match else Reason.MISMATCH, found.text, {"form": found.form})

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        return gold


def _normal(text: str, case_sensitive: bool) -> str:
    text = " ".join(unicodedata.normalize("NFC", text).split())
    return text if case_sensitive else unicodedata.normalize("NFC", text.casefold())
