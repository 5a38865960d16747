"""The samplers of a training: rank 0 has them, and every rank uses them.

The number of samplers does not depend on the number of ranks. In the background, a whole group goes to the sampler with
the least work, so that its prompt is computed once. New weights are written once, and every sampler reads them.

    starting    a process loads the model, here or on a node of Ray, or a thread looks for its server
    loading     the sampler loads the current weights
    ready       it samples
    lost        the sampler or its server has died. It restarts after a pause, and others do its work

A restarted sampler loads the current weights before it samples. Each token has the version of its weights.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate, chain, groupby
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.base import Completion, Request, SamplingParams, check_room
from truegold.train.model.distributed import Note, from_first_rank, gathered, print_note, rank, scattered
from truegold.train.model.ending import interruptible
from truegold.train.rollout.sampler import FinishedSample, Sampler, Submitted
from truegold.train.rollout.sampler_child import SamplerSetup, Usage
from truegold.train.rollout.weight_transfer import claim_folder, hold_weights, release_weights, write_weights
from truegold.train.turns.episodes import EnvironmentFaults, Episode
from truegold.verifiers import GuardError, SetupError

LOOK_EVERY_S = 10.0
"""How often it is looked which samplers there are to be."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 60.0
"""The first and the longest pause before a lost sampler starts anew; each is twice the one before."""
MOST_LOSSES, LATELY_S = 4, 3600.0
"""A process that is lost this many times within this many seconds is not restarted. A server is always tried again."""
LONGEST_START_S = 1800.0
"""How long samplers may take to start while none samples."""
WAIT_S = 1.0
"""How long one wait for samplers takes at most, before they are looked after."""
HOLDER = "pool"
"""The pool's name among the readers of weights."""


@dataclass
class _Seat:
    """The place of one sampler: the present process or server, and its predecessors."""

    setup: SamplerSetup
    sampler: Sampler | None = None
    is_ready: bool = False
    """Whether it samples, or else it starts or is lost."""
    losses: list[float] = field(default_factory=list)
    """When it was lost."""
    starts_at: float = 0.0
    error: GuardError | SetupError | None = None
    """The error of the last loss."""

    @property
    def is_server(self) -> bool:
        """Whether it is a server, which the user starts."""
        return isinstance(self.setup.engine, ServerEngineConfig)

    @property
    def recent_losses(self) -> list[float]:
        """When it was lost lately."""
        return [lost for lost in self.losses if time.monotonic() - lost < LATELY_S]

    @property
    def is_given_up(self) -> bool:
        """Whether it does not start any more."""
        return not self.is_server and len(self.losses) >= MOST_LOSSES

    def describe(self) -> str:
        """Return its name."""
        engine = self.setup.engine
        return f"the server {engine.url}" if isinstance(engine, ServerEngineConfig) else f"sampler {self.setup.name}"

    def describe_error(self) -> str:
        """Return the name of the sampler and the cause of its loss."""
        return f"{self.describe()}: {'it starts' if self.error is None else self.error.message}"


@dataclass
class _Background:
    """The work in the background."""

    stream: tuple[SamplingParams, bool] | None = None
    """The arguments of `SamplerPool.start`."""
    waiting: list[Submitted] = field(default_factory=list)
    """Submitted samples that no sampler has yet."""
    done: list[FinishedSample] = field(default_factory=list)
    """Samples that were finished by samplers that are lost now."""


