"""Serves verdicts and runs of programs over HTTP, with a bounded queue, deadlines and metrics.

    POST /verify         {"response": "... \\\\boxed{0.5}", "gold": "1/2"}         -> {"score": 1.0, ...}
    POST /verify         {"responses": [{"response": ..., "gold": ...}, ...]}    -> {"verdicts": [...]}
    POST /run_code                            the format of SandboxFusion (`programs`)
    POST /test_program, /test_program_stdio   the format of open-instruct (`programs`)
    GET  /health, /metrics

A response that could not be judged has the score null. Requests without an answer have one of these status codes:

    400   the request is invalid; `error` says why     413   the request is too large
    401   the token is missing or wrong                422   the tests check nothing
    403   the client's address is not allowed          429   the queue is full; `Retry-After` has the seconds
    408   the body arrived too late                    503   time ran out, or the machine or the sandbox failed

Responses and programs wait in a bounded queue (`Desk`). Child processes judge responses, and the sandbox runs programs.
If the queue is full, a request is refused at once. If a process dies, a new process judges the response again; if the
new process dies too, the response has no score. A response not judged by its deadline has the reason `timeout`. When
the time of a request is up, or its client disconnects, its waiting work is dropped and its programs are stopped.

Metrics are in Prometheus' text format:

    truegold_verdicts_total{verifier="math",reason="match"} 4711
    truegold_unjudged_requests_total{path="/test_program",cause="late"} 3
    truegold_request_seconds_bucket{path="/verify",le="0.1"} 42

A request needs a token in a header or in the path, or an address in a network of `--allow`:

    Authorization: Bearer TOKEN         POST /t/TOKEN/run_code         --allow 10.0.0.0/8

The clients of SandboxFusion, verl and open-instruct cannot send a header. They use a URL with the token
(`http://HOST:PORT/t/TOKEN`) or an allowed network. The token is removed from the path before other code reads the path.
So access logs, metrics and errors show only `/run_code`.

The address of a client is the address of its connection. Headers of proxies are not read: behind a proxy, all clients
have the proxy's address.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar
from urllib.parse import unquote_plus

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from truegold.verifiers.checked import checked_class
from truegold.verifiers.registry import BUILT_IN
from truegold.verifiers.running.batch import DEADLINE_S, Item, TimedVerdict, TimeoutTally, VerifierPool, verdict_to_json
from truegold.verifiers.sandbox.child_process import usable_cores
from truegold.verifiers.sandbox.errors import ConfigError, SetupError, TruegoldError
from truegold.verifiers.sandbox.execution import MachineBusy, SandboxError
from truegold.verifiers.sandbox.pool import STOP, Stop
from truegold.verifiers.service import programs
from truegold.verifiers.service.programs import Allowance, Unjudged, UnjudgedCause
from truegold.verifiers.user_code import did_you_mean
from truegold.verifiers.verdict import Reason, Verdict

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

TOKEN_PATH = "/t/"
"""The beginning of a path with a token."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Hosts that only this machine can reach."""
_SENT = "truegold.token"
"""The key in a request's scope for the token from its path."""


class TokenOutOfPath:
    """Middleware that turns the path `/t/TOKEN/run_code` into `/run_code`, since servers log paths.

    The token is also removed from misspelt URLs such as `//t/TOKEN/run_code` and `/run_code?token=TOKEN`.
    """

    def __init__(self, app: ASGIApp, routes: Sequence[str], token: str | None) -> None:
        self._app = app
        self._routes = routes
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] in ("http", "websocket"):
            path = "/" + scope["path"].strip("/")
            if path.startswith(TOKEN_PATH):
                route = next((route for route in self._routes if path.endswith(route)), "")
                scope[_SENT] = path.removesuffix(route)[len(TOKEN_PATH) :]
                _set_path(scope, route or f"{TOKEN_PATH}...")
            elif self._token and self._token in path:
                _set_path(scope, "/...")
            if self._token and self._token in unquote_plus(scope["query_string"].decode("latin-1")):
                scope["query_string"] = b"..."
        await self._app(scope, receive, send)


def _set_path(scope: Scope, path: str) -> None:
    scope["path"] = path
    scope["raw_path"] = path.encode()


