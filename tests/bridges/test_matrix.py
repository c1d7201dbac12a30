"""A bridge to a real Matrix server, Synapse."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hubbub.bridges.matrix import MARK
from hubbub.protocol.operations import SendResult
from tests.bridges.homeserver import MatrixUser, homeserver, needs_synapse
from tests.bridges.servers import free_port
from tests.bridges.test_irc import bridge_pid, receive
from tests.e2e.support.config_network import ConfigNetwork, run_config

pytestmark = [pytest.mark.bridges, needs_synapse]


@asynccontextmanager
async def bridged(folder: Path) -> AsyncIterator[tuple[ConfigNetwork, MatrixUser, str]]:
    """A network whose channel `dev` is a room of a new server, one of its users, and the room."""
    port = free_port()
    async with homeserver(folder, port) as server:
        alice = await server.user("alice")
        room = await alice.make_room()
        variables = {
            "MATRIX_PORT": str(server.port),
            "MATRIX_ROOM": room,
            "BRIDGE_LISTEN": f"127.0.0.1:{port}",
        }
        async with run_config("matrix-bridge", folder, variables) as network:
            yield network, alice, room


@pytest.mark.behaviour("I-35", "I-36", "I-37", "I-38")
async def test_matrix_people_and_agents_talk_with_threads_edits_and_deletions(
    tmp_path: Path,
) -> None:
    async with bridged(tmp_path) as (network, alice, _):
        ann = await network.join("ann")
        await alice.sees("@hubbub_calculator:example.org")
        pill = {"user_ids": ["@hubbub_calculator:example.org"]}
        asked = await alice.say("calculator: 12 * 7", **{"m.mentions": pill})
        question = await receive(ann, "12 * 7")
        assert (question.sender_id, question.untrusted) == ("matrix-alice", True)
        assert question.mentions == ("calculator",)
        answer = await alice.hears("84")
        assert answer["sender"] == "@hubbub_calculator:example.org"

        thread = {"rel_type": "m.thread", "event_id": asked}
        first = await alice.say("in the thread", **{"m.relates_to": thread})
        under = await receive(ann, "in the thread")
        assert under.thread_id == f"channel.dev.t{question.seq}"
        posted = await ann.client.call(
            "send_text_message", to=under.thread_id, text="I am here, @matrix-alice"
        )
        reply = await alice.hears("I am here")
        assert reply["content"]["m.relates_to"]["event_id"] == asked
        assert reply["content"]["m.mentions"] == {"user_ids": ["@alice:example.org"]}

        mine = SendResult.model_validate(posted).id
        await ann.client.call("edit_message", message_id=mine, text="I was there")
        edit = await alice.hears("I was there")
        relation = {"rel_type": "m.replace", "event_id": reply["event_id"]}
        assert edit["content"]["m.relates_to"] == relation
        new = {"msgtype": "m.text", "body": "in that thread"}
        replaces = {"rel_type": "m.replace", "event_id": first}
        await alice.say("* in that thread", **{"m.new_content": new, "m.relates_to": replaces})
        changed = await receive(ann, "in that thread")
        assert changed.amends is not None
        assert (changed.amends.message_id, changed.amends.kind) == (under.id, "edited")
        await alice.delete(first)
        assert (await receive(ann, "")).amends is not None

        await alice.say("of another bridge", **{MARK: "1-m1"})
        inside = {"m.in_reply_to": {"event_id": answer["event_id"]}}
        await alice.say("right!", **{"m.relates_to": inside})
        right = await receive(ann, "right!")
        assert right.quote is not None
        assert right.seq == changed.seq + 2, "more than the deletion and this message"

        pid = await bridge_pid(ann, "matrix")
        os.kill(pid, signal.SIGKILL)
        await alice.say("while it was away")
        await ann.client.call("post_to_channel", channel="dev", text="the same here")
        assert (await receive(ann, "while it was away")).sender_id == "matrix-alice"
        await alice.hears("the same here")
        await ann.client.call("post_to_channel", channel="dev", text="the end")
        await alice.hears("the end")
        bodies = [each["content"].get("body") for each in alice.heard]
        assert bodies.count("the same here") == 1
        assert len(bodies) == len({each["event_id"] for each in alice.heard})


async def test_long_messages_and_those_of_a_removed_user_reach_the_room_unless_it_is_encrypted(
    tmp_path: Path,
) -> None:
    async with bridged(tmp_path) as (network, alice, room):
        ann = await network.join("ann")
        text = "long " + 10_000 * '"äö\n'
        posted = await ann.client.call("post_to_channel", channel="dev", text=text)
        long = (await alice.hears("long"))["content"]["body"]
        assert long.startswith(text[:20_000])
        assert long.endswith("more characters)")
        mine = SendResult.model_validate(posted).id
        await ann.client.call("edit_message", message_id=mine, text=f"edit {text}")
        edit = (await alice.hears("* edit"))["content"]["m.new_content"]["body"]
        assert edit.startswith("edit long")

        ghost = {"user_id": "@hubbub_ann:example.org"}
        await alice.ask("POST", f"rooms/{room}/kick", ghost)
        await ann.client.call("post_to_channel", channel="dev", text="I am back")
        assert (await alice.hears("I am back"))["sender"] == ghost["user_id"]

        megolm = {"algorithm": "m.megolm.v1.aes-sha2"}
        await alice.ask("PUT", f"rooms/{room}/state/m.room.encryption", megolm)
        os.kill(await bridge_pid(ann, "matrix"), signal.SIGKILL)
        await network.shows("is encrypted: bridges cannot read encrypted rooms")
