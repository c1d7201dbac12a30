"""Bridges between a hub and a chat in memory, and how they convert messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.app.bridges import chat_of
from hubbub.app.preflight import load_valid
from hubbub.bridges.bridge import Bridge, puppet_name
from hubbub.bridges.chat import (
    Chat,
    Deleted,
    Edited,
    Incoming,
    IncomingMessage,
    Outgoing,
    Parent,
    Person,
    PersonLeft,
    Take,
)
from hubbub.bridges.irc import fold_case, irc_lines, nick_of, wrap_line
from hubbub.config.problems import ConfigProblems
from hubbub.config.units import Section
from hubbub.errors import OperationError
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.protocol.thread_ids import is_participant_id
from tests.doc_pages import example
from tests.interaction.peers import Frame, Network, Networks, Peer, config, soon
from tests.interaction.stop_harness import begin

TOKEN = "hub_bridge"
ALICE, BOB = Person("alice", "Alice"), Person("@bob:elsewhere", "Bob")


class Room(Chat):
    """A chat in memory, whose messages have ids."""

    has_ids: ClassVar[bool] = True
    title = "the room"

    def __init__(self) -> None:
        super().__init__("room", Section(), ["#dev"])
        self.sent: list[Outgoing] = []
        self.shown: list[str] = []
        self.fails = False
        self._take: asyncio.Future[Take] = asyncio.get_running_loop().create_future()
        self._changed = asyncio.Event()

    async def run(self, take: Take) -> None:
        self._take.set_result(take)
        await asyncio.Event().wait()

    async def say(self, message: Outgoing) -> str:
        self.sent.append(message)
        self._changed.set()
        if self.fails:
            await asyncio.Event().wait()
        return f"${message.id}"

    async def show(self, agents: Sequence[str]) -> None:
        self.shown += agents
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until what was sent or shown meets the condition."""
        async with soon():
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def receive(self, *events: Incoming) -> None:
        """These events happen in the chat. Returns when the network has them."""
        async with soon():
            for event in events:
                await (await self._take)(event)


@asynccontextmanager
async def bridge(net: Network, pairs: Path) -> AsyncIterator[Room]:
    room = Room()
    process = Bridge("room", room, {"dev": "#dev"}, net.local.transport, token=TOKEN, pairs=pairs)
    running = asyncio.create_task(process.run())
    try:
        yield room
        assert not running.done(), running
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


@asynccontextmanager
async def network(hubs: Networks, **more: object) -> AsyncIterator[tuple[Network, Peer]]:
    file = config(
        network=more,
        channels={"dev": {}},
        agents={"helper": {"kind": "python", "class": "none.py:None", "channels": ["dev"]}},
        bridges={"room": {"kind": "irc", "channels": {"dev": "#dev"}}},
    )
    async with hubs.start(file, mods=[EditsMod(EditsConfig())]) as net:
        net.local.hub.gateway.admission.add_token("room", TOKEN)
        ann = await net.join("ann", kind="human")
        yield net, ann


async def messages(ann: Peer, thread: str = "channel.dev") -> list[Frame]:
    page = await ann.call("read_thread", thread=thread)
    return [message for message in page["messages"] if "amends" not in message]


async def contents(ann: Peer, thread: str = "channel.dev") -> list[str]:
    return [message["content"] for message in await messages(ann, thread)]


