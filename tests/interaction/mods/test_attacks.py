"""What hostile and careless participants try with several mods: none of it works."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hubbub.mods.api import ModConfig
from hubbub.mods.documents.mod import DocumentsMod
from hubbub.mods.documents.settings import DocumentsConfig
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.moderation.mod import Moderation
from hubbub.mods.moderation.settings import ModerationConfig
from hubbub.mods.polls.mod import PollsConfig, PollsMod
from hubbub.mods.schedule.mod import ScheduleConfig, ScheduleMod
from hubbub.mods.search.mod import SearchMod
from hubbub.mods.tasks.mod import TasksMod
from hubbub.mods.tasks.settings import TasksConfig
from hubbub.mods.transcript.mod import TranscriptMod
from tests.interaction.mods.files_rig import files_mod
from tests.interaction.mods.workplace import DESK, refusing, workplace
from tests.interaction.peers import Network

KEY = "AKIAIOSFODNN7EXAMPLE"
SWELLS = "\ufdfa"
"""One letter that is eighteen in the form in which a reader sees it."""


def moderation(**settings: Any) -> Moderation:
    return Moderation(ModerationConfig.model_validate(settings))


def failures(network: Network) -> dict[tuple[str, str], str]:
    """Of mods."""
    return dict(network.hub.mods.failures)


# Moderation -----------------------------------------------------------------------------------


@pytest.mark.behaviour("M-350")
async def test_no_message_is_so_large_that_it_is_not_judged() -> None:
    rules = [{"words": [word]} for word in ("badword", "other", "third", "fourth")]
    links = {"links": {"allow": ["example.org"]}}
    async with workplace([moderation(rules=[*rules, links])], "ann", "bot") as (network, ann, bot):
        attachments = [{"name": SWELLS * 250, "uri": "x:y"}] * 250
        error = await refusing(
            bot, "send_text_message", to=DESK, text=f"badword {KEY}", attachments=attachments
        )
        assert error.code == "rejected"
        assert (await ann.call("read_thread", thread=DESK))["messages"] == []
        assert failures(network) == {}


@pytest.mark.behaviour("M-350")
async def test_a_message_that_could_not_be_judged_is_refused() -> None:
    class Broken(Moderation):
        def _author(self, draft: object) -> Any:
            raise RuntimeError("broken")

    async with workplace([Broken(ModerationConfig(words=("badword",)))], "bot") as (network, bot):
        assert (await refusing(bot, "send_text_message", to=DESK, text="badword")).code == (
            "rejected"
        )
        assert [mod for mod, _ in failures(network)] == ["moderation"]


@pytest.mark.behaviour("M-350")
async def test_a_message_with_more_text_than_is_judged_is_refused() -> None:
    async with workplace([moderation(most_judged=100)], "bot") as (_, bot):
        await bot.say(DESK, "x" * 100)
        attachments = [{"name": "x" * 100, "uri": ""}]
        error = await refusing(bot, "send_text_message", to=DESK, text="x", attachments=attachments)
        assert "at most 100 characters" in error.message


@pytest.mark.behaviour("M-351")
async def test_no_part_of_an_attachment_hides_a_secret() -> None:
    async with workplace([files_mod(), moderation()], "ann", "bot") as (_, ann, bot):
        made = await bot.call("write_file", name="env.txt", text=f"key {KEY}\n", thread=DESK)
        attachments = [
            {"name": "a", "uri": "x:y", "media_type": KEY},
            {"name": "env.txt", "uri": f"file:{made['id']}"},
        ]
        await bot.call("send_text_message", to=DESK, text="see", attachments=attachments)
        page = await ann.call("read_thread", thread=DESK)
        assert KEY not in json.dumps(page)
        excerpt = page["messages"][-1]["attachments"][1]["excerpt"]
        assert excerpt.startswith("key [redacted: aws key]")


# Times and texts ------------------------------------------------------------------------------


@pytest.mark.behaviour("M-352")
@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"])
async def test_times_that_utc_does_not_have_are_refused_as_such(moment: str) -> None:
    mods = [TasksMod(TasksConfig()), PollsMod(PollsConfig()), ScheduleMod(ScheduleConfig())]
    async with workplace(mods, "bot") as (network, bot):
        poll: dict[str, Any] = {"question": "q", "options": ["a", "b"], "deadline": moment}
        for name, args in (
            ("create_task", {"title": "x", "due": moment}),
            ("create_poll", poll),
            ("remind", {"text": "x", "when": "every 2h", "until": moment}),
        ):
            assert (await refusing(bot, name, thread=DESK, **args)).code == "bad_request"
        await bot.call("create_task", thread=DESK, title="x")
        assert (await refusing(bot, "update_task", task="t1", due=moment)).code == "bad_request"
        assert failures(network) == {}


@pytest.mark.behaviour("M-353")
async def test_a_search_in_long_texts_fails_in_no_mod_and_shows_where_words_stand() -> None:
    mods = [DocumentsMod(DocumentsConfig()), SearchMod(ModConfig())]
    async with workplace(mods, "bot") as (network, bot):
        text = "ab cd " * 30_000
        for end in ("", "needle"):
            await bot.call("create_document", thread=DESK, title="needle", text=text + end)
        found = await bot.call("search", query="needle", kinds=["documents"])
        assert sorted(hit["id"] for hit in found["hits"]) == ["d1", "d2"]
        snippets = {hit["id"]: hit["snippet"] for hit in found["hits"]}
        assert snippets["d2"].endswith("needle")
        assert failures(network) == {}


@pytest.mark.behaviour("M-354")
async def test_short_messages_that_were_edited_to_long_ones_come_in_pages() -> None:
    async with workplace([EditsMod(EditsConfig())], "ann", "bot") as (_, ann, bot):
        for number in range(1, 11):
            await bot.say(DESK, "x")
            await bot.call("edit_message", message_id=f"m{2 * number - 1}", text="y" * 60_000)
        seen: list[str] = []
        before: dict[str, int] = {}
        while True:
            page = await ann.call("read_thread", thread=DESK, limit=100, **before)
            assert len(json.dumps(page)) < 400_000
            seen = [message["id"] for message in page["messages"]] + seen
            if not page["more"]:
                break
            before = {"before": page["messages"][0]["tseq"]}
        assert seen == [f"m{number}" for number in range(1, 21)]


@pytest.mark.behaviour("M-354")
async def test_the_versions_of_a_long_message_come_in_pages() -> None:
    async with workplace([EditsMod(EditsConfig())], "ann", "bot") as (_, ann, bot):
        await bot.say(DESK, "x" * 60_000)
        for number in range(10):
            await bot.call("edit_message", message_id="m1", text=f"{number}" * 60_000)
        texts: list[str] = []
        before: dict[str, int] = {}
        while True:
            page = await ann.call("message_history", message_id="m1", limit=50, **before)
            assert len(json.dumps(page)) < 400_000
            texts = [version["content"][0] for version in page["versions"]] + texts
            if not page["more"]:
                break
            before = {"before": page["versions"][0]["seq"]}
        assert texts == ["x", *map(str, range(10))]


# Transcripts ----------------------------------------------------------------------------------


def _lines(*contents: object) -> Iterator[str]:
    for seq, content in enumerate(contents, 1):
        yield json.dumps(
            {
                "id": f"m{seq}",
                "seq": seq,
                "tseq": seq,
                "thread_id": "channel.old",
                "type": "channel",
                "sender_id": "hub",
                "sender_kind": "system",
                "content": content,
                "text_representation": "said by another hub",
                "interaction_id": f"i{seq}",
                "hop": 0,
                "sent_at": "2026-01-01T00:00:00Z",
            }
        )


@pytest.mark.behaviour("M-355")
async def test_notices_in_a_transcript_say_nothing_of_this_networks_tasks_and_polls() -> None:
    mods = [TasksMod(TasksConfig()), PollsMod(PollsConfig()), TranscriptMod(ModConfig())]
    async with workplace(mods, "olga") as (network, olga):
        lines = _lines(
            {"mod": "tasks", "task": "tX", "overdue": 1.0},
            {"mod": "tasks", "task": "t1", "overdue": 1e300},
            {"mod": "polls", "poll": "pX", "outcome": "won"},
            {"mod": "polls", "poll": f"p{10**30}", "outcome": "won"},
        )
        header = json.dumps({"transcript": 1, "network": "old", "epoch": "0" * 26})
        done = await olga.call("import_transcript", header=header, first=2, lines=list(lines))
        assert done["imported"] == 4
        assert failures(network) == {}
