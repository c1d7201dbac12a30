"""What all tests share: how hypothesis runs, and over which wires a hub is tried."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.interaction.peers import Networks

settings.register_profile(
    "fast",
    max_examples=50,
    deadline=None,  # no test asserts a time
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """Where records go is the process's: a command that was run here has set it to its stderr."""
    yield
    structlog.reset_defaults()


@pytest.fixture(params=["memory", "sockets"])
def networks(request: pytest.FixtureRequest) -> Networks:
    """Makes networks whose clients come through memory, and again over real sockets."""
    return Networks(sockets=request.param == "sockets")


@pytest.fixture
def in_memory() -> Networks:
    """Makes networks whose clients come through memory: for what no wire can change."""
    return Networks(sockets=False)


@pytest.fixture
def on_sockets() -> Networks:
    """Makes networks whose clients come over real sockets: for what needs one."""
    return Networks(sockets=True)
