"""verl: `compute_score`, a reward function for every one of its reward managers.

    reward.custom_reward_function.path=compute_score.py       the file beside the exported set

It returns the same keys for every sample, because verl takes those of the first for all: `score`, `acc`, `judged`,
`masked` (its mean is the masked share), `reason`, `extracted`. verl cannot leave a response out, so that one which
could not be judged has the score `unjudged` (`reward_kwargs`; 0 where not given) and `judged` 0, and a warning says so
at the first, second, fourth ... of each reason.

Each row is judged by the verifier that it names, or that `routes` name for its `data_source`; else by its ground truth:
answers by `math`, tests by `code`. A row of another kind (an object, instructions to follow) goes to verl's own
`default_compute_score`, as does a data set whose route is `trainer`; where that knows none it is not judged.

verl 0.9.1's managers call it by keyword for one response, in threads or other processes, and read `result["score"]`
(`naive`, `dapo`, `gdpo`, `remote`, `rate_limited`); or by position, and read `result[0]` (`prime`); or for all
responses at once, by keywords in the plural (`batch`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from truegold.verifiers.adapters.routes import TRAINER
from truegold.verifiers.adapters.row_truth import EXPORTED, RowTruth
from truegold.verifiers.adapters.scoring import Scorer, record_of
from truegold.verifiers.choice_rows import option_columns
from truegold.verifiers.row_kinds import KIND_COLUMNS
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.strict_json import parse_structure
from truegold.verifiers.user_code import did_you_mean
from truegold.verifiers.verdict import Reason, Verdict

_SCORER = Scorer()
_SETTINGS = ("verifier", "unjudged", "routes")
_READ = frozenset((*EXPORTED, *KIND_COLUMNS))


class Scored(dict[str, float | str]):
    """The record that verl logs of a sample. `prime` asks for its score by the index 0, as of a tuple."""

    def __missing__(self, key: object) -> float | str:
        if key == 0:
            return self["score"]
        raise KeyError(key)


def compute_score(
    data_source: Any = None,
    solution_str: str = "",
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    verifier: str | None = None,
    unjudged: float = 0.0,
    routes: Mapping[str, str] | str | None = None,
    **others: Any,
) -> Any:
    """Return the score of one response with what is logged of it; for the manager `batch`, a list of these.

    verifier, unjudged, routes: settings of `reward_kwargs`. others: the plural keywords of `batch`, and what verl hands
    to rewards that ask a model or a sandbox. Raises ConfigError for a misspelt setting.
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
            "There is one of each for every response.",
        )
    rows = [_Row(*parts) for parts in zip(sources, responses, golds, infos, strict=True)]
    return _score(rows, scorer, unjudged, others)


class _Row(NamedTuple):
    """One response, as verl hands it over."""

    source: Any
    response: str
    gold: Any
    info: Mapping[str, Any] | None

    def truth(self, scorer: Scorer) -> RowTruth:
        """Return what the response is judged by: the row that an export has put into extra_info, else the ground truth.

        Of other keys of extra_info those count that say which verifier or what kind of row it is, and the options of a
        question of choice, never a gold.
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
    """Return the score of verl's own scorer for a row of a data set that it knows, else the reason for no score."""
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
    """Return the scorer with these settings, the same for every call."""
    return Scorer(verifier, routes=routes)


def _as_text(routes: Mapping[str, str] | str | None) -> str | None:
    return json.dumps(dict(routes)) if isinstance(routes, Mapping) else routes
