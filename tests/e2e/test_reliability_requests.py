"""`kill -9` of the hub while work is delegated and reported."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hubbub.client import Client, Disconnected, WebSocketTransport
from hubbub.errors import OperationError
from hubbub.protocol.frames import Event
from tests.e2e.support.hubs import DEADLINE_S, QUICK, running_hub

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

KILLS = 6
ASKED = 36
SEED = 20_26


@pytest.mark.behaviour("H-54")
async def test_every_request_ends_exactly_once_despite_hub_kills(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    async with (
        running_hub(tmp_path) as hub,
        Client(WebSocketTransport(hub.url), "boss", "agent", options=QUICK, turns=True) as boss,
        Client(WebSocketTransport(hub.url), "work", "agent", options=QUICK, turns=True) as work,
        asyncio.TaskGroup() as tasks,
    ):
        requests = _Requests()
        readers = [tasks.create_task(requests.read(boss)), tasks.create_task(_work(work))]
        delegating = tasks.create_task(_delegate(boss, requests, chance))
        for n in range(KILLS):
            async with asyncio.timeout(DEADLINE_S):
                await requests.wait(ended=(n + 1) * ASKED // (2 * KILLS))
            await hub.kill()
            await hub.start()
        async with asyncio.timeout(DEADLINE_S):
            await delegating
            await requests.wait(ended=ASKED)
        for reader in readers:
            reader.cancel()
    _check(hub.database, requests)


class _Requests:
    """The requests made, and those that have ended."""

    def __init__(self) -> None:
        self.made: set[str] = set()
        self.ended: set[str] = set()
        self._changed = asyncio.Condition()

    async def wait(self, ended: int) -> None:
        """Waits until `ended` requests have ended."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.ended) >= ended)

    async def read(self, boss: Client) -> None:
        async for item in boss.events():
            if isinstance(item, Event) and item.message.request is not None:
                assert item.wake is not None
                assert item.wake.reason == "result"
                self.ended.add(item.message.request.id)
                async with self._changed:
                    self._changed.notify_all()


async def _delegate(boss: Client, requests: _Requests, chance: random.Random) -> None:
    """Delegates tasks: a third is done, a third is dropped, and a third times out."""
    for n in range(ASKED):
        task = ("do", "drop", "wait")[n % 3]
        deadline_s = chance.uniform(0.1, 0.4) if task == "wait" else 60.0
        request = await boss.call(
            "delegate", cid=f"task-{n}", to="work", task=task, deadline_s=deadline_s
        )
        assert isinstance(request, dict)
        requests.made.add(str(request["id"]))
        if n % 3 == 2:
            async with asyncio.timeout(DEADLINE_S):
                await requests.wait(ended=len(requests.made) // 2)


async def _work(work: Client) -> None:
    """Reports the tasks to do, and ends the turns of those to drop."""
    async for item in work.events():
        if isinstance(item, Disconnected) or not isinstance(item, Event) or item.wake is None:
            continue
        message, turn = item.message, item.wake.turn
        start = {"id": turn, "thread_id": message.thread_id, "messages": [message.id]}
        await work.call("begin_turn", start=start)
        if message.content == "do":
            with contextlib.suppress(OperationError):  # reported before the hub was killed
                await work.call("report", request=message.id, status="result", text="done")
        if message.content != "wait":
            await work.call("end_turn", end={"id": turn, "outcome": "finished"})


OUTCOMES = "SELECT DISTINCT json_extract(body, '$.outcome') FROM request"


def _check(database: Path, requests: _Requests) -> None:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        states = dict(db.execute("SELECT 'm' || seq, state FROM request"))
        outcomes = {outcome for (outcome,) in db.execute(OUTCOMES)}
        ends = db.execute(
            "SELECT json_extract(body, '$.request.id') AS id FROM message "
            "WHERE json_extract(body, '$.request.kind') <> 'task'"
        ).fetchall()
        (wakes,) = db.execute(
            "SELECT count(*) FROM message WHERE reason = 'result' AND reply IS NOT NULL"
        ).fetchone()
    assert states.keys() == requests.made
    assert "open" not in states.values()
    assert outcomes == {"", "no_report", "timeout"}
    assert sorted(id for (id,) in ends) == sorted(requests.made)
    assert wakes == ASKED