class SamplerPool:
    """A rollout engine for all ranks together, which samples in the background too.

    Every rank calls its methods, except for those of the background, which are rank 0's.
    """

    def __init__(
        self,
        list_setups: Callable[[], Sequence[SamplerSetup]],
        weights_dir: str | None = None,
        outage_s: float = 0.0,
        note: Note = print_note,
    ) -> None:
        """Start the samplers on rank 0.

        list_setups: returns those that there are to be now. weights_dir: the folder that weights pass through, if it is
        not one in memory. outage_s: how long servers are waited for when none is left. note: takes lines on samplers
        that are lost, and that are back.
        """
        self._list_setups, self._outage_s, self._note = list_setups, outage_s, note
        self._seats: dict[str, _Seat] = {}
        self._background = _Background()
        self._folder: Path | None = None
        self._lock: int | None = None
        """The descriptor that holds the folder."""
        self._weights: tuple[Path, int] | None = None
        """The folder of the weights in training, and their version; None before the first."""
        self._looked = self._had_one = time.monotonic()
        """When it was looked last which samplers there are to be, and when one was ready last."""
        self.max_model_len = 0
        if rank() == 0:
            if weights_dir is None:
                self._folder, self._lock = claim_folder()
            else:
                self._folder = Path(weights_dir).resolve() / "samplers"
                # Files that a killed training left there.
                shutil.rmtree(self._folder, ignore_errors=True)
            self._seats = {setup.name: _Seat(setup) for setup in list_setups()}
            self._start_all()
        self.max_model_len = from_first_rank(self.max_model_len)

    @property
    def samplers(self) -> list[Sampler]:
        """The samplers that are ready."""
        return [seat.sampler for seat in self._seats.values() if seat.sampler is not None and seat.is_ready]

    # What every rank calls.

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sequence[SamplingParams], seeds: Sequence[int]
    ) -> list[Completion]:
        """Sample one completion for each prompt of this rank, in order. The background pauses."""
        check_room(prompts, self.max_model_len)
        local = list(zip(map(tuple, prompts), sampling, seeds, strict=True))
        return self._spread(
            local, lambda asked: asked[0], lambda part: ("generate", *map(list, zip(*part, strict=True)))
        )

    def run(
        self, episodes: Sequence[Episode], sampling: SamplingParams, seeded_by: Sequence[object], version: int
    ) -> list[Episode]:
        """Bring this rank's episodes to their end, as `EpisodeRunner.run` does; the background pauses."""
        return self._spread(
            episodes, lambda episode: episode.group, lambda part: ("run", part, sampling, tuple(seeded_by), version)
        )

    def update_weights(self, named_tensors: Iterator[tuple[str, Tensor]], version: int) -> None:
        """Send new weights; in the background they are loaded when it is their time, else before this returns."""
        if self._folder is None:
            # Under ZeRO 3 each tensor is gathered from all ranks.
            for _ in named_tensors:
                pass
            return
        if self._weights is not None:
            release_weights(self._weights[0], HOLDER)
        folder = self._folder / f"version-{version}"
        write_weights(named_tensors, folder, [*(sampler.name for sampler in self.samplers), HOLDER])
        self._weights = folder, version
        for seat in self._ready():
            with self._losing(seat) as sampler:
                sampler.send_weights(folder, version)
        for seat in self._ready():
            with self._losing(seat) as sampler:
                if not sampler.is_streaming:
                    sampler.answer()
                    sampler.version = version

    def forget_prefixes(self) -> None:
        """Put every cached prefix out of reach."""
        self._ask_all("forget_prefixes")

    def sleep(self, weights_follow: bool = True) -> None:
        """Do nothing: they go on."""

    def head_logits(self, hidden: Tensor) -> Tensor | None:
        """Return the logits [N, V] of the output heads for hidden states [N, H]. If the samplers differ, return the
        mean."""
        logits = self._ask_all("head_logits", hidden.detach().cpu())
        return from_first_rank(_mean(logits) if logits and logits[0] is not None else None)

    def vectors(self) -> dict[str, Tensor]:
        """Return the one-dimensional weights by their Hugging Face names, their mean where samplers differ."""
        vectors: list[Mapping[str, Tensor]] = self._ask_all("vectors")
        return from_first_rank({name: _mean([each[name] for each in vectors]) for name in (vectors or [{}])[0]})

    def close(self) -> None:
        """End the samplers, and remove weights that they have not read."""
        for seat in self._seats.values():
            if seat.sampler is not None:
                seat.sampler.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    # The background, of rank 0 alone.

    @property
    def usage(self) -> Usage:
        """How the samplers' streams have spent their time, together."""
        usages = [sampler.usage for sampler in self.samplers]
        return Usage(
            sum(usage.stream_s for usage in usages),
            sum(usage.starved_s for usage in usages),
            sum(usage.environments_s for usage in usages),
            sum((usage.faults for usage in usages), EnvironmentFaults()),
        )

    def start(self, sampling: SamplingParams, *, in_flight: bool = False) -> None:
        """Start sampling submitted requests. in_flight: whether new weights are loaded in the middle of completions."""
        self._background.stream = (sampling, in_flight)
        for seat in self._ready():
            with self._losing(seat) as sampler:
                sampler.start(sampling, in_flight)

    def submit(self, requests: Sequence[Request]) -> None:
        """Submit the requests of a group. Their `sample` identifies them."""
        check_room([request.prompt for request in requests], self.max_model_len)
        self._submit([Submitted("requests", request.sample, request) for request in requests])

    def submit_episodes(self, episodes: Sequence[tuple[int, Episode]], seeded_by: Sequence[object]) -> None:
        """Hand over a group's episodes by their keys; `seeded_by` decides their seeds (`EpisodeRunner.run`)."""
        seeding = (tuple(seeded_by),)
        self._submit([Submitted("episodes", key, (key, episode), seeding) for key, episode in episodes])

    @property
    def faults(self) -> EnvironmentFaults:
        """Faults of environments outside of their episodes, on rank 0."""
        return self.usage.faults

    @property
    def waited_share(self) -> float:
        """On rank 0, the share of time in which all episodes waited for their environments."""
        return self.usage.environments_s / max(self.usage.stream_s, 1e-9)

    def poll(self, timeout_s: float | None = 0.0) -> list[FinishedSample]:
        """Return the completions that finished since the last call. If there are none, wait for at most `timeout_s`
        (None: without a limit). Raises GuardError or SetupError if no sampler is left."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            self._look_after()
            for seat in self._ready():
                with self._losing(seat) as sampler:
                    self._background.done += sampler.take_done()
            done, self._background.done = self._background.done, []
            left = WAIT_S if deadline is None else min(WAIT_S, deadline - time.monotonic())
            if done or left < 0:
                return done
            self._wait(left)

    # How samplers start, and are lost.

    def _start_all(self) -> None:
        """Start all samplers. Raises the error of a process that cannot start, or of a server if none can be sampled
        from."""
        for seat in self._seats.values():
            seat.sampler = Sampler(seat.setup)
        while any(seat.sampler is not None and not seat.is_ready for seat in self._seats.values()):
            self._go_on_starting()
            for seat in self._seats.values():
                if seat.error is not None and not seat.is_server:
                    raise seat.error
            self._wait(WAIT_S)
        if not self.samplers:
            errors = [seat.error for seat in self._seats.values() if seat.error is not None]
            raise errors[0] if errors else SetupError("The list of servers names none.")
        self.max_model_len = min(sampler.max_model_len for sampler in self.samplers)

    def _look_after(self) -> None:
        """Take samplers in that have started, start those anew that are lost, and follow the list of all. Raises
        GuardError or SetupError if none is left."""
        now = time.monotonic()
        if now - self._looked >= LOOK_EVERY_S:
            self._looked = now
            self._follow_list()
        for seat in self._seats.values():
            if seat.sampler is None and not seat.is_given_up and now >= seat.starts_at:
                seat.sampler = Sampler(seat.setup)
        self._go_on_starting()
        if self.samplers:
            self._had_one = now
            waiting, self._background.waiting = self._background.waiting, []
            if waiting:
                self._submit(waiting)
        else:
            self._check_hope(now)

    def _check_hope(self, now: float) -> None:
        """Raise an error if no sampler is ready, and none will be."""
        processes = [seat for seat in self._seats.values() if not seat.is_server]
        for seat in processes if all(seat.is_given_up for seat in processes) else ():
            assert seat.error is not None
            raise seat.error
        if processes and now - self._had_one > LONGEST_START_S:
            raise SetupError(
                f"No sampler has started in {LONGEST_START_S:.0f} seconds.",
                "Look at the log of the stage, and with Ray at `ray status`: there may be no node for it.",
            )
        if not processes and now - self._had_one > self._outage_s:
            described = "; ".join(map(_Seat.describe_error, self._seats.values()))
            raise SetupError(
                f"No server can be sampled from: {described or 'the list names none'}.",
                "Start them: the same command goes on from the last checkpoint.",
            )

    def _follow_list(self) -> None:
        setups = {setup.name: setup for setup in self._list_setups()}
        for name in self._seats.keys() - setups.keys():
            seat = self._seats.pop(name)
            self._note(f"{seat.describe()} is on the list of servers no more")
            self._take_back(seat)
        for name in setups.keys() - self._seats.keys():
            self._seats[name] = _Seat(setups[name])

    def _go_on_starting(self) -> None:
        """Take in the samplers that have started, when they have the weights in training."""
        for seat in self._seats.values():
            while seat.sampler is not None and not seat.is_ready:
                with self._losing(seat) as sampler:
                    signal = sampler.take_signal()
                    if signal is None:
                        break
                    self._take_step(seat, sampler, signal)

    def _take_step(self, seat: _Seat, sampler: Sampler, signal: tuple[Any, ...]) -> None:
        """Take the next step of a sampler's start, after its message `signal`."""
        if signal[0] == "ready":
            room = int(signal[1])
            if self.max_model_len > room:
                raise SetupError(f"its max_model_len is {room}, and {self.max_model_len} is in use")
            sampler.max_model_len = room
        if self._weights is not None and sampler.version != self._weights[1]:
            folder, sampler.version = self._weights
            hold_weights(folder, sampler.name)
            sampler.send_weights(folder, sampler.version)
            return
        seat.is_ready, seat.error = True, None
        if self._background.stream is not None:
            sampler.start(*self._background.stream)
        if self.max_model_len:
            self._note(f"{seat.describe()} samples, with the weights of version {sampler.version}")

    @contextmanager
    def _losing(self, seat: _Seat) -> Iterator[Sampler]:
        """Mark the sampler as lost if it fails, so that others do its work. Errors about settings are raised
        instead."""
        assert seat.sampler is not None
        try:
            yield seat.sampler
        except (GuardError, SetupError) as error:
            if isinstance(error, SetupError) and not seat.is_server:
                raise
            if seat.is_ready or seat.error is None or error.message != seat.error.message:
                self._note(f"{seat.describe()} is lost: {error.message}")
            if seat.is_ready:
                self._had_one = time.monotonic()
            seat.error = error
            seat.losses = [*seat.recent_losses, time.monotonic()]
            seat.starts_at = time.monotonic() + min(FIRST_PAUSE_S * 2 ** (len(seat.losses) - 1), LONGEST_PAUSE_S)
            self._take_back(seat)

    def _take_back(self, seat: _Seat) -> None:
        """End a sampler, and keep its finished completions and its open requests."""
        sampler, seat.sampler, seat.is_ready = seat.sampler, None, False
        if sampler is None:
            return
        done, undone = sampler.take_back()
        self._background.done += done
        self._background.waiting += undone
        sampler.close()
        assert self._folder is not None
        for folder in self._folder.glob("version-*"):
            release_weights(folder, sampler.name)

    def _ready(self) -> list[_Seat]:
        return [seat for seat in self._seats.values() if seat.is_ready]

    def _wait(self, timeout_s: float) -> None:
        """Wait for a message of any sampler."""
        connections = [seat.sampler.connection for seat in self._seats.values() if seat.sampler is not None]
        if connections:
            wait(connections, timeout_s)
        else:
            time.sleep(timeout_s)

    # How they are asked.

    def _submit(self, submitted: Sequence[Submitted]) -> None:
        """Send the waiting requests, each group to the sampler with the least work."""
        for _, group in groupby(submitted, key=lambda each: each.group):
            if not self.samplers:
                self._background.waiting += group
                continue
            seat = min(self._ready(), key=lambda seat: len(seat.sampler.outstanding) if seat.sampler is not None else 0)
            with self._losing(seat) as sampler:
                sampler.submit(list(group))

    def _spread(
        self, local: Sequence[Any], key: Callable[[Any], object], call: Callable[[list[Any]], tuple[Any, ...]]
    ) -> list[Any]:
        """Have all ranks' requests answered, and return the answers to this rank's, in order.

        Those with one key stay together. call: the method, and its arguments for a part of the requests.
        """
        by_rank = gathered(list(local))
        requests = list(chain.from_iterable(by_rank))
        if not requests:
            return []
        answers: dict[int, Any] = {}
        # A signal breaks it off, for which every rank comes here.
        with interruptible():
            while self._folder is not None and len(answers) < len(requests):
                names = [seat.setup.name for seat in self._await_ready()]
                parts: dict[str, list[int]] = {name: [] for name in names}
                owners: dict[object, int] = {}
                for index, request in enumerate(requests):
                    if index not in answers:
                        parts[names[owners.setdefault(key(request), len(owners) % len(names))]].append(index)
                calls = {name: call([requests[index] for index in part]) for name, part in parts.items() if part}
                for name, part_answers in self._ask_each(calls).items():
                    answers |= zip(parts[name], part_answers, strict=True)
        if self._folder is None:
            return scattered(())
        ends = list(accumulate(len(asked) for asked in by_rank))
        return scattered(
            [
                [answers[index] for index in range(end - len(asked), end)]
                for end, asked in zip(ends, by_rank, strict=True)
            ]
        )

    def _ask_all(self, *call: Any) -> list[Any]:
        """Return every sampler's answer; none on other ranks than the first."""
        with interruptible():
            if self._folder is None:
                return []
            return list(self._ask_each({seat.setup.name: call for seat in self._await_ready()}).values())

    def _await_ready(self) -> list[_Seat]:
        """Wait until a sampler is ready, and return all that are."""
        while True:
            self._look_after()
            if ready := self._ready():
                return ready
            self._wait(WAIT_S)

    def _ask_each(self, calls: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        """Call a method on each sampler at the same time, while the background pauses. Return the results by the names
        of the samplers, without those that are lost meanwhile."""
        for seat in self._ready():
            with self._losing(seat) as sampler:
                sampler.pause()
        for seat in self._ready():
            with self._losing(seat) as sampler:
                sampler.await_pause()
        for seat in self._ready():
            with self._losing(seat) as sampler:
                if sampler.name in calls:
                    sampler.ask(*calls[sampler.name])
        answers: dict[str, Any] = {}
        for seat in self._ready():
            with self._losing(seat) as sampler:
                if sampler.name in calls:
                    answers[sampler.name] = sampler.answer()
                sampler.resume()
        return answers


def _mean(tensors: Sequence[Tensor]) -> Tensor:
    """Return the mean of tensors, to the bit where they are equal."""
    first = tensors[0]
    return first + torch.stack([tensor - first for tensor in tensors]).mean(0).to(first.dtype)
