"""Provides a scorer for inspect (UK AISI), which judges samples of `truegold export --format inspect` and others.

    Task(dataset=json_dataset("train.jsonl"), solver=generate(), scorer=verified())

If a sample has several targets, each is an accepted gold. A response that could not be judged is marked as unscored;
inspect leaves it out of its metrics and reports the number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from truegold.verifiers.adapters.scoring import Scorer
from truegold.verifiers.checked import checked


@checked
def verified(verifier: str | None = None, routes: Mapping[str, str] | None = None) -> Any:
    """Return the scorer.

    verifier: judges all samples; by default each sample names its own. routes: verifiers by data set, for samples that
    name a data set in their metadata and no verifier.
    """
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
