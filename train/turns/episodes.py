"""Many episodes at once: the engine samples whatever turn is next, while environments answer elsewhere.

An environment that raises, hangs, or returns what cannot be used ends its own episode, which could not be judged then;
the others go on.
"""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from numbers import Real
from typing import Any

from truegold.pipeline.engines.base import POLL_S, Completion, Request, SamplingParams, sample_seed
from truegold.pipeline.rows import Row
from truegold.train.config.turns import TurnsConfig
from truegold.train.rollout.engines import RolloutEngine
from truegold.train.turns.calls import Answer, Calls
from truegold.train.turns.dialogue import Dialogue
from truegold.train.turns.environment import (
    Done,
    Environment,
    MakeEnvironment,
    Reply,
    check_messages,
    count_characters,
)
from truegold.train.turns.reminder import remind
from truegold.train.turns.template import TurnTemplate
from truegold.verifiers import ConfigError


class Ending(StrEnum):
    """How an episode ended."""

    DONE = "done"
    """Its environment said so."""
    TURNS = "turns"
    """After the last turn that it may have."""
    ROOM = "room"
    """The next prompt leaves the model no room."""
    DEADLINE = "deadline"
    """Its environment did not answer in time."""
    ERROR = "error"
    """Its environment raised, or returned what is no answer."""
    REPLY = "reply"
    """Its environment answered at too great length."""


FAILURES = frozenset({Ending.DEADLINE, Ending.ERROR, Ending.REPLY})
"""Endings that are the environment's fault: such an episode is not judged."""


@dataclass
class Episode:
    """One episode, while it goes on and after it."""

    row: Row
    group: int
    index: int
    """Its number in the group."""
    dialogue: Dialogue | None = None
    """None until the environment has opened it."""
    ending: Ending | None = None
    """None while it goes on."""
    score: float | None = None
    """What the environment says that it has earned; None where the row's verifier is to say."""
    turn_scores: list[float | None] = field(default_factory=list)
    """What each turn has earned, where the environment says."""
    error: str | None = None
    """What the environment did wrong."""
    escaped: int = 0
    """Messages of the environment's that spelled special tokens, which were made plain text."""
    last: Completion | None = None
    """The model's last turn."""
    environment: Environment | None = None

    @property
    def turns(self) -> int:
        """The model's turns so far."""
        return self.dialogue.turns if self.dialogue is not None else 0


