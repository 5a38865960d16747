"""A sampler for TRL's trainers that draws prompts by what is known of their pass rates.

    from truegold.train.grpo.trl_sampler import drawn_by_posterior
    trainer = drawn_by_posterior(GRPOTrainer)(model, reward_funcs=[TruegoldReward()], train_dataset=..., args=...)

It is the feed of truegold's own training (`feed`, order `signal`): a prompt is drawn with a probability that grows with
the share of its groups that will teach. It begins with the profile's posterior, which the exported set has in its
column `posterior` (without it nothing is known at first), and learns from every group that is sampled.
Draws have the layout of TRL's `RepeatSampler`: each prompt `num_generations` times, a batch again for every pass over
its completions. The data loader reads about a batch ahead, so that the newest groups count from the batch after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import FeedConfig, Order
from truegold.train.grpo.feed import Draw, Feed, GroupScore

PASSED = 1.0
"""The reward from which a completion counts as right."""
KEPT_DRAWS = 64
"""Draws of one prompt that wait for their groups at most; those of a batch that was never sampled go."""


class PosteriorSampler:
    """An endless stream of dataset indices, as long as TRL's own sampler says that an epoch is."""

    def __init__(
        self, dataset: Any, group_size: int, prompts: int, repeats: int, seed: int, passed: float = PASSED
    ) -> None:
        """Draw `prompts` at a time, each `group_size` times, and every batch `repeats` times over."""
        self._group_size, self._prompts, self._repeats, self._passed = group_size, prompts, repeats, passed
        self._rows = len(dataset)
        names = [name for name in ("posterior", "suspicion") if name in dataset.column_names]
        known = {name: list(dataset[name]) for name in names}
        rows = [{name: values[index] for name, values in known.items()} for index in range(self._rows)]
        ids = list(dataset["id"]) if "id" in dataset.column_names else list(map(repr, dataset["prompt"]))
        self._index_of = {identity: index for index, identity in enumerate(ids)}
        feed_rows: Sequence[Row] = rows  # type: ignore[assignment]  # The feed reads these columns alone.
        self._feed = Feed(feed_rows, (), FeedConfig(order=Order.SIGNAL), group_size=group_size, steps=1, seed=seed)
        self._waiting: dict[int, deque[Draw]] = {}
        """Draws by their row, until their groups are scored."""

    def __len__(self) -> int:
        return self._rows // self._prompts * self._prompts * self._group_size * self._repeats

    def __iter__(self) -> Iterator[int]:
        for _ in range(self._rows // self._prompts):
            draws = self._feed.draw(self._prompts)
            for draw in draws:
                self._waiting.setdefault(draw.index, deque(maxlen=KEPT_DRAWS)).append(draw)
            for _ in range(self._repeats):
                for draw in draws:
                    yield from [draw.index] * self._group_size

    def observe(self, ids: Sequence[str], rewards: Sequence[float | None]) -> None:
        """Learn from a batch: the id of each completion's row, and its reward; None (or NaN) where it has none."""
        groups: dict[int, list[float]] = {}
        for identity, reward in zip(ids, rewards, strict=True):
            judged = groups.setdefault(self._index_of[identity], [])
            if reward is not None and reward == reward:  # noqa: PLR0124  NaN differs from itself.
                judged.append(reward)
        drawn = []
        for index, judged in groups.items():
            if not (waiting := self._waiting.get(index)):
                continue
            right = sum(reward >= self._passed for reward in judged)
            drawn.append((waiting.popleft(), GroupScore(right, len(judged), 0 < right < len(judged))))
        if drawn:
            self._feed.learn(drawn)


def drawn_by_posterior(trainer: type[Any], reward: str = "truegold", passed: float = PASSED) -> type[Any]:
    """Return TRL's trainer (`GRPOTrainer`, `RLOOTrainer`) with prompts drawn by their posteriors.

    `reward` names the reward function that says whether a completion is right: one that pays `passed` or more is.
    """

    class DrawnByPosterior(trainer):  # type: ignore[misc]
        """The trainer, with another sampler."""

        def _get_train_sampler(self, dataset: Any = None) -> PosteriorSampler:
            self.posterior_sampler = PosteriorSampler(
                self.train_dataset if dataset is None else dataset,
                self.num_generations,
                self.args.generation_batch_size // self.num_generations,
                self.num_iterations * self.args.steps_per_generation,
                self.args.seed,
                passed,
            )
            return self.posterior_sampler

        def _calculate_rewards(self, inputs: Sequence[Mapping[str, Any]], *arguments: Any, **keywords: Any) -> Any:
            from accelerate.utils import gather_object

            rewards = super()._calculate_rewards(inputs, *arguments, **keywords)
            if self.model.training:
                ids = gather_object([row["id"] if "id" in row else repr(row["prompt"]) for row in inputs])
                column = self.reward_func_names.index(reward) if reward in self.reward_func_names else 0
                self.posterior_sampler.observe(ids, rewards[:, column].tolist())
            return rewards

    DrawnByPosterior.__name__ = f"DrawnByPosterior{trainer.__name__}"
    return DrawnByPosterior
