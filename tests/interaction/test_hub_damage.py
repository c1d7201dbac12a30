"""A damaged message in the log is reported to its readers, and everything else works."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.search.mod import SearchMod
from hubbub.mods.threads.mod import ThreadsConfig, ThreadsMod
from hubbub.mods.transcript.mod import TranscriptMod
from tests.interaction.mods.test_transcript import export_lines
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
            earlier, later = ["number 1", "number 2"], ["number 4", "number 5", "number 6"]
            damaged = "Message m3 is damaged in the log and is not shown."
            listed = [*earlier, damaged, *later]
            assert [message["content"] for message in thread["messages"]] == listed
            bob = await network.join("bob")
            assert await bob.take_texts(5) == [*earlier, *later]
            [error] = [frame for frame in bob.strays if frame["op"] == "error"]
            assert (error["code"], error["details"]) == ("log_damaged", {"seq": 3})
            assert "message m3 of dm.ann.bob is damaged in the log" in error["message"]
            page = await bob.call("read_thread", thread="dm.ann.bob")
            assert [message["content"] for message in page["messages"]] == listed
            assert [message["tseq"] for message in page["messages"]] == [1, 2, 3, 4, 5, 6]
            refused = await bob.ask("read_message", id="m3")
            assert (refused["code"], refused["temporary"]) == ("log_damaged", False)


@pytest.mark.behaviour("S-17")
async def test_beneath_a_damaged_message_people_write_search_and_export_on(
    in_memory: Networks, tmp_path: Path
) -> None:
    url = f"sqlite:{tmp_path}/hub.db"

    def mods() -> list[Mod]:
        return [
            ThreadsMod(ThreadsConfig()),
            EditsMod(EditsConfig()),
            SearchMod(ModConfig()),
            TranscriptMod(ModConfig()),
        ]

    async with in_memory.start(store=url, mods=mods()) as network:
        ann = await network.join("ann")
        await network.join("bob")
        top = await ann.say("bob", "the first plan")
        await ann.call("edit_message", message_id=top["id"], text="the second plan")
        await ann.call("reply", message_id=top["id"], text="a reply to the plan")
        await ann.say("bob", "the newest plan")
    with closing(sqlite3.connect(tmp_path / "hub.db", isolation_level=None)) as db:
        db.execute("UPDATE message SET body = replace(body, 'plan', 'plot') WHERE seq IN (1, 4)")
    async with in_memory.start(store=url, mods=mods()) as network:
        ann = await network.join("ann", latest=True)
        threads = (await ann.call("list_threads"))["threads"]
        assert [each["id"] for each in threads] == ["dm.ann.bob", "dm.ann.bob.t1"]
        await ann.call("send_text_message", to="dm.ann.bob.t1", text="another reply")
        hits = (await ann.call("search", query="plan"))["hits"]
        notices = [hit["id"] for hit in hits if "is damaged in the log" in hit["snippet"]]
        assert (len(hits), sorted(notices)) == (3, ["m1", "m4"])
        texts = [
            (message["sender_id"], message["content"])
            for message in map(json.loads, (await export_lines(ann))[1:])
        ]
        assert texts == [
            ("hub", "Message m1 is damaged in the log and is not shown."),
            ("ann", "the second plan"),
            ("ann", "a reply to the plan"),
            ("hub", "Message m4 is damaged in the log and is not shown."),
            ("ann", "another reply"),
        ]
        assert len(await export_lines(ann, interaction="i1")) == 3


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
