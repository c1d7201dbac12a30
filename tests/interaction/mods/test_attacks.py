"""Hostile and careless input to several mods."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hubbub.mods.api import ModConfig
from hubbub.mods.documents.mod import DocumentsConfig, DocumentsMod
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.polls.mod import PollsConfig, PollsMod
from hubbub.mods.schedule.mod import ScheduleConfig, ScheduleMod
from hubbub.mods.search.mod import SearchMod
from hubbub.mods.tasks.mod import TasksConfig, TasksMod
from hubbub.mods.transcript.mod import TranscriptMod
from tests.interaction.mods.workspace import DESK, refusal, workspace
from tests.interaction.peers import Peer


@pytest.mark.behaviour("M-352")
async def test_a_time_that_is_none_or_does_not_exist_in_utc_is_refused_with_the_reason() -> None:
    mods = [TasksMod(TasksConfig()), PollsMod(PollsConfig()), ScheduleMod(ScheduleConfig())]
    async with workspace(mods, "bot") as (network, bot):
        await bot.call("create_task", thread=DESK, title="x")
        for moment, why in (
            ("9999-12-31T23:59:59-12:00", "this time does not exist in UTC"),
            ("0001-01-01T00:00:00+12:00", "this time does not exist in UTC"),
            ("tomorrow", "expected a time and its zone, for example 2026-01-31T09:00+01:00"),
            ("2027-01-31T09:00", "expected a time and its zone"),
        ):
            calls: list[tuple[str, dict[str, Any]]] = [
                ("create_task", {"title": "x", "due": moment, "thread": DESK}),
                ("create_poll", {"question": "q", "options": ["a", "b"], "deadline": moment,
                                 "thread": DESK}),
                ("remind", {"text": "x", "when": "every 2h", "until": moment, "thread": DESK}),
                ("update_task", {"task": "t1", "due": moment}),
            ]  # fmt: skip
            for name, args in calls:
                error = await refusal(bot, name, **args)
                assert error.code == "bad_request", name
                assert f": {why}" in error.message, name
        assert not network.hub.services.mods.failures


@pytest.mark.behaviour("M-353")
async def test_a_search_in_long_texts_shows_the_matching_part() -> None:
    mods = [DocumentsMod(DocumentsConfig()), SearchMod(ModConfig())]
    async with workspace(mods, "bot") as (network, bot):
        text = "ab cd " * 30_000
        for end in ("", "needle"):
            await bot.call("create_document", thread=DESK, title="needle", text=text + end)
        answer = await bot.call("search", query="needle", kinds=["documents"])
        snippets = {hit["id"]: hit["snippet"] for hit in answer["hits"]}
        assert sorted(snippets) == ["d1", "d2"]
        assert snippets["d2"].endswith("needle")
        assert not network.hub.services.mods.failures


async def small_pages(peer: Peer, name: str, key: str, before: str, **args: Any) -> list[Any]:
    """All items of a list that is read backwards, checking that each page fits into a frame."""
    items: list[Any] = []
    more: dict[str, Any] = {}
    while True:
        page = await peer.call(name, **args, **more)
        assert len(json.dumps(page)) < 400_000
        items = [*page[key], *items]
        if not page["more"]:
            return items
        more = {"before": page[key][0][before]}


@pytest.mark.behaviour("M-354")
async def test_messages_edited_to_long_texts_come_in_pages() -> None:
    async with workspace([EditsMod(EditsConfig())], "ann", "bot") as (_, ann, bot):
        for number in range(1, 11):
            await bot.say(DESK, "x")
            await bot.call("edit_message", message_id=f"m{2 * number - 1}", text="y" * 60_000)
        messages = await small_pages(ann, "read_thread", "messages", "tseq", thread=DESK, limit=100)
        assert [message["id"] for message in messages] == [f"m{n}" for n in range(1, 21)]
        for number in range(9):
            await bot.call("edit_message", message_id="m1", text=f"{number}" * 60_000)
        versions = await small_pages(
            ann, "message_history", "versions", "seq", message_id="m1", limit=50
        )
        assert [version["content"][0] for version in versions] == ["x", "y", *map(str, range(9))]


@pytest.mark.behaviour("M-355")
async def test_imported_notices_do_not_affect_tasks_and_polls() -> None:
    mods = [TasksMod(TasksConfig()), PollsMod(PollsConfig()), TranscriptMod(ModConfig())]
    contents = (
        {"mod": "tasks", "task": "tX", "overdue": 1.0},
        {"mod": "tasks", "task": "t1", "overdue": 1e300},
        {"mod": "polls", "poll": "pX", "outcome": "won"},
        {"mod": "polls", "poll": f"p{10**30}", "outcome": "won"},
    )
    lines = [
        json.dumps(
            {"id": f"m{seq}", "seq": seq, "tseq": seq, "thread_id": "channel.old",
             "type": "channel", "sender_id": "hub", "sender_kind": "system", "content": content,
             "text_representation": "said by another hub", "interaction_id": f"i{seq}", "hop": 0,
             "sent_at": "2026-01-01T00:00:00Z"}
        )
        for seq, content in enumerate(contents, 1)
    ]  # fmt: skip
    async with workspace(mods, "olga") as (network, olga):
        header = json.dumps({"transcript": 1, "network": "old", "epoch": "0" * 26})
        done = await olga.call("import_transcript", header=header, first=2, lines=lines)
        assert done["imported"] == 4
        assert not network.hub.services.mods.failures
