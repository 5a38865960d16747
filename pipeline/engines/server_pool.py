"""A pool of vLLM servers. Each request goes to the server with the most room. If it fails, another server is asked.

    state       meaning
    starting    The server has not answered the first checks yet.
    up          The server takes requests. The pool checks it every LOOK_EVERY_S seconds.
    down        The server does not answer. The pool checks it after growing pauses. Once it answers, it is up.
    out         The server sent a faulty reply, or has other weights than most servers. The pool checks it after longer
                pauses. Once its weights agree, it is up. A server that was out TIMES_OUT times stays out.
    gone        The server is no longer on the list of servers.

If a request takes far longer than others, it is also sent to a second server, with the same seed. The first answer is
used. The list of servers may be a file that changes during a run (`engine.urls_file`):

    # one URL a line; text after # is ignored
    http://node-1:8000/v1
    http://node-2:8000/v1
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.base import Completion, join
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.engines.endpoint import Failure, Refusal, Unsound
from truegold.pipeline.engines.server_client import ProbeAnswer, Server, State, find_largest_agreement, make_probe
from truegold.pipeline.engines.server_replies import CompletionRequest
from truegold.verifiers import ConfigError, SetupError


class ServerList:
    """The servers of `config.url`, `config.urls` or `config.urls_file`.

    Raises ConfigError if the file cannot be read, or has a line that is not a URL.
    """

    def __init__(self, config: ServerEngineConfig) -> None:
        self._path = None if config.urls_file is None else Path(config.urls_file)
        self.urls = config.urls or (() if config.url is None else (config.url,))
        if self._path is not None:
            self.urls = _read_urls(self._path)

    @property
    def may_change(self) -> bool:
        """Return whether servers may join and leave."""
        return self._path is not None

    def read_again(self) -> tuple[str, ...]:
        """Return the current servers, after reading the file again.

        If the file is empty or unreadable, the servers stay the same: another process may be writing it.
        """
        if self._path is not None:
            with suppress(ConfigError):
                self.urls = _read_urls(self._path) or self.urls
        return self.urls


def _read_urls(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"engine.urls_file: {path} cannot be read ({error}).", "Write the URL of a server on each line."
        ) from error
    urls = [line.partition("#")[0].strip().rstrip("/") for line in lines]
    for line_number, url in enumerate(urls, 1):
        if url and not url.startswith(("http://", "https://")):
            raise ConfigError(
                f"engine.urls_file: line {line_number} of {path} is not a URL: {url[:80]!r}.",
                "Write a URL such as http://node-1:8000/v1.",
            )
    return tuple(dict.fromkeys(url for url in urls if url))


LOOK_EVERY_S = 10.0
"""The interval between checks of a server that is up, in seconds."""
MISSED_LOOKS = 3
"""A server is down after this number of failed checks in a row. A single check may fail because the server is busy."""
FIRST_PAUSE_S = 1.0
"""The first pause before a failed request is repeated or a server that is down is checked. Later pauses double."""
LONGEST_PAUSE_S = 30.0
"""The longest of these pauses, in seconds."""
OUT_PAUSE_S = 30.0
"""The first pause before a server that is out is checked, in seconds. Later pauses double."""
TIMES_OUT = 4
"""The pool gives a server up after it was out this number of times."""
FAILURES_IN_A_ROW = 3
"""A server is down after this number of consecutive failed requests."""
LATE_IN_A_ROW = 5
"""A server is down after this number of consecutive late requests."""
LATE_FACTOR = 3.0
"""By default, a request is late after this multiple of the 95th percentile of the fastest server's response times."""
LATE_AT_LEAST_S = 1.0
"""By default, no request is late before this time, in seconds."""
OVERLOADS = 5
"""The number of failures by overload that a request may have, as a multiple of `engine.retries`."""
STARTED_AGAIN = "it was started again"
ASK_AGAIN_S = 0.25
"""The pause before the pool looks again for a second server with room for a late request, in seconds."""

_Attempts = dict[asyncio.Task[Completion], tuple[Server, float]]
"""The attempts at one request, each with its server and the time when it was sent."""


class Preparation(Protocol):
    """Prepares servers for requests, for example by loading an adapter."""

    async def prepare(self, server: Server) -> None:
        """Prepare a server before its first request, and whenever it comes back."""

    async def is_prepared(self, server: Server) -> bool:
        """Return whether a server is still prepared. It is not if it was restarted."""


