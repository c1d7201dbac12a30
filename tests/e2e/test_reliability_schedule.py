"""`kill -9` of the hub while reminders fire and while a transcript is imported."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.client import Client, WebSocketTransport
from hubbub.errors import ConnectionLost, OperationError
from hubbub.protocol.frames import Event
from tests.e2e.support.hubs import DEADLINE_S, QUICK, HubProcess, running_hub

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

KILLS = 3
REMINDERS = 3
LINES = 300
HEADER = json.dumps({"transcript": 1, "network": "old", "epoch": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})


@pytest.mark.behaviour("M-202")
async def test_reminders_fire_exactly_once_despite_hub_kills(tmp_path: Path) -> None:
    mods: list[JsonValue] = [{"schedule": {"shortest": 1}}]
    async with (
        running_hub(tmp_path, channels=["desk"], mods=mods) as hub,
        Client(WebSocketTransport(hub.url), "ann", "human", options=QUICK) as ann,
    ):
        for n in range(REMINDERS):
            await ann.call("remind", text=str(n), when="every 1s", thread="channel_desk")
        events = ann.events()
        for _ in range(KILLS):
            async with asyncio.timeout(DEADLINE_S):
                for _ in range(REMINDERS):
                    while not isinstance(await anext(events), Event):
                        pass
            await hub.kill()
            await hub.start()
    dues = defaultdict[str, list[float]](list)
    for body in bodies(hub):
        content = body["content"]
        dues[content["text"]].append(datetime.fromisoformat(content["due"]).timestamp())
    assert len(dues) == REMINDERS
    for times in dues.values():
        assert len(times) >= KILLS
        for earlier, later in pairwise(times):
            interval = later - earlier
            assert interval > 0.9, "a reminder fired twice"
            assert abs(interval - round(interval)) < 1e-3, "a reminder is off its schedule"


@pytest.mark.behaviour("M-219")
async def test_an_import_resumes_after_kills_without_duplicate_lines(tmp_path: Path) -> None:
    lines = [line(n) for n in range(1, LINES + 1)]
    async with running_hub(tmp_path, mods=["transcript"]) as hub:
        for n in range(1, KILLS + 1):
            await import_until_killed(hub, lines, LINES * n // (KILLS + 1))
            await hub.start()
        async with Client(WebSocketTransport(hub.url), "operator", "service") as operator:
            for start in range(0, LINES, 100):
                part = lines[start : start + 100]
                await operator.call("import_transcript", header=HEADER, lines=part)
    imported = bodies(hub)
    assert [body["content"] for body in imported] == [f"no {n}" for n in range(1, LINES + 1)]
    assert all(body.get("reply_to") == "m1" for body in imported[1:])


async def import_until_killed(hub: HubProcess, lines: list[str], count: int) -> None:
    """Kills the hub when `count` lines are in its log, while further ones are in flight."""
    async with (
        Client(WebSocketTransport(hub.url), "ann", "human", options=QUICK) as ann,
        Client(WebSocketTransport(hub.url), "operator", "service") as operator,
    ):

        async def send() -> None:
            with contextlib.suppress(ConnectionLost, OperationError):
                for start in range(0, LINES, 10):
                    part = lines[start : start + 10]
                    await operator.call("import_transcript", header=HEADER, lines=part)

        sending = asyncio.create_task(send())
        async with asyncio.timeout(DEADLINE_S):
            async for item in ann.events():
                if isinstance(item, Event) and item.message.seq >= count:
                    break
        await hub.kill()
        sending.cancel()
        await asyncio.wait({sending})


def line(n: int) -> str:
    message = {
        "id": f"m{n}", "seq": n, "thread_id": "broadcast", "tseq": n, "sender_id": "bob",
        "sender_kind": "human", "type": "broadcast", "content": f"no {n}",
        "interaction_id": f"i{n}", "hop": 0, "sent_at": "2026-01-31T09:00:00Z",
        **({"reply_to": "m1"} if n > 1 else {}),
    }  # fmt: skip
    return json.dumps(message)


def bodies(hub: HubProcess) -> list[Any]:
    """All messages of the hub's log."""
    with closing(sqlite3.connect(hub.database)) as db:
        return [json.loads(body) for (body,) in db.execute("SELECT body FROM message ORDER BY seq")]
