"""A bridge to a real IRC server, ngircd."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from hubbub.protocol.admin import AgentProcesses
from hubbub.protocol.frames import Event
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import SendResult, ThreadPage
from tests.bridges.servers import free_port, irc_server, irc_user, needs_ngircd
from tests.e2e.support.config_network import run_config
from tests.unit.configs.people import Person

pytestmark = [pytest.mark.bridges, needs_ngircd]


async def receive(person: Person, text: str) -> Message:
    """The next message that contains `text`."""
    async with asyncio.timeout(100):
        async for item in person.client.events():
            if isinstance(item, Event):
                await person.client.ack(item.seq)
                if text in item.message.text:
                    return item.message
    raise AssertionError("the client was closed")


async def bridge_pid(person: Person, bridge: str = "irc") -> int:
    listed = AgentProcesses.model_validate(await person.client.call("list_agent_processes"))
    (pid,) = (each.pid for each in listed.processes if each.agent == bridge)
    assert pid is not None
    return pid


@pytest.mark.behaviour("I-34", "I-35", "I-36")
async def test_irc_people_and_agents_share_a_channel_under_their_own_names(
    tmp_path: Path,
) -> None:
    port = free_port()
    async with (
        irc_server(tmp_path, port),
        run_config("irc-bridge", tmp_path, {"IRC_SERVER": f"127.0.0.1:{port}"}) as network,
        irc_user(port, "Alice") as alice,
    ):
        ann = await network.join("ann")
        await alice.sees("calculator")
        await alice.sees("hubbub")

        alice.say("calculator: 12 * 7")
        asked = await receive(ann, "12 * 7")
        assert (asked.sender_id, asked.sender_kind, asked.untrusted) == ("irc-alice", "human", True)
        assert asked.mentions == ("calculator",)
        assert (await alice.hears("84")).startswith("calculator: ")

        await ann.client.call("reply", message_id=asked.id, text="thanks,\nirc friend")
        assert await alice.hears("thanks") == "ann: Alice, “@calculator 12 * 7”: thanks,"
        assert await alice.hears("irc friend") == "ann: irc friend"
        posted = await ann.client.call("post_to_channel", channel="dev", text="I mean @irc-alice")
        assert await alice.hears("I mean") == "ann: I mean Alice"
        mine = SendResult.model_validate(posted).id
        await ann.client.call("edit_message", message_id=mine, text="I meant you")
        assert await alice.hears("I meant") == "ann: (edited) I meant you"

        async with irc_user(port, "mallory", user="hubbub") as other_bridge:
            other_bridge.say("round and round")
            await alice.hears("round and round")
            alice.say("\x01ACTION waves \x02now\x02\x01")
            assert (await receive(ann, "*waves now*")).sender_id == "irc-alice"
        page = await ann.client.call("read_thread", thread="channel.dev", limit=50)
        log = ThreadPage.model_validate(page).messages
        assert "round and round" not in [each.text for each in log]
        assert {each.sender_id for each in log} == {"ann", "calculator", "irc-alice"}

        alice.send("PRIVMSG calculator :psst")
        notice = await alice.until(
            lambda line: line.command == "NOTICE" and "read" in line.params[1]
        )
        assert notice.params[1] == "I only read messages in #dev."


@pytest.mark.behaviour("I-37")
async def test_messages_reach_irc_despite_a_kill_of_the_bridge_or_the_server(
    tmp_path: Path,
) -> None:
    port = free_port()
    variables = {"IRC_SERVER": f"127.0.0.1:{port}"}
    async with run_config("irc-bridge", tmp_path, variables) as network:
        ann = await network.join("ann")
        async with irc_server(tmp_path, port), irc_user(port, "bob") as bob:
            await bob.sees("calculator")
            await ann.client.call("post_to_channel", channel="dev", text="first")
            await bob.hears("first")
            os.kill(await bridge_pid(ann), signal.SIGKILL)
            await ann.client.call("post_to_channel", channel="dev", text="second")
            await bob.hears("second")
        await ann.client.call("post_to_channel", channel="dev", text="third, without a server")
        async with irc_server(tmp_path, port), irc_user(port, "bob") as again:
            await again.hears("third")
            await ann.client.call("post_to_channel", channel="dev", text="fourth")
            await again.hears("fourth")
            texts = [each.params[1] for each in bob.heard if each.command == "PRIVMSG"]
            # A line whose confirmation was lost with the bridge can be repeated; IRC has no ids.
            assert list(dict.fromkeys(texts)) == ["first", "second"]


async def test_a_participant_without_its_own_irc_connection_is_relayed(
    tmp_path: Path,
) -> None:
    port = free_port()
    variables = {"IRC_SERVER": f"127.0.0.1:{port}"}
    async with (
        irc_server(tmp_path, port, "MaxConnections = 2"),
        irc_user(port, "carol") as carol,
        run_config("irc-bridge", tmp_path, variables) as network,
    ):
        ann = await network.join("ann")
        await carol.sees("hubbub")
        await ann.client.call("post_to_channel", channel="dev", text="anybody here?")
        assert await carol.hears("anybody") == "hubbub: <ann> anybody here?"