class Pool:
    """The servers of a configuration, to which requests are distributed. All methods run in one event loop."""

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
        """All servers that are or were on the list."""
        self._probe_answers: dict[Server, ProbeAnswer] = {}
        self._trusted: ProbeAnswer | None = None
        """The answer that most servers gave to the test prompt (the probe). Other servers must give the same answer."""
        self._probe: CompletionRequest | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        """One future for each pending call of `_wait_for_change`. `_wake` completes all of them."""
        self._none_up_since = time.monotonic()
        self._conflict: SetupError | None = None
        """The error that every request raises if no majority of servers has the same weights; else None."""
        self._keepers: list[asyncio.Task[None]] = []
        """The tasks that check the servers, one for each, and the task that reads their list."""
        self.max_model_len = 0
        self.model = ""
        """The name of the model on the first server that was up."""

    @property
    def room(self) -> int:
        """The limit of requests in the pool. It is a quarter above the sum of the servers' limits, so that no server is
        idle."""
        limits = sum(server.limit for server in self.servers if server.state == "up")
        return limits + limits // 4 + 1

    async def start(self) -> None:
        """Wait until a server is up. Raises SetupError if all servers stay down."""
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
        """Return the completion of a request by any server. Raises SetupError if all attempts fail."""
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
                        # Only servers that were asked before this one are late.
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
        """Prepare all servers that are up again, and wait for the first one. Raises SetupError if all are lost."""
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
        """Return whether the first check of a server is still pending."""
        return server.state == "starting" and not server.max_model_len and not server.looks

    def _known(self) -> list[Server]:
        """Return the servers with a known model that may take requests now or later."""
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
        """Send a late request to a second server. For such a request, a server may exceed its limit by a quarter."""
        busy = {server for server, _ in attempts.values()}
        others = [s for s in self._up() if s not in busy and s.in_flight < s.limit + 1 + s.limit // 4]
        if len(attempts) == 1 and others:
            self._send(request, min(others, key=_load), attempts)

    def _seconds_until_late(self, attempts: _Attempts) -> float | None:
        """Return the seconds until the request is late, or None if it cannot be sent to another server."""
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
        """Wait before a retry. Pauses double. The first retry comes at once if there is another server to ask."""
        repeated = len(failures) - 1 if len(self._up()) > 1 else len(failures)
        if repeated > 0:
            await asyncio.sleep(min(FIRST_PAUSE_S * 2 ** (repeated - 1), LONGEST_PAUSE_S))

    def _check_failures(self, failures: list[tuple[Server, Failure]]) -> None:
        """Raise SetupError if the request has failed too often. More failures by overload are allowed than others."""
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
        """Return the completion of an attempt.

        If the attempt failed, return None, and note the failure in the server and in `failures`.
        """
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
        """Wait until a server has room. Return the one with the most room; servers that failed this request come
        last."""
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
        """Wait until a server may have room, but at most a second."""
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
        """Read the list of servers every `LOOK_EVERY_S`."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            self._follow_list()

    def _follow_list(self) -> None:
        """Add the servers that are new on the list, and drop those that are no longer on it."""
        urls = self._list.read_again()
        for server in self.servers:
            if server.url not in urls and server.state != "gone":
                self._lose(server, "gone", "it is no longer on the list of servers")
        known = {server.url for server in self.servers if server.state != "gone"}
        for url in urls:
            if url.rstrip("/") not in known:
                server = Server(url, self._config, self._key, self._encoder)
                self.servers.append(server)
                self._keepers.append(asyncio.create_task(self._keep(server)))

    async def _keep(self, server: Server) -> None:
        """Check a server periodically until it is gone or given up."""
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
        """Raise Failure if a server is not healthy, and Unsound if it does not serve the model as at the start."""
        await server.check_health()
        self._wake()
        if self.max_model_len and server.max_model_len != self.max_model_len:
            raise Unsound(f"its max_model_len is {server.max_model_len}, and was {self.max_model_len} at the start")

    async def _admit(self, server: Server) -> None:
        """Set a server to `up` if it is healthy and has the same weights as the other servers."""
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
        """Trust the weights of the majority of servers, and set servers with other weights to `out`. A majority is more
        than half of all servers; servers that are starting count, too. If all servers have started and no majority
        agrees, every request raises an error."""
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
                    "Serve one model on all of them, or remove the wrong servers from engine.urls.",
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
        """Change the state of a server from `out` to `down`, so that it answers the probe again."""
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
                # The task has ended because its server was lost or because the task failed. Raise its error, if there
                # is one.
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
    return server.state == "gone" or len(server.put_out_for) >= TIMES_OUT or (server.state == "out" and server.refuses)


def _load(server: Server) -> float:
    """Return the number of pending requests of a server as a share of its limit."""
    return server.in_flight / server.limit
