"""Concurrent episodes: the engine samples turns of some episodes, while environments answer turns of others.

An episode is one dialogue of the model with an environment about one row.

If an environment raises, hangs or returns an invalid answer, its episode ends without a score, and all other episodes
continue. If the model's turn is at fault, the episode is scored 0. Otherwise the policy would learn to escape bad
scores by such turns.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from truegold.pipeline.engines.base import POLL_S, Completion, Engine, Request, SamplingParams, sample_seed
from truegold.pipeline.tables.rows import Row
from truegold.train.config.turns import TurnsConfig
from truegold.train.model.segment import Versions
from truegold.train.turns.calls import Answer, EnvironmentCalls, describe_error
from truegold.train.turns.dialogue import Dialogue, remind
from truegold.train.turns.environment import (
    Done,
    HeldEnvironment,
    MakeEnvironment,
    Reply,
    count_characters,
    load_environment,
    read_answer,
    read_opening,
)
from truegold.train.turns.template import TurnTemplate


class Ending(StrEnum):
    """The way in which an episode ended."""

    DONE = "done"
    """The environment ended the episode."""
    TURNS = "turns"
    """The episode reached `turns.max_turns`."""
    ROOM = "room"
    """The next prompt fills the model's context."""
    UNWRITABLE = "unwritable"
    """The model's last turn cannot be parsed, or the chat template cannot render it."""
    DEADLINE = "deadline"
    """The environment did not answer before its deadline."""
    ERROR = "error"
    """The environment raised an exception or returned an invalid answer."""
    REPLY = "reply"
    """The environment's answer was longer than `turns.max_reply`."""


@dataclass
class Episode:
    """One running or finished episode."""

    row: Row
    group: int
    index: int
    """The number of the episode in its group."""
    dialogue: Dialogue | None = None
    """The messages and tokens, or None until the environment has returned the first messages."""
    ending: Ending | None = None
    """The ending, or None while the episode is running."""
    score: float | None = None
    """The score that the environment gave, or None if the row's verifier judges the episode."""
    turn_scores: list[float | None] = field(default_factory=list)
    """The score that the environment gave for each turn, or None."""
    error: str | None = None
    """The error of the environment, or the error in parsing or rendering the model's turn."""
    escaped: int = 0
    """The number of messages of the environment with special tokens, such as `<|im_end|>`. They became plain text."""
    last: Completion | None = None
    """The model's last turn."""
    environment: HeldEnvironment | None = None
    """The environment while the episode is running."""
    step_counts: Mapping[str, int] = field(default_factory=dict)
    """The number of steps in a mock environment: `recorded` with a recorded answer, `missed` without one."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process, without the environment."""
        return {**vars(self), "environment": None}

    @property
    def turns(self) -> int:
        """The number of the model's turns so far."""
        return self.dialogue.turns if self.dialogue is not None else 0


@dataclass(frozen=True)
class EnvironmentFaults:
    """Counts of faults of environments outside of episodes."""

    lost_threads: int = 0
    """Threads that were abandoned because an environment did not return."""
    close_errors: int = 0
    """Environments whose `close` raised an exception or missed the deadline."""
    first_close_error: str | None = None
    """The row's id and the error of the first environment that could not be closed."""

    def __add__(self, other: EnvironmentFaults) -> EnvironmentFaults:
        """Return the sum of both counts."""
        return EnvironmentFaults(
            self.lost_threads + other.lost_threads,
            self.close_errors + other.close_errors,
            self.first_close_error or other.first_close_error,
        )


