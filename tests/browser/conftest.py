"""One Chromium for all browser tests of a process; each test has browser windows without a past."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from hubbub.testing.model_server import ModelServer
from tests.browser.support import chromium
from tests.browser.support.agents import NEWSROOM, TEAM, ask, newsroom_script, team_script
from tests.browser.support.desk import PATIENCE_S, Desk, Desks, Seats
from tests.browser.support.room import Room

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


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def seats(browser: Browser) -> AsyncIterator[Seats]:
    async with Seats.open(browser) as seats:
        yield seats


@pytest_asyncio.fixture(loop_scope="session")
async def desks(
    seats: Seats, request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Desks]:
    """Where people sit. What a browser complains about and no test expected fails the test."""
    desks = Desks(seats, tmp_path, lambda: request.node.stash.get(_failed, False))
    try:
        yield desks
    finally:
        await desks.leave()


@pytest_asyncio.fixture(loop_scope="session")
async def room(desks: Desks, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    """An open network of people, with the channel `general` and the mods that the module names in
    MODS. It ends after the browsers have left, which would complain."""
    mods = getattr(request.module, "MODS", ())
    store = f"sqlite:{tmp_path}/hub.db" if mods else "sqlite::memory:"
    async with Room.open(mods=mods, store=store) as room:
        yield room
        await desks.leave()


@pytest_asyncio.fixture(loop_scope="session")
async def model() -> AsyncIterator[ModelServer]:
    """The model of the newsroom's agents. It must have had an answer to everything."""
    async with ModelServer(newsroom_script()) as model:
        yield model
        assert model.mistakes == []


@pytest_asyncio.fixture(loop_scope="session")
async def newsroom(desks: Desks, model: ModelServer) -> AsyncIterator[Room]:
    """Agents that answer: see support/newsroom.yaml."""
    async with Room.open(plan=NEWSROOM, model=model) as room:
        yield room
        await desks.leave()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def team() -> AsyncIterator[Room]:
    """Agents that have answered a question of ann's. To be looked at: all tests have the same."""
    async with ModelServer(team_script()) as model, Room.open(plan=TEAM, model=model) as room:
        await ask(room)
        yield room


@pytest_asyncio.fixture(loop_scope="session")
async def desk(desks: Desks, team: Room) -> Desk:
    """Ann, in the thread where the team has answered her."""
    desk = await desks.sit(team, "ann", "dm.ann.helper")
    await desk.sees("It is big.")
    return desk