@pytest.mark.behaviour("I-35", "I-38")
async def test_both_sides_see_the_same_messages_replies_edits_and_deletions(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with network(in_memory) as (net, ann), bridge(net, tmp_path / "pairs") as room:
        await room.receive(IncomingMessage("$1", ALICE, "#dev", "hello @helper"))
        await room.receive(IncomingMessage("$1", ALICE, "#dev", "hello @helper"))
        (hello,) = await messages(ann)
        assert (hello["sender_id"], hello["untrusted"]) == ("room-alice", True)
        assert hello["mentions"] == ["helper"]
        await room.until(lambda: room.shown == ["helper"])

        sent = await ann.call("reply", message_id=hello["id"], text="hello @room-alice")
        await room.receive(IncomingMessage("$2", BOB, "#dev", "me too", thread="$1"))
        replies = await messages(ann, sent["thread_id"])
        assert [reply["content"] for reply in replies] == ["hello @room-alice", "me too"]
        assert replies[1]["sender_id"].startswith("room-bob-elsewhere--")
        await room.until(lambda: len(room.sent) == 1)
        (posted,) = room.sent
        assert (posted.author, posted.text, posted.mentions) == ("ann", "hello Alice", (ALICE,))
        assert (posted.thread, posted.parent) == ("$1", Parent("$1", "Alice", "hello @helper"))

        await ann.call("edit_message", message_id=sent["id"], text="good evening")
        await ann.call("delete_message", message_id=sent["id"])
        await room.until(lambda: len(room.sent) == 3)
        edit, deletion = room.sent[1:]
        assert (edit.change, edit.changes, edit.text) == ("edited", f"${posted.id}", "good evening")
        assert (deletion.change, deletion.changes, deletion.text) == ("deleted", edit.changes, "")

        await room.receive(Edited("$3", BOB, "#dev", "$1", "not mine"))
        await room.receive(Edited("$4", ALICE, "#dev", "$1", "hello all"))
        assert await contents(ann) == ["hello all"]
        await room.receive(Deleted("$5", "$1"), Deleted("$6", posted.id), PersonLeft("alice"))
        assert [message.get("amended") for message in await messages(ann)] == ["deleted"]
        assert len(room.sent) == 3, "nothing is echoed"


@pytest.mark.behaviour("I-37")
async def test_a_restarted_bridge_resends_undelivered_messages_under_the_same_ids(
    in_memory: Networks, tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs"
    async with network(in_memory) as (net, ann):
        async with bridge(net, pairs) as room:
            await room.receive(IncomingMessage("$1", ALICE, "#dev", "hello"))
            await ann.call("post_to_channel", channel="dev", text="one")
            await room.until(lambda: len(room.sent) == 1)
            room.fails = True
            await ann.call("post_to_channel", channel="dev", text="two")
            await room.until(lambda: len(room.sent) == 2)
        await ann.call("post_to_channel", channel="dev", text="three")
        async with bridge(net, pairs) as again:
            await again.receive(IncomingMessage("$1", ALICE, "#dev", "hello"))
            await again.until(lambda: [message.text for message in again.sent][-1:] == ["three"])
            assert [message.text for message in again.sent][-2:] == ["two", "three"]
            assert room.sent[1] in again.sent
            await again.receive(IncomingMessage("$2", BOB, "#dev", "yes", thread="$1"))
        (hello, *_) = await messages(ann)
        assert await contents(ann) == ["hello", "one", "two", "three"]
        assert await contents(ann, f"channel.dev.t{hello['seq']}") == ["yes"]


@pytest.mark.behaviour("I-35")
async def test_only_the_bridge_can_join_as_a_person_of_its_chat(in_memory: Networks) -> None:
    async with network(in_memory) as (net, _):
        for name in ("room", "room-alice"):
            with pytest.raises(OperationError, match="needs a token"):
                await net.local.join(name, "human")
        with pytest.raises(OperationError, match="does not prove"):
            await net.local.join("room-alice", "human", token="hub_other")
        puppet = await net.local.join("room-alice", "human", token=TOKEN)
        with pytest.raises(OperationError, match="forbidden"):
            await puppet.call("list_tokens")
        for what in ({"scope": "agent", "target": "helper"}, {"scope": "all"}):
            with pytest.raises(OperationError, match="only an owner"):
                await puppet.call("stop", **what)


@pytest.mark.behaviour("I-35")
async def test_people_of_another_chat_cannot_approve_and_are_bound_by_budgets(
    in_memory: Networks, tmp_path: Path
) -> None:
    daily = {"network": {"wakes": 1}}
    async with network(in_memory, daily=daily) as (net, ann), bridge(net, tmp_path / "p") as room:
        helper = await net.join("helper", "agent", turns=True)
        await room.receive(IncomingMessage("$1", ALICE, "#dev", "@helper tidy up"))
        await room.receive(IncomingMessage("$2", ALICE, "#dev", "@helper and sweep"))
        turn = await begin(helper)
        second, notice = await helper.take(2)
        assert (second["message"]["content"], "wake" in second) == ("@helper and sweep", False)
        assert notice["message"]["content"]["code"] == "daily_network"
        call: dict[str, Any] = {"turn": turn, "call": "1:c", "tool": "sweep", "arguments": {}}
        approval = await helper.call("request_approval", **call)
        puppet = await net.local.join("room-alice", "human", token=TOKEN)
        with pytest.raises(OperationError):
            await puppet.call("approve", id=approval["id"])
        assert (await ann.call("read_approval", id=approval["id"]))["state"] == "pending"


@pytest.mark.behaviour("I-35")
@given(st.sets(st.text(min_size=1, max_size=80), min_size=2, max_size=8))
def test_each_person_of_another_chat_gets_a_unique_valid_name(people: set[str]) -> None:
    more = people | {puppet_name("b", person).partition("-")[2] for person in people}
    names = {puppet_name("b", person) for person in more}
    assert len(names) == len(more)
    assert all(map(is_participant_id, names))


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])), st.integers(8, 80))
def test_lines_for_irc_fit_and_lose_only_spaces(text: str, size: int) -> None:
    lines = list(wrap_line(text, size))
    assert all(len(line.encode()) <= size for line in lines)
    assert "".join(lines).replace(" ", "").strip() == text.replace(" ", "").strip()


