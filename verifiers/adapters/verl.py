"""verl: `compute_score`, a reward function for every one of its reward managers.

    reward.custom_reward_function.path=compute_score.py       the file beside the exported set

It returns the same keys for every sample, because verl takes those of the first for all: `score`, `acc`, `judged`,
`masked` (its mean is the masked share), `reason`, `extracted`. verl cannot leave a response out, so that one which
could not be judged has the score `unjudged` (`reward_kwargs`; 0 where not given) and `judged` 0.

verl 0.9.1's managers call it by keyword for one response, in threads or other processes, and read `result["score"]`
(`naive`, `dapo`, `gdpo`, `remote`, `rate_limited`); or by position, and read `result[0]` (`prime`); or for all
responses at once, by keywords in the plural (`batch`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truegold.verifiers.adapters.scoring import RowTruth, Scorer, record_of, truth_of
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.user_code import did_you_mean

_SCORER = Scorer()


class Scored(dict[str, float | str]):
    """What is logged of a sample. `prime` asks for its score by the place 0, as of a tuple."""

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
    **others: Any,
) -> Any:
    """Return the score of one response with what is logged of it; for the manager `batch`, a list of these.

    verifier, unjudged: settings of `reward_kwargs`. others: the plural keywords of `batch`, and what verl hands to
    rewards that ask a model. Raises ConfigError for a misspelt setting.
    """
    for name in others:
        if (meant := did_you_mean(name, ("verifier", "unjudged"))) is not None:
            raise ConfigError(f"compute_score has no setting {name!r}.", meant)
    if "solution_strs" not in others:
        return _score([solution_str], [ground_truth], [extra_info], verifier, unjudged)[0]
    responses, golds = others["solution_strs"], others.get("ground_truths", ())
    infos = others.get("extra_infos")
    infos = [None] * len(responses) if infos is None else infos
    if not len(responses) == len(golds) == len(infos):
        raise ConfigError(
            f"compute_score got {len(responses)} solution_strs, {len(golds)} ground_truths, {len(infos)} extra_infos.",
            "There is one of each for every response.",
        )
    return _score(responses, golds, infos, verifier, unjudged)


def _score(
    responses: Sequence[str],
    golds: Sequence[Any],
    infos: Sequence[Mapping[str, Any] | None],
    verifier: str | None,
    unjudged: float,
) -> list[Scored]:
    questions = []
    for response, gold, info in zip(responses, golds, infos, strict=True):
        columns = info or {}
        truth = truth_of({**columns, "gold": gold}, columns.get("question"))
        if verifier is not None:
            truth = RowTruth(truth.gold, verifier, truth.verifier_args, truth.problem)
        questions.append(truth.question(response))
    scored = []
    for verdict in _SCORER.judge(questions):
        score = float(unjudged if verdict.score is None else verdict.score)
        scored.append(Scored({**record_of(verdict), "score": score, "acc": score}))
    return scored
