"""Guards the web app of `truegold review`: only a browser that knows the printed address is served.

    request                            sent by                                        answer
    GET /?token=...                    the browser, at the printed address            served
    Host: evil.example                 a site whose name resolves to this machine     403
    Origin: https://evil.example       a page of another site                         403
    no token, or a wrong one           another program or user of this machine        401

A page of another site can send requests to 127.0.0.1. The browser marks them with `Origin` or `Sec-Fetch-Site`. If the
name of the site resolves to 127.0.0.1 (DNS rebinding), the page can also read answers, but then `Host` has this name.
Other sites do not know the token. Decisions must be JSON, which a form of another site cannot send.
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
"""The maximum size of a request in bytes."""
MAX_QUERY_FIELDS = 20
"""A query with more fields is not searched for the token. Addresses of the app have at most three fields."""
SAME_SITE = ("same-origin", "none")
"""The values of `Sec-Fetch-Site` for requests of the page itself (`same-origin`), and for typed addresses (`none`)."""
SAFE_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def loopback_hosts(port: int) -> frozenset[str]:
    """Return the names by which a browser on this machine addresses a server at this port."""
    return frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))


class RequestGuard:
    """Middleware that rejects requests before they reach the app, with a reason of one line."""

    def __init__(self, app: AsgiApp, hosts: Iterable[str], token: str) -> None:
        """Wrap an app. `hosts` are the allowed values of the header `Host`, such as `localhost:8000`."""
        self._app, self._token = app, token
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reject a request, or pass it on to the app."""
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
            return error_response(403, "This is not the address of the review app: open the one that was printed.")
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
    """Return an error in the page's JSON format."""
    return JSONResponse({"error": message}, status)


def _with_safe_headers(send: Send) -> Send:
    async def send_with_headers(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            extra = [(name.lower().encode(), value.encode()) for name, value in SAFE_HEADERS.items()]
            message["headers"] = [*message.get("headers", []), *extra]
        await send(message)

    return send_with_headers
