"""`kill -9` of the hub while work is asked for and reported: each request ends once."""

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
async def test_kills_leave_each_request_with_one_end(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    async with (
        running_hub(tmp_path) as hub,
        Client(
            WebSocketTransport(hub.url),
            "boss",
            "agent",
            options=QUICK,
            turns=True,
        ) as boss,
        Client(
            WebSocketTransport(hub.url),
            "work",
            "agent",
            options=QUICK,
            turns=True,
        ) as work,
        asyncio.TaskGroup() as tasks,
    ):
        book = _Book()
        readers = [tasks.create_task(book.read(boss)), tasks.create_task(_work(work))]
        asking = tasks.create_task(_ask(boss, book, chance))
        for n in range(KILLS):
            async with asyncio.timeout(DEADLINE_S):
                await book.more(ended=(n + 1) * ASKED // (2 * KILLS))
            await hub.kill()
            await hub.start()
        async with asyncio.timeout(DEADLINE_S):
            await asking
            await book.more(ended=ASKED)
        for reader in readers:
            reader.cancel()
    _check(hub.database, book)


class _Book:
    """What was asked, and which requests have ended."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self.ended: set[str] = set()
        self._news = asyncio.Condition()

    async def more(self, ended: int) -> None:
        """Wait until so many have ended."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.ended) >= ended)

    async def read(self, boss: Client) -> None:
        async for item in boss.events():
            if isinstance(item, Event) and item.message.request is not None:
                assert item.wake is not None
                assert item.wake.reason == "result"
                self.ended.add(item.message.request.id)
                async with self._news:
                    self._news.notify_all()


async def _ask(boss: Client, book: _Book, chance: random.Random) -> None:
    """Ask for work of which a third is done, a third is dropped, and a third takes too long."""
    for n in range(ASKED):
        task = ("do", "drop", "wait")[n % 3]
        deadline_s = chance.uniform(0.1, 0.4) if task == "wait" else 60.0
        told = await boss.call(
            "delegate", cid=f"task-{n}", to="work", task=task, deadline_s=deadline_s
        )
        assert isinstance(told, dict)
        book.asked.add(str(told["id"]))
        if n % 3 == 2:
            async with asyncio.timeout(DEADLINE_S):
                await book.more(ended=len(book.asked) // 2)


async def _work(work: Client) -> None:
    """Report what is to be done, and end the turn of what is to be dropped."""
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


def _check(database: Path, book: _Book) -> None:
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
    assert states.keys() == book.asked
    assert "open" not in states.values()
    assert outcomes == {"", "no_report", "timeout"}
    assert sorted(id for (id,) in ends) == sorted(book.asked)
    assert wakes == ASKED
