"""Fixtures of the code verifier's tests."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Several files here share `sandboxes` and its like.
sys.path.insert(0, str(Path(__file__).parent))

from remote_services import FakeTime, Server
from sandboxes import box_of

from truegold.verifiers.sandbox import Sandbox, Tier, sandboxfusion


@pytest.fixture(params=[Tier.FULL, pytest.param(Tier.CONTAINER, marks=pytest.mark.long_table)])
def box(request: pytest.FixtureRequest) -> Sandbox:
    """The sandbox, in each of the tiers that have to hold."""
    return box_of(request.param)


@pytest.fixture
def full_tier() -> None:
    """Skips the test where this machine does not give the full tier."""
    box_of(Tier.FULL)


@pytest.fixture
def server() -> Iterator[Server]:
    """A local server in place of a remote service."""
    running = Server()
    yield running
    running.stop()


@pytest.fixture
def fresh_connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No proxy before the test, no connection to a service after it."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    yield
    for client in sandboxfusion._CLIENTS.values():
        client.close()
    sandboxfusion._CLIENTS.clear()


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    """The clock of remote back ends."""
    fake = FakeTime()
    monkeypatch.setattr(sandboxfusion, "_sleep", fake.sleep)
    monkeypatch.setattr(sandboxfusion, "JITTER", (1.0, 1.0))
    return fake