def why_refused(request: Request, token: str | None, networks: Sequence[Network]) -> tuple[int, str] | None:
    """Return the status and the text for a request that is refused, or None if it is allowed."""
    if token is None and not networks:
        return None
    address = request.client.host if request.client else ""
    if _is_within(address, networks) or (token is not None and _has_token(request, token)):
        return None
    if token is None:
        return 403, f"{address or 'a client without an address'} is not in a network of --allow"
    return 401, "the token is missing or wrong: Authorization: Bearer TOKEN, or /t/TOKEN before the path"


def _is_within(address: str, networks: Sequence[Network]) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    parsed = getattr(parsed, "ipv4_mapped", None) or parsed
    return any(parsed in network for network in networks)


def _has_token(request: Request, token: str) -> bool:
    in_path, (scheme, _, in_header) = request.scope.get(_SENT), request.headers.get("authorization", "").partition(" ")
    # ASGI servers decode headers as Latin-1 and paths as UTF-8.
    sent = in_header.strip().encode("latin-1") if scheme.lower() == "bearer" else b""
    if in_path is not None:
        sent = in_path.encode("utf-8", "surrogatepass")
    return hmac.compare_digest(sent, token.encode())


def read_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return the networks in the values of `--allow`.

    Raises ConfigError for a text that is not a network, and for networks that together contain all addresses.
    """
    networks: list[Network] = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text.strip()))
        except ValueError:
            raise ConfigError(f"--allow {text} is not a network.", _describe_network(text)) from None
    old = ipaddress.collapse_addresses(each for each in networks if isinstance(each, ipaddress.IPv4Network))
    new = ipaddress.collapse_addresses(each for each in networks if isinstance(each, ipaddress.IPv6Network))
    collapsed: tuple[Network, ...] = (*old, *new)
    for network in collapsed:
        if not network.prefixlen:
            raise ConfigError(f"--allow {network} allows every address.", "Name the networks of your own machines.")
    return tuple(networks)


def _describe_network(text: str) -> str:
    try:
        return f"The address has bits after its prefix; use --allow {ipaddress.ip_network(text.strip(), strict=False)}"
    except ValueError:
        return "Use an address or a network, such as 10.0.0.0/8, 192.168.1.7 or fd00::/8, not a host name."


def check_access(host: str, token: str | None, networks: Sequence[Network]) -> None:
    """Raise ConfigError for a service that other machines can reach but that has neither a token nor networks."""
    if host not in LOOPBACK and not token and not networks:
        raise ConfigError(
            f"A service on {host} without a token runs programs for every client that can reach it.",
            "Set a token (TRUEGOLD_SERVICE_TOKEN=... or --token-file FILE), allow networks (--allow 10.0.0.0/8), or "
            "use 127.0.0.1.",
        )


RETRY_S = 1
"""The seconds in `Retry-After`."""

CLIENT_GONE = 499
"""The status of a request whose client disconnected, as in nginx."""
_STATUSES = {UnjudgedCause.SUITE: 422, UnjudgedCause.BUSY: 429, UnjudgedCause.GONE: CLIENT_GONE}
"""Status codes of requests without a result; for the remaining causes it is 503."""

Handler: TypeAlias = "Callable[[Desk, Mapping[str, Any], Allowance], Awaitable[dict[str, Any]]]"
"""A function that takes a request's body and returns the answer, both as JSON objects."""

T = TypeVar("T")
ENTRY = ("response", "gold", "verifier", "verifier_args", "problem")
"""The fields of a response to `/verify`."""
SINGLE, SEVERAL = (*ENTRY, "responses", "deadline_s"), ("responses", "deadline_s")
"""The fields of a body of `/verify` with one response, and with several."""
CHUNK = 16
"""Number of responses that a process gets at a time, so that a large request does not delay other requests. Programs
and responses for users' verifiers are sent one by one, because they may take long."""
BOUNDS_S = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
"""Upper bounds of the buckets of the metric `truegold_request_seconds`, in seconds."""


class _Refused(Exception):
    """A request that is refused. The arguments are the status and the text of the answer."""


