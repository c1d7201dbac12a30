"""Shared by all tests: Hypothesis profiles, collection, and the network fixtures.

The process that only distributes tests to workers reads this, too, so imports that only tests need
are inside functions.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from tests.interaction.peers import Network, Networks
    from tests.interaction.stores import MoodyStore

BROWSER = Path(__file__).parent / "browser"
FRAMEWORKS = Path(__file__).parent / "frameworks"
MODULE_MARK = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(\w+)", re.MULTILINE)
"""The first mark of a whole module."""
NOT_FAST = {"slow", "bridges", "frameworks", "postgres"}
"""Marks of modules that the fast part does not run."""
SLOW_OR_PROPERTY = re.compile(r"\bmark\.slow\b|\bhypothesis\b|\bcontract\b|\btests\.stateful\b")

GATEWAY = os.environ.get("HUBBUB_TEST_GATEWAY") == "1"
"""Whether all clients connect through a gateway in front of the hub."""

# Servers of tests use plain HTTP, but most clients load all the machine's certificate authorities,
# which takes longer than most tests, unless they are given a folder without any.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)
os.environ["TZ"] = "UTC"  # of displayed times
time.tzset()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A background job of a script ignores Ctrl-C, and so would all processes started by tests.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A part of `make test` does not read the modules that it does not run."""
    chosen: str = config.option.markexpr
    if collection_path == BROWSER:
        return True if chosen in ("not slow", "npm") or "not browser" in chosen else None
    if collection_path == FRAMEWORKS:
        return True if chosen in ("npm", "bridges", "postgres", "cluster", "browser") else None
    if collection_path.suffix == ".py" and chosen.startswith("not slow"):
        return (
            True
            if NOT_FAST.intersection(MODULE_MARK.findall(collection_path.read_text()))
            else None
        )
    if collection_path.suffix == ".py" and chosen.startswith("(slow or hypothesis)"):
        return None if SLOW_OR_PROPERTY.search(collection_path.read_text()) else True
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Excludes the million objects of collection from garbage collection, as they stay to the end.

    Cycles left by tests are collected less often, which saves a fifth of the time of all tests.
    """
    gc.disable()
    try:
        _load_profile(session.config)
        yield
    finally:
        gc.enable()
    gc.freeze()
    gc.set_threshold(10_000, 20, 10)


def _load_profile(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        return  # it runs no tests
    from hypothesis import HealthCheck, settings

    from tests.examples import FULL

    for name, count in {"fast": FULL // 10, "full": FULL, "thorough": 20 * FULL}.items():
        settings.register_profile(
            name,
            max_examples=count,
            deadline=None,  # no test asserts a time
            suppress_health_check=[
                HealthCheck.too_slow,
                HealthCheck.differing_executors,  # `make mutants` runs tests again in one process
            ],
        )
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Moves long tests to the front, so that the tests which workers steal from each other at the
    end are short. Each worker starts with an equal share of the list, over which long modules are
    spread.
    """

    def is_long(item: pytest.Item) -> bool:
        return any(item.get_closest_marker(name) for name in ("slow", "browser"))

    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    long = [item for item in items if is_long(item)]
    for n, (_, module) in enumerate(groupby(long, key=lambda item: item.path)):
        shares[n % workers] += module
    short = [item for item in items if not is_long(item)]
    for share in shares:
        rest = max(0, len(items) // workers - len(share))
        share += short[:rest]
        del short[:rest]
    items[:] = [*chain(*shares), *short]


@pytest.fixture(autouse=True)
def _reset_logging() -> Iterator[None]:
    """Resets the process-wide logging, which a command run in this process configures."""
    yield
    import structlog

    structlog.reset_defaults()


@pytest.fixture(params=["sockets"] if GATEWAY else ["memory", "sockets"])
def networks(request: pytest.FixtureRequest) -> Networks:
    """Starts networks whose clients connect in memory, and again over real sockets."""
    from tests.interaction.peers import Networks

    return Networks(sockets=request.param == "sockets")


@pytest.fixture
def in_memory() -> Networks:
    """Starts networks whose clients connect in memory, for behaviour independent of the wire."""
    from tests.interaction.peers import Networks

    return Networks(sockets=False)


@pytest.fixture
def on_sockets() -> Networks:
    """Starts networks whose clients connect over real sockets."""
    from tests.interaction.peers import Networks

    return Networks(sockets=True)


@pytest.fixture
def moody() -> MoodyStore:
    """The store of `network`, which fails or waits on demand."""
    from tests.interaction.stores import MoodyStore

    return MoodyStore()


@pytest.fixture
async def network(
    in_memory: Networks, moody: MoodyStore, request: pytest.FixtureRequest
) -> AsyncIterator[Network]:
    """A new network in memory with the module's `NETWORK` config."""
    file = getattr(request.module, "NETWORK", None)
    async with in_memory.start(file, store=moody) as network:
        yield network


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def _module_network(request: pytest.FixtureRequest) -> AsyncIterator[Network]:
    from tests.interaction.peers import Networks

    async with Networks(sockets=False).start(getattr(request.module, "NETWORK", None)) as network:
        yield network


@pytest_asyncio.fixture(loop_scope="module")
async def shared(_module_network: Network) -> AsyncIterator[Network]:
    """A network in memory with the module's `NETWORK` config, shared by all its tests: each test
    uses its own participants and channels, and its sockets are closed at its end.

    The module needs `pytestmark = pytest.mark.asyncio(loop_scope="module")`.
    """
    yield _module_network
    await _module_network.leave()
