"""One Chromium for all browser tests of a process; each test starts with empty windows."""

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
"""Maximum seconds of a browser test."""

expect.set_options(timeout=PATIENCE_S * 1000)
_failed = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all as slow; they share the event loop of the browser and are skipped without one."""
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
    """Opens desks. Unexpected browser errors fail the test."""
    desks = Desks(seats, tmp_path, lambda: request.node.stash.get(_failed, False))
    try:
        yield desks
    finally:
        await desks.leave()


@pytest_asyncio.fixture(loop_scope="session")
async def room(desks: Desks, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    """An open network of people, with the channel `general` and the mods in the module's MODS. The
    browsers leave before it closes, since they would report lost connections."""
    mods = getattr(request.module, "MODS", ())
    store = f"sqlite:{tmp_path}/hub.db" if mods else "sqlite::memory:"
    async with Room.open(mods=mods, store=store) as room:
        yield room
        await desks.leave()


@pytest_asyncio.fixture(loop_scope="session")
async def model() -> AsyncIterator[ModelServer]:
    """The model of the newsroom's agents; it must have answered every request."""
    async with ModelServer(newsroom_script()) as model:
        yield model
        assert model.mistakes == []


@pytest_asyncio.fixture(loop_scope="session")
async def newsroom(desks: Desks, model: ModelServer) -> AsyncIterator[Room]:
    """The agents of support/newsroom.yaml."""
    async with Room.open(plan=NEWSROOM, model=model) as room:
        yield room
        await desks.leave()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def team() -> AsyncIterator[Room]:
    """Agents that answered a question of ann's. Read-only: all tests share it."""
    async with ModelServer(team_script()) as model, Room.open(plan=TEAM, model=model) as room:
        await ask(room)
        yield room


@pytest_asyncio.fixture(loop_scope="session")
async def desk(desks: Desks, team: Room) -> Desk:
    """Ann, in the thread with the team's answer."""
    desk = await desks.sit(team, "ann", "dm.ann.helper")
    await desk.sees("It is big.")
    return desk
