"""What samples beside the trainer, with an engine of the test's own: messages, weights and episodes on their way."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from numbered_rows import make_row
from turn_templates import CHATML, turn_template

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.base import Completion, Request, SamplingParams, TakeRequests
from truegold.train.config.turns import TurnsConfig
from truegold.train.rollout import sampler, sampler_child
from truegold.train.rollout.sampler import Sampler, Submitted
from truegold.train.rollout.sampler_child import Outbox, SamplerChild, SamplerSetup
from truegold.train.rollout.weight_transfer import release_weights, write_weights
from truegold.train.turns.environment import Done, Message, Reply
from truegold.train.turns.episodes import Episode, EpisodeRunner
from truegold.verifiers import GuardError

TOKENS = 5_000


class Engine:
    """Samples so many tokens at once, and asks for more when they are done."""

    max_model_len = 100_000

    def __init__(self, tokens: tuple[int, ...] = tuple(range(TOKENS))) -> None:
        self.tokens, self.finished = tokens, 0
        self.has_begun, self.may_finish = threading.Event(), threading.Event()
        self.may_finish.set()

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        while (requests := take(4)) is not None:
            for request in requests:
                self.has_begun.set()
                self.may_finish.wait(10)
                yield request, Completion(self.tokens, (-1.0,) * len(self.tokens), "stop")
                self.finished += 1
            if not requests:
                time.sleep(0.001)

    def lengths(self) -> dict[int, int]:
        return {}


class Served:
    """A child in a thread of its own, and the trainer's end of its connection."""

    def __init__(self, engine: Engine, runner: EpisodeRunner | None = None) -> None:
        self.trainer: Connection
        self.trainer, connection = Pipe()
        self.loaded: list[int] = []
        outbox = Outbox(connection)
        child = SamplerChild(connection, outbox, engine, lambda _, version: self.loaded.append(version), "0", runner)
        threading.Thread(target=self._serve, args=(child, outbox), daemon=True).start()

    @staticmethod
    def _serve(child: SamplerChild, outbox: Outbox) -> None:
        try:
            child.serve()
        except EOFError:
            outbox.close()

    def read(self, *kinds: str) -> Any:
        """Return the next message, which must be of one of these kinds."""
        assert self.trainer.poll(10)
        message = self.trainer.recv()
        assert message[0] in kinds, message[0]
        return message


@pytest.fixture
def stop() -> Iterator[list[Served]]:
    served: list[Served] = []
    yield served
    for each in served:
        each.trainer.send(("close",))


def test_a_trainer_that_does_not_read_holds_no_sampler_up(stop: list[Served]) -> None:
    engine = Engine()
    served = Served(engine)
    stop.append(served)
    served.trainer.send(("stream", SamplingParams(), False))
    # Far more than fits into a pipe.
    served.trainer.send(("requests", [Request((1, 2), 0, index) for index in range(200)]))
    deadline = time.monotonic() + 10
    while engine.finished < 200 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert engine.finished == 200
    assert [served.read("done")[1] for _ in range(200)] == list(range(200))


