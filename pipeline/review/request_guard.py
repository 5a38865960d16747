"""Guards the review app: only a browser on this machine that was given the address is served.

    GET /?token=...                        the address that `truegold review` prints       served
    Host: evil.example                     a site whose name points at this machine        403
    Origin: https://evil.example           a page of another site that sends a decision    403
    no token, or another one               any other program or user of the machine        401

A page of another site can send requests to 127.0.0.1, and one whose name resolves to 127.0.0.1 may read the answers too
(DNS rebinding): the `Host` that a browser sends tells the second, `Origin` and `Sec-Fetch-Site` tell both, and neither
knows the token. Decisions are only taken as JSON, which no form of another site can send unasked.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

TOKEN_HEADER = "x-truegold-token"
MAX_BODY = 2**20
"""The bytes of the largest request."""
MAX_QUERY_FIELDS = 20
"""An address with more fields is not read for its token; the app's own have three at most."""
SAME_SITE = ("same-origin", "none")
"""The values that a browser sends with a request of the page itself, or of an address that was typed."""
SAFE_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def loopback_hosts(port: int) -> frozenset[str]:
    """Return what a browser on this machine calls a server at this port."""
    return frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))


class RequestGuard:
    """Refuses a request before the app sees it, with one line that says why."""

    def __init__(self, app: AsgiApp, hosts: Iterable[str], token: str) -> None:
        """`hosts` are the names, with the port, that the server may be called by."""
        self._app, self._token = app, token
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        refusal = self._refuse(scope)
        if refusal is not None:
            await refusal(scope, receive, _with_safe_headers(send))
        else:
            await self._app(scope, receive, _with_safe_headers(send))

    def _refuse(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if host not in self._hosts:
            return error_response(403, "This address is not that of the review app; open the one that it printed.")
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in {f"http://{name}" for name in self._hosts}:
            return error_response(403, "A page of another site sent this request.")
        if headers.get("sec-fetch-site", "none") not in SAME_SITE and scope["path"].startswith("/api/"):
            return error_response(403, "A page of another site sent this request.")
        token = headers.get(TOKEN_HEADER)
        if token is None and scope["method"] in ("GET", "HEAD") and not scope["path"].startswith("/api/"):
            query: bytes = scope["query_string"]
            if query.count(b"&") < MAX_QUERY_FIELDS:
                token = parse_qs(query.decode("latin-1"), max_num_fields=MAX_QUERY_FIELDS).get("token", [None])[0]
        if token is None or not secrets.compare_digest(token.encode(), self._token.encode()):
            return error_response(401, "The token is missing or wrong: open the address that the command printed.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY:
            return error_response(413, f"The request is larger than {MAX_BODY:,} bytes.")
        return None


def error_response(status: int, message: str) -> JSONResponse:
    """Return an error as the page shows it."""
    return JSONResponse({"error": message}, status)


def _with_safe_headers(send: Send) -> Send:
    async def send_with_headers(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            extra = [(name.lower().encode(), value.encode()) for name, value in SAFE_HEADERS.items()]
            message["headers"] = [*message.get("headers", []), *extra]
        await send(message)

    return send_with_headers
