"""Lets clients in: by a token in a header or in the path, or by the address that they come from.

    Authorization: Bearer TOKEN         POST /t/TOKEN/run_code         --allow 10.0.0.0/8

Clients that cannot send a header, such as SandboxFusion's, verl's and open-instruct's, get an address with the token
(`http://HOST:PORT/t/TOKEN`) or stand in an allowed network. The token is taken out of the path before anything reads
it, so that access logs, metrics and errors say `/run_code`. The address is that of the connection: headers in which a
proxy names another one are not read, and behind a proxy all clients have the proxy's.
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
_SENT = "truegold.token"
"""The key under which a request keeps the token of its path."""


class TokenOutOfPath:
    """Takes the token out of `/t/TOKEN/run_code`, in the request itself, which servers log.

    An address that is put together wrongly, such as `//t/TOKEN/run_code` or `/run_code?token=TOKEN`, loses it as well.
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
    """Return status and text for a request that is not let in; None for one that is."""
    if token is None and not networks:
        return None
    address = request.client.host if request.client else ""
    if _is_within(address, networks) or (token is not None and _has_token(request, token)):
        return None
    if token is None:
        return 403, f"{address or 'a client without an address'} is in no network of --allow"
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
    # Servers read headers as Latin-1 and paths as UTF-8.
    sent = in_header.strip().encode("latin-1") if scheme.lower() == "bearer" else b""
    if in_path is not None:
        sent = in_path.encode("utf-8", "surrogatepass")
    return hmac.compare_digest(sent, token.encode())


def read_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return the networks that `--allow` names. Raises ConfigError if a text is not a network, or if a network contains
    all addresses."""
    networks: list[Network] = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text.strip()))
        except ValueError:
            raise ConfigError(f"--allow {text}: no network.", _describe_network(text)) from None
    old = ipaddress.collapse_addresses(each for each in networks if isinstance(each, ipaddress.IPv4Network))
    new = ipaddress.collapse_addresses(each for each in networks if isinstance(each, ipaddress.IPv6Network))
    collapsed: tuple[Network, ...] = (*old, *new)
    for network in collapsed:
        if not network.prefixlen:
            raise ConfigError(f"--allow {network} lets in everybody.", "Name the networks of your own machines.")
    return tuple(networks)


def _describe_network(text: str) -> str:
    try:
        return f"Its address has more bits than its network; --allow {ipaddress.ip_network(text.strip(), strict=False)}"
    except ValueError:
        return "Such as 10.0.0.0/8, 192.168.1.7 or fd00::/8; names of machines are none."


def check_access(host: str, token: str | None, networks: Sequence[Network]) -> None:
    """Raise ConfigError for a service that anybody in the network could use, for want of a token and of networks."""
    if host not in LOOPBACK and not token and not networks:
        raise ConfigError(
            f"A service on {host} without a token runs programs for everybody who reaches it.",
            "Give it one (TRUEGOLD_SERVICE_TOKEN=... or --token-file FILE), let in networks (--allow 10.0.0.0/8), or "
            "stay on 127.0.0.1.",
        )