def test_a_stream_says_that_it_goes_on_while_nothing_is_finished(
    stop: list[Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler_child, "ALIVE_EVERY_S", 0.05)
    stop.append(served := Served(Engine()))
    served.trainer.send(("stream", SamplingParams(), False))
    served.trainer.send(("requests", [Request((1, 2), 0, 0)]))
    served.read("done")
    # Nothing is asked for, so that it waits; then weights arrive.
    time.sleep(0.1)
    served.trainer.send(("weights", Path("nowhere"), 1))
    assert served.read("alive") == ("alive",)


def test_a_call_that_takes_long_says_that_it_goes_on(stop: list[Served], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_child, "ALIVE_EVERY_S", 0.05)
    stop.append(served := Served(engine := Engine()))
    may_answer = threading.Event()
    monkeypatch.setattr(engine, "generate", lambda prompts: may_answer.wait(10) and prompts, raising=False)
    served.trainer.send(("call", "generate", [1]))
    assert served.read("alive") == ("alive",)
    may_answer.set()
    while (message := served.read("alive", "answer"))[0] == "alive":
        pass
    assert message == ("answer", [1])
    # It falls silent with the answer.
    assert not served.trainer.poll(0.2)


@pytest.mark.parametrize("while_pausing", [False, True])
def test_a_sampler_that_says_nothing_though_it_has_work_hangs(
    monkeypatch: pytest.MonkeyPatch, while_pausing: bool
) -> None:
    silent: list[Connection] = []
    monkeypatch.setattr(sampler_child, "serve", lambda connection, setup: silent.append(connection))
    monkeypatch.setattr(sampler, "LONGEST_SILENCE_S", 0.1)
    hanging = Sampler(SamplerSetup("0", Path(), ServerEngineConfig(url="http://nowhere/v1")))
    hanging.start(SamplingParams(), in_flight=False)
    time.sleep(0.2)
    # Without work it need not say anything.
    assert hanging.take_done() == []
    hanging.submit([Submitted("requests", 1, Request((1, 2), 0, 1))])
    assert hanging.take_done() == []
    time.sleep(0.2)
    with pytest.raises(GuardError, match="hangs: it has work, but has sent no message for"):
        if while_pausing:
            hanging.pause()
            hanging.await_pause()
        hanging.take_done()
    hanging.ask("generate", [(1, 2)])
    with pytest.raises(GuardError, match="hangs: it has work, but has sent no message for"):
        hanging.answer()
    hanging.close()


def test_weights_that_newer_ones_overtake_are_never_loaded_and_removed(stop: list[Served], tmp_path: Path) -> None:
    engine = Engine((1, 2, 3))
    engine.may_finish.clear()
    served = Served(engine)
    stop.append(served)
    for version in (1, 2):
        write_weights(iter([("norm", torch.ones(2))]), tmp_path / str(version), ["0", "1"])
    served.trainer.send(("stream", SamplingParams(), False))
    served.trainer.send(("requests", [Request((1, 2), 0, 0)]))
    assert engine.has_begun.wait(10)
    for version in (1, 2):
        served.trainer.send(("weights", tmp_path / str(version), version))
    engine.may_finish.set()
    done = served.read("done")
    assert done[3] == ((0, 3),)
    assert served.read("loaded")[1] == 2
    assert served.loaded == [2]
    # The other sampler has not read them.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]
    for version in (1, 2):
        release_weights(tmp_path / str(version), "1")
    assert not list(tmp_path.iterdir())


class Three:
    """Over after three turns."""

    def __init__(self) -> None:
        self.turns = 0

    def reset(self, row: Any) -> list[Message]:
        return [{"role": "user", "content": row["prompt"]}]

    def step(self, completion: Message) -> Reply | Done:
        self.turns += 1
        if self.turns == 3:
            return Done(1.0)
        return Reply([{"role": "user", "content": "again"}])


def test_each_turn_of_an_episode_knows_the_weights_that_sampled_it(
    stop: list[Served], tiny_model: Path, tmp_path: Path
) -> None:
    template = turn_template(tiny_model, CHATML)
    words = (*template.tokenizer("4", add_special_tokens=False)["input_ids"], template.stop_token_ids[0])
    engine = Engine(words)
    runner = EpisodeRunner(engine, template, TurnsConfig(environment="unused"), Three)
    served = Served(engine, runner)
    stop.append(served)
    engine.may_finish.clear()
    served.trainer.send(("stream", SamplingParams(), False))
    served.trainer.send(("episodes", [(7, Episode(make_row(0), 3, 1))], (0, "group")))
    write_weights(iter([("norm", torch.ones(2))]), tmp_path / "1", ["0"])
    assert engine.has_begun.wait(10)
    # The first turn is being sampled: the weights wait for it.
    served.trainer.send(("weights", tmp_path / "1", 1))
    engine.may_finish.set()
    assert served.read("loaded")[1] == 1
    _, key, episode, versions = served.read("done")
    assert (key, episode.group, episode.index, episode.turns, episode.score) == (7, 3, 1, 3, 1.0)
    assert versions == ((0, len(words)), (1, 2 * len(words)))
    (segment,) = [tokens.to_segment(1.0) for tokens in episode.dialogue.segments]
    assert (segment.version, segment.versions) == (0, versions)
    assert segment.sampled_tokens == 3 * len(words)
    assert episode.environment is None


class Endless:
    """Never over; it knows how many of its kind were closed."""

    closed: ClassVar[list[int]] = []

    def reset(self, row: Any) -> list[Message]:
        return [{"role": "user", "content": row["prompt"]}]

    def step(self, completion: Message) -> Reply | Done:
        time.sleep(0.05)
        return Reply([{"role": "user", "content": "again"}])

    def close(self) -> None:
        self.closed.append(1)


def test_environments_that_are_open_at_the_end_are_closed(tiny_model: Path) -> None:
    template = turn_template(tiny_model, CHATML)
    engine = Engine((*template.tokenizer("4", add_special_tokens=False)["input_ids"], template.stop_token_ids[0]))
    config = TurnsConfig(environment="unused", max_turns=100_000)
    served = Served(engine, EpisodeRunner(engine, template, config, Endless))
    served.trainer.send(("stream", SamplingParams(), False))
    served.trainer.send(("episodes", [(key, Episode(make_row(0), key, 0)) for key in range(6)], (0, "group")))
    assert engine.has_begun.wait(10)
    served.trainer.send(("close",))
    deadline = time.monotonic() + 10
    while len(Endless.closed) < 6 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(Endless.closed) == 6
