"""Provides `verify_fields`, which makes the response to a request of `verify` in a resources server of NeMo-Gym.

    class Verify(SimpleResourcesServer):
        async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
            return VerifyResponse(**await verify_fields(body.model_dump()))

NeMo-Gym needs a number as reward. A response that could not be judged has the reward 0, `judged` false and `masked` 1,
so that a trainer can mask it (NeMo-Gym logs `masked_pct`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from truegold.verifiers.adapters.scoring import Scorer, record_of

_SCORER = Scorer()


async def verify_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a verify response: the request's fields, the reward, the extracted answer and the reason."""
    metadata = body.get("verifier_metadata") or {}
    question = _SCORER.truth({**metadata, **body}, body.get("question")).question(
        response_text(body.get("response") or {})
    )
    (verdict,) = await asyncio.to_thread(_SCORER.judge, [question])
    logged = record_of(verdict)
    rewards = {"reward": logged["score"], "library_reward": logged["score"], "extracted_answer": verdict.extracted}
    judged = {"judged": verdict.score is not None, "masked": logged["masked"], "reason": logged["reason"]}
    return {**body, **rewards, **judged}


def response_text(response: Mapping[str, Any]) -> str:
    """Return the text of a Responses API object: the output texts of its messages, joined."""
    texts = [
        part.get("text") or ""
        for entry in response.get("output") or ()
        if entry.get("type", "message") == "message"
        for part in (entry.get("content") or () if not isinstance(entry.get("content"), str) else ())
        if part.get("type") == "output_text"
    ]
    return "".join(texts)
