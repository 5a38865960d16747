"""A pool of vLLM servers: each request goes to the server that has most room, and to another one where that fails.

    up        takes requests; looked at every `LOOK_EVERY_S`
    down      does not answer; looked at again, first soon and then less often, and comes back when it answers
    out       has answered what no sound server would, or has other weights; looked at again after longer pauses, and
              comes back a few times when it shows the weights of the others
    gone      is on the list of servers no more (`engine.urls_file`)

A request that takes far longer than others is sent to a second server as well, and the first answer counts. Both have
the same seed. The pool runs in one event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.base import Completion, join
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.engines.endpoint import Failure, Refusal, Unsound
from truegold.pipeline.engines.server_client import Server, State
from truegold.pipeline.engines.server_list import ServerList
from truegold.pipeline.engines.server_replies import CompletionRequest
from truegold.pipeline.engines.weight_probes import ProbeAnswer, find_largest_agreement, make_probe
from truegold.verifiers import SetupError

LOOK_EVERY_S = 10.0
"""How often a server that is up is looked at."""
MISSED_LOOKS = 3
"""Looks in a row that a server may miss before it is down: one that is busy may answer late."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
"""The first and the longest pause before a server that is down is looked at again; each is twice the one before."""
OUT_PAUSE_S = 30.0
"""The first pause before a server that was put out is looked at again; each is twice the one before."""
TIMES_OUT = 4
"""A server that was put out this many times does not come back."""
FAILURES_IN_A_ROW = 3
LATE_IN_A_ROW = 5
"""A server is down after this many failed, or late, requests in a row."""
LATE_FACTOR = 3.0
LATE_AT_LEAST_S = 1.0
"""A request is late when it takes this many times what 95 of 100 take on the fastest server, and this long at least."""
OVERLOADS = 5
"""Failures by overload may be this many times as many as other failures of a request."""
STARTED_AGAIN = "it was started again"
ASK_AGAIN_S = 0.25
"""How long a late request waits for room on another server before it asks again."""

_Attempts = dict[asyncio.Task[Completion], tuple[Server, float]]
"""The attempts at one request, with their servers and the times of sending."""


class Preparation(Protocol):
    """Gives servers what they need in addition to the model that they were started with."""

    async def prepare(self, server: Server) -> None:
        """Prepare a server, before it takes its first request and again when it has come back."""

    async def is_prepared(self, server: Server) -> bool:
        """Return whether a server, which has just completed a request, is as `prepare` has left it."""


