"""One Chromium for all browser tests, a context of its own for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from hubbub.testing.model_server import ModelServer
from tests.browser.support import chromium
from tests.browser.support.desk import PATIENCE_S, Desk, Desks
from tests.browser.support.network import Network, Networks, Room
from tests.browser.support.seeding import seed
from tests.browser.support.team import PLAN, ask, looks_at_the_answer, script

HERE = Path(__file__).parent
LONGEST_S = 300
"""A browser test that takes longer has come to a stop."""

expect.set_options(timeout=PATIENCE_S * 1000)
_failed = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them are slow, share the event loop that the browser lives in, and need a browser."""
    missing = chromium.find() is None
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.timeout(LONGEST_S))
            if pytest_asyncio.is_async_test(item):
                item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            if missing:
                item.add_marker(pytest.mark.skip(reason=chromium.MISSING))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_failed] = True
    return report


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Headless Chromium."""
    executable = chromium.find()
    assert executable is not None, chromium.MISSING
    async with chromium.running(executable) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def desks(
    browser: Browser, request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Desks]:
    """Where people sit. What a browser complains about and no test expected fails the test."""
    desks = Desks(browser, tmp_path, lambda: request.node.stash.get(_failed, False))
    try:
        yield desks
    finally:
        await desks.leave()


@pytest_asyncio.fixture(loop_scope="session")
async def networks(desks: Desks, tmp_path: Path) -> AsyncIterator[Networks]:
    """Starts networks. They end after the browsers have been closed, which would complain."""
    async with AsyncExitStack() as stack:
        yield Networks(stack, tmp_path)
        await desks.leave()


@pytest_asyncio.fixture(loop_scope="session")
async def room(desks: Desks) -> AsyncIterator[Room]:
    """An open network of people, with the channel `general`, in this process."""
    async with Room.open() as room:
        yield room
        await desks.leave()


@pytest_asyncio.fixture(loop_scope="session")
async def network(networks: Networks) -> Network:
    """The same in a process of its own, which may be killed."""
    return await networks.start({"channels": {"general": {}}})


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def team(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Network]:
    """Agents that have answered a question of ann's. To be looked at: all tests have the same."""
    async with ModelServer(script()) as model, AsyncExitStack() as stack:
        network = await Networks(stack, tmp_path_factory.mktemp("team")).start(PLAN, model=model)
        await ask(network)
        yield network


@pytest_asyncio.fixture(loop_scope="session")
async def desk(desks: Desks, team: Network) -> Desk:
    """Ann, in the thread where the team has answered her."""
    return await looks_at_the_answer(desks, team)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with 10,000 messages in #general and 200 direct threads of ann: to be copied."""
    database = tmp_path_factory.mktemp("seeded") / "network.db"
    await seed(database)
    return database