@dataclass
class EpisodeRunner:
    """Runs episodes on an engine."""

    engine: RolloutEngine
    template: TurnTemplate
    config: TurnsConfig
    make: MakeEnvironment
    lost_threads: int = 0
    """Threads that environments have never given back."""
    waited_share: float = 0.0
    """The share of the last run's time without anything to sample, since no environment had answered."""

    def run(
        self, episodes: Sequence[Episode], sampling: SamplingParams, seeded_by: Sequence[object], version: int
    ) -> None:
        """Bring all episodes to their end.

        sampling: of each turn. seeded_by: with row, group, index and turn it decides a turn's seed. version: of the
        engine's weights.
        """
        calls = Calls(self.config.deadline_s)
        clock = _SamplerClock()
        ready: deque[int] = deque()
        for index, episode in enumerate(episodes):
            calls.start(index, self._open, episode)

        def take(count: int) -> list[Request] | None:
            # Where nothing is being sampled, the engine would look again only after a pause.
            for answer in calls.take_answers(0.0 if clock.in_flight or ready else POLL_S):
                assert isinstance(answer.key, int)
                if self._take_up(episodes[answer.key], answer):
                    ready.append(answer.key)
            requests: list[Request] = []
            while ready and len(requests) < count:
                index = ready.popleft()
                request = self._request(episodes[index], index, seeded_by)
                if request is not None:
                    requests.append(request)
            clock.hand_out(len(requests))
            return requests or (None if all(episode.ending for episode in episodes) else [])

        for request, completion in self.engine.stream(take, sampling):
            clock.in_flight -= 1
            episode = episodes[request.sample]
            self._step(episode, completion, version, calls, request.sample)
        self.waited_share = clock.waited_share
        _close_environments(episodes, calls)
        self.lost_threads += calls.lost_threads
        calls.close()

    def _open(self, episode: Episode) -> Any:
        """Make an episode's environment and begin; what comes back may be awaitable."""
        episode.environment = self.make()
        return episode.environment.reset(episode.row)

    def _take_up(self, episode: Episode, answer: Answer) -> bool:
        """Take up what an environment has answered; return whether another turn follows."""
        if answer.error is not None:
            episode.ending = Ending.DEADLINE if answer.is_late else Ending.ERROR
            episode.error = answer.error
            return False
        try:
            return self._go_on(episode, answer.value)
        except TypeError as error:
            text = str(error)
        except Exception as error:
            # Whatever its answer is made of, it costs this episode alone.
            text = f"{type(error).__name__}: {error}"
        episode.ending, episode.error = Ending.ERROR, " ".join(text.split())[:500]
        return False

    def _go_on(self, episode: Episode, value: object) -> bool:
        if isinstance(value, Done):
            _check_scores(value.score, value.turn_score)
            episode.turn_scores.append(value.turn_score)
            episode.ending, episode.score = Ending.DONE, value.score
            return False
        if episode.dialogue is None:
            messages = check_messages(value)
        elif isinstance(value, Reply):
            _check_scores(value.score)
            messages = check_messages(value.messages)
            episode.turn_scores.append(value.score)
        else:
            raise TypeError(f"step must return Reply or Done, and returned a {type(value).__name__}")
        size = count_characters(messages)
        if size > self.config.max_reply:
            episode.ending = Ending.REPLY
            episode.error = f"an answer of {size:,} characters; turns.max_reply is {self.config.max_reply:,}"
            return False
        plain = self.template.escape(messages)
        episode.escaped += sum(after != before for after, before in zip(plain, messages, strict=True))
        messages = plain
        if episode.dialogue is None:
            apart = self.config.credit != "equal"
            episode.dialogue = Dialogue(self.template, messages, self._edit, turns_apart=apart)
        else:
            episode.dialogue.messages += messages
        if episode.turns >= self.config.max_turns:
            episode.ending = Ending.TURNS
            return False
        return True

    def _edit(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return remind([dict(message) for message in messages], self.config.reminder)

    def _request(self, episode: Episode, index: int, seeded_by: Sequence[object]) -> Request | None:
        """Return what is to be sampled next for an episode; None where there is no room for it."""
        assert episode.dialogue is not None
        try:
            prompt = episode.dialogue.prompt()
        except ConfigError as error:
            episode.ending, episode.error = Ending.ERROR, str(error)
            return None
        if len(prompt) >= self.engine.max_model_len:
            episode.ending = Ending.ROOM
            return None
        seed = sample_seed(*seeded_by, episode.group, episode.row["id"], episode.index, episode.turns)
        return Request(prompt, seed, index)

    def _step(self, episode: Episode, completion: Completion, version: int, calls: Calls, index: int) -> None:
        """Take up a sampled turn and ask the environment what follows."""
        assert episode.dialogue is not None
        assert episode.environment is not None
        episode.last = completion
        message = episode.dialogue.add_completion(completion, version)
        # The environment may do with it what it likes.
        calls.start(index, episode.environment.step, copy.deepcopy(message))


def _close_environments(episodes: Sequence[Episode], calls: Calls) -> None:
    """Close the environments that can be closed; what goes wrong then concerns nobody any more."""
    for index, episode in enumerate(episodes):
        close = getattr(episode.environment, "close", None)
        if callable(close):
            calls.start(index, close)
    while calls.pending:
        calls.take_answers(POLL_S)


class _SamplerClock:
    """How long a sampler has had nothing to do."""

    def __init__(self) -> None:
        self.in_flight = 0
        """Requests that are being sampled."""
        self._began = time.monotonic()
        self._idle_since: float | None = self._began
        self._waited_s = 0.0

    def hand_out(self, requests: int) -> None:
        """Note that the sampler has asked, and how many requests it gets."""
        now = time.monotonic()
        if requests and self._idle_since is not None:
            self._waited_s += now - self._idle_since
            self._idle_since = None
        self.in_flight += requests
        if not self.in_flight and self._idle_since is None:
            self._idle_since = now

    @property
    def waited_share(self) -> float:
        """The share of the time so far in which nothing was to be sampled."""
        now = time.monotonic()
        waited = self._waited_s + (now - self._idle_since if self._idle_since is not None else 0.0)
        return waited / max(now - self._began, 1e-9)


def _check_scores(*scores: object) -> None:
    for score in scores:
        if score is not None and not (isinstance(score, Real) and 0 <= float(score) <= 1):
            raise TypeError(f"a score must be a number from 0 to 1, and is {score!r}")
