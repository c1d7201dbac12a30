"""`kill -9` of the hub during files, edits, votes and claims: each is stored exactly once."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.client import Client, WebSocketTransport
from hubbub.errors import OperationError
from tests.e2e.support.hubs import DEADLINE_S, QUICK, HubProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

KILLS = 5
MODS: Sequence[JsonValue] = ("files", "edits", {"polls": {"announce": False}}, "tasks")
CALLS = 14
"""Roughly the number in a round of work."""
CHUNK = 20_000
SEED = 20


class Work:
    """The calls that one participant repeats, and the results it received."""

    def __init__(self, client: Client, other: Client, chance: random.Random):
        self._client, self._other, self._chance = client, other, chance
        self.files: dict[str, str] = {}
        """Checksums of attached files, by message."""
        self.edited: dict[str, str] = {}
        self.polls: set[str] = set()
        self.claimed: dict[str, str] = {}
        self._left = 0
        self._reached = asyncio.Event()

    async def calls(self, count: int) -> None:
        """Waits until `count` further calls have been made; the last is still in flight."""
        self._left = count
        self._reached.clear()
        await self._reached.wait()

    async def run(self, until: asyncio.Event) -> None:
        while not until.is_set():
            await self._file()
            await self._edit()
            await self._poll()
            await self._task()

    async def _call(self, name: str, /, **args: Any) -> dict[str, Any]:
        self._left -= 1
        if self._left == 0:
            self._reached.set()
        answer = await self._client.call(name, **args)
        assert isinstance(answer, dict)
        return answer

    async def _file(self) -> None:
        data = self._chance.randbytes(3 * CHUNK)
        try:
            begun = await self._call("begin_upload", name="a.bin", size=len(data))
            for at in range(0, len(data), CHUNK):
                part = base64.b64encode(data[at : at + CHUNK]).decode()
                await self._call("upload_chunk", upload=begun["upload"], offset=at, data=part)
            file = await self._call("finish_upload", upload=begun["upload"])
        except OperationError as error:
            if error.code != "not_found":
                raise
            return  # a killed hub forgets an upload; the next round begins another
        attachments = [{"name": "a", "uri": f"file:{file['id']}"}]
        sent = await self._call(
            "send_text_message", to="channel_desk", text="see", attachments=attachments
        )
        self.files[sent["id"]] = hashlib.sha256(data).hexdigest()

    async def _edit(self) -> None:
        sent = await self._call("send_text_message", to="channel_desk", text="first")
        for n in range(3):
            await self._call("edit_message", message_id=sent["id"], text=f"version {n}")
        self.edited[sent["id"]] = "version 2"

    async def _poll(self) -> None:
        poll = await self._call(
            "create_poll", thread="channel_desk", question="Lunch?", options=["Soup", "Rice"]
        )
        await self._call("vote", poll=poll["id"], options=["Soup"])
        await self._call("close_poll", poll=poll["id"])
        self.polls.add(poll["id"])

    async def _task(self) -> None:
        task = await self._call("create_task", title="cook", thread="channel_desk")
        claims = await asyncio.gather(
            self._client.call("claim_task", task=task["id"]),
            self._other.call("claim_task", task=task["id"]),
            return_exceptions=True,
        )
        won = [name for name, each in zip(("ann", "bob"), claims, strict=True) if _succeeded(each)]
        assert len(won) == 1, claims
        self.claimed[task["id"]] = won[0]


def _succeeded(answer: object) -> bool:
    if isinstance(answer, OperationError):
        return False
    if isinstance(answer, BaseException):
        raise answer
    return True


@pytest.mark.behaviour("M-397")
async def test_writes_accepted_by_mods_survive_kills_exactly_once(tmp_path: Path) -> None:
    hub, chance = HubProcess(tmp_path, channels=["desk"], mods=MODS), random.Random(SEED)
    await hub.start()
    try:
        async with (
            Client(WebSocketTransport(hub.url), "ann", "human", options=QUICK) as ann,
            Client(WebSocketTransport(hub.url), "bob", "human", options=QUICK) as bob,
        ):
            work, stop = Work(ann, bob, chance), asyncio.Event()
            working = asyncio.create_task(work.run(stop))
            for _ in range(KILLS):
                await _until(work.calls(CALLS + chance.randrange(CALLS)), working)
                await hub.kill()
                await hub.start()
            await _until(work.calls(CALLS), working)
            stop.set()
            async with asyncio.timeout(DEADLINE_S):
                await working
            await _check(ann, work)
        assert await hub.terminate() == 0
    finally:
        await hub.stop()
    _check_log(hub.database, work)
    assert "Traceback" not in hub.stderr()


async def _until(reached: Coroutine[Any, Any, None], working: asyncio.Task[None]) -> None:
    waiting = asyncio.create_task(reached)
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.wait({waiting, working}, return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        waiting.cancel()
        await working


async def _check(ann: Client, work: Work) -> None:
    """Every accepted write is stored unchanged."""
    for id, sha256 in work.files.items():
        message: Any = await ann.call("read_message", id=id)
        [attachment] = message["attachments"]
        info: Any = await ann.call("file_info", id=attachment["uri"].removeprefix("file:"))
        part: Any = await ann.call("download_chunk", id=info["id"], offset=0)
        data = base64.b64decode(part["data"])
        assert (info["sha256"], hashlib.sha256(data).hexdigest()) == (sha256, sha256)
    for id, text in work.edited.items():
        message = await ann.call("read_message", id=id)
        assert (message["content"], message["amended"]) == (text, "edited")
    for id in work.polls:
        poll: Any = await ann.call("read_poll", poll=id)
        assert (poll["poll"]["state"], poll["winners"]) == ("closed", ["Soup"])
    for id, owner in work.claimed.items():
        task: Any = await ann.call("read_task", task=id)
        assert task["task"]["owner"] == owner


def _check_log(database: Path, work: Work) -> None:
    """Each effect is stored once: three edits of each message, one result of each poll, and one row
    and one content of each file."""
    with closing(sqlite3.connect(database)) as db:
        bodies = [json.loads(b) for (b,) in db.execute("SELECT body FROM message ORDER BY seq")]
        objects = db.execute("SELECT count(*), count(DISTINCT sha256) FROM files_file").fetchone()
    edits = Counter(body["amends"]["message_id"] for body in bodies if body.get("amends"))
    assert edits == dict.fromkeys(work.edited, 3)
    contents = [body["content"] for body in bodies if isinstance(body["content"], dict)]
    results = Counter(content["poll"] for content in contents if "outcome" in content)
    assert results == dict.fromkeys(work.polls, 1)
    assert objects[0] == objects[1] >= len(work.files)
