"""Provides `TruegoldEnv`, an environment of one turn for SkyRL. `truegold export --format verl` writes its data.

    from skyrl_gym.envs import register              # in the entrypoint, before BasePPOExp(cfg).run()
    register(id="truegold", entry_point="truegold.verifiers.adapters.skyrl:TruegoldEnv")

    data.train_data="['out/train.parquet']" environment.env_class=truegold

SkyRL 0.4 makes one environment for each trajectory, with all columns except the prompt as `extras`, and calls `init`,
`step`, `get_metrics` and `close` (train/dataset/dataset.py, train/generators/skyrl_gym_generator.py).

SkyRL needs a reward for every response, so a response that could not be judged has the reward 0. SkyRL logs the means
of the metrics `judged` and `masked`, which are the shares of judged and of unjudged responses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from truegold.verifiers.adapters.row_truth import EXPORTED
from truegold.verifiers.adapters.scoring import Scorer, record_of
from truegold.verifiers.choice_rows import option_columns

try:
    from skyrl_gym.envs.base_text_env import BaseTextEnv
except ImportError:

    class BaseTextEnv:  # type: ignore[no-redef]
        """The base class of SkyRL's environments."""

        def init(self, prompt: Any) -> tuple[Any, dict[str, Any]]:
            """Return the prompt unchanged."""
            return prompt, {}

        def close(self) -> None:
            """Do nothing."""


_SCORER = Scorer()


class TruegoldEnv(BaseTextEnv):  # type: ignore[misc]
    """An environment that judges the first response to a row by the row's verifier, then ends the episode."""

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        columns = extras or {}
        info = columns.get("extra_info") or {}
        exported = {name: info[name] for name in (*EXPORTED, *option_columns(info)) if info.get(name) is not None}
        gold = {"reward_model": columns["reward_spec"]} if "reward_spec" in columns else {}
        self._truth = _SCORER.truth({**columns, **gold, **exported}, info.get("question"))
        self._record: dict[str, float | str] = {}

    def step(self, action: str) -> dict[str, Any]:
        """Return the reward of the response, and end the trajectory."""
        (verdict,) = _SCORER.judge([self._truth.question(action)])
        self._record = record_of(verdict)
        return {"observations": [], "reward": self._record["score"], "done": True, "metadata": dict(self._record)}

    def get_metrics(self) -> dict[str, Any]:
        """Return the metrics `judged` and `masked`, of which SkyRL logs the means."""
        return {name: self._record[name] for name in ("judged", "masked") if name in self._record}