@dataclass
class EpisodeRunner:
    """Plays episodes on an engine."""

    engine: Engine
    template: TurnTemplate
    config: TurnsConfig
    make: MakeEnvironment
    faults: EnvironmentFaults = field(default_factory=EnvironmentFaults)
    waited_share: float = 0.0
    """The share of time in the last run without sampling, because all episodes waited for environments."""

    def run(
        self, episodes: Sequence[Episode], sampling: SamplingParams, seeded_by: Sequence[object], version: int
    ) -> Sequence[Episode]:
        """Play all episodes to their end and return them.

        sampling: the sampling parameters of each turn. seeded_by: values from which each turn's seed is computed. The
        seed also depends on the episode and on the number of the turn. version: the version of the engine's weights.
        """
        played = OpenEpisodes(self)
        for key, episode in enumerate(episodes):
            played.open(key, episode, seeded_by)

        def take(count: int) -> list[Request] | None:
            return played.take_requests(count) or ([] if played else None)

        for request, completion in self.engine.stream(take, sampling):
            played.take_up(request.sample, completion, version)
        self.waited_share = played.clock.waited_share
        played.close()
        return episodes

    def take_up(self, episode: Episode, answer: Answer) -> bool:
        """Process the answer of an environment. Return whether another turn follows."""
        if answer.error is not None:
            episode.ending = Ending.DEADLINE if answer.is_late else Ending.ERROR
            episode.error = answer.error
            return False
        try:
            return self._go_on(episode, answer.value)
        except Exception as error:
            # The contents of the answer may cause the error. Only this episode ends.
            episode.ending, episode.error = Ending.ERROR, describe_error(error)
        return False

    def _go_on(self, episode: Episode, value: Reply | Done) -> bool:
        """Add a valid answer to an episode. Return whether another turn follows."""
        if isinstance(value, Done):
            episode.turn_scores.append(value.turn_score)
            episode.ending, episode.score = Ending.DONE, value.score
            return False
        if episode.dialogue is not None:
            episode.turn_scores.append(value.score)
        messages = list(value.messages)
        size = count_characters(messages)
        if size > self.config.max_reply:
            episode.ending = Ending.REPLY
            episode.error = f"the answer has {size:,} characters; turns.max_reply is {self.config.max_reply:,}"
            return False
        plain = self.template.escape(messages)
        episode.escaped += sum(after != before for after, before in zip(plain, messages, strict=True))
        messages = plain
        if episode.dialogue is None:
            apart = self.config.credit != "equal"
            edit = partial(remind, config=self.config.reminder)
            episode.dialogue = Dialogue(self.template, messages, edit, turns_apart=apart)
        else:
            episode.dialogue.messages += messages
        if episode.turns >= self.config.max_turns:
            episode.ending = Ending.TURNS
            return False
        return True

    def next_request(self, episode: Episode, seeded_by: Sequence[object], key: int) -> Request | None:
        """Return the request for the next turn of an episode.

        Return None if the episode ends, because its prompt cannot be rendered or is too long.
        """
        assert episode.dialogue is not None
        try:
            prompt = episode.dialogue.prompt()
        except Exception as error:
            is_model_s = not episode.dialogue.can_write_last_turn()
            episode.ending = Ending.UNWRITABLE if is_model_s else Ending.ERROR
            episode.error = describe_error(error)
            return None
        if len(prompt) >= self.engine.max_model_len:
            episode.ending = Ending.ROOM
            return None
        seed = sample_seed(*seeded_by, episode.group, episode.row["id"], episode.index, episode.turns)
        return Request(prompt, seed, key)


