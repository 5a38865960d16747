"""Episodes run side by side, and an environment that goes wrong costs its own episode alone."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from numbered_rows import make_row
from turn_templates import CHATML, ScriptedTurns, turn_template

from truegold.pipeline.engines.base import SamplingParams
from truegold.pipeline.tables.rows import Row
from truegold.train.config.turns import TurnsConfig
from truegold.train.turns.environment import Done, Message, Reply, load_environment
from truegold.train.turns.episodes import Ending, Episode, EpisodeRunner
from truegold.verifiers import ConfigError


def user(text: str) -> list[Message]:
    return [{"role": "user", "content": text}]


class Countdown:
    """Over after `turns` turns, and what the row's number says goes wrong on the way."""

    def __init__(self, turns: int = 3, faults: dict[str, str] | None = None) -> None:
        self.turns, self.faults, self.fault = turns, faults or {}, ""

    def reset(self, row: Row) -> Sequence[Message]:
        self.fault = self.faults.get(row["id"], "")
        if self.fault == "raises on reset":
            raise OSError("the shop is closed")
        return user("Count.")

    def step(self, completion: Message) -> Any:
        if self.fault == "raises":
            raise ZeroDivisionError
        if self.fault == "hangs":
            threading.Event().wait()
        if self.fault == "megabyte":
            return Reply(user("x" * 1_000_000))
        if self.fault == "no answer":
            return "Well done."
        if self.fault == "no text":
            return Reply([{"role": "user", "content": None}])
        if self.fault == "score":
            return Done(2.0)
        self.turns -= 1
        return Reply(user("Again."), 0.25) if self.turns else Done(completion["content"] == "1")


class AsyncCountdown(Countdown):
    async def reset(self, row: Row) -> Sequence[Message]:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().reset(row)

    async def step(self, completion: Message) -> Any:
        if self.fault == "hangs":
            await asyncio.sleep(3600)
        return super().step(completion)


def episodes(count: int) -> list[Episode]:
    return [Episode(make_row(number), group=number, index=0) for number in range(count)]


def run(
    model: Path, made: list[Episode], make: Any, config: TurnsConfig | None = None, speak: Any = lambda text: "1"
) -> tuple[EpisodeRunner, ScriptedTurns]:
    template = turn_template(model, CHATML)
    engine = ScriptedTurns(template, speak)
    config = config or TurnsConfig(environment="x.py:X", deadline_s=0.5)
    runner = EpisodeRunner(engine, template, config, make)  # type: ignore[arg-type]
    runner.run(made, SamplingParams(stop_token_ids=template.stop_token_ids), (0, 7), version=5)
    return runner, engine


@pytest.mark.parametrize("kind", [Countdown, AsyncCountdown])
def test_each_fault_costs_its_own_episode_and_is_named(tiny_model: Path, kind: Any) -> None:
    faults = ["", "raises", "hangs", "megabyte", "no answer", "no text", "score", "raises on reset", ""]
    made = episodes(len(faults))
    by_id = {episode.row["id"]: fault for episode, fault in zip(made, faults, strict=True)}
    run(tiny_model, made, lambda: kind(faults=by_id))
    endings = [episode.ending for episode in made]
    assert endings == [
        Ending.DONE,
        Ending.ERROR,
        Ending.DEADLINE,
        Ending.REPLY,
        Ending.ERROR,
        Ending.ERROR,
        Ending.ERROR,
        Ending.ERROR,
        Ending.DONE,
    ]
    assert [episode.error for episode in made] == [
        None,
        "ZeroDivisionError",
        "no answer within 0.5 s",
        "the answer has 1,000,000 characters; turns.max_reply is 20,000",
        "step must return Reply or Done, but returned a str",
        "the content of a message must be text, but is 'None'",
        "a score must be a number from 0 to 1, but is 2.0",
        "OSError: the shop is closed",
        None,
    ]
    assert (made[0].score, made[0].turns, made[0].turn_scores) == (1.0, 3, [0.25, 0.25, None])


