"""A bridge between channels of the network and channels of another chat.

One client receives the network's messages in log order and acknowledges each once the other chat
has accepted it. Each person of the other chat is represented by a participant: a puppet.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from hubbub.bridges.chat import (
    Chat,
    ChatRefused,
    Deleted,
    Edited,
    Incoming,
    IncomingMessage,
    Outgoing,
    Parent,
    Person,
    PersonLeft,
)
from hubbub.bridges.pairs import Pair, Pairs
from hubbub.client import Backoff, Client, ClientOptions, ConnectionLog, Transport
from hubbub.errors import OperationError
from hubbub.logs import get_logger
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Event
from hubbub.protocol.messages import Card, Message, Participant
from hubbub.protocol.operations import SendResult

__all__ = ["Bridge", "is_puppet", "puppet_name"]

_PLAIN = re.compile(r"[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*\Z")
_MAX_NAME = 24
"""Characters kept of a person's name, so that bridge name, person and digest fit into an id."""


def puppet_name(bridge: str, person: str) -> str:
    """The participant that represents `person`, an id of the other chat.

    It is unique: an id that cannot be used unchanged gets a digest after `--`, which no unchanged
    id contains.
    """
    if _PLAIN.match(person) and len(person) <= _MAX_NAME:
        return f"{bridge}-{person}"
    readable = re.sub(r"[^A-Za-z0-9_]+", "-", person).strip("-")[:_MAX_NAME].rstrip("-")
    return f"{bridge}-{readable}--{hashlib.sha256(person.encode()).hexdigest()[:16]}"


def is_puppet(bridge: str, participant: str) -> bool:
    """Whether a participant represents a person of the bridge's other chat."""
    return participant.startswith(f"{bridge}-")


log = get_logger(__name__)

MAX_PUPPETS = 100
"""Puppets connected at once; a new one replaces the one inactive for longest."""


class _Puppet(NamedTuple):
    client: Client
    reading: asyncio.Task[None]


