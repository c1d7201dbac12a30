"""A damaged message in the log is reported to its readers, and everything else works."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.interaction.peers import Networks


@pytest.mark.behaviour("S-17")
async def test_a_damaged_message_is_reported_to_its_recipient_who_gets_the_rest(
    networks: Networks, tmp_path: Path
) -> None:
    url = f"sqlite:{tmp_path}/hub.db"
    async with networks.start(store=url) as network:
        ann = await network.join("ann")
        await network.join("bob")
        for number in range(1, 7):
            await ann.say("bob", f"number {number}")
    with closing(sqlite3.connect(tmp_path / "hub.db", isolation_level=None)) as db:
        db.execute("UPDATE message SET body = replace(body, 'number 3', 'number 4')")
    for _ in range(2):  # also when the recipient reconnects
        async with networks.start(store=url) as network:
            [thread] = (await network.join("ann", latest=True)).ready["threads"]
            later = ["number 4", "number 5", "number 6"]
            assert [message["content"] for message in thread["messages"]] == later
            bob = await network.join("bob")
            assert await bob.take_texts(5) == ["number 1", "number 2", *later]
            [error] = [frame for frame in bob.strays if frame["op"] == "error"]
            assert (error["code"], error["details"]) == ("log_damaged", {"seq": 3})
            assert "message m3 of dm.ann.bob is damaged in the log" in error["message"]
            page = await bob.call("read_thread", thread="dm.ann.bob")
            assert [message["content"] for message in page["messages"]] == later
            assert page["more"]
            refused = await bob.ask("read_thread", thread="dm.ann.bob", before=4)
            assert (refused["code"], refused["temporary"]) == ("log_damaged", False)
            page = await bob.call("read_thread", thread="dm.ann.bob", before=3)
            assert [message["seq"] for message in page["messages"]] == [1, 2]
            assert (await bob.ask("read_message", id="m3"))["code"] == "log_damaged"


@pytest.mark.behaviour("S-17")
async def test_a_turn_ends_although_one_of_its_messages_is_damaged(
    in_memory: Networks, tmp_path: Path
) -> None:
    url = f"sqlite:{tmp_path}/hub.db"
    async with in_memory.start(store=url) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent", turns=True)
        messages = [(await ann.say("bot", "number 1"))["id"]]
        messages.append((await ann.call("delegate", to="bot", task="count"))["id"])
        await bot.take(2)
        start = {"id": "bot-m1", "thread_id": "dm.ann.bot", "messages": messages}
        await bot.call("begin_turn", start=start)
    with closing(sqlite3.connect(tmp_path / "hub.db", isolation_level=None)) as db:
        db.execute("UPDATE message SET body = replace(body, 'number 1', 'number 2')")
    async with in_memory.start(store=url) as network:
        ann = await network.join("ann", latest=True)
        bot = await network.join("bot", "agent", turns=True)
        await bot.call("end_turn", end={"id": "bot-m1", "outcome": "model_error"})
        await ann.until(lambda: len(ann.events) == 2)
        notice, failure = [event["message"] for event in ann.events]
        assert notice["content"]["messages"] == [messages[1]]
        assert failure["request"]["id"] == messages[1]
        assert failure["request"]["outcome"] == "no_report"
