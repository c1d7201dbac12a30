"""Load in which every message is accounted for: where it was acknowledged and where it arrived."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from hubbub.client import Client, Disconnected
from hubbub.errors import ConnectionLost
from hubbub.protocol.frames import Event, Ready
from tests.e2e.support.hubs import DEADLINE_S, HubProcess
from tests.e2e.support.peers import peer
from tests.interaction.peers import Frame, Peer

__all__ = [
    "HandMade",
    "Ledger",
    "Stream",
    "Write",
    "exchange",
    "read",
    "write",
    "write_one_by_one",
]

_TEXT = re.compile(r"(?P<stream>[a-z>+]+) (?P<n>\d+) ?x*")


class Stream:
    """Numbered messages from one sender to one destination: `ann>bob 1`, `ann>bob 2`, ...

    `to` is a participant, several (`bob+cyd`), the channel `general`, or `all`. `padding` is the
    number of characters in each message beyond its number.
    """

    def __init__(self, sender: str, to: str, padding: int = 0):
        self.sender, self.to, self.name = sender, to, f"{sender}>{to}"
        self._padding = " " + "x" * padding if padding else ""

    def call(self, n: int) -> tuple[str, Frame]:
        """Operation and arguments of message number `n`."""
        text = f"{self.name} {n}{self._padding}"
        match self.to:
            case "all":
                return "broadcast_text_message", {"text": text}
            case "general":
                return "post_to_channel", {"channel": "general", "text": text}
            case _:
                to: JsonValue = [*self.to.split("+")]
                return "send_text_message", {"to": to, "text": text}

    def cid(self, n: int) -> str:
        return f"{self.sender}-{self.to.replace('+', '.')}-{n}"

    def reaches(self, participant: str) -> bool:
        """Whether the messages arrive at `participant`."""
        return participant != self.sender and (
            self.to in ("all", "general") or participant in self.to.split("+")
        )


class Ledger:
    """The acknowledgements and arrivals of one run."""

    def __init__(self) -> None:
        self.acked: dict[str, dict[int, int]] = defaultdict(dict)
        """stream -> number -> seq, as returned to the sender."""
        self.arrived: dict[str, list[tuple[int, str, int]]] = defaultdict(list)
        """participant -> (seq, stream, number) in order of arrival."""
        self.fresh_starts = 0
        """How often a returning client could not resume."""
        self.disconnects = 0
        """How often a reader lost its connection."""
        self._count = 0
        self._changed = asyncio.Condition()

    async def acknowledge(self, stream: Stream, n: int, seq: int) -> None:
        """The hub acknowledged message `n` at position `seq`."""
        assert self.acked[stream.name].setdefault(n, seq) == seq, "acknowledged at two positions"
        self._count += 1
        async with self._changed:
            self._changed.notify_all()

    async def arrive(self, participant: str, seq: int, text: str) -> None:
        """An event arrived."""
        match = _TEXT.fullmatch(text)
        assert match is not None, f"no stream sent {text!r}"
        self.arrived[participant].append((seq, match["stream"], int(match["n"])))
        async with self._changed:
            self._changed.notify_all()

    async def more_acks(self, count: int) -> None:
        """Waits for `count` further acknowledgements."""
        goal = self._count + count
        async with self._changed:
            await self._changed.wait_for(lambda: self._count >= goal)

    async def all_arrived(self, streams: Sequence[Stream], readers: Sequence[str]) -> None:
        """Waits until every acknowledged message has arrived at all its recipients."""
        missing = {
            reader: {
                (stream.name, n)
                for stream in streams
                if stream.reaches(reader)
                for n in self.acked[stream.name]
            }
            for reader in readers
        }

        def complete() -> bool:
            for reader, wanted in missing.items():
                wanted -= {(stream, n) for _, stream, n in self.arrived[reader]}
            return not any(missing.values())

        async with self._changed:
            await self._changed.wait_for(complete)

    def check_readers(self, streams: Sequence[Stream], readers: Sequence[str]) -> None:
        """Each reader has each message once, in the log's order, at its acknowledged position."""
        for reader in readers:
            arrived = self.arrived[reader]
            seqs = [seq for seq, _, _ in arrived]
            assert seqs == sorted(set(seqs)), f"{reader}: out of order or twice"
            for stream in streams:
                if stream.reaches(reader):
                    received = [(n, seq) for seq, name, n in arrived if name == stream.name]
                    assert received == sorted(self.acked[stream.name].items()), stream.name

    def check_log(self, database: Path, streams: Sequence[Stream]) -> None:
        """The log is intact, and has every acknowledged message once, at its position."""
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            rows = db.execute(
                "SELECT seq, json_extract(body, '$.content') FROM message "
                "WHERE sender <> 'hub' ORDER BY seq"
            ).fetchall()
            seqs = [seq for (seq,) in db.execute("SELECT seq FROM message ORDER BY seq")]
        self.check_rows(rows, seqs, streams)

    def check_rows(
        self, rows: Sequence[tuple[int, str]], seqs: Sequence[int], streams: Sequence[Stream]
    ) -> None:
        """The same, given position and text of participants' messages, and all positions."""
        assert list(seqs) == list(range(1, len(seqs) + 1)), "positions have gaps"
        stored: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for seq, text in rows:
            if match := _TEXT.fullmatch(text):
                stored[match["stream"]].append((int(match["n"]), seq))
        for stream in streams:
            assert stored[stream.name] == sorted(self.acked[stream.name].items()), stream.name