def make_app(settings: Settings) -> Starlette:
    """Return the application. Its child processes start when the server starts it, and end with it."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.desk = Desk(settings)
        try:
            yield
        finally:
            app.state.desk.close()

    handlers: dict[str, Handler] = {
        "/verify": _verify,
        "/run_code": _run_code,
        "/test_program": _test_program,
        "/test_program_stdio": _test_program_stdio,
    }
    routes = [Route(path, _endpoint(path, handler), methods=["POST"]) for path, handler in handlers.items()]
    routes += [Route("/health", _health), Route("/metrics", _metrics)]
    middleware = [Middleware(TokenOutOfPath, routes=[route.path for route in routes], token=settings.token)]
    unrouted = {status: partial(_unrouted, routes) for status in (404, 405)}
    return Starlette(routes=routes, lifespan=lifespan, middleware=middleware, exception_handlers=unrouted)


async def _unrouted(routes: Sequence[Route], request: Request, error: Exception) -> Response:
    """Answer a request for another path or with another method."""
    methods = {route.path: "POST" if "POST" in (route.methods or ()) else "GET" for route in routes}
    path = request.url.path
    if path in methods:
        message = f"{path} answers {methods[path]}, not {request.method}"
    else:
        near = did_you_mean(path, methods)
        message = f"there is no {path[:80]}. {near + ' ' if near else ''}There are: " + ", ".join(
            f"{method} {known}" for known, method in methods.items()
        )
    return JSONResponse({"error": message}, getattr(error, "status_code", 404), getattr(error, "headers", None))


def _endpoint(path: str, handle: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        desk: Desk = request.app.state.desk
        began = time.monotonic()
        try:
            response = await _respond(request, desk, handle)
        except Unjudged as unjudged:
            desk.metrics.count_unjudged(path, unjudged.cause)
            response = _refusal(_STATUSES.get(unjudged.cause, 503), str(unjudged))
            if unjudged.cause is UnjudgedCause.BUSY:
                response.headers["Retry-After"] = str(RETRY_S)
        desk.metrics.count_request(path, response.status_code, time.monotonic() - began)
        return response

    return endpoint


async def _respond(request: Request, desk: Desk, handle: Handler) -> Response:
    if (refused := why_refused(request, desk.settings.token, desk.settings.networks)) is not None:
        return _refusal(*refused)
    allowance = Allowance(desk.settings.request_s, time.monotonic() + desk.settings.request_s)
    try:
        if (coding := request.headers.get("content-encoding", "identity")) != "identity":
            raise programs.BadRequest(f"the body is compressed (Content-Encoding: {coding[:20]}); send plain JSON")
        if request.query_params:
            raise programs.BadRequest(f"fields are sent in the JSON body; ?{request.url.query[:60]} would be ignored")
        if not (text := await _body(request, desk.settings)):
            raise programs.BadRequest("the body is empty; send a JSON object")
        body = json.loads(text)
        if not isinstance(body, dict):
            several = ' Several responses are sent as {"responses": [...]}.' if isinstance(body, list) else ""
            raise programs.BadRequest(f"the body must be a JSON object; this is {programs.json_kind(body)}.{several}")
        return JSONResponse(await _while_connected(request, handle(desk, body, allowance)))
    except _Refused as refusal:
        return _refusal(*refusal.args)
    except (SetupError, SandboxError) as error:
        raise Unjudged(
            UnjudgedCause.MACHINE if isinstance(error, MachineBusy) else UnjudgedCause.SANDBOX, str(error)
        ) from error
    except ClientDisconnect:
        raise Unjudged(UnjudgedCause.GONE, "the client disconnected") from None
    except (programs.BadRequest, TruegoldError) as error:
        return _refusal(400, str(error))
    except (ValueError, RecursionError) as error:
        return _refusal(400, f"the body is not JSON: {error}"[:300])


async def _while_connected(request: Request, work: Awaitable[T]) -> T:
    """Return the result of `work`. If the client disconnects, cancel the work and raise ClientDisconnect."""
    working, hung_up = asyncio.ensure_future(work), asyncio.ensure_future(_hang_up(request))
    try:
        await asyncio.wait((working, hung_up), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, hung_up):
            task.cancel()


async def _hang_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _body(request: Request, settings: Settings) -> bytes:
    """Return the body. Reading stops at `max_bytes`, even if the headers announce a shorter body."""
    too_large = _Refused(413, f"a request may have at most {settings.max_bytes} bytes")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > settings.max_bytes:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(settings.request_s):
            async for part in request.stream():
                body += part
                if len(body) > settings.max_bytes:
                    raise too_large
    except TimeoutError:
        raise _Refused(408, f"the body did not arrive within {settings.request_s:g} s (--request-s)") from None
    return bytes(body)


async def _verify(desk: Desk, body: Mapping[str, Any], allowance: Allowance) -> dict[str, Any]:
    several = body.get("responses")
    entries = [body] if several is None else several
    if several is not None and (moved := [name for name in ENTRY if name in body and name not in SEVERAL]):
        raise programs.BadRequest(f'with `responses`, {moved[0]} belongs in each of them: [{{"response": ..., ...}}]')
    programs.check_fields(body, SINGLE if several is None else SEVERAL)
    if not isinstance(entries, list) or len(entries) > desk.settings.max_responses:
        raise programs.BadRequest(f"responses must be a list of at most {desk.settings.max_responses} objects")
    for position, entry in enumerate(entries, 1):
        if several is not None and isinstance(entry, dict):
            programs.check_fields(entry, ENTRY, f"response {position}: ")
    asked = [_item(entry, position, desk) for position, entry in enumerate(entries, 1)]
    verdicts = await desk.judge(asked, _deadline(body, allowance.seconds_left()))
    answers = [verdict_to_json(timed.verdict) for timed in verdicts]
    return answers[0] if several is None else {"verdicts": answers}


def _item(entry: object, position: int, desk: Desk) -> Item:
    if not isinstance(entry, dict):
        raise programs.BadRequest(
            f'response {position} must be an object {{"response": ..., "gold": ...}}; '
            f"this is {programs.json_kind(entry)}"
        )
    texts = {}
    for name in ("response", "problem", "verifier"):
        value = entry.get(name)
        if not isinstance(value, str) and (value is not None or name == "response"):
            raise programs.BadRequest(f"response {position}: {programs.must_be_text(entry, name)}")
        texts[name] = value
    verifier = texts["verifier"] or "math"
    if not desk.allows(verifier):
        known = (*BUILT_IN, *desk.settings.verifiers)
        raise programs.BadRequest(
            f"response {position}: this service has no verifier {verifier[:80]!r}. "
            f"{did_you_mean(verifier, known) or 'Others are allowed with --verifier.'} It has {', '.join(known)}."
        )
    arguments = entry.get("verifier_args") or {}
    try:
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError as error:
                raise programs.BadRequest(f"verifier_args is not JSON: {error}") from None
        if not isinstance(arguments, dict):
            raise programs.BadRequest(f"verifier_args must be an object; this is {programs.json_kind(arguments)}")
        if verifier not in BUILT_IN:
            # `Item` checks only mappings. A check would import the user's verifier into this process.
            arguments = json.dumps(arguments)
        item = Item(texts["response"] or "", entry.get("gold"), verifier, arguments, texts["problem"])
    except (ValueError, ConfigError) as error:
        raise programs.BadRequest(f"response {position}: {error}"[:500]) from None
    if item.unread_gold is not None:
        raise programs.BadRequest(f"response {position}: {item.unread_gold}")
    return item


def _deadline(body: Mapping[str, Any], most: float) -> float:
    value = most if body.get("deadline_s") is None else body["deadline_s"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise programs.BadRequest("deadline_s must be a number of seconds above 0")
    return min(float(value), most)


async def _run_code(desk: Desk, body: Mapping[str, Any], allowance: Allowance) -> dict[str, Any]:
    programs.check_fields(body, programs.RUN_FIELDS, only_misspelt=True)
    try:
        (answer,) = await desk.run_programs([partial(programs.run_code, body, allowance)], allowance)
    except SandboxError as error:
        desk.metrics.count_unjudged(
            "/run_code", UnjudgedCause.MACHINE if isinstance(error, MachineBusy) else UnjudgedCause.SANDBOX
        )
        return programs.sandbox_error(str(error))
    return answer


async def _test_program(desk: Desk, body: Mapping[str, Any], allowance: Allowance) -> dict[str, Any]:
    programs.check_fields(body, programs.TEST_FIELDS, only_misspelt=True)
    asked, limit_s = programs.assert_tests(body, allowance.request_s), programs.time_limit(body, allowance.request_s)
    verdicts = await desk.judge(asked, allowance.seconds_left())
    return programs.outcome_lists(programs.assert_outcomes(verdicts, limit_s, allowance))


async def _test_program_stdio(desk: Desk, body: Mapping[str, Any], allowance: Allowance) -> dict[str, Any]:
    programs.check_fields(body, programs.TEST_FIELDS, only_misspelt=True)
    return programs.outcome_lists(await desk.run_programs(programs.stdio_runs(body, allowance), allowance))


async def _health(request: Request) -> Response:
    desk: Desk = request.app.state.desk
    health = {"status": "healthy", "waiting": desk.waiting, "queue": desk.settings.queue, "workers": len(desk.pids)}
    return JSONResponse(health)


async def _metrics(request: Request) -> Response:
    desk: Desk = request.app.state.desk
    if (refused := why_refused(request, desk.settings.token, desk.settings.networks)) is not None:
        return _refusal(*refused)
    gauges = {"queue_waiting": float(desk.waiting), "worker_processes": float(len(desk.pids))}
    return PlainTextResponse(desk.metrics.text(gauges), media_type="text/plain; version=0.0.4")


def _refusal(status: int, error: str) -> JSONResponse:
    return JSONResponse({"error": error}, status_code=status)


@checked_class
@dataclass(frozen=True)
class Settings:
    """The settings of a service."""

    token: str | None = None
    """The token that clients have to send, or None for no token."""
    networks: tuple[Network, ...] = ()
    """Networks whose clients need no token. Without a token, all other clients are refused."""
    workers: int = 0
    """The number of verifying processes, and of programs that run at a time; 0: one per core."""
    queue: int = 4096
    """Maximum number of responses and programs that wait or run at a time."""
    max_bytes: int = 16 * 2**20
    """Maximum size of a request's body, in bytes."""
    max_responses: int = 1024
    """Maximum number of responses in a request."""
    deadline_s: float = DEADLINE_S
    """Seconds for one verdict."""
    request_s: float = 300.0
    """Seconds for one request, including the time in the queue."""
    verifiers: tuple[str, ...] = ()
    """Your own verifiers that requests may name, as import strings. Others are refused, since importing runs code."""