class Pool:
    """The servers of a configuration."""

    def __init__(
        self,
        config: ServerEngineConfig,
        key: str | None,
        encoder: PromptEncoder | None,
        preparation: Preparation | None = None,
    ) -> None:
        self._config, self._key, self._encoder, self._preparation = config, key, encoder, preparation
        self._list = ServerList(config)
        self.servers: list[Server] = []
        """All that are on the list, or were."""
        self._probe_answers: dict[Server, ProbeAnswer] = {}
        self._trusted: ProbeAnswer | None = None
        """The answer of the weights that most servers have."""
        self._probe: CompletionRequest | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        """The futures that `_wait_for_change` waits for; `_wake` ends all of them."""
        self._none_up_since = time.monotonic()
        self._conflict: SetupError | None = None
        """Set if no weights have a majority; every request then raises it."""
        self._keepers: list[asyncio.Task[None]] = []
        """The tasks that look at the servers, one at each, and at their list."""
        self.max_model_len = 0
        self.model = ""
        """The name of the model on the first server that was up."""

    @property
    def room(self) -> int:
        """The requests that may be on the way or wait here: a few more than servers take, so that none runs dry."""
        limits = sum(server.limit for server in self.servers if server.state == "up")
        return limits + limits // 4 + 1

    async def start(self) -> None:
        """Wait until a server is up; raises SetupError if none is after all tries."""
        self._follow_list()
        if self._list.may_change:
            self._keepers.append(asyncio.create_task(self._keep_list()))
        while not self._up() or any(self._is_unknown(server) for server in self.servers):
            await self._wait_for_change()
            self._raise_conflict()
            if all(server.state == "out" or server.looks > self._config.retries for server in self.servers):
                raise self._describe_loss()
        lengths = {server.max_model_len for server in self._known()}
        if len(lengths) > 1:
            described = ", ".join(f"{server.url} {server.max_model_len}" for server in self._known())
            raise SetupError(
                f"The servers have different max_model_len: {described}.",
                "Start all of them with the same --max-model-len.",
            )
        self.max_model_len = lengths.pop()
        self.model = self._up()[0].model

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the completion of a request, from any server; raises SetupError if none gives it."""
        resume_tokens = self._config.resume_tokens
        is_long = resume_tokens is not None and request.max_tokens > resume_tokens and self._preparation is None
        request = replace(request, is_streamed=is_long and not request.prompt_logprobs)
        begun = Completion((), (), "length")
        attempts: _Attempts = {}
        failures: list[tuple[Server, Failure]] = []
        try:
            while True:
                if not attempts:
                    await self._pause(failures)
                    self._send(request, await self._wait_for_room(failures), attempts)
                done, _ = await asyncio.wait(
                    attempts, timeout=self._seconds_until_late(attempts), return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    self._send_again(request, attempts)
                for task in done:
                    server, sent = attempts.pop(task)
                    completion = self._outcome(server, task, failures)
                    if completion is not None:
                        # A server that was asked later, to help out, is not late.
                        self._note_late(attempt for attempt in attempts.values() if attempt[1] < sent)
                        return join(begun, completion)
                if not attempts:
                    self._check_failures(failures)
                    more = failures[-1][1].begun if failures else None
                    if resume_tokens is not None and more is not None and len(more.token_ids) >= resume_tokens:
                        failures[-1][1].begun = None
                        begun, request = join(begun, more), request.after(more)
        finally:
            for task in attempts:
                task.cancel()

    async def prepare_again(self, preparation: Preparation) -> None:
        """Prepare all servers that are up anew, and wait until one is; raises SetupError if none is in time."""
        for server in self._up():
            try:
                await preparation.prepare(server)
            except Failure as failure:
                self._set_down(server, str(failure))
            except Unsound as unsound:
                self._put_out(server, unsound)
        await self._wait_for_room([])

    async def close(self) -> None:
        """Close the connections to all servers."""
        for server in self.servers:
            await server.close()

    def _is_unknown(self, server: Server) -> bool:
        """Return whether the first look at a server has not shown anything yet."""
        return server.state == "starting" and not server.max_model_len and not server.looks

    def _known(self) -> list[Server]:
        """Return the servers that have said what they serve, and may be sampled from now or later."""
        return [server for server in self.servers if server.max_model_len and server.state not in ("out", "gone")]

    def _up(self) -> list[Server]:
        return [server for server in self.servers if server.state == "up"]

    # Requests

    def _send(self, request: CompletionRequest, server: Server, attempts: _Attempts) -> None:
        server.reserve()
        task = asyncio.create_task(self._sample(request, server))

        def ended(_: asyncio.Task[Completion]) -> None:
            server.release()
            self._wake()

        task.add_done_callback(ended)
        attempts[task] = (server, time.monotonic())

    async def _sample(self, request: CompletionRequest, server: Server) -> Completion:
        completion = await server.sample(request)
        if self._preparation is not None and not await self._preparation.is_prepared(server):
            self._set_down(server, STARTED_AGAIN)
            raise Failure(STARTED_AGAIN)
        return completion

    def _send_again(self, request: CompletionRequest, attempts: _Attempts) -> None:
        """Send a late request to a second server, where one is up. It may then have a few requests above its limit."""
        busy = {server for server, _ in attempts.values()}
        others = [s for s in self._up() if s not in busy and s.in_flight < s.limit + 1 + s.limit // 4]
        if len(attempts) == 1 and others:
            self._send(request, min(others, key=_load), attempts)

    def _seconds_until_late(self, attempts: _Attempts) -> float | None:
        """Return how long to wait for the answer before it is late, or None if nothing can be done about it."""
        if len(attempts) > 1 or (len(self.servers) == 1 and not self._list.may_change):
            return None
        late_s = self._config.late_seconds
        if late_s is None:
            known = [server.long_s for server in self._up() if server.long_s is not None]
            late_s = max(LATE_AT_LEAST_S, LATE_FACTOR * min(known)) if known else None
        ((server, sent),) = attempts.values()
        if late_s is None or server.state != "up":
            return ASK_AGAIN_S
        return max(ASK_AGAIN_S, sent + late_s - time.monotonic())

    async def _pause(self, failures: list[tuple[Server, Failure]]) -> None:
        """Wait after failures, each time twice as long. After the first another server is asked at once."""
        repeated = len(failures) - 1 if len(self._up()) > 1 else len(failures)
        if repeated > 0:
            await asyncio.sleep(min(FIRST_PAUSE_S * 2 ** (repeated - 1), LONGEST_PAUSE_S))

    def _check_failures(self, failures: list[tuple[Server, Failure]]) -> None:
        """Raise SetupError if the request has failed too often. Servers that are overloaded get more time."""
        overloads = sum(failure.overload for _, failure in failures)
        most = self._config.retries
        if len(failures) - overloads > most or overloads > OVERLOADS * most:
            server, failure = failures[-1]
            raise SetupError(
                f"A request failed {len(failures)} times, last at {server.url}: {failure}. {self._describe()}.",
                "Finished samples are kept: look at the servers, and run again.",
            )

    def _outcome(
        self, server: Server, task: asyncio.Task[Completion], failures: list[tuple[Server, Failure]]
    ) -> Completion | None:
        """Return the completion, or None if the request failed, of which the server and `failures` then tell."""
        try:
            completion = task.result()
        except Failure as failure:
            failures.append((server, failure))
            server.failed_in_a_row += 1
            if server.failed_in_a_row >= FAILURES_IN_A_ROW:
                self._set_down(server, str(failure))
            return None
        except Unsound as unsound:
            self._put_out(server, unsound)
            return None
        server.failed_in_a_row = 0
        self._set_paces()
        return completion

    def _note_late(self, losers: Iterable[tuple[Server, float]]) -> None:
        for server, sent in losers:
            waited, late_s = time.monotonic() - sent, self._config.late_seconds
            if waited >= LATE_AT_LEAST_S or (late_s is not None and waited >= late_s):
                server.note_late(waited)
            if server.late_in_a_row >= LATE_IN_A_ROW:
                self._set_down(server, f"it was late with {LATE_IN_A_ROW} requests in a row")

    def _set_paces(self) -> None:
        times = {server: server.typical_s for server in self._up()}
        known = [seconds for seconds in times.values() if seconds is not None]
        for server, seconds in times.items():
            server.pace = min(known) / max(seconds, 1e-9) if seconds is not None else 1.0

    async def _wait_for_room(self, failures: list[tuple[Server, Failure]]) -> Server:
        """Return the server with most room, waiting for it where all are full; of several one that has failed least."""
        failed = Counter(server for server, _ in failures)
        while True:
            self._raise_conflict()
            free = [server for server in self._up() if server.in_flight < server.limit]
            if free:
                return min(free, key=lambda server: (failed[server], _load(server)))
            if not self._up():
                left = self._none_up_since + self._config.outage_seconds - time.monotonic()
                if left <= 0 or (not self._list.may_change and all(map(_is_lost, self.servers))):
                    raise self._describe_loss()
            await self._wait_for_change()

    async def _wait_for_change(self) -> None:
        """Wait until there may be room, or a second has gone by."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await asyncio.wait([turn], timeout=1.0)
        if not turn.done():
            self._waiting.remove(turn)

    def _wake(self) -> None:
        while self._waiting:
            self._waiting.popleft().set_result(None)

    # Servers

    async def _keep_list(self) -> None:
        """Read the list of servers again and again."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            self._follow_list()

    def _follow_list(self) -> None:
        """Take in the servers that are new on the list, and let those go that are on it no more."""
        urls = self._list.read_again()
        for server in self.servers:
            if server.url not in urls and server.state != "gone":
                self._lose(server, "gone", "it is on the list of servers no more")
        known = {server.url for server in self.servers if server.state != "gone"}
        for url in urls:
            if url.rstrip("/") not in known:
                server = Server(url, self._config, self._key, self._encoder)
                self.servers.append(server)
                self._keepers.append(asyncio.create_task(self._keep(server)))

    async def _keep(self, server: Server) -> None:
        """Look at a server again and again, as long as it may come back."""
        pause, missed = FIRST_PAUSE_S, 0
        while server.state != "gone" and len(server.put_out_for) < TIMES_OUT:
            try:
                if server.state == "up":
                    await asyncio.sleep(LOOK_EVERY_S)
                    if server.state == "up":
                        await self._check(server)
                    missed = 0
                else:
                    if server.state == "out":
                        await asyncio.sleep(OUT_PAUSE_S * 2 ** (len(server.put_out_for) - 1))
                        self._forgive(server)
                    await self._admit(server)
                    pause, missed = FIRST_PAUSE_S, 0
            except Unsound as unsound:
                self._put_out(server, unsound)
                self._compare_weights()
            except Failure as failure:
                if server.state == "up":
                    missed += 1
                    if missed >= MISSED_LOOKS:
                        self._set_down(server, str(failure))
                    continue
                server.why = str(failure)
                server.looks += 1
                self._compare_weights()
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)

    async def _check(self, server: Server) -> None:
        """Raise where a server is not healthy, or does not serve the model as the others do and did at the start."""
        await server.check_health()
        self._wake()
        if self.max_model_len and server.max_model_len != self.max_model_len:
            raise Unsound(f"its max_model_len is {server.max_model_len}, and was {self.max_model_len} at the start")

    async def _admit(self, server: Server) -> None:
        """Let a server take requests that is healthy and has the weights of the others."""
        await self._check(server)
        if self._encoder is not None:
            self._probe = self._probe or make_probe(self._encoder, server.max_model_len)
            self._probe_answers[server] = await server.probe_weights(self._probe)
            self._compare_weights()
            while server.state in ("starting", "down") and self._trusted is None:
                await self._wait_for_change()
        if self._preparation is not None:
            await self._preparation.prepare(server)
        if server.state in ("starting", "down"):
            server.state, server.why = "up", ""
            server.looks = server.failed_in_a_row = server.late_in_a_row = 0
            self._wake()

    def _compare_weights(self) -> None:
        """Trust the weights of most servers, those that have yet to answer for the first time counted, and put others
        out. Without a majority there is no telling whose samples are right."""
        servers = [server for server in self._probe_answers if server.state not in ("out", "gone")]
        if self._trusted is None and servers:
            group = find_largest_agreement([self._probe_answers[server] for server in servers])
            silent = [s for s in self.servers if s.state == "starting" and s not in servers and not s.looks]
            if 2 * len(group) > len(servers) + len(silent):
                self._trusted = self._probe_answers[servers[group[0]]]
            elif not silent:
                urls = ", ".join(server.url for server in servers)
                self._conflict = SetupError(
                    f"The servers {urls} do not have the same weights: they answer the same prompt differently.",
                    "Serve one model on all of them, or take out of engine.urls what is not to be sampled from.",
                )
        for server in servers:
            if self._trusted is not None and not self._probe_answers[server].agrees(self._trusted):
                self._put_out(server, Unsound("it has other weights than the other servers"))
        self._wake()

    def _set_down(self, server: Server, why: str) -> None:
        if server.state == "up":
            self._lose(server, "down", why)

    def _put_out(self, server: Server, unsound: Unsound) -> None:
        if server.state not in ("out", "gone"):
            server.put_out_for.append(str(unsound))
            server.refuses = isinstance(unsound, Refusal)
            self._lose(server, "out", str(unsound))

    def _forgive(self, server: Server) -> None:
        """Have a server that was put out answer anew, as one that was down."""
        if server.state == "out":
            self._probe_answers.pop(server, None)
            server.state = "down"

    def _lose(self, server: Server, state: State, why: str) -> None:
        server.state, server.why = state, why
        if not self._up():
            self._none_up_since = time.monotonic()
        self._wake()

    def _raise_conflict(self) -> None:
        if self._conflict is not None:
            raise self._conflict
        for keeper in self._keepers:
            if keeper.done():
                # It ends when its server is lost; a bug must not leave everybody waiting for that server.
                keeper.result()

    def _describe_loss(self) -> SetupError:
        return SetupError(
            f"No vLLM server can be sampled from: {self._describe()}.",
            "Finished samples are kept: start the servers, and run again.",
        )

    def _describe(self) -> str:
        listed = [server for server in self.servers if server.state != "gone"]
        described = (f"{server.url} is {server.state} ({server.why or 'no fault'})" for server in listed)
        return "; ".join(described) or f"{self._config.urls_file} names none"


def _is_lost(server: Server) -> bool:
    """Return whether waiting for a server is in vain."""
    return server.state == "gone" or len(server.put_out_for) >= TIMES_OUT or (server.state == "out" and server.refuses)


def _load(server: Server) -> float:
    """Return the share of its requests that a server has."""
    return server.in_flight / server.limit
