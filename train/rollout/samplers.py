"""The pool of samplers of a training. Rank 0 runs the samplers, and all ranks use them.

A sampler is a process with vLLM, or a thread that calls a server. The number of samplers does not depend on the number
of ranks. In asynchronous training, samplers work in the background while the trainer updates. All requests of a group
go to the sampler with the least work, so that the prompt is computed once. New weights are written to files once, and
every sampler reads them. The states of a sampler:

    starting    a process loads the model, here or on a node of Ray, or a thread connects to its server
    loading     the sampler loads the current weights
    ready       the sampler samples
    lost        the sampler or its server has died; it is restarted after a pause, and other samplers do its work

A restarted sampler loads the current weights before it samples. The version of the weights is recorded for each token.
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
"""Seconds between two readings of the list of samplers, which may change."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 60.0
"""The first and the longest pause before a lost sampler is restarted, in seconds. The pause doubles with each loss."""
MOST_LOSSES, LATELY_S = 4, 3600.0
"""A process that is lost MOST_LOSSES times within LATELY_S seconds is not restarted. Servers are always tried again."""
LONGEST_START_S = 1800.0
"""The longest time in seconds without any ready sampler, while processes start."""
WAIT_S = 1.0
"""The longest time in seconds of one wait for messages, after which the state of samplers is checked."""
HOLDER = "pool"
"""The name by which the pool locks the files of weights that it reads."""


@dataclass
class _Slot:
    """The slot of one sampler: its settings, its current process or server connection, and its losses."""

    setup: SamplerSetup
    sampler: Sampler | None = None
    """The current sampler; None while it is lost."""
    is_ready: bool = False
    """Whether the sampler is ready. If not, it is starting or lost."""
    losses: list[float] = field(default_factory=list)
    """The times at which the sampler was lost, by the monotonic clock."""
    starts_at: float = 0.0
    """The time of the next restart, by the monotonic clock."""
    error: GuardError | SetupError | None = None
    """The error of the last loss."""

    @property
    def is_server(self) -> bool:
        """Whether the sampler is a server, which the user starts."""
        return isinstance(self.setup.engine, ServerEngineConfig)

    @property
    def recent_losses(self) -> list[float]:
        """The times at which the sampler was lost within the last `LATELY_S` seconds."""
        return [lost for lost in self.losses if time.monotonic() - lost < LATELY_S]

    @property
    def is_given_up(self) -> bool:
        """Whether the sampler is not restarted again."""
        return not self.is_server and len(self.losses) >= MOST_LOSSES

    def describe(self) -> str:
        """Return the name of the sampler for messages."""
        engine = self.setup.engine
        return f"the server {engine.url}" if isinstance(engine, ServerEngineConfig) else f"sampler {self.setup.name}"

    def describe_error(self) -> str:
        """Return the name of the sampler and the cause of its loss."""
        return f"{self.describe()}: {'it is starting' if self.error is None else self.error.message}"


@dataclass
class _Background:
    """The samples that are requested, waiting and finished in the background."""

    stream: tuple[SamplingParams, bool] | None = None
    """The arguments of `SamplerPool.start`."""
    waiting: list[Submitted] = field(default_factory=list)
    """Submitted samples that were not sent to a sampler yet."""
    done: list[FinishedSample] = field(default_factory=list)
    """Finished samples that were not returned yet."""