def test_threads_that_are_lost_are_counted_and_others_take_their_place(tiny_model: Path) -> None:
    made = episodes(40)
    hanging = {episode.row["id"]: "hangs" for episode in made[:30]}
    runner, _ = run(tiny_model, made, lambda: Countdown(faults=hanging))
    assert [episode.ending for episode in made] == [Ending.DEADLINE] * 30 + [Ending.DONE] * 10
    assert runner.faults.lost_threads == 30


def test_environments_are_closed_however_their_episodes_end(tiny_model: Path) -> None:
    closed: list[str] = []

    class Closes(Countdown):
        def close(self) -> None:
            closed.append(self.fault)

    faults = ["", "raises", "megabyte"]
    made = episodes(len(faults))
    by_id = {episode.row["id"]: fault for episode, fault in zip(made, faults, strict=True)}
    run(tiny_model, made, lambda: Closes(faults=by_id))
    assert sorted(closed) == sorted(faults)


def test_the_time_without_anything_to_sample_is_measured(tiny_model: Path) -> None:
    class Slow(Countdown):
        def step(self, completion: Message) -> Any:
            time.sleep(0.3)
            return super().step(completion)

    runner, _ = run(tiny_model, episodes(1), lambda: Slow(turns=2))
    assert runner.waited_share > 0.8


def test_an_episode_ends_after_its_last_turn(tiny_model: Path) -> None:
    (episode,) = made = episodes(1)
    run(tiny_model, made, lambda: Countdown(turns=9), TurnsConfig(environment="x.py:X", max_turns=4))
    assert (episode.ending, episode.turns, episode.score) == (Ending.TURNS, 4, None)


def test_an_episode_ends_where_the_next_prompt_leaves_no_room(tiny_model: Path) -> None:
    (episode,) = made = episodes(1)
    template = turn_template(tiny_model, CHATML)
    engine = ScriptedTurns(template, lambda text: "1", max_model_len=40)
    config = TurnsConfig(environment="x.py:X", max_turns=50)
    runner = EpisodeRunner(engine, template, config, lambda: Countdown(turns=99))  # type: ignore[arg-type]
    runner.run(made, SamplingParams(), (0,), version=0)
    assert episode.ending is Ending.ROOM
    assert all(len(prompt) < 40 for prompt in engine.prompts)


def test_seeds_depend_on_run_row_group_index_and_turn_alone(tiny_model: Path) -> None:
    alone, together = episodes(1), episodes(5)
    _, first = run(tiny_model, alone, Countdown)
    _, second = run(tiny_model, together, Countdown)
    assert len(set(second.seeds)) == 15
    assert set(first.seeds) < set(second.seeds)


def test_a_slow_environment_does_not_hold_up_the_others(tiny_model: Path) -> None:
    ends: list[str] = []

    class Slow(Countdown):
        def step(self, completion: Message) -> Any:
            if self.fault == "slow":
                time.sleep(0.1)
            answer = super().step(completion)
            if isinstance(answer, Done):
                ends.append(self.fault)
            return answer

    made = episodes(12)
    run(tiny_model, made, lambda: Slow(faults={made[0].row["id"]: "slow"}))
    assert ends[-1] == "slow"
    assert len(ends) == 12


def test_a_thousand_episodes_step_together(tiny_model: Path) -> None:
    made = episodes(1000)
    counter = itertools.count()

    class Counted(AsyncCountdown):
        async def step(self, completion: Message) -> Any:
            next(counter)
            return await super().step(completion)

    run(tiny_model, made, lambda: Counted(turns=2), TurnsConfig(environment="x.py:X", deadline_s=60))
    assert all(episode.ending is Ending.DONE for episode in made)
    assert next(counter) == 2000


@pytest.mark.parametrize(
    ("code", "args", "error"),
    [
        ("class World: pass", {}, r"has no method reset"),
        ("class World:\n    def __init__(self, size): pass", {}, r"cannot be created: TypeError: .*missing 1 required"),
        ("World = 3", {}, r"is a int, not a class or function"),
    ],
)
def test_what_is_no_environment_is_named_before_anything_runs(
    tmp_path: Path, code: str, args: dict[str, Any], error: str
) -> None:
    (tmp_path / "world.py").write_text(code)
    with pytest.raises(ConfigError, match=error):
        load_environment(TurnsConfig(environment=f"{tmp_path}/world.py:World", args=args))