class OpenEpisodes:
    """The running episodes of a stream: their next requests, and the answers of their environments."""

    def __init__(self, runner: EpisodeRunner) -> None:
        self._runner = runner
        self._calls = EnvironmentCalls(runner.config.deadline_s)
        self.clock = _SamplerClock()
        self._open: dict[int, tuple[Episode, Sequence[object]]] = {}
        """The running episodes by key, with the values that determine their seeds."""
        self._ready: deque[int] = deque()
        """The keys of episodes whose next turn can be sampled."""
        self._ended: list[tuple[int, Episode]] = []
        """Finished episodes with their keys, until `take_ended`."""

    def __len__(self) -> int:
        """Return the number of running episodes."""
        return len(self._open)

    def open(self, key: int, episode: Episode, seeded_by: Sequence[object]) -> None:
        """Begin an episode."""
        self._open[key] = (episode, seeded_by)
        episode.environment = HeldEnvironment(self._runner.make)
        self._calls.start(key, episode.environment.open, episode.row, read=read_opening)

    def take_requests(self, count: int) -> list[Request]:
        """Process answers of environments, and return at most `count` requests for next turns.

        The `sample` of a request is the key of its episode.
        """
        # If nothing is being sampled, wait here. Otherwise the engine calls again only after a pause.
        for answer in self._take_answers(0.0 if self.clock.in_flight or self._ready else POLL_S):
            if not isinstance(answer.key, int):
                continue
            if self._runner.take_up(self._open[answer.key][0], answer):
                self._ready.append(answer.key)
            else:
                self._end(answer.key)
        if self._ready:
            self.clock.end_waiting()
        requests: list[Request] = []
        while self._ready and len(requests) < count:
            key = self._ready.popleft()
            request = self._runner.next_request(*self._open[key], key)
            if request is not None:
                requests.append(request)
            else:
                self._end(key)
        self.clock.hand_out(len(requests))
        return requests

    def take_up(self, key: int, completion: Completion, version: int, versions: Versions = ()) -> None:
        """Add a sampled turn to its episode and pass it to the environment."""
        self.clock.in_flight -= 1
        episode, _ = self._open[key]
        assert episode.dialogue is not None
        assert episode.environment is not None
        episode.last = completion
        try:
            message = episode.dialogue.add_completion(completion, version, versions)
        except Exception as error:
            episode.ending, episode.error = Ending.UNWRITABLE, describe_error(error)
            self._end(key)
            return
        self._calls.start(key, episode.environment.step, message, read=read_answer)

    def take_ended(self) -> list[tuple[int, Episode]]:
        """Return the episodes that ended since the last call, with their keys."""
        ended, self._ended = self._ended, []
        return ended

    def abandon(self) -> None:
        """End all running episodes, and close their environments."""
        for key in list(self._open):
            self._end(key)
        self.close()

    def close(self) -> None:
        """Wait until all environments are closed, and end the threads of calls."""
        while self._calls.pending:
            self._take_answers(POLL_S)
        self._calls.close()

    def _take_answers(self, wait_s: float) -> list[Answer]:
        """Return the answers of calls, and count lost threads and errors of `close`."""
        lost_threads = self._calls.lost_threads
        answers = self._calls.take_answers(wait_s)
        self._runner.faults += EnvironmentFaults(self._calls.lost_threads - lost_threads)
        for answer in answers:
            if isinstance(answer.key, tuple) and answer.error is not None:
                error = f"{answer.key[0]}: {answer.error}"
                self._runner.faults += EnvironmentFaults(close_errors=1, first_close_error=error)
        return answers

    def _end(self, key: int) -> None:
        """Move an episode to the finished ones, and close its environment."""
        episode, _ = self._open.pop(key)
        self._ended.append((key, episode))
        assert episode.environment is not None
        episode.step_counts = episode.environment.step_counts
        # The other calls of the episode have its number as key. This key is a tuple, so it differs from them.
        self._calls.start((episode.row["id"], key), episode.environment.close)


def make_runner(
    engine: Engine, tokenizer: Any, stop_token_ids: Sequence[int], system: str | None, config: TurnsConfig
) -> EpisodeRunner:
    """Return a runner that plays episodes on an engine, with the tokenizer's chat template.

    system: the system message, or None. Raises ConfigError if the environment cannot be created.
    """
    make, tools = load_environment(config)
    template = TurnTemplate(tokenizer, stop_token_ids, system, config.template_args, tools)
    return EpisodeRunner(engine, template, config, make)


class _SamplerClock:
    """Measures the time in which a sampler had no requests, because it waited for environments."""

    def __init__(self) -> None:
        self.in_flight = 0
        """The number of requests that are being sampled."""
        self._began = time.monotonic()
        self._idle_since: float | None = self._began
        self._waited_s = 0.0

    def hand_out(self, requests: int) -> None:
        """Count requests that the sampler gets. If there are none in progress, waiting begins."""
        self.in_flight += requests
        if not self.in_flight and self._idle_since is None:
            self._idle_since = time.monotonic()

    def end_waiting(self) -> None:
        """End waiting, because a turn can be sampled."""
        if self._idle_since is not None:
            self._waited_s += time.monotonic() - self._idle_since
            self._idle_since = None

    @property
    def waited_share(self) -> float:
        """The share of time spent waiting."""
        now = time.monotonic()
        waited = self._waited_s + (now - self._idle_since if self._idle_since is not None else 0.0)
        return waited / max(now - self._began, 1e-9)
