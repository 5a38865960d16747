"""Ends all processes of a stage on several machines if one of them dies.

Each started process holds a TCP connection to the process that started it:

    tether = Tether(["worker-1", "worker-2"])     in the starting process: ends all processes if one is lost
    hold(tether.addresses, tether.token)          in a started process: ends it if the connection breaks

The death of a process is noticed at once, and the loss of a machine after 40 s (TCP keepalive). Each process also sends
signs of life. If it hangs or is stopped, this is noticed after 45 s.
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
"""The last byte that a process sends: `.` after success, `!` after failure."""
SIGNALS = {signal.SIGTERM: b"T", signal.SIGINT: b"I"}
"""Each signal -> the byte that sends it."""
PULSE, PULSE_S = b"~", 5.0
"""Each started process sends this byte every five seconds as a sign of life."""
SILENT_S = 45.0
"""A process without a sign of life for this number of seconds is lost."""
KEEPALIVE = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 6), ("TCP_USER_TIMEOUT", 40_000))
"""TCP options. The kernel checks an idle connection after 10 s, and closes a dead connection after 40 s."""
REACH_S = 5.0
"""The timeout for connecting to each address, in seconds."""


class Tether:
    """The connections of the starting process to the processes that it started."""

    def __init__(self, hosts: Sequence[str]) -> None:
        """Listen for the connections of processes on the machines `hosts`."""
        self._server = socket.create_server(("", 0))
        self._lock = Lock()
        self._held: list[socket.socket] = []
        self.token = secrets.token_hex(16)
        """A secret that the started processes send first."""
        port = self._server.getsockname()[1]
        self.addresses: list[Address] = [(host, port) for host in dict.fromkeys((*_own_addresses(hosts), "127.0.0.1"))]
        """The addresses at which the processes can reach this process."""
        self._is_closed = False
        self.is_broken = False
        """Whether a connection ended before the process sent its last byte."""
        Thread(target=self._accept, daemon=True).start()

    def tell(self, signum: int) -> None:
        """Send a signal to every process."""
        with self._lock:
            for connection in self._held:
                with suppress(OSError):
                    connection.send(SIGNALS[signal.Signals(signum)])

    def close(self) -> None:
        """Close all connections. Processes that are still connected end."""
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
            if word:  # Closing the connection would end the process. So it stays open until the process exits.
                connection.settimeout(None)
                while connection.recv(1):
                    pass


def _last_word(connection: socket.socket) -> bytes:
    """Return the last byte of a process, or nothing if the connection breaks or the process is silent for too long. The
    silence is measured in short waits. So time in which this process was suspended does not count."""
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
    """Connect to the process that started this one, and watch the connection in the background.

    Returns a function that sends the last byte. If no address can be reached, prints a warning and continues without a
    connection.
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
    print(f"no connection to the process that started this one: tried {addresses}", file=sys.stderr, flush=True)
    return lambda word: None


def _obey(connection: socket.socket) -> None:
    """Receive signals until the connection breaks, and then end this process."""
    numbers = {word: signum for signum, word in SIGNALS.items()}
    with suppress(OSError):
        while word := connection.recv(1):
            os.kill(os.getpid(), numbers[word])
    os._exit(1)


def _beat(connection: socket.socket) -> None:
    """Send signs of life as long as this process runs."""
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
    """Return the addresses from which this machine reaches the hosts, and its host name. No data is sent."""
    addresses = []
    for host in hosts:
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, 9))
            addresses.append(str(probe.getsockname()[0]))
    return [*addresses, socket.gethostname()]