class Desk:
    """Judges the responses and runs the programs of requests, with a bounded queue."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.waiting = 0
        """The number of responses and programs that wait or run."""
        self._workers = settings.workers or usable_cores()
        self._pool = VerifierPool(self._workers, settings.deadline_s)
        self._tally = TimeoutTally(1.0, settings.deadline_s)
        self._programs = ThreadPoolExecutor(self._workers, thread_name_prefix="truegold-programs")

    @property
    def pids(self) -> list[int]:
        """The process ids of the running verifying processes."""
        return self._pool.pids

    def allows(self, verifier: str) -> bool:
        """Return whether a request may name this verifier."""
        return verifier in BUILT_IN or verifier in self.settings.verifiers

    async def judge(self, asked: Sequence[Item], deadline_s: float) -> list[TimedVerdict]:
        """Return the verdicts in order, each with its cost. Raises Unjudged if the queue is full."""
        self._admit(len(asked))
        size = 1 if any(item.verifier == "code" or item.verifier not in BUILT_IN for item in asked) else CHUNK
        chunks = [list(asked[start : start + size]) for start in range(0, len(asked), size)]
        futures = [self._pool.submit(chunk, self._tally) for chunk in chunks]
        for chunk, future in zip(chunks, futures, strict=True):
            future.add_done_callback(partial(self._release, len(chunk)))
        late = TimedVerdict(Verdict(None, Reason.TIMEOUT, evidence={"request_s": round(deadline_s, 3)}), None)
        verdicts: list[TimedVerdict] = []
        answers = await _results(futures, deadline_s)
        for chunk, judged in zip(chunks, answers, strict=True):
            verdicts += [late] * len(chunk) if judged is None else judged
        for item, timed in zip(asked, verdicts, strict=True):
            self.metrics.count_verdict(item.verifier, timed.verdict)
        return verdicts

    async def run_programs(self, runs: Sequence[Callable[[], T]], allowance: Allowance) -> list[T]:
        """Return the results of functions that each run a program.

        Raises Unjudged if the queue is full or the time of the request is up.
        """
        self._admit(len(runs))
        stop = Stop()

        def work(run: Callable[[], T]) -> T:
            STOP.set(stop)
            return run()

        futures = [self._programs.submit(work, run) for run in runs]
        for future in futures:
            future.add_done_callback(partial(self._release, 1))
        try:
            outcomes = await _results(futures, allowance.end - time.monotonic())
        finally:
            stop.set()  # Programs may still run if the client disconnected or time is up.
        done = [outcome for outcome in outcomes if outcome is not None]
        if len(done) < len(outcomes):
            raise allowance.late()
        return done

    def close(self) -> None:
        """End the child processes."""
        self._pool.close()
        self._programs.shutdown(wait=False, cancel_futures=True)

    def _admit(self, count: int) -> None:
        if count > self.settings.queue:
            raise _Refused(413, f"a request may have at most {self.settings.queue} responses, the size of the queue")
        if self.waiting + count > self.settings.queue:
            raise Unjudged(UnjudgedCause.BUSY, f"the queue is full: {self.waiting} wait or run")
        with self.metrics.lock:
            self.waiting += count

    def _release(self, count: int, _: object) -> None:
        with self.metrics.lock:
            self.waiting -= count


async def _results(futures: Sequence[Future[T]], seconds: float) -> list[T | None]:
    """Return the results in order; None for results that are not ready within `seconds`.

    Work that has not begun by then is cancelled. If a result is an error, work that has not begun is cancelled, and the
    error is raised.
    """
    waited = [asyncio.wrap_future(future) for future in futures]
    try:
        if waited:
            await asyncio.wait(waited, timeout=max(seconds, 0.0), return_when=asyncio.FIRST_EXCEPTION)
        for future in waited:
            if future.done():
                future.result()
        return [future.result() if future.done() else None for future in waited]
    finally:
        for future in waited:
            if not future.cancel() and not future.cancelled():
                future.exception()  # This keeps asyncio from logging that the exception was never retrieved.


class Metrics:
    """Counts since the start of the service."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._verdicts: Counter[tuple[str, str]] = Counter()
        self._unjudged: Counter[tuple[str, UnjudgedCause]] = Counter()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()

    def count_verdict(self, verifier: str, verdict: Verdict) -> None:
        """Count a verdict."""
        with self.lock:
            self._verdicts[verifier, str(verdict.reason)] += 1

    def count_unjudged(self, path: str, cause: UnjudgedCause) -> None:
        """Count a request without a result."""
        with self.lock:
            self._unjudged[path, cause] += 1

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """Count a request and its duration."""
        with self.lock:
            self._requests[path, status] += 1
            self._seconds[path] += seconds  # type: ignore[assignment]
            for bound in BOUNDS_S:
                self._buckets[path, bound] += seconds <= bound

    def text(self, gauges: Mapping[str, float]) -> str:
        """Return the metrics in Prometheus' text format; `gauges` holds current values by name."""
        with self.lock:
            lines = ["# TYPE truegold_verdicts_total counter"]
            for (verifier, reason), count in sorted(self._verdicts.items()):
                lines.append(f'truegold_verdicts_total{{verifier="{_quoted(verifier)}",reason="{reason}"}} {count}')
            lines.append("# TYPE truegold_unjudged_requests_total counter")
            for (path, cause), count in sorted(self._unjudged.items()):
                lines.append(f'truegold_unjudged_requests_total{{path="{path}",cause="{cause}"}} {count}')
            lines.append("# TYPE truegold_requests_total counter")
            counts: Counter[str] = Counter()
            for (path, status), count in sorted(self._requests.items()):
                counts[path] += count
                lines.append(f'truegold_requests_total{{path="{path}",status="{status}"}} {count}')
            lines.append("# TYPE truegold_request_seconds histogram")
            for path, total in sorted(counts.items()):
                buckets = [(f"{bound:g}", self._buckets[path, bound]) for bound in BOUNDS_S] + [("+Inf", total)]
                for le, count in buckets:
                    lines.append(f'truegold_request_seconds_bucket{{path="{path}",le="{le}"}} {count}')
                lines.append(f'truegold_request_seconds_sum{{path="{path}"}} {self._seconds[path]:.6f}')
                lines.append(f'truegold_request_seconds_count{{path="{path}"}} {total}')
            for name, value in gauges.items():
                lines += [f"# TYPE truegold_{name} gauge", f"truegold_{name} {value:g}"]
        return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
