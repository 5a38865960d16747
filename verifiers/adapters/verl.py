"""Provides `compute_score`, a reward function that all reward managers of verl can call.

    reward.custom_reward_function.path=compute_score.py       the file next to the exported set

The function returns the same keys for every sample, since verl takes keys from the first one: `score`, `acc`, `judged`,
`masked` (its mean is the masked share), `reason`, `extracted`.

verl needs a score for every response. A response that could not be judged has `judged` 0 and the score `unjudged`, a
setting of `reward_kwargs` that is 0 by default. For each reason, the 1st, 2nd, 4th, 8th ... such response is logged.

The verifier of a row is, in this order: the one that the row names; the route of its `data_source`; `math` for an
answer, `code` for tests. Rows of other kinds (an object, instructions to follow) and data sets with the route `trainer`
go to verl's `default_compute_score`. If verl has no scorer for them, they are not judged.

verl 0.9.1 calls the function in three ways. The managers `naive`, `dapo`, `gdpo`, `remote` and `rate_limited` pass
keywords for one response, in threads or other processes, and read `result["score"]`. `prime` passes arguments by
position and reads `result[0]`. `batch` passes plural keywords (`solution_strs`) for all responses at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from truegold.verifiers.adapters.row_truth import EXPORTED, TRAINER, RowTruth
from truegold.verifiers.adapters.scoring import Scorer, record_of
from truegold.verifiers.checked import checked
from truegold.verifiers.choice_rows import option_columns
from truegold.verifiers.row_kinds import KIND_COLUMNS
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.strict_json import parse_structure
from truegold.verifiers.user_code import did_you_mean
from truegold.verifiers.verdict import Reason, Verdict

_SCORER = Scorer()
_SETTINGS = ("verifier", "unjudged", "routes")
"""Settings of `reward_kwargs`."""
_READ = frozenset((*EXPORTED, *KIND_COLUMNS))
"""Keys of `extra_info` that are read."""


class Scored(dict[str, float | str]):
    """The record of a sample that verl logs. The key 0 is the score too: the manager `prime` reads `result[0]`."""

    def __missing__(self, key: object) -> float | str:
        if key == 0:
            return self["score"]
        raise KeyError(key)


@checked
def compute_score(
    data_source: Any = None,
    solution_str: Any = "",
    ground_truth: Any = None,
    extra_info: Any = None,
    verifier: str | None = None,
    unjudged: float = 0.0,
    routes: Mapping[str, str] | str | None = None,
    **others: Any,
) -> Any:
    """Return the score and the logged record of one response; for the manager `batch`, a list of these.

    verifier, unjudged, routes: settings of `reward_kwargs`. others: the plural keywords of `batch`, and keywords for
    rewards that call a model or a sandbox. Raises ConfigError for a misspelt setting.
    """
    for name in others:
        if (meant := did_you_mean(name, _SETTINGS)) is not None:
            raise ConfigError(f"compute_score has no setting {name!r}.", meant)
    scorer = _SCORER if verifier is None and routes is None else _scorer(verifier, _as_text(routes))
    if "solution_strs" not in others:
        row = _Row(data_source, solution_str, ground_truth, extra_info)
        return _score([row], scorer, unjudged, others)[0]
    responses = others.pop("solution_strs")
    golds = others.pop("ground_truths", ())
    infos, sources = (others.pop(name, None) for name in ("extra_infos", "data_sources"))
    infos = [None] * len(responses) if infos is None else infos
    sources = [data_source] * len(responses) if sources is None else sources
    if not len(responses) == len(golds) == len(infos) == len(sources):
        raise ConfigError(
            f"compute_score got {len(responses)} solution_strs, {len(golds)} ground_truths, {len(infos)} extra_infos, "
            f"{len(sources)} data_sources.",
            "Pass one of each for every response.",
        )
    rows = [_Row(*parts) for parts in zip(sources, responses, golds, infos, strict=True)]
    return _score(rows, scorer, unjudged, others)


class _Row(NamedTuple):
    """The arguments of verl for one response."""

    source: Any
    response: str
    gold: Any
    info: Mapping[str, Any] | None

    def truth(self, scorer: Scorer) -> RowTruth:
        """Return gold, verifier and arguments: from the exported row in `extra_info`, else from the ground truth.

        Other keys of `extra_info` may name the verifier, the kind of row or the options of a choice, but never gold.
        """
        info = parse_structure(self.info)
        info = info if isinstance(info, Mapping) else {}
        read = {name: info[name] for name in (*info.keys() & _READ, *option_columns(info))}
        return scorer.truth({**read, "data_source": self.source, "gold": self.gold}, info.get("question"))


def _score(rows: Sequence[_Row], scorer: Scorer, unjudged: float, others: Mapping[str, Any]) -> list[Scored]:
    truths = [row.truth(scorer) for row in rows]
    scored: dict[int, Scored] = {}
    for index, (row, truth) in enumerate(zip(rows, truths, strict=True)):
        if truth.is_foreign:
            by_verl = _score_by_verl(row, others)
            if isinstance(by_verl, str):
                truths[index] = replace(truth, unread=f"{truth.unread}; {by_verl}")
            else:
                scored[index] = by_verl
    asked = [index for index in range(len(rows)) if index not in scored]
    verdicts = scorer.judge(truths[index].question(rows[index].response) for index in asked)
    for index, verdict in zip(asked, verdicts, strict=True):
        score = float(unjudged if verdict.score is None else verdict.score)
        scored[index] = Scored({**record_of(verdict), "score": score, "acc": score})
    return [scored[index] for index in range(len(rows))]


def _score_by_verl(row: _Row, others: Mapping[str, Any]) -> Scored | str:
    """Return the score from verl's own scorer, or the reason as a text if verl cannot score the row."""
    try:
        from verl.utils.reward_score import default_compute_score
    except ImportError:
        return "verl is not installed here"
    try:
        result = default_compute_score(row.source, row.response, row.gold, row.info, **others)
        score = result["score"] if isinstance(result, dict) else result
        score = float(score)
    except NotImplementedError:
        return f"verl has no scorer for data_source {row.source!r}"
    except Exception as error:
        return f"verl's scorer raised {type(error).__name__}: {error!s:.100}"
    accuracy = float(result.get("acc", score)) if isinstance(result, dict) else score
    same_keys = record_of(Verdict(None, Reason.DECLINED))
    return Scored({**same_keys, "score": score, "judged": 1.0, "masked": 0.0, "reason": TRAINER, "acc": accuracy})


@lru_cache(maxsize=64)
def _scorer(verifier: str | None, routes: str | None) -> Scorer:
    """Return the scorer with these settings, which is cached."""
    return Scorer(verifier, routes=routes)


def _as_text(routes: Mapping[str, str] | str | None) -> str | None:
    return json.dumps(dict(routes)) if isinstance(routes, Mapping) else routes
