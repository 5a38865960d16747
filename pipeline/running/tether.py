"""Ties the processes of a stage on several machines to the one that has started them, by a TCP connection each.

    tether = Tether(["worker-1", "worker-2"])     here: where one is gone, all others are ended
    hold(tether.addresses, tether.token)          there: ends this process where the connection breaks

The kernels keep a connection alive, however busy the processes are: a machine without power is noticed after 40 s, a
process that is killed at once. A process that hangs or was stopped says nothing any more, which is noticed after 45 s.
"""

from __future__ import annotations

import hmac
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock, Thread

Address = tuple[str, int]

DONE, FAILED = b".", b"!"
"""A process's last word."""
SIGNALS = {signal.SIGTERM: b"T", signal.SIGINT: b"I"}
"""The signals that tell a process to end, each with the byte for it."""
PULSE, PULSE_S = b"~", 5.0
"""A process says so every so many seconds that it runs."""
SILENT_S = 45.0
"""It is given up after so many seconds of silence."""
KEEPALIVE = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 6), ("TCP_USER_TIMEOUT", 40_000))
"""Options of a connection: asked for a sign of life after 10 s, and given up after 40."""
REACH_S = 5.0
"""How long a process tries each address."""


class Tether:
    """The end of the process that has started the others."""

    def __init__(self, hosts: Sequence[str]) -> None:
        """hosts: where the processes run."""
        self._server = socket.create_server(("", 0))
        self._lock = Lock()
        self._held: list[socket.socket] = []
        self.token = secrets.token_hex(16)
        """It tells the stage's own processes from others that find the port."""
        port = self._server.getsockname()[1]
        self.addresses: list[Address] = [(host, port) for host in dict.fromkeys((*_own_addresses(hosts), "127.0.0.1"))]
        """The addresses at which the processes may reach this one."""
        self._is_closed = False
        self.is_broken = False
        """Whether a process has gone without a word."""
        Thread(target=self._accept, daemon=True).start()

    def tell(self, signum: int) -> None:
        """Have every process get a signal."""
        with self._lock:
            for connection in self._held:
                with suppress(OSError):
                    connection.send(SIGNALS[signal.Signals(signum)])

    def close(self) -> None:
        """Let go; processes that still hold on end."""
        self._server.close()
        with self._lock:
            self._is_closed = True
            for connection in self._held:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                Thread(target=self._follow, args=(connection,), daemon=True).start()

    def _follow(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(REACH_S)
            if not hmac.compare_digest(connection.recv(len(self.token), socket.MSG_WAITALL), self.token.encode()):
                return
            _keep_alive(connection)
            with self._lock:
                self._held.append(connection)
            word = _last_word(connection)
            with self._lock:
                self._held.remove(connection)
                self.is_broken |= not word and not self._is_closed
            if word != DONE:
                self.close()
            if word:  # To close the connection now would end the process before it has ended by itself.
                connection.settimeout(None)
                while connection.recv(1):
                    pass


def _last_word(connection: socket.socket) -> bytes:
    """Wait for a process's last word; return nothing where the connection breaks, or where it has fallen silent.

    Silence is counted in short waits, since this process may have been stopped itself meanwhile.
    """
    connection.settimeout(PULSE_S)
    silent_s = 0.0
    while silent_s < SILENT_S:
        try:
            word = connection.recv(1)
        except TimeoutError:
            silent_s += PULSE_S
            continue
        except OSError:
            break
        if word != PULSE:
            return word
        silent_s = 0.0
    return b""


def hold(addresses: Sequence[Address], token: str) -> Callable[[bytes], None]:
    """Hold on to the process that has started this one, in the background; return what takes the last word.

    Where no address can be reached it says so and goes on untied.
    """
    for host, port in addresses:
        with suppress(OSError):
            connection = socket.create_connection((host, port), REACH_S)
            connection.settimeout(None)
            _keep_alive(connection)
            connection.sendall(token.encode())
            for behaviour in (_obey, _beat):
                Thread(target=behaviour, args=(connection,), daemon=True).start()
            return connection.sendall
    print(f"not tied to the process that started this: none of {addresses} can be reached", file=sys.stderr, flush=True)
    return lambda word: None


def _obey(connection: socket.socket) -> None:
    """Pass on signals until the connection breaks, and end this process then."""
    numbers = {word: signum for signum, word in SIGNALS.items()}
    with suppress(OSError):
        while word := connection.recv(1):
            os.kill(os.getpid(), numbers[word])
    os._exit(1)


def _beat(connection: socket.socket) -> None:
    """Say that this process runs, as long as it does."""
    with suppress(OSError):
        while True:
            time.sleep(PULSE_S)
            connection.sendall(PULSE)


def _keep_alive(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE:
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _own_addresses(hosts: Sequence[str]) -> list[str]:
    """Return by which addresses of its own this machine speaks to others. Nothing is sent."""
    addresses = []
    for host in hosts:
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, 9))
            addresses.append(str(probe.getsockname()[0]))
    return [*addresses, socket.gethostname()]
