"""The `ready` frame, which begins a session with the network as its participant can see it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache

from pydantic_core import to_json

from hubbub.mods.operation import Operation
from hubbub.mods.pipeline import Pipeline
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.queries import PendingWakes
from hubbub.network.service import Registry
from hubbub.network.stored import PendingRow
from hubbub.network.threads import Thread
from hubbub.protocol.frames import Identify
from hubbub.protocol.messages import Message

__all__ = ["Snapshots"]

SNAPSHOT_THREADS = 50
SNAPSHOT_MESSAGES = 10
SNAPSHOT_BYTES = 512 * 1024
"""With large messages there are fewer threads, so that `ready` fits what a peer can read."""
SNAPSHOT_LIST_BYTES = 4 * 1024
"""Limit for each of the lists of participants and channels; clients request longer lists if
needed."""


class Snapshots:
    """Builds `ready` frames as bytes; message bodies go in as stored."""

    def __init__(self, kernel: Kernel, registry: Registry):
        self._kernel, self._state, self._store = kernel, kernel.state, kernel.store
        self._registry, self._pipeline = registry, kernel.pipeline
        self._operations: dict[bool, tuple[int, bytes]] = {}
        """By whether the caller is an owner: the registry's version and the JSON."""

    async def prepare(self) -> None:
        """Build the operations' part of `ready` in the background, one by one. The schemas of many
        mods take a while, which the first participant to join would have to wait for."""
        cache_info = _operation_json.cache_info
        for op in tuple(self._registry.values()):
            before = cache_info().misses
            _operation_json(op)
            if self._kernel.draining.is_set():
                return
            if cache_info().misses > before:
                await asyncio.sleep(0)

    async def ready(
        self, caller: Caller, frame: Identify, cursor: int, head: int, resumed: bool
    ) -> bytes:
        """The `ready` frame as bytes; message bodies go in as stored."""
        name = caller.participant
        pending: Sequence[PendingRow] = ()
        if frame.turns:
            pending = await self._store.read(PendingWakes(name, cursor))
            bodies = await _shown_bodies(self._pipeline, [row.body for row in pending])
            pending = [row._replace(body=b) for row, b in zip(pending, bodies, strict=True)]
        threads = b"" if frame.observe else await self._threads(name, cursor)
        people, channels = self._people(), self._channels(name)
        lists = {"participants": people, "channels": channels}
        left_out = [name for name, items in lists.items() if items is None]
        return (
            b'{"op":"ready","participant":%b,"kind":"%b","resumed":%b,"head":%d,"cursor":%d,'
            b'"threads":[%b],"pending":[%b],"participants":%b,"channels":%b,"operations":%b,'
            b'"left_out":%b}'
        ) % (
            to_json(name),
            caller.kind.encode(),
            b"true" if resumed else b"false",
            head,
            cursor,
            threads,
            b",".join(map(_pending, pending)),
            people or b"[]",
            channels or b"[]",
            self._operations_for(caller),
            to_json(left_out),
        )

    def _people(self) -> bytes | None:
        """All participants as a JSON list; None if `ready` has no room for them."""
        pieces: list[bytes] = []
        room = SNAPSHOT_LIST_BYTES
        for participant in self._state.all_participants():
            pieces.append(self._state.described(participant))
            room -= len(pieces[-1])
            if room < 0:
                return None
        return b"[%b]" % b",".join(pieces)

    def _channels(self, reader: str) -> bytes | None:
        """All channels, likewise."""
        state = self._state
        members = sum(len(state.members.of(each.scope)) for each in state.channels.values())
        if members > SNAPSHOT_LIST_BYTES // 4:  # a name in quotes and a comma at least
            return None
        text = to_json([state.describe_channel(c, reader) for c in state.channels.values()])
        return text if len(text) <= SNAPSHOT_LIST_BYTES else None

    async def _threads(self, participant: str, cursor: int) -> bytes:
        """The latest threads of a participant as of `cursor`."""
        state = self._state
        visible = state.threads.visible(participant, state.members.scopes(participant))
        latest = sorted(visible, key=lambda t: t.last_seq, reverse=True)[:SNAPSHOT_THREADS]
        latest = [thread for thread in latest if thread.tseq]
        numbers = [thread.no for thread in latest]
        pipeline = self._pipeline
        most = SNAPSHOT_MESSAGES * 2 if pipeline.shows else SNAPSHOT_MESSAGES
        tails = await self._store.tails(numbers, cursor, most) if numbers else {}
        tails = await _shown_tails(pipeline, tails, SNAPSHOT_MESSAGES)
        threads: list[bytes] = []
        size = 0
        for thread in latest:
            if tails.get(thread.no) and size < SNAPSHOT_BYTES:
                read = state.marks.get(participant, thread.no)
                threads.append(_thread_json(thread, tails[thread.no], read))
                size += len(threads[-1])
        return b",".join(threads)

    def _operations_for(self, caller: Caller) -> bytes:
        version = self._registry.version
        cached = self._operations.get(caller.owner)
        if cached is None or cached[0] != version:
            allowed = [op for op in self._registry.values() if caller.may(op.permission)]
            cached = version, b"[%b]" % b",".join(map(_operation_json, allowed))
            self._operations[caller.owner] = cached
        return cached[1]


@lru_cache(maxsize=512)  # the same for all hubs of a process
def _operation_json(op: Operation) -> bytes:
    return op.info().model_dump_json(exclude={"input_schema", "output_schema"}).encode()


def _thread_json(thread: Thread, bodies: Sequence[bytes], read: int) -> bytes:
    """A `ThreadSummary` as JSON, as it stood at the last of the messages."""
    last = json.loads(bodies[-1])
    return b'{"id":"%b","type":"%b","head":%d,"last_seq":%d,"read":%d,"messages":[%b]}' % (
        thread.id.encode(),
        thread.type.encode(),
        last["tseq"],
        last["seq"],
        read,
        b",".join(bodies),
    )


def _pending(row: PendingRow) -> bytes:
    wake = to_json({"reason": row.reason, "reply": row.reply, "turn": row.turn})
    return b'{"message":%b,"wake":%b,"started":%b}' % (row.body, wake, to_json(row.started))


async def _shown_bodies(pipeline: Pipeline, bodies: Sequence[bytes]) -> Sequence[bytes]:
    """The messages as they are shown, each as JSON. Raises `StoreUnavailable`."""
    if not pipeline.shows or not bodies:
        return bodies
    messages = [Message.model_validate_json(body) for body in bodies]
    shown = await pipeline.shown(messages)
    return [
        body if now is message else now.model_dump_json(exclude_none=True).encode()
        for body, message, now in zip(bodies, messages, shown, strict=True)
    ]


async def _shown_tails(
    pipeline: Pipeline, tails: Mapping[int, Sequence[bytes]], limit: int
) -> Mapping[int, Sequence[bytes]]:
    """The last messages of threads as they are shown: of each thread the last `limit`, among which
    edits and deletions do not count. Raises `StoreUnavailable`."""
    if not pipeline.shows:
        return tails
    cut = {number: _last(bodies, limit) for number, bodies in tails.items()}
    shown = iter(await _shown_bodies(pipeline, [body for tail in cut.values() for body in tail]))
    return {number: [next(shown) for _ in tail] for number, tail in cut.items()}


def _last(bodies: Sequence[bytes], limit: int) -> Sequence[bytes]:
    said = [n for n, body in enumerate(bodies) if not _amends(body)]
    return bodies[said[-limit] :] if len(said) > limit else bodies


def _amends(body: bytes) -> bool:
    return b'"amends"' in body and "amends" in json.loads(body)
