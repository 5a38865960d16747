"""Controls the access to the service: by a token in a header or in the path, or by the client's address.

    Authorization: Bearer TOKEN         POST /t/TOKEN/run_code         --allow 10.0.0.0/8

The clients of SandboxFusion, verl and open-instruct cannot send a header. They use a URL with the token
(`http://HOST:PORT/t/TOKEN`) or an allowed network. The token is removed from the path before any other code reads it,
so that access logs, metrics and errors show `/run_code`.

The address of a client is the address of its connection. Headers of proxies are not read: behind a proxy, all clients
have the proxy's address.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable, Sequence
from urllib.parse import unquote_plus

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from truegold.verifiers.sandbox.errors import ConfigError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

TOKEN_PATH = "/t/"
"""The beginning of a path with a token."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Hosts that only this machine can reach."""
_SENT = "truegold.token"
"""The key in a request's scope for the token from its path."""


class TokenOutOfPath:
    """Middleware that removes the token from `/t/TOKEN/run_code`, since servers log the path.

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
