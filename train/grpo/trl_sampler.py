"""A sampler for TRL's trainers that draws prompts by the posteriors of their pass rates.

    from truegold.train.grpo.trl_sampler import drawn_by_posterior
    trainer = drawn_by_posterior(GRPOTrainer)(model, reward_funcs=[TruegoldReward()], train_dataset=..., args=...)

It uses the feed of truegold's own training (`feed`, order `signal`). A prompt is drawn more often if its group probably
has both right and wrong completions. The posteriors start as those of the profile (samples of each prompt from before
the training), in the column `posterior` of an exported set. Every sampled group updates them. Without this column, all
prompts start with the same posterior.

Draws have the layout of TRL's `RepeatSampler`: each prompt `num_generations` times, and each batch once for every pass
over its completions. The data loader reads about one batch ahead, so new groups affect the draws with this delay.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import FeedConfig, Order
from truegold.train.grpo.feed import Draw, Feed, GroupScore

PASSED = 1.0
"""The lowest reward of a right completion."""
KEPT_DRAWS = 64
"""The largest number of draws of one prompt that wait for their groups. Batches of older draws were never sampled, so
these draws are dropped."""


class PosteriorSampler:
    """A sampler of dataset indices by posterior pass rates. An epoch has the same length as with TRL's own sampler."""

    def __init__(
        self, dataset: Any, group_size: int, prompts: int, repeats: int, seed: int, passed: float = PASSED
    ) -> None:
        """Draw `prompts` prompts at a time, each `group_size` times, and repeat every batch `repeats` times.

        passed: the lowest reward of a right completion.
        """
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
        """Draws whose groups are not scored yet, by row index."""

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
        """Update the posteriors from a batch. rewards: the completions' rewards, None or NaN if not judged."""
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
    """Return a subclass of TRL's `GRPOTrainer` or `RLOOTrainer` that draws prompts by their posteriors.

    reward: the name of the reward function that measures correctness. passed: its lowest value for a right completion.
    """

    class DrawnByPosterior(trainer):  # type: ignore[misc]
        """The trainer with a `PosteriorSampler`."""

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
