"""A bridge: channels of the network and of another chat have the same conversation.

What is said here, one client hears, in the log's order; it acknowledges what the other chat has
taken. What is said there, a participant of its own says for each person: a puppet.
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
from hubbub.client import Backoff, Client, ClientOptions, Transport
from hubbub.errors import OperationError
from hubbub.logs import get_logger
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Event
from hubbub.protocol.messages import Card, Message, Participant
from hubbub.protocol.operations import SendResult

__all__ = ["Bridge", "is_puppet", "puppet_name"]

_PLAIN = re.compile(r"[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*\Z")
_MOST = 24
"""Characters of a name that are kept: with a bridge's name and the digest it stays an id."""


def puppet_name(bridge: str, person: str) -> str:
    """The participant that stands for `person`, an id of the other chat.

    No two people have the same one: an id that cannot stand as it is gets a digest behind `--`,
    which no plain one contains.
    """
    if _PLAIN.match(person) and len(person) <= _MOST:
        return f"{bridge}-{person}"
    readable = re.sub(r"[^A-Za-z0-9_]+", "-", person).strip("-")[:_MOST].rstrip("-")
    return f"{bridge}-{readable}--{hashlib.sha256(person.encode()).hexdigest()[:16]}"


def is_puppet(bridge: str, participant: str) -> bool:
    """Whether a participant of this name stands for a person of the bridge's other chat."""
    return participant.startswith(f"{bridge}-")


log = get_logger(__name__)