@pytest.mark.behaviour("I-36")
def test_messages_are_converted_to_plain_lines_for_irc() -> None:
    def lines(text: str, **more: object) -> list[str]:
        return list(irc_lines(Outgoing("1-m2", "#dev", "ann", text, **more)))  # type: ignore[arg-type]

    assert lines("a\n\r\nb\x02\tc") == ["a", "b  c"]
    assert lines("yes", parent=Parent(None, "Bob", "what\nis " + "x" * 50)) == [
        "Bob, “what is " + "x" * 31 + "…”: yes"
    ]
    assert lines("new", change="edited") == ["(edited) new"]
    assert lines("", change="deleted") == ["(deleted a message)"]
    assert lines("\n".join("abc" * 9))[-2:] == ["b", "… (7 more lines)"]
    assert (nick_of("7up"), nick_of("-x"), nick_of("ann")) == ("_7up", "_-x", "ann")
    assert fold_case("Ann[~]") == fold_case("ann{^}")


@pytest.mark.behaviour("I-39")
def test_mistakes_in_the_config_of_a_bridge_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "hubbub.yaml"
    file.write_text(
        "channels:\n  dev: {}\n  own: {members: [irc-ann]}\n"
        "humans: {irc-ann: {}}\n"
        "bridges:\n"
        "  irc: {kind: irc, channels: {dve: '#dev', own: '#own'}}\n"
        "  pigeons: {kind: pigeon, channels: {dev: loft}}\n"
    )
    with pytest.raises(ConfigProblems) as problems:
        load_valid(file)
    for problem in (
        "'irc-ann' clashes with the bridge 'irc'",
        "there is no channel 'dve'; did you mean 'dev'?",
        "channel 'own' has a list of members",
        "unknown kind of bridge 'pigeon'",
    ):
        assert problem in str(problems.value)
    file.write_text(
        "channels: {dev: {}}\nbridges:\n  irc: {kind: irc, channels: {dev: '#dev'}, settings: {}}\n"
    )
    with pytest.raises(ConfigProblems, match="server"):
        load_valid(file)
    (tmp_path / "pigeons.py").write_text(
        example("docs/how-to/bridge-another-chat.md", "pigeons.py")
    )
    pigeons = "channels: {dev: {}}\nbridges:\n  p: {kind: pigeons.py:Pigeons, channels: {dev: roof}"
    file.write_text(f"{pigeons}}}\n")
    with pytest.raises(ConfigProblems, match="loft"):
        load_valid(file)
    file.write_text(f"{pigeons}, settings: {{loft: attic}}}}\n")
    assert chat_of(load_valid(file), "p").title == "the pigeons"
