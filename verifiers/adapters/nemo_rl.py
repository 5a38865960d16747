"""Provides `TruegoldEnvironment` for NeMo-RL. Its set is written by `truegold export --format nemo-rl`.

    from truegold.verifiers.adapters import nemo_rl         # in a copy of examples/run_grpo.py, before main()
    nemo_rl.register()

    data:
      train: {data_path: out/train.jsonl}
      default: {dataset_name: ResponseDataset, processor: math_hf_data_processor, env_name: truegold, prompt_file: null}
    env: {truegold: {}}

NeMo-RL starts the environment as a Ray actor and calls `step` with the messages and the `extra_env_info` of a batch
(environments/utils.py and experience/rollouts.py of commit 7ea279a). The `ground_truth` in `extra_env_info` is the
exported row, a gold, or a list of accepted golds.

NeMo-RL needs a reward for every response, so a response that could not be judged has the reward 0. The metric
`masked_share` reports the share of such responses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import ray

from truegold.verifiers.adapters.row_truth import truth_of_label
from truegold.verifiers.adapters.scoring import Scorer, problem_text

ENVIRONMENT = "truegold.verifiers.adapters.nemo_rl.TruegoldEnvironment"
Messages = Sequence[Mapping[str, Any]]
"""The messages of one conversation."""


class StepReturn(NamedTuple):
    """The fields of NeMo-RL's `EnvironmentReturn`, one entry for each response."""

    observations: list[dict[str, str]]
    metadata: list[Any]
    next_stop_strings: list[None]
    rewards: Any
    terminateds: Any
    answers: list[str | None]


class RowEnvironment:
    """An environment that judges the first response of each row by the row's verifier, then ends the episode."""

    def __init__(self, config: Any = None) -> None:
        self._scorer = Scorer(unjudged=0.0)
        self._judged = self._masked = 0

    def step(
        self, message_log_batch: Sequence[Messages], metadata: Sequence[Any], return_extracted_answer: bool = False
    ) -> StepReturn:
        """Return the rewards of a batch."""
        import torch

        questions = []
        for messages, info in zip(message_log_batch, metadata, strict=True):
            response = "".join(str(message["content"]) for message in messages if message["role"] == "assistant")
            asked = [message for message in messages if message["role"] != "assistant"]
            questions.append(truth_of_label(info["ground_truth"], problem_text(asked)).question(response))
        verdicts = self._scorer.judge(questions)
        self._masked += sum(verdict.score is None for verdict in verdicts)
        self._judged += sum(verdict.score is not None for verdict in verdicts)
        rewards = torch.tensor([self._scorer.paid(verdict) for verdict in verdicts], dtype=torch.float32)
        return StepReturn(
            [{"role": "environment", "content": f"Environment: {verdict.reason}"} for verdict in verdicts],
            list(metadata),
            [None] * len(verdicts),
            rewards,
            torch.ones_like(rewards),
            [verdict.extracted for verdict in verdicts],
        )

    def global_post_process_and_metrics(self, batch: Any) -> tuple[Any, dict[str, float]]:
        """Return the batch unchanged, and the share of all responses so far that could not be judged."""
        return batch, {"masked_share": self._masked / max(self._masked + self._judged, 1)}

    def shutdown(self) -> None:
        """End the verifying processes."""
        self._scorer.close()


TruegoldEnvironment = ray.remote(max_restarts=-1, max_task_retries=-1, max_concurrency=1000)(RowEnvironment)
"""`RowEnvironment` as a Ray actor."""


def register() -> None:
    """Register the environment with NeMo-RL as `truegold`, to run in the interpreter of the training."""
    from nemo_rl.distributed.ray_actor_environment_registry import ACTOR_ENVIRONMENT_REGISTRY
    from nemo_rl.distributed.virtual_cluster import PY_EXECUTABLES
    from nemo_rl.environments.utils import register_env

    ACTOR_ENVIRONMENT_REGISTRY[ENVIRONMENT] = PY_EXECUTABLES.SYSTEM
    register_env("truegold", ENVIRONMENT)