MOST_PUPPETS = 100
"""People who are present at the same time; who has said nothing for longest leaves first."""


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
        token: str | None = None,
        pairs: Path | None = None,
        backoff: Backoff | None = None,
    ):
        """`channels` are those of the network, each with the one of the other chat. `token` proves
        the bridge and its puppets. `pairs` is the file for the ids of a chat that has some;
        left out: in memory."""
        self._name, self._chat, self._connect, self._token = name, chat, connect, token
        self._theirs = dict(channels)
        self._ours = {theirs: ours for ours, theirs in channels.items()}
        self._pairs = Pairs(pairs)
        self._backoff = backoff or Backoff()
        self._client = self._joining(name, "service", None)
        self._people: dict[str, Participant] = {}
        self._puppets: OrderedDict[str, _Puppet] = OrderedDict()
        self._taking = asyncio.Lock()

    async def run(self) -> None:
        """Until cancelled. Raises `ConnectionLost` when the hub has closed for good, and what
        `Chat.run` raises."""
        with self._pairs:
            try:
                async with self._client, asyncio.TaskGroup() as group:
                    for channel in self._theirs:
                        await self._client.call("join_channel", channel=channel)
                    group.create_task(self._chat.run(self.take), name=f"{self._name} hears")
                    await self._learn()
                    group.create_task(self._show(), name=f"{self._name} shows agents")
                    await self._relay()
            finally:
                for name in list(self._puppets):
                    await self._leave(name)

    # From here to there -------------------------------------------------------------------------

    async def _relay(self) -> None:
        async for item in self._client.events():
            if isinstance(item, Event):
                outgoing = await self._outgoing(item.message)
                if outgoing is not None:
                    await self._say(item.message.id, outgoing)
                await self._client.ack(item.seq)

    async def _say(self, ours: str, message: Outgoing) -> None:
        try:
            theirs = await self._chat.say(message)
        except ChatRefused as error:
            log.warning("a message does not pass the bridge", message=ours, why=str(error))
            return
        if theirs is not None and message.change is None:
            self._pairs.put(Pair(ours, theirs))

    async def _outgoing(self, message: Message) -> Outgoing | None:
        """How it is said there; None for what is not said there."""
        ours = thread_ids.root(message.thread_id).partition("channel.")[2]
        theirs = self._theirs.get(ours)
        if theirs is None or is_puppet(self._name, message.sender_id):
            return None
        if message.is_notice or message.imported:
            return None
        people = {id: who for id in message.mentions if (who := await self._person(id))}
        amends = message.amends
        replies = [f"m{n}" for n in re.findall(r"\.t(\d+)", message.thread_id)]
        return Outgoing(
            id=f"{self._client.hello.epoch}-{message.id}",
            channel=theirs,
            author=message.sender_id,
            text=_shown(message, people) if amends is None or amends.kind == "edited" else "",
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
        """Whom of the other chat a participant stands for."""
        if not is_puppet(self._name, participant):
            return None
        if participant not in self._people:
            await self._learn()
        card = self._people[participant].card
        return Person(str(getattr(card, "person", card.name)), card.name)

    async def _learn(self) -> None:
        """Look who is in the network."""
        after: str | None = None
        while True:
            args = {} if after is None else {"after": after}
            found = await self._client.call("list_participants", **args)
            assert isinstance(found, dict)
            page = [Participant.model_validate(each) for each in _list(found["participants"])]
            self._people |= {each.id: each for each in page}
            if not page or not found.get("more"):
                return
            after = page[-1].id

    async def _show(self) -> None:
        found = await self._client.call("list_channels")
        assert isinstance(found, dict)
        members = {
            str(member)
            for channel in _list(found["channels"])
            if isinstance(channel, dict) and channel["name"] in self._theirs
            for member in _list(channel["members"])
        }
        agents = [id for id, known in self._people.items() if known.kind == "agent"]
        await self._chat.show(sorted(members.intersection(agents)))

    # From there to here -------------------------------------------------------------------------

    async def take(self, event: Incoming) -> None:
        """Something happened in the other chat; returns when the network has it, or has refused
        it. Raises `ConnectionLost`."""
        async with self._taking:
            await self._until_taken(event)

    async def _until_taken(self, event: Incoming) -> None:
        attempt = 0
        while True:
            try:
                return await self._take(event)
            except OperationError as error:
                if not error.temporary:
                    log.warning("the network does not take this", what=event, why=str(error))
                    return None
                await self._backoff.sleep(self._backoff.after(error.retry_after_s or 0, attempt))
                attempt += 1

    async def _take(self, event: Incoming) -> None:
        match event:
            case IncomingMessage():
                await self._said(event)
            case Edited():
                await self._edited(event)
            case Deleted():
                await self._deleted(event)
            case PersonLeft():
                await self._leave(puppet_name(self._name, event.person))

    async def _said(self, said: IncomingMessage) -> None:
        channel = self._ours.get(said.channel)
        if channel is None or not said.text.strip():
            return
        root = self._pairs.of_theirs(said.thread) if said.thread else None
        quoted = self._pairs.of_theirs(said.quotes) if said.quotes else None
        client = await self._puppet(said.person)
        what: dict[str, object] = {"text": said.text, "outside": True}
        if quoted is not None:
            what["quote"] = {"message_id": quoted.ours}
        operation = "post_to_channel" if root is None else "reply"
        what |= {"channel": channel} if root is None else {"message_id": root.ours}
        answer = await client.call(operation, cid=self._cid(said.id), **what)
        ours = SendResult.model_validate(answer).id
        if self._chat.has_ids:
            pair = Pair(ours, said.id, said.person.id, said.person.name)
            self._pairs.put(pair)

    async def _edited(self, edit: Edited) -> None:
        pair = self._pairs.of_theirs(edit.message)
        if pair is None or pair.person != edit.person.id:
            return
        client = await self._puppet(edit.person)
        if not client.offers("edit_message"):
            id, text = edit.id, f"(edited) {edit.text}"
            await self._said(
                IncomingMessage(id, edit.person, edit.channel, text, quotes=edit.message)
            )
            return
        what = {"message_id": pair.ours, "text": edit.text, "outside": True}
        await client.call("edit_message", cid=self._cid(edit.id), **what)

    async def _deleted(self, deletion: Deleted) -> None:
        pair = self._pairs.of_theirs(deletion.message)
        if pair is None or pair.person is None:
            return  # what was said here is deleted here
        client = await self._puppet(Person(pair.person, pair.name or pair.person))
        if client.offers("delete_message"):
            cid = self._cid(deletion.id)
            await client.call("delete_message", cid=cid, message_id=pair.ours)

    def _cid(self, id: str) -> str:
        """The same for each time that an event is told of: the network knows it by that."""
        return "bridge:" + hashlib.sha256(f"{self._name}\0{id}".encode()).hexdigest()[:40]

    # Puppets ------------------------------------------------------------------------------------

    def _joining(self, name: str, kind: str, card: Card | None) -> Client:
        return Client(
            self._connect(),
            name,
            "service" if kind == "service" else "human",
            token=self._token,
            # What a puppet could hear, the bridge hears.
            cursor=None if kind == "service" else "latest",
            options=ClientOptions(card=card, schemas=False, backoff=self._backoff),
        )

    async def _puppet(self, person: Person) -> Client:
        """The participant that stands for a person, in the channels of the bridge."""
        name = puppet_name(self._name, person.id)
        puppet = self._puppets.get(name)
        if puppet is not None:
            self._puppets.move_to_end(name)
            return puppet.client
        if len(self._puppets) >= MOST_PUPPETS:
            await self._leave(next(iter(self._puppets)))
        about = f"{person.name}, a person of {self._chat.title}; is reached in the channels only"
        card = {"name": person.name[:64], "description": about, "person": person.id}
        client = self._joining(name, "human", Card.model_validate(card))
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
    """Take what arrives, so that it does not pile up."""
    async for item in client.events():
        if isinstance(item, Event):
            await client.ack(item.seq)


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _shown(message: Message, people: Mapping[str, Person]) -> str:
    """Its text with the people of the other chat named as they are there, and its files by name."""
    text = re.sub(
        r"@([A-Za-z0-9_-]+)",
        lambda found: people[found[1]].name if found[1] in people else found[0],
        message.text,
    )
    return "\n".join([text, *(f"[file: {file.name}]" for file in message.attachments)])
