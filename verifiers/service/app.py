"""The HTTP application: verdicts and programs, with a bounded queue, deadlines, a token, health and metrics.

    POST /verify         {"response": "... \\\\boxed{0.5}", "gold": "1/2"}         -> {"score": 1.0, ...}
    POST /verify         {"responses": [{"response": ..., "gold": ...}, ...]}    -> {"verdicts": [...]}
    POST /run_code                            as SandboxFusion has it (`programs`)
    POST /test_program, /test_program_stdio   as open-instruct has them (`programs`)
    GET  /health, /metrics

400: the request is wrong, and `error` says how. 401: the token is. 413: it is too large. 429: the queue is full; come
again after `Retry-After` seconds. 503: the sandbox failed. A verdict that could not be given has score null, as
everywhere.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from truegold.verifiers.registry import BUILT_IN
from truegold.verifiers.running.item import Item, verdict_to_json
from truegold.verifiers.sandbox.errors import ConfigError, SetupError, TruegoldError
from truegold.verifiers.sandbox.execution import SandboxError
from truegold.verifiers.service import programs
from truegold.verifiers.service.desk import Desk, Full, NeverFits, Settings

RETRY_S = 1
"""When a client that was refused may come again."""

Handler = Callable[[Desk, Mapping[str, Any]], Awaitable[dict[str, Any]]]


class _TooLarge(Exception):
    """A request has more bytes than are read."""


def make_app(settings: Settings) -> Starlette:
    """Return the application. Its processes start with it and end with it."""

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
    return Starlette(routes=routes, lifespan=lifespan)


def _endpoint(path: str, handle: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        desk: Desk = request.app.state.desk
        began = time.monotonic()
        response = await _respond(request, desk, handle)
        desk.metrics.count_request(path, response.status_code, time.monotonic() - began)
        return response

    return endpoint


async def _respond(request: Request, desk: Desk, handle: Handler) -> Response:
    if not _is_allowed(request, desk.settings.token):
        return _refusal(401, "the token is missing or wrong: Authorization: Bearer TOKEN")
    try:
        body = json.loads(await _body(request, desk.settings.max_bytes))
        if not isinstance(body, dict):
            raise programs.BadRequest(f"the body is a JSON object; this is {type(body).__name__}")
        return JSONResponse(await handle(desk, body))
    except Full:
        return JSONResponse({"error": "the queue is full"}, 429, headers={"Retry-After": str(RETRY_S)})
    except (NeverFits, _TooLarge) as error:
        return _refusal(413, str(error) or f"a request has at most {desk.settings.max_bytes} bytes")
    except (programs.BadRequest, TruegoldError, SandboxError, ClientDisconnect) as error:
        return _refusal(503 if isinstance(error, SetupError | SandboxError) else 400, str(error))
    except (ValueError, RecursionError) as error:
        return _refusal(400, f"the body is no JSON: {error}"[:300])


def _is_allowed(request: Request, token: str | None) -> bool:
    if token is None:
        return True
    sent = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
    return hmac.compare_digest(sent, token.encode())


async def _body(request: Request, max_bytes: int) -> bytes:
    """Return the body. No more is read than is allowed, even where its headers say less."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > max_bytes:
        raise _TooLarge
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > max_bytes:
            raise _TooLarge
    return bytes(body)


async def _verify(desk: Desk, body: Mapping[str, Any]) -> dict[str, Any]:
    several = body.get("responses")
    entries = [body] if several is None else several
    if not isinstance(entries, list) or len(entries) > desk.settings.max_responses:
        raise programs.BadRequest(f"responses is a list of at most {desk.settings.max_responses} objects")
    asked = [_item(entry, position, desk) for position, entry in enumerate(entries, 1)]
    verdicts = await desk.judge(asked, _deadline(body, desk.settings.request_s))
    answers = [verdict_to_json(timed.verdict) for timed in verdicts]
    return answers[0] if several is None else {"verdicts": answers}


def _item(entry: object, position: int, desk: Desk) -> Item:
    if not isinstance(entry, dict):
        raise programs.BadRequest(f"response {position} is a JSON object; this is {type(entry).__name__}")
    texts = {}
    for name in ("response", "problem", "verifier"):
        value = entry.get(name)
        if not isinstance(value, str) and (value is not None or name == "response"):
            raise programs.BadRequest(f"response {position}: {name} is a text; here it is {type(value).__name__}")
        texts[name] = value
    verifier = texts["verifier"] or "math"
    if not desk.allows(verifier):
        raise programs.BadRequest(f"response {position}: this service has no verifier {verifier[:80]!r}")
    arguments = entry.get("verifier_args") or {}
    try:
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        if not isinstance(arguments, dict):
            raise programs.BadRequest(f"verifier_args is an object; here it is {type(arguments).__name__}")
        if verifier not in BUILT_IN:
            # A verifier of the user's is imported by the processes that judge, not by this one.
            arguments = json.dumps(arguments)
        item = Item(texts["response"] or "", entry.get("gold"), verifier, arguments, texts["problem"])
    except (ValueError, ConfigError) as error:
        raise programs.BadRequest(f"response {position}: {error}"[:500]) from None
    if item.unread_gold is not None:
        raise programs.BadRequest(f"response {position}: {item.unread_gold}")
    return item


def _deadline(body: Mapping[str, Any], most: float) -> float:
    value = body.get("deadline_s", most)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise programs.BadRequest("deadline_s is a number of seconds above 0")
    return min(float(value), most)


async def _run_code(desk: Desk, body: Mapping[str, Any]) -> dict[str, Any]:
    (answer,) = await desk.run_programs([partial(programs.run_code, body)])
    return answer


async def _test_program(desk: Desk, body: Mapping[str, Any]) -> dict[str, Any]:
    verdicts = await desk.judge(programs.assert_tests(body), desk.settings.request_s)
    limit_s = programs.time_limit(body)
    return programs.outcome_lists([programs.outcome_of(timed, limit_s) for timed in verdicts])


async def _test_program_stdio(desk: Desk, body: Mapping[str, Any]) -> dict[str, Any]:
    runs = programs.stdio_runs(body, time.monotonic() + desk.settings.request_s)
    return programs.outcome_lists(await desk.run_programs(runs))


async def _health(request: Request) -> Response:
    desk: Desk = request.app.state.desk
    health = {"status": "healthy", "waiting": desk.waiting, "queue": desk.settings.queue, "workers": desk.pids}
    return JSONResponse(health)


async def _metrics(request: Request) -> Response:
    desk: Desk = request.app.state.desk
    if not _is_allowed(request, desk.settings.token):
        return _refusal(401, "the token is missing or wrong: Authorization: Bearer TOKEN")
    gauges = {"queue_waiting": float(desk.waiting), "worker_processes": float(len(desk.pids))}
    return PlainTextResponse(desk.metrics.text(gauges), media_type="text/plain; version=0.0.4")


def _refusal(status: int, error: str) -> JSONResponse:
    return JSONResponse({"error": error}, status_code=status)
