"""The reward under every reward manager of verl. Each function here does what the manager's own lines do with it.

Source: verl 0.9.1, verl/workers/reward_manager/ and verl/experimental/reward_loop/reward_manager/.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

from truegold.verifiers.adapters.verl import compute_score
from truegold.verifiers.sandbox.errors import ConfigError

RIGHT, WRONG, UNREADABLE = "so it is \\boxed{0.5}", "so it is \\boxed{5}", "\\frac{1"
CARRIED = json.dumps({"gold": "1/2", "verifier": "math", "verifier_args": "{}"})

Score = Callable[..., Any]
Sample = tuple[str, Any, Any]
"""A response, its ground truth and its extra_info."""


def with_reward_kwargs(**reward_kwargs: Any) -> Score:
    """trainer/ppo/reward.py, get_custom_reward_fn: what every manager is handed."""
    return partial(_call_with_kwargs, compute_score, reward_kwargs)


def _call_with_kwargs(raw_fn: Score, extra_kwargs: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    return raw_fn(*args, **{**kwargs, **extra_kwargs})


def naive(score: Score, samples: Sequence[Sample]) -> list[float]:
    """naive.py and dapo.py of both folders, gdpo.py, limited.py: one call by keyword, `result["score"]`, all items."""
    rewards, logged = [], []
    for response, ground_truth, extra_info in samples:
        result = score(data_source="x", solution_str=response, ground_truth=ground_truth, extra_info=extra_info)
        rewards.append(result["score"] if isinstance(result, dict) else result)
        logged.append(dict(result.items()))
    # reward_loop.py: the keys of the first sample are those of all.
    columns = {key: np.array([entry[key] for entry in logged]) for key in logged[0]}
    assert columns["judged"].dtype == float and columns["acc"].dtype == float
    return rewards


def naive_with_router(score: Score, samples: Sequence[Sample]) -> list[float]:
    """naive.py of the reward loop with a reward model beside it."""
    return naive(partial(score, reward_router_address="127.0.0.1:1", reward_model_tokenizer=None), samples)


def dapo(score: Score, samples: Sequence[Sample]) -> list[float]:
    """dapo.py: `reward = score; reward += overlong_reward`."""
    rewards = naive(score, samples)
    return [reward + min(-4 / 8 * 0.0, 0) for reward in rewards]


def prime(score: Score, samples: Sequence[Sample]) -> list[float]:
    """prime.py: by position in other processes, then `float(result[0])` of what is no number; an error is a 0."""

    async def gather() -> list[Any]:
        loop = asyncio.get_running_loop()
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as executor:
            calls = [partial(score, "x", response, gold, extra) for response, gold, extra in samples]
            return await asyncio.gather(*(loop.run_in_executor(executor, call) for call in calls))

    scores = []
    for result in asyncio.run(gather()):
        if isinstance(result, Exception) or result is None:
            scores.append(0.0)
        elif isinstance(result, int | float | bool):
            scores.append(float(result))
        else:
            scores.append(float(result[0]))
    return scores


def batch(score: Score, samples: Sequence[Sample]) -> list[float]:
    """batch.py: one call by keywords in the plural, with arrays of objects; then item by item as naive.py does."""
    scores = score(
        data_sources=np.array(["x"] * len(samples), dtype=object),
        solution_strs=[response for response, _, _ in samples],
        ground_truths=[gold for _, gold, _ in samples],
        extra_infos=np.array([{**(extra or {}), "rollout_reward_scores": {}} for _, _, extra in samples], dtype=object),
    )
    rewards = []
    logged: dict[str, list[Any]] = {}
    for index in range(len(samples)):
        score_of = scores[index]
        assert isinstance(score_of, dict)
        rewards.append(score_of["score"])
        for key, value in score_of.items():
            logged.setdefault(key, []).append(value)
    assert {len(values) for values in logged.values()} == {len(samples)}
    return rewards


def remote(score: Score, samples: Sequence[Sample]) -> list[float]:
    """remote.py: in a worker process, whose results come back pickled."""
    return naive(lambda **keywords: pickle.loads(pickle.dumps(score(**keywords))), samples)


def limited(score: Score, samples: Sequence[Sample]) -> list[float]:
    """limited.py: in a thread of the loop's executor, within a timeout."""

    async def run(keywords: Mapping[str, Any]) -> Any:
        call = asyncio.get_running_loop().run_in_executor(None, lambda: score(**keywords))
        return await asyncio.wait_for(call, timeout=60)

    return naive(lambda **keywords: asyncio.run(run(keywords)), samples)