class SamplerPool:
    """A rollout engine that all ranks share, and that also samples in the background.

    All ranks call its methods together, except the methods of the background, which only rank 0 calls.
    """

    def __init__(
        self,
        list_setups: Callable[[], Sequence[SamplerSetup]],
        weights_dir: str | None = None,
        outage_s: float = 0.0,
        note: Note = print_note,
    ) -> None:
        """Start the samplers on rank 0.

        list_setups: a function that returns the settings of the samplers, which may change. weights_dir: the folder for
        files of weights; by default one in memory. outage_s: seconds to wait for servers if all are lost. note: a
        function that shows lines on lost and returned samplers. Raises the error of a sampler that cannot start.
        """
        self._list_setups, self._outage_s, self._note = list_setups, outage_s, note
        self._slots: dict[str, _Slot] = {}
        self._background = _Background()
        self._folder: Path | None = None
        self._lock: int | None = None
        """The file descriptor that locks the folder."""
        self._weights: tuple[Path, int] | None = None
        """The folder and version of the current weights; None before the first weights."""
        self._looked = self._had_one = time.monotonic()
        """The times when the list of samplers was last read, and when a sampler was last ready."""
        self.max_model_len = 0
        if rank() == 0:
            if weights_dir is None:
                self._folder, self._lock = claim_folder()
            else:
                self._folder = Path(weights_dir).resolve() / "samplers"
                # Removes files of a killed training.
                shutil.rmtree(self._folder, ignore_errors=True)
            self._slots = {setup.name: _Slot(setup) for setup in list_setups()}
            self._start_all()
        self.max_model_len = from_first_rank(self.max_model_len)

    @property
    def samplers(self) -> list[Sampler]:
        """The samplers that are ready."""
        return [slot.sampler for slot in self._slots.values() if slot.sampler is not None and slot.is_ready]

    # Methods that all ranks call.

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sequence[SamplingParams], seeds: Sequence[int]
    ) -> list[Completion]:
        """Return one completion for each prompt of this rank, in order. Sampling in the background pauses meanwhile."""
        check_room(prompts, self.max_model_len)
        local = list(zip(map(tuple, prompts), sampling, seeds, strict=True))
        return self._spread(
            local, lambda asked: asked[0], lambda part: ("generate", *map(list, zip(*part, strict=True)))
        )

    def run(
        self, episodes: Sequence[Episode], sampling: SamplingParams, seeded_by: Sequence[object], version: int
    ) -> list[Episode]:
        """Play this rank's episodes to their end, like `EpisodeRunner.run`. Sampling in the background pauses
        meanwhile."""
        return self._spread(
            episodes, lambda episode: episode.group, lambda part: ("run", part, sampling, tuple(seeded_by), version)
        )

    def update_weights(self, named_tensors: Iterator[tuple[str, Tensor]], version: int) -> None:
        """Send new weights to all samplers. If sampling runs in the background, they are loaded later, else before this
        returns."""
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
        for slot in self._ready():
            with self._losing(slot) as sampler:
                sampler.send_weights(folder, version)
        for slot in self._ready():
            with self._losing(slot) as sampler:
                if not sampler.is_streaming:
                    sampler.answer()
                    sampler.version = version

    def forget_prefixes(self) -> None:
        """Make the samplers ignore all cached prefixes."""
        self._ask_all("forget_prefixes")

    def sleep(self, weights_follow: bool = True) -> None:
        """Do nothing, because samplers do not share a GPU with the trainer in turns."""

    def head_logits(self, hidden: Tensor) -> Tensor | None:
        """Return the logits [N, V] of the output heads for hidden states [N, H]. They are means over all samplers."""
        logits = self._ask_all("head_logits", hidden.detach().cpu())
        return from_first_rank(_mean(logits) if logits and logits[0] is not None else None)

    def vectors(self) -> dict[str, Tensor]:
        """Return the one-dimensional weights by their Hugging Face names. They are means over all samplers."""
        vectors: list[Mapping[str, Tensor]] = self._ask_all("vectors")
        return from_first_rank({name: _mean([each[name] for each in vectors]) for name in (vectors or [{}])[0]})

    def close(self) -> None:
        """End the samplers, and remove all files of weights."""
        for slot in self._slots.values():
            if slot.sampler is not None:
                slot.sampler.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    # Methods of the background, which only rank 0 calls.

    @property
    def usage(self) -> Usage:
        """The time that the samplers have spent, summed over the samplers."""
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
        for slot in self._ready():
            with self._losing(slot) as sampler:
                sampler.start(sampling, in_flight)

    def submit(self, requests: Sequence[Request]) -> None:
        """Submit the requests of a group. The field `sample` identifies each request."""
        check_room([request.prompt for request in requests], self.max_model_len)
        self._submit([Submitted("requests", request.sample, request) for request in requests])

    def submit_episodes(self, episodes: Sequence[tuple[int, Episode]], seeded_by: Sequence[object]) -> None:
        """Submit a group's episodes with their keys. seeded_by: values for their seeds, as in `EpisodeRunner.run`."""
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
        """Return the samples that finished since the last call.

        If there are none, wait for at most `timeout_s` seconds, or with None without a limit. Raises GuardError or
        SetupError if no sampler is left.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            self._look_after()
            for slot in self._ready():
                with self._losing(slot) as sampler:
                    self._background.done += sampler.take_done()
            done, self._background.done = self._background.done, []
            left = WAIT_S if deadline is None else min(WAIT_S, deadline - time.monotonic())
            if done or left < 0:
                return done
            self._wait(left)

    # Start and loss of samplers.

    def _start_all(self) -> None:
        """Start all samplers. Raises the error of a process that cannot start, or of a server if none is ready."""
        for slot in self._slots.values():
            slot.sampler = Sampler(slot.setup)
        while any(slot.sampler is not None and not slot.is_ready for slot in self._slots.values()):
            self._go_on_starting()
            for slot in self._slots.values():
                if slot.error is not None and not slot.is_server:
                    raise slot.error
            self._wait(WAIT_S)
        if not self.samplers:
            errors = [slot.error for slot in self._slots.values() if slot.error is not None]
            raise errors[0] if errors else SetupError("The list of servers is empty.", "Add servers to engine.urls.")
        self.max_model_len = min(sampler.max_model_len for sampler in self.samplers)

    def _look_after(self) -> None:
        """Process samplers that have started, restart lost ones, and read the list of samplers again.

        Raises GuardError or SetupError if no sampler is left.
        """
        now = time.monotonic()
        if now - self._looked >= LOOK_EVERY_S:
            self._looked = now
            self._follow_list()
        for slot in self._slots.values():
            if slot.sampler is None and not slot.is_given_up and now >= slot.starts_at:
                slot.sampler = Sampler(slot.setup)
        self._go_on_starting()
        if self.samplers:
            self._had_one = now
            waiting, self._background.waiting = self._background.waiting, []
            if waiting:
                self._submit(waiting)
        else:
            self._check_hope(now)

    def _check_hope(self, now: float) -> None:
        """Raise an error if no sampler can become ready. It is called while no sampler is ready."""
        processes = [slot for slot in self._slots.values() if not slot.is_server]
        for slot in processes if all(slot.is_given_up for slot in processes) else ():
            assert slot.error is not None
            raise slot.error
        if processes and now - self._had_one > LONGEST_START_S:
            raise SetupError(
                f"No sampler has started in {LONGEST_START_S:.0f} seconds.",
                "See the log of the stage. With Ray, see `ray status`: there may be no node for the sampler.",
            )
        if not processes and now - self._had_one > self._outage_s:
            described = "; ".join(map(_Slot.describe_error, self._slots.values()))
            raise SetupError(
                f"No server can be sampled from: {described or 'the list of servers is empty'}.",
                "Start the servers; the same command continues from the last checkpoint.",
            )

    def _follow_list(self) -> None:
        """Read the list of samplers again, end removed ones and add new ones."""
        setups = {setup.name: setup for setup in self._list_setups()}
        for name in self._slots.keys() - setups.keys():
            slot = self._slots.pop(name)
            self._note(f"{slot.describe()} was removed from the list of servers")
            self._take_back(slot)
        for name in setups.keys() - self._slots.keys():
            self._slots[name] = _Slot(setups[name])

    def _go_on_starting(self) -> None:
        """Process messages of starting samplers. A sampler is ready once it has loaded the current weights."""
        for slot in self._slots.values():
            while slot.sampler is not None and not slot.is_ready:
                with self._losing(slot) as sampler:
                    signal = sampler.take_signal()
                    if signal is None:
                        break
                    self._take_step(slot, sampler, signal)

    def _take_step(self, slot: _Slot, sampler: Sampler, signal: tuple[Any, ...]) -> None:
        """Take the next step of a sampler's start after a message from it: send weights, or mark the sampler as
        ready."""
        if signal[0] == "ready":
            room = int(signal[1])
            if self.max_model_len > room:
                raise SetupError(f"its max_model_len is {room}, but the training uses {self.max_model_len}")
            sampler.max_model_len = room
        if self._weights is not None and sampler.version != self._weights[1]:
            folder, sampler.version = self._weights
            hold_weights(folder, sampler.name)
            sampler.send_weights(folder, sampler.version)
            return
        slot.is_ready, slot.error = True, None
        if self._background.stream is not None:
            sampler.start(*self._background.stream)
        if self.max_model_len:
            self._note(f"{slot.describe()} samples, with the weights of version {sampler.version}")

    @contextmanager
    def _losing(self, slot: _Slot) -> Iterator[Sampler]:
        """Mark the sampler as lost if it fails within the context, so that other samplers do its work.

        A SetupError of a process is raised, because a restart would not help.
        """
        assert slot.sampler is not None
        try:
            yield slot.sampler
        except (GuardError, SetupError) as error:
            if isinstance(error, SetupError) and not slot.is_server:
                raise
            if slot.is_ready or slot.error is None or error.message != slot.error.message:
                self._note(f"{slot.describe()} is lost: {error.message}")
            if slot.is_ready:
                self._had_one = time.monotonic()
            slot.error = error
            slot.losses = [*slot.recent_losses, time.monotonic()]
            slot.starts_at = time.monotonic() + min(FIRST_PAUSE_S * 2 ** (len(slot.losses) - 1), LONGEST_PAUSE_S)
            self._take_back(slot)

    def _take_back(self, slot: _Slot) -> None:
        """End a sampler, keep its finished samples, and queue its unfinished ones again."""
        sampler, slot.sampler, slot.is_ready = slot.sampler, None, False
        if sampler is None:
            return
        done, undone = sampler.take_back()
        self._background.done += done
        self._background.waiting += undone
        sampler.close()
        assert self._folder is not None
        for folder in self._folder.glob("version-*"):
            release_weights(folder, sampler.name)

    def _ready(self) -> list[_Slot]:
        return [slot for slot in self._slots.values() if slot.is_ready]

    def _wait(self, timeout_s: float) -> None:
        """Wait for a message of any sampler, for at most `timeout_s` seconds."""
        connections = [slot.sampler.connection for slot in self._slots.values() if slot.sampler is not None]
        if connections:
            wait(connections, timeout_s)
        else:
            time.sleep(timeout_s)

    # Calls of samplers.

    def _submit(self, submitted: Sequence[Submitted]) -> None:
        """Send submitted samples, each group to the sampler with the least work, or queue them if none is ready."""
        for _, group in groupby(submitted, key=lambda each: each.group):
            if not self.samplers:
                self._background.waiting += group
                continue
            slot = min(self._ready(), key=lambda slot: len(slot.sampler.outstanding) if slot.sampler is not None else 0)
            with self._losing(slot) as sampler:
                sampler.submit(list(group))

    def _spread(
        self, local: Sequence[Any], key: Callable[[Any], object], call: Callable[[list[Any]], tuple[Any, ...]]
    ) -> list[Any]:
        """Distribute the requests of all ranks over the samplers. Return the answers to this rank's requests, in order.

        key: a function of a request; requests with equal keys go to the same sampler. call: a function from a part of
        the requests to the method and its arguments.
        """
        by_rank = gathered(list(local))
        requests = list(chain.from_iterable(by_rank))
        if not requests:
            return []
        answers: dict[int, Any] = {}
        # A signal interrupts this, so all ranks enter it.
        with interruptible():
            while self._folder is not None and len(answers) < len(requests):
                names = [slot.setup.name for slot in self._await_ready()]
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
        """Call a method on all samplers and return the results; an empty list on ranks other than 0."""
        with interruptible():
            if self._folder is None:
                return []
            return list(self._ask_each({slot.setup.name: call for slot in self._await_ready()}).values())

    def _await_ready(self) -> list[_Slot]:
        """Wait until at least one sampler is ready, and return the slots of all ready samplers."""
        while True:
            self._look_after()
            if ready := self._ready():
                return ready
            self._wait(WAIT_S)

    def _ask_each(self, calls: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        """Call methods on samplers in parallel, while the background pauses.

        calls: the method and its arguments, by the name of the sampler. Returns the results by name, without samplers
        that were lost meanwhile.
        """
        for slot in self._ready():
            with self._losing(slot) as sampler:
                sampler.pause()
        for slot in self._ready():
            with self._losing(slot) as sampler:
                sampler.await_pause()
        for slot in self._ready():
            with self._losing(slot) as sampler:
                if sampler.name in calls:
                    sampler.ask(*calls[sampler.name])
        answers: dict[str, Any] = {}
        for slot in self._ready():
            with self._losing(slot) as sampler:
                if sampler.name in calls:
                    answers[sampler.name] = sampler.answer()
                sampler.resume()
        return answers


def _mean(tensors: Sequence[Tensor]) -> Tensor:
    """Return the mean of tensors. If they are equal, the mean is equal bit for bit."""
    first = tensors[0]
    return first + torch.stack([tensor - first for tensor in tensors]).mean(0).to(first.dtype)
