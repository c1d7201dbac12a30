"""Backups of a world's store, written and restored by the real code, and started by a hub."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from hubbub.client import Client
from hubbub.mods.loader import load_mods
from hubbub.network.hub import Hub
from hubbub.network.store.backups import back_up, restore
from hubbub.network.store.location import SqliteLocation
from hubbub.network.store.sqlite import SqliteStore
from tests.simulation.disk import Disk
from tests.simulation.network import VirtualNetwork
from tests.simulation.world import FILE, World

__all__ = ["backed_up"]


async def backed_up(world: World, log: Sequence[bytes]) -> AsyncIterator[str]:
    """A restored network has every message confirmed before its backup began; clients that received
    later ones start afresh."""
    for head, image in world.backups:
        disk = Disk(world.loop, _restored(image))
        store = SqliteStore(SqliteLocation(None), connect=disk.connect)
        async with Hub(FILE, store, mods=load_mods(FILE.mods), clock=world) as hub:
            bodies = [bytes(entry.body) for entry in await store.log(0, head, 10_000)]
            if bodies != log[:head]:
                yield f"a backup has {len(bodies)} of {head} messages, or different ones"
            network = VirtualNetwork(world.loop)
            network.listen(hub.gateway.attach)
            cursor = world.readers["ann"].cursor
            async with Client(network.transport("ann"), "ann", "human", cursor=cursor) as ann:
                if ann.ready.resumed and cursor is not None:
                    yield "ann resumed on a restored log"


def _restored(image: bytes) -> bytes:
    """The database restored from a backup of this one, taken while a hub has it open."""
    with TemporaryDirectory() as folder:
        running, backup, restored = (Path(folder) / name for name in ("run.db", "copy", "new.db"))
        with closing(sqlite3.connect(running)) as hub, closing(sqlite3.connect(":memory:")) as db:
            hub.execute("PRAGMA journal_mode = WAL").fetchone()
            db.deserialize(image)
            db.backup(hub)  # everything is in the write-ahead log
            back_up(f"sqlite:{running}", backup)
        restore(f"sqlite:{restored}", backup, replace=False)
        return restored.read_bytes()