class Bridge:
    """One run of a bridge."""

    def __init__(
        self,
        name: str,
        chat: Chat,
        channels: Mapping[str, str],
        connect: Callable[[], Transport],
        *,
        token: str | Callable[[], str | None] | None = None,
        pairs: Path | None = None,
    ):
        """`channels` maps channels of the network to those of the other chat. `token`, which can
        change when the hub restarts, authenticates the bridge and its puppets. `pairs` is the file
        for message ids of a chat that has ids; None: in memory."""
        self._name, self._chat, self._connect, self._token = name, chat, connect, token
        self._theirs = dict(channels)
        self._ours = {theirs: ours for ours, theirs in channels.items()}
        self._pairs = Pairs(pairs)
        self._backoff = Backoff()
        self._client = self._new_client(name, "service", None)
        self._people: dict[str, Participant] = {}
        self._puppets: OrderedDict[str, _Puppet] = OrderedDict()
        self._handling = asyncio.Lock()

    async def run(self) -> None:
        """Run until cancelled. Raises `ConnectionLost` when the hub closes the connection for good,
        and the errors of `Chat.run`."""
        with self._pairs:
            try:
                async with self._client, asyncio.TaskGroup() as group:
                    for channel in self._theirs:
                        await self._client.call("join_channel", channel=channel)
                    group.create_task(self._chat.run(self.take), name=f"{self._name} listens")
                    await self._load_participants()
                    group.create_task(self._show_agents(), name=f"{self._name} shows agents")
                    await self._relay()
            finally:
                for name in list(self._puppets):
                    await self._leave(name)

    # From the network to the other chat ---------------------------------------------------------

    async def _relay(self) -> None:
        connection = ConnectionLog(self._name)
        async for item in self._client.events():
            connection.note(item)
            if isinstance(item, Event):
                outgoing = await self._outgoing(item.message)
                if outgoing is not None:
                    await self._say(item.message.id, outgoing)
                await self._client.ack(item.seq)

    async def _say(self, ours: str, message: Outgoing) -> None:
        try:
            theirs = await self._chat.say(message)
        except ChatRefused as error:
            log.warning("a message was not bridged", message=ours, why=str(error))
            return
        if theirs is not None and message.change is None:
            self._pairs.put(Pair(ours, theirs))

    async def _outgoing(self, message: Message) -> Outgoing | None:
        """The message for the other chat; None if it is not bridged."""
        ours = thread_ids.root(message.thread_id).partition("channel.")[2]
        theirs = self._theirs.get(ours)
        if theirs is None or is_puppet(self._name, message.sender_id):
            return None
        if message.is_notice or message.imported:
            return None
        people = {id: person for id in message.mentions if (person := await self._person(id))}
        amends = message.amends
        replies = [f"m{n}" for n in re.findall(r"\.t(\d+)", message.thread_id)]
        return Outgoing(
            id=f"{self._client.hello.epoch}-{message.id}",
            channel=theirs,
            author=message.sender_id,
            text=_display_text(message, people)
            if amends is None or amends.kind == "edited"
            else "",
            mentions=tuple(people.values()),
            thread=self._pairs.theirs(replies[0]) if replies else None,
            parent=await self._parent(replies[-1]) if replies else None,
            change=amends.kind if amends else None,
            changes=self._pairs.theirs(amends.message_id) if amends else None,
        )

    async def _parent(self, id: str) -> Parent:
        message = Message.model_validate(await self._client.call("read_message", id=id))
        person = await self._person(message.sender_id)
        author = person.name if person else message.sender_id
        return Parent(self._pairs.theirs(id), author, message.text)

    async def _person(self, participant: str) -> Person | None:
        """The person that a puppet represents; None for other participants."""
        if not is_puppet(self._name, participant):
            return None
        if participant not in self._people:
            await self._load_participants()
        card = self._people[participant].card
        return Person(str(getattr(card, "person", card.name)), card.name)

    async def _load_participants(self) -> None:
        after: str | None = None
        while True:
            args = {} if after is None else {"after": after}
            result = await self._client.call("list_participants", **args)
            assert isinstance(result, dict)
            page = [Participant.model_validate(each) for each in _list(result["participants"])]
            self._people |= {each.id: each for each in page}
            if not page or not result.get("more"):
                return
            after = page[-1].id

    async def _show_agents(self) -> None:
        result = await self._client.call("list_channels")
        assert isinstance(result, dict)
        members = {
            str(member)
            for channel in _list(result["channels"])
            if isinstance(channel, dict) and channel["name"] in self._theirs
            for member in _list(channel["members"])
        }
        agents = [id for id, each in self._people.items() if each.kind == "agent"]
        await self._chat.show(sorted(members.intersection(agents)))

    # From the other chat to the network ---------------------------------------------------------

    async def take(self, event: Incoming) -> None:
        """Apply an event of the other chat; returns when the network has stored or refused it.
        Raises `ConnectionLost`."""
        async with self._handling:
            await self._handle_with_retries(event)

    async def _handle_with_retries(self, event: Incoming) -> None:
        attempt = 0
        while True:
            try:
                return await self._handle(event)
            except OperationError as error:
                if not error.temporary:
                    log.warning("the network refused an event", what=event, why=str(error))
                    return None
                await self._backoff.sleep(self._backoff.after(error.retry_after_s or 0, attempt))
                attempt += 1

    async def _handle(self, event: Incoming) -> None:
        match event:
            case IncomingMessage():
                await self._post(event)
            case Edited():
                await self._edit(event)
            case Deleted():
                await self._delete(event)
            case PersonLeft():
                await self._leave(puppet_name(self._name, event.person))

    async def _post(self, message: IncomingMessage) -> None:
        channel = self._ours.get(message.channel)
        if channel is None or not message.text.strip():
            return
        root = self._pairs.by_theirs(message.thread) if message.thread else None
        quoted = self._pairs.by_theirs(message.quotes) if message.quotes else None
        client = await self._puppet(message.person)
        args: dict[str, object] = {"text": message.text, "untrusted": True}
        if quoted is not None:
            args["quote"] = {"message_id": quoted.ours}
        operation = "post_to_channel" if root is None else "reply"
        args |= {"channel": channel} if root is None else {"message_id": root.ours}
        result = await client.call(operation, cid=self._cid(message.id), **args)
        ours = SendResult.model_validate(result).id
        if self._chat.has_ids:
            self._pairs.put(Pair(ours, message.id, message.person.id, message.person.name))

    async def _edit(self, edit: Edited) -> None:
        pair = self._pairs.by_theirs(edit.message)
        if pair is None or pair.person != edit.person.id:
            return
        client = await self._puppet(edit.person)
        if not client.offers("edit_message"):
            id, text = edit.id, f"(edited) {edit.text}"
            await self._post(
                IncomingMessage(id, edit.person, edit.channel, text, quotes=edit.message)
            )
            return
        args = {"message_id": pair.ours, "text": edit.text, "untrusted": True}
        await client.call("edit_message", cid=self._cid(edit.id), **args)

    async def _delete(self, deletion: Deleted) -> None:
        pair = self._pairs.by_theirs(deletion.message)
        if pair is None or pair.person is None:
            return  # messages of the network are deleted in the network
        client = await self._puppet(Person(pair.person, pair.name or pair.person))
        if client.offers("delete_message"):
            cid = self._cid(deletion.id)
            await client.call("delete_message", cid=cid, message_id=pair.ours)

    def _cid(self, id: str) -> str:
        """A stable cid for an event, so that a repeated event is stored once."""
        return "bridge:" + hashlib.sha256(f"{self._name}\0{id}".encode()).hexdigest()[:40]

    # Puppets ------------------------------------------------------------------------------------

    def _new_client(self, name: str, kind: str, card: Card | None) -> Client:
        return Client(
            self._connect(),
            name,
            "service" if kind == "service" else "human",
            token=self._token,
            # A puppet needs no history: the bridge's own client receives everything.
            cursor=None if kind == "service" else "latest",
            options=ClientOptions(card=card, schemas=False, backoff=self._backoff),
        )

    async def _puppet(self, person: Person) -> Client:
        """The client of a person's puppet, which has joined the bridge's channels."""
        name = puppet_name(self._name, person.id)
        puppet = self._puppets.get(name)
        if puppet is not None:
            self._puppets.move_to_end(name)
            return puppet.client
        if len(self._puppets) >= MAX_PUPPETS:
            await self._leave(next(iter(self._puppets)))
        about = f"{person.name}, a person on {self._chat.title}; can be reached only in channels"
        card = {"name": person.name[:64], "description": about, "person": person.id}
        client = self._new_client(name, "human", Card.model_validate(card))
        await client.__aenter__()
        reading = asyncio.create_task(_read(client), name=f"{name} reads")
        self._puppets[name] = _Puppet(client, reading)
        for channel in self._theirs:
            await client.call("join_channel", channel=channel)
        return client

    async def _leave(self, name: str) -> None:
        puppet = self._puppets.pop(name, None)
        if puppet is not None:
            puppet.reading.cancel()
            with suppress(asyncio.CancelledError):
                await puppet.client.__aexit__(None, None, None)


async def _read(client: Client) -> None:
    """Acknowledge events, so that they do not pile up."""
    async for item in client.events():
        if isinstance(item, Event):
            await client.ack(item.seq)


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _display_text(message: Message, people: Mapping[str, Person]) -> str:
    """The message's text with the other chat's names for its people, and the names of its files."""
    text = re.sub(
        r"@([A-Za-z0-9_-]+)",
        lambda match: people[match[1]].name if match[1] in people else match[0],
        message.text,
    )
    return "\n".join([text, *(f"[file: {file.name}]" for file in message.attachments)])
