"""The rollouts of a step where answers are dialogues: every row's group of episodes, played to their end and judged."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from truegold.pipeline.engines.base import SamplingParams
from truegold.pipeline.running.disk import read_whole_lines, write_whole
from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.turns import TurnsConfig
from truegold.train.grpo.episode_scores import episode_metrics, score_episodes
from truegold.train.grpo.rewards import CompletionScorer, StepCompletion
from truegold.train.model.distributed import rank
from truegold.train.rollout.rollout import Rollout, engine_deaths_reported
from truegold.train.rollout.sampler_pool import SamplerPool
from truegold.train.turns.episodes import EnvironmentFaults, Episode, EpisodeRunner, StreamingEngine, make_runner
from truegold.train.turns.template import TurnTemplate

_LOG = logging.getLogger(__name__)

DRIFT_FILE = "drift.jsonl"
"""Examples of turns that the tokenizer would not have written as they were sampled."""
EXAMPLES = 3
"""Of a step, at most."""


@dataclass
class Player:
    """Plays the groups of a step."""

    rollout: Rollout
    config: GrpoConfig
    turns: TurnsConfig
    runner: EpisodeRunner | SamplerPool
    scorer: CompletionScorer
    template: TurnTemplate
    out_dir: Path
    repeated_kinds: set[str] = field(default_factory=lambda: {"training", "evaluation"})
    """Of which kinds of steps the file of examples may still have some that are played again."""
    has_named_close_error: bool = False

    def play(
        self, rows: Sequence[Row], groups: Sequence[int], size: int, step: int, sampling: SamplingParams
    ) -> tuple[list[StepCompletion], dict[str, float]]:
        """Return a completion for each episode, a row's side by side, and what is measured of them.

        groups: the number of each row's group in the step. size: the episodes of each.
        """
        episodes: Sequence[Episode] = [
            Episode(row, group, index) for row, group in zip(rows, groups, strict=True) for index in range(size)
        ]
        with engine_deaths_reported(step):
            episodes = self.runner.run(episodes, sampling, (self.config.seed, step), self.rollout.version)
        return self.judge(episodes, step, sampling.temperature, self.runner.faults, self.runner.waited_share)

    def judge(
        self, episodes: Sequence[Episode], step: int, temperature: float, faults: EnvironmentFaults, waited_share: float
    ) -> tuple[list[StepCompletion], dict[str, float]]:
        """Return what `play` does for episodes that were played at a temperature."""
        self._keep_examples(episodes, step)
        completions = score_episodes(episodes, self.scorer, self.turns, temperature)
        if faults.close_errors and not self.has_named_close_error:
            self.has_named_close_error = True
            _LOG.warning("An environment could not be closed (row %s)", faults.first_close_error)
        return completions, episode_metrics(episodes, faults, waited_share)

    def _keep_examples(self, episodes: Sequence[Episode], step: int) -> None:
        """Write where the tokenizer makes other tokens of a turn's text than the model has sampled.

        One rank writes, of what it has sampled: the file is one, and is cut where a run goes on from a checkpoint.
        """
        if rank() != 0:
            return
        self._forget_repeated(step)
        drifts = [
            (episode, drift)
            for episode in episodes
            if episode.dialogue is not None
            for drift in episode.dialogue.drifts
        ]
        if not drifts:
            return
        tokenizer = self.template.tokenizer
        with (self.out_dir / DRIFT_FILE).open("a", encoding="utf-8") as file:
            for episode, drift in drifts[:EXAMPLES]:
                example = {
                    "step": step,
                    "id": episode.row["id"],
                    "turn": drift.turn,
                    "sampled": tokenizer.convert_ids_to_tokens(list(drift.held)),
                    "rendered": tokenizer.convert_ids_to_tokens(list(drift.rendered)),
                }
                file.write(json.dumps(example) + "\n")

    def _forget_repeated(self, step: int) -> None:
        """Cut the examples of steps that this run repeats, since it has gone on from a checkpoint before them.

        The first step that it plays is the first that is repeated. Evaluations have negative numbers, which fall.
        """
        kind = "evaluation" if step < 0 else "training"
        if kind not in self.repeated_kinds:
            return
        self.repeated_kinds.remove(kind)
        path = self.out_dir / DRIFT_FILE
        if not path.exists():
            return
        records = read_whole_lines(path)
        kept = [record for record in records if not _is_repeated(record["step"], step)]
        write_whole(path, "".join(json.dumps(record) + "\n" for record in kept).encode())


def _is_repeated(recorded: int, first: int) -> bool:
    """Return whether a recorded step is played again by a run whose first step of the same kind is `first`."""
    return recorded <= first < 0 or recorded >= first >= 0


def make_player(
    rollout: Rollout, config: GrpoConfig, turns: TurnsConfig, scorer: CompletionScorer, out_dir: Path
) -> Player:
    """Return what plays the episodes of a training. Raises ConfigError for an environment that cannot be made."""
    encoder, engine = rollout.encoder, rollout.engine
    streaming = cast("StreamingEngine", engine)
    runner = make_runner(streaming, encoder.tokenizer, encoder.stop_token_ids, config.chat.system, turns)
    # Samplers beside the trainer have runners of their own.
    played_by = engine if isinstance(engine, SamplerPool) else runner
    return Player(rollout, config, turns, played_by, scorer, runner.template, out_dir)