MANAGERS = [naive, naive_with_router, dapo, prime, batch, remote, limited]
CARRIES = {"split": "train", "index": 0, "truegold": CARRIED}
CASES: dict[str, tuple[Sample, float]] = {
    "right": ((RIGHT, "1/2", {}), 1.0),
    "wrong": ((WRONG, "1/2", {}), 0.0),
    "empty response": (("", "1/2", {}), 0.0),
    "nothing could be judged": ((RIGHT, UNREADABLE, {}), 0.0),
    "no extra_info": ((RIGHT, "1/2", None), 1.0),
    "an exported row": ((RIGHT, "ignored", CARRIES), 1.0),
    "an exported row, wrong": ((WRONG, "ignored", CARRIES), 0.0),
    "accepted golds": ((RIGHT, ["7", "1/2"], {}), 1.0),
    "accepted golds as an array": ((RIGHT, np.array(["7", "1/2"]), {}), 1.0),
    "no ground truth": ((RIGHT, None, {}), 0.0),
    "what is no gold": ((RIGHT, {"inputs": ["1"]}, {}), 0.0),
    "the ground truth counts, not a gold in extra_info": ((RIGHT, "1/2", {"gold": "9", "answer": "9"}), 1.0),
}


@pytest.mark.parametrize("manager", MANAGERS)
def test_every_manager_pays_what_each_response_earned(manager: Callable[..., list[float]]) -> None:
    rewards = manager(with_reward_kwargs(), [sample for sample, _ in CASES.values()])
    assert dict(zip(CASES, rewards, strict=True)) == {name: reward for name, (_, reward) in CASES.items()}
    assert {type(reward) for reward in rewards} == {float}


@pytest.mark.parametrize("manager", MANAGERS)
def test_reward_kwargs_hold_under_every_manager(manager: Callable[..., list[float]]) -> None:
    settings = with_reward_kwargs(verifier="exact", unjudged=-1)
    samples = [("0.5", "0.5", {}), ("0.5", "1/2", {}), ("0.5", None, {})]
    assert manager(settings, samples) == [1.0, 0.0, -1.0]


def test_the_result_is_a_dict_of_plain_values_with_the_score_at_0() -> None:
    scored = compute_score("x", RIGHT, "1/2")
    assert isinstance(scored, dict) and scored[0] == scored["score"] == scored["acc"] == 1.0
    assert json.loads(json.dumps(scored)) == dict(scored) == pickle.loads(pickle.dumps(scored))
    assert 0 not in scored and list(scored) == ["score", "judged", "masked", "unread", "reason", "extracted", "acc"]
    with pytest.raises(KeyError):
        scored["scores"]


def test_what_could_not_be_judged_says_so_under_batch_too() -> None:
    (scored,) = compute_score(data_sources=["x"], solution_strs=[RIGHT], ground_truths=[UNREADABLE], extra_infos=[{}])
    assert (scored["score"], scored["judged"], scored["masked"], scored["reason"]) == (0.0, 0.0, 1.0, "gold_unparsed")


@pytest.mark.parametrize("name", ["verifer", "verifiers", "unjudge", "un_judged"])
def test_a_misspelt_setting_in_reward_kwargs_is_told(name: str) -> None:
    with pytest.raises(ConfigError, match=f"compute_score has no setting '{name}'.*Did you mean"):
        with_reward_kwargs(**{name: "math"})(data_source="x", solution_str=RIGHT, ground_truth="1/2", extra_info={})


@pytest.mark.parametrize("length", [0, 1, 3])
def test_a_batch_whose_columns_differ_in_length_is_a_mistake(length: int) -> None:
    with pytest.raises(ConfigError, match=f"2 solution_strs, {length} ground_truths"):
        compute_score(data_sources=["x"] * 2, solution_strs=[RIGHT] * 2, ground_truths=["1"] * length)
