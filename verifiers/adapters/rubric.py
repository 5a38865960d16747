"""Provides reward functions for a `Rubric` of Prime Intellect's library `verifiers`, before its version 0.4.

The set is written by `truegold export --format trl`:

    rubric = vf.Rubric(funcs=[truegold, masked], weights=[1.0, 0.0])
    environment = vf.SingleTurnEnv(dataset=load_dataset("out", split="train"), rubric=rubric)

A rubric passes the arguments that a function names: prompt, completion, answer, state, info, and other columns of the
row. It needs a reward for every response, and counts an exception as 0. A response that could not be judged therefore
has the reward 0; the function `masked` returns 1 for it, and `state["truegold"]` has the reason.

Source: verifiers 0.3.1, legacy/rubrics/rubric.py.
"""

from __future__ import annotations

import asyncio
from typing import Any

from truegold.verifiers.adapters.row_truth import EXPORTED
from truegold.verifiers.adapters.scoring import Scorer, last_text, problem_text, record_of

_SCORER = Scorer(unjudged=0.0)


async def truegold(prompt: Any, completion: Any, state: Any, info: Any = None, **columns: Any) -> float:
    """Return the reward of a completion."""
    beside = {name: info[name] for name in EXPORTED if name in info} if isinstance(info, dict) else {}
    truth = _SCORER.truth({**columns, **beside}, problem_text(_plain(prompt)))
    question = truth.question(last_text(_plain(completion)))
    (verdict,) = await asyncio.to_thread(_SCORER.judge, [question])
    record = record_of(verdict)
    state["truegold"] = record
    return float(record["score"])


def _plain(messages: Any) -> Any:
    """Return messages as dicts; verifiers 0.3 passes them as pydantic models."""
    if not isinstance(messages, list):
        return messages
    return [message.model_dump() if hasattr(message, "model_dump") else message for message in messages]


def masked(state: Any) -> float:
    """Return 1 for a completion that could not be judged, else 0. In a rubric, list it after `truegold`."""
    return float((state.get("truegold") or {}).get("masked", 0.0))
