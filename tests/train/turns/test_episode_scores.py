"""From episodes to what is trained on: rewards by the configured term, and what counts as a sequence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from numbered_rows import make_row

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.engines.chat import ByteEncoder
from truegold.train.config.grpo import GrpoConfig, RewardConfig
from truegold.train.config.turns import TurnsConfig
from truegold.train.grpo import step
from truegold.train.grpo.dialogues import (
    DialogueGroups,
    episode_metrics,
    score_episodes,
)
from truegold.train.grpo.groups import CompletionScorer, StepCompletion
from truegold.train.grpo.self_distillation import Member, join
from truegold.train.grpo.update import WeighedBatch
from truegold.train.model.segment import Segment
from truegold.train.turns.episodes import Ending, EnvironmentFaults, Episode


def episode(score: float | None, *lengths: int, ending: Ending = Ending.DONE) -> Episode:
    """Return an episode whose dialogue has segments of so many tokens."""
    parts = [
        Segment((1,), (2,) * length, (-0.5,) * length, (True,) * length, turn=turn)
        for turn, length in enumerate(lengths)
    ]
    held = [SimpleNamespace(to_segment=lambda temperature, part=part: part) for part in parts]
    dialogue: Any = SimpleNamespace(segments=held, turns=len(held))
    return Episode(make_row(1), 0, 0, dialogue, ending, score)


def turn_by_turn(*scores: float, total: float = 0.0, group: int = 0) -> Episode:
    """Return an episode whose turns have earned so much each, and the whole of it so much."""
    made = episode(total, *[1] * len(scores))
    made.turn_scores = list(scores)
    made.group = group
    return made


def scored(episodes: list[Episode], turns: TurnsConfig, **reward: Any) -> list[StepCompletion]:
    scorer = CompletionScorer(RewardConfig.model_validate(reward), ByteEncoder(ChatConfig()))
    completions = score_episodes(episodes, scorer, turns, 1.0)
    scorer.close()
    return completions


def dialogues(turns: TurnsConfig) -> DialogueGroups:
    nothing: Any = None
    return DialogueGroups(nothing, nothing, nothing, nothing, 8, nothing, turns, nothing, nothing)


TURNS = TurnsConfig(environment="shop.py:Shop")


def test_episodes_are_rewarded_by_the_term_that_is_configured() -> None:
    term = {"name": "solved", "weight": 2.0, "offset": -0.5}
    right, wrong, spoilt = scored(
        [episode(1.0, 3), episode(0.0, 3), episode(None, 3, ending=Ending.ERROR)], TURNS, terms=[term]
    )
    assert [each.segment.reward for each in (right, wrong, spoilt)] == [1.0, -1.0, None]
    assert right.score.reward.parts == {"solved": 1.0}


@pytest.mark.parametrize("members", [0, 1])
def test_an_episode_counts_as_one_sequence_until_the_loss_also_where_positives_join(members: int) -> None:
    completions = scored([episode(1.0, 4, 2, 2), episode(0.0, 5)], TURNS)
    assert [len(dialogues(TURNS).compared_segments(completion)) for completion in completions] == [1, 1]
    weighed = WeighedBatch(torch.tensor([1.0, -1.0]), torch.tensor([True, True]), {})
    segments, spread = dialogues(TURNS).trained_segments(completions, weighed)
    assert [len(segment.output_ids) for segment in segments] == [4, 2, 2, 5]
    positive = Member(Segment((1,), (2, 3, 4)), 0.5)
    _, batch = join(segments, spread, [positive] * members)
    assert batch.advantages.tolist() == [1.0, 1.0, 1.0, -1.0, *[0.5] * members]
    assert batch.episode_tokens is not None
    assert batch.episode_tokens.tolist() == [8.0, 8.0, 8.0, 5.0, *[3.0] * members]
    assert batch.episodes == 2


def test_segments_count_as_sequences_where_that_is_asked_for() -> None:
    turns = TurnsConfig(environment="shop.py:Shop", count="segments")
    completions = scored([episode(1.0, 4, 2)], turns)
    weighed = WeighedBatch(torch.tensor([1.0]), torch.tensor([True]), {})
    segments, spread = dialogues(turns).trained_segments(completions, weighed)
    _, batch = join(segments, spread, [])
    assert batch.episode_tokens is None
    assert cast("torch.Tensor", batch.distilled).tolist() == [False, False]


@pytest.mark.parametrize(
    ("credit", "members", "teaches"),
    [
        # Equal totals of different turns.
        ("turn", [(1.0, 0.0), (0.0, 1.0)], True),
        ("discounted", [(0.0, 1.0), (0.5, 0.5)], True),
        ("equal", [(1.0, 0.0), (0.0, 1.0)], False),
        # Different totals of equal turns: the third turn has nothing to be compared with.
        ("turn", [(1.0, 0.0), (1.0, 0.0, 1.0)], False),
        ("turn", [(1.0, 0.0), (1.0, 0.0)], False),
    ],
)
def test_a_group_teaches_where_any_of_its_turns_does(
    monkeypatch: pytest.MonkeyPatch, credit: str, members: list[tuple[float, ...]], teaches: bool
) -> None:
    turns = TurnsConfig.model_validate({"environment": "shop.py:Shop", "credit": credit})
    completions = scored([turn_by_turn(*scores) for scores in members], turns)
    for completion in completions:
        completion.row["pass_rate"] = None
    monkeypatch.setattr(step, "gathered", lambda value: [value])
    trainer: Any = SimpleNamespace(config=GrpoConfig(turns=turns), groups=dialogues(turns))
    (score,) = step.Trainer._score_groups(trainer, completions).values()
    assert (score.right, score.judged, score.teaches) == (0, len(members), teaches)


def test_turns_of_episodes_that_could_not_be_judged_teach_nothing() -> None:
    turns = TurnsConfig(environment="shop.py:Shop", credit="turn")
    spoilt = turn_by_turn(1.0, 0.0)
    spoilt.ending, spoilt.score = Ending.ERROR, None
    members = scored([spoilt, turn_by_turn(0.0, 0.0)], turns)
    assert not dialogues(turns).score_group(members, "grpo", 1).teaches
    assert not dialogues(turns).score_group([], "reinforce_pp", 1).teaches


def test_the_share_of_steps_that_were_recorded_is_measured() -> None:
    episodes = [episode(1.0, 1), episode(1.0, 1), episode(1.0, 1)]
    for played in episodes:
        cast("Any", played.dialogue).drifts = cast("Any", played.dialogue).breaks = []
    assert "mock_real_steps" not in episode_metrics(episodes, EnvironmentFaults())
    cast("Any", episodes[0]).step_counts = {"recorded": 5, "missed": 1}
    cast("Any", episodes[1]).step_counts = {"recorded": 1, "missed": 1}
    assert episode_metrics(episodes, EnvironmentFaults())["mock_real_steps"] == 0.75