async def write(
    client: Client, stream: Stream, ledger: Ledger, stop: asyncio.Event, window: int = 8
) -> None:
    """Keeps `window` messages in flight until `stop`, then waits for the rest."""
    waiting: deque[tuple[int, asyncio.Future[JsonValue]]] = deque()
    n = 0
    while waiting or not stop.is_set():
        while len(waiting) < window and not stop.is_set():
            n += 1
            name, args = stream.call(n)
            waiting.append((n, client.post(name, cid=stream.cid(n), **args)))
        number, future = waiting.popleft()
        await ledger.acknowledge(stream, number, _seq(await future))


async def write_one_by_one(
    client: Client, stream: Stream, ledger: Ledger, stop: asyncio.Event
) -> None:
    """Sends one message at a time until `stop`; the client repeats temporary refusals."""
    n = 0
    while not stop.is_set():
        n += 1
        name, args = stream.call(n)
        result = await client.call(name, cid=stream.cid(n), **args)
        await ledger.acknowledge(stream, n, _seq(result))


def _seq(result: Any) -> int:  # plain JSON
    return int(result["seq"])


async def read(client: Client, ledger: Ledger) -> None:
    """Records and acknowledges events."""
    returning = False
    async for item in client.events():
        if isinstance(item, Event):
            # A client gets its own messages if the connection was lost around that time.
            if item.message.sender_id != client.participant:
                await ledger.arrive(client.participant, item.seq, item.message.text)
            await client.ack(item.seq)
        elif isinstance(item, Ready):
            ledger.fresh_starts += returning and not item.resumed
            returning = True
        elif isinstance(item, Disconnected):
            ledger.disconnects += 1


Write = Callable[[Client, Stream, Ledger, asyncio.Event], Coroutine[None, None, None]]


@asynccontextmanager
async def exchange(
    clients: Mapping[str, Client],
    streams: Sequence[Stream],
    ledger: Ledger,
    write: Write = write_one_by_one,
) -> AsyncIterator[None]:
    """The clients send these streams and read while the context lasts; at the end every message has
    arrived once and in order, and every client has resumed where it was."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        readers = [tasks.create_task(read(client, ledger)) for client in clients.values()]
        writers = [
            tasks.create_task(write(clients[stream.sender], stream, ledger, stop))
            for stream in streams
        ]
        yield
        stop.set()
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(*writers)
            await ledger.all_arrived(streams, list(clients))
        for reader in readers:
            reader.cancel()
    ledger.check_readers(streams, list(clients))
    assert ledger.fresh_starts == 0, "a client did not resume where it was"


class HandMade:
    """A careful participant without our client library: stores its cursor and repeats its cids."""

    def __init__(self, name: str, stream: Stream, ledger: Ledger, window: int = 4):
        self._name, self._stream, self._ledger, self._window = name, stream, ledger, window
        self._cursor: Frame | None = None
        self._waiting: dict[str, int] = {}
        self._sent = 0
        self.settled = asyncio.Event()
        """Set once it has been asked to stop and all its messages are acknowledged."""

    async def run(self, hub: HubProcess, stop: asyncio.Event) -> None:
        """Sends until `stop`; reads until cancelled."""
        while True:
            await hub.listening.wait()
            try:
                async with peer(hub.url) as socket:
                    await self._serve(socket, stop)
            except (ConnectionLost, OSError):
                await asyncio.sleep(0)  # the process is gone; the test clears `listening`

    async def _serve(self, socket: Peer, stop: asyncio.Event) -> None:
        ready = await socket.identify(self._name, "agent", cursor=self._cursor)
        if self._cursor is not None:
            self._ledger.fresh_starts += not ready["resumed"]
        last = ready["cursor"]
        for n in list(self._waiting.values()):
            await self._send(socket, n)
        while True:
            while len(self._waiting) < self._window and not stop.is_set():
                self._sent += 1
                await self._send(socket, self._sent)
            if not self._waiting:
                self.settled.set()
            frame = await socket.receive()
            if frame["op"] == "result":
                await self._on_result(frame)
            elif frame["op"] == "event":
                assert frame["prev"] == last, "a gap in the stream"
                last = frame["seq"]
                await self._on_event(frame)
                self._cursor = {"epoch": socket.hello["epoch"], "seq": last}
                await socket.ack(last)
            else:
                assert frame["op"] == "signal", frame

    async def _send(self, socket: Peer, n: int) -> None:
        name, args = self._stream.call(n)
        ref = str(n)
        self._waiting[ref] = n
        await socket.send(op="call", ref=ref, name=name, args=args, cid=self._stream.cid(n))

    async def _on_result(self, frame: Frame) -> None:
        n = self._waiting.pop(frame["ref"])
        await self._ledger.acknowledge(self._stream, n, _seq(frame["value"]))

    async def _on_event(self, frame: Frame) -> None:
        await self._ledger.arrive(self._name, frame["seq"], frame["message"]["content"])
