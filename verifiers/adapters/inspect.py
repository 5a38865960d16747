"""inspect (UK AISI): a scorer over samples that `truegold export --format inspect` has written, or any others.

    Task(dataset=json_dataset("train.jsonl"), solver=generate(), scorer=verified())

Several targets are several accepted golds. A response that could not be judged is an unscored one, which inspect leaves
out of its metrics and counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from truegold.verifiers.adapters.scoring import Scorer


def verified(verifier: str | None = None, routes: Mapping[str, str] | None = None) -> Any:
    """Return the scorer; `verifier` judges all samples, and `routes` those whose metadata name a data set of theirs."""
    from inspect_ai.scorer import Score, accuracy, scorer, stderr

    judge = Scorer(verifier, routes=routes, trains=False)

    @scorer(metrics=[accuracy(), stderr()], name="truegold")  # type: ignore[untyped-decorator]
    def truegold() -> Any:
        async def score(state: Any, target: Any) -> Any:
            metadata = dict(state.metadata or {})
            truth = judge.truth(
                metadata if "truegold" in metadata else {**metadata, "gold": list(target)}, state.input_text
            )
            question = truth.question(state.output.completion)
            (verdict,) = await asyncio.to_thread(judge.judge, [question])
            reason = str(verdict.reason)
            details = {"reason": reason, "evidence": dict(verdict.evidence)}
            if verdict.score is None:
                return Score.unscored(answer=verdict.extracted, explanation=reason, metadata=details)
            return Score(value=verdict.score, answer=verdict.extracted, explanation=reason, metadata=details)

        return score

    return truegold()
