"""Edits and deletions of messages in a running network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from structlog.testing import capture_logs

from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.moderation.mod import Moderation
from hubbub.mods.moderation.rules import ModerationConfig
from tests.interaction.mods.workspace import DESK, post, refused, workspace
from tests.interaction.peers import Peer
from tests.interaction.stop_harness import HandClock

PEOPLE = ("ann", "bot", "calc")


def mod(**settings: JsonValue) -> EditsMod:
    return EditsMod(EditsConfig.model_validate(settings))


async def edit(peer: Peer, id: str, text: str, **more: Any) -> Any:
    return await peer.call("edit_message", message_id=id, text=text, **more)


async def visible(peer: Peer, **args: Any) -> list[Any]:
    """Content and `amended` of each message at the desk, without the edits themselves."""
    page = await peer.call("read_thread", thread=DESK, **args)
    messages = [message for message in page["messages"] if "amends" not in message]
    return [(message["content"], message.get("amended")) for message in messages]


async def versions(peer: Peer, id: str) -> list[tuple[str, str, JsonValue]]:
    history = await peer.call("message_history", message_id=id)
    return [(each["kind"], each["by"], each["content"]) for each in history["versions"]]


@pytest.mark.behaviour("M-80", "M-81")
async def test_an_edit_reaches_the_recipients_and_wakes_no_agent() -> None:
    async with workspace([mod()], *PEOPLE, turns=True) as (network, ann, bot, calc):
        id = await post(ann, "look at this")
        sent = await edit(ann, id, "@bot look at this, @calc too")
        assert (sent["amends"], "queued" in sent) == ({"message_id": id, "kind": "edited"}, False)
        for agent in (bot, calc):
            first, second = await agent.take(2)
            assert ("wake" in first, "wake" in second) == (False, False)
            assert second["message"]["amends"] == {"message_id": id, "kind": "edited"}
            assert second["message"]["interaction_id"] == first["message"]["interaction_id"]
        why = await ann.call("explain_wake", message_id=sent["id"], agent="bot")
        assert (why["woken"], why["reason"]) == (False, "amendment")
        await edit(ann, id, "Look!")
        assert await visible(bot) == [("Look!", "edited")]
        message = await bot.call("read_message", id=id)
        assert (message["content"], message["amended"]) == ("Look!", "edited")
        [thread] = (await bot.call("list_threads"))["threads"]
        assert thread["head"] == 3
        await bot.take(1)
        # A direct message wakes the agent once; ann's other socket gets message and edit.
        other = await network.join("ann")
        id = (await ann.say("bot", "what is 1 + 1?"))["id"]
        await edit(ann, id, "what is 2 + 2?")
        first, after = await bot.take(2)
        assert ("wake" in first, "wake" in after) == (True, False)
        texts = [event["message"]["content"] for event in await other.take(5)]
        assert texts[3:] == ["what is 1 + 1?", "what is 2 + 2?"]


@pytest.mark.behaviour("M-81")
async def test_an_edit_has_no_replies_of_its_own() -> None:
    async with workspace([mod()], "ann", "bot") as (_, ann, bot):
        id = await post(ann, "hello")
        changed = (await edit(ann, id, "hello, everyone"))["id"]
        error = await bot.ask("reply", message_id=changed, text="hello")
        assert (error["code"], f"reply to {id}" in error["message"]) == ("bad_request", True)
        sent = await bot.call("reply", message_id=id, text="hello")
        assert sent["thread_id"] == f"{DESK}.t{id[1:]}"


@pytest.mark.behaviour("M-82")
async def test_only_the_author_or_the_person_acting_for_it_can_edit() -> None:
    async with workspace([mod()], "olga", *PEOPLE, turns=True) as (_, olga, ann, bot, calc):
        of_bot, of_ann = await post(bot, "mine"), await post(ann, "hers")
        for who, id in ((calc, of_bot), (olga, of_bot)):
            assert await refused(who, "edit_message", message_id=id, text="x") == "forbidden"
        assert await refused(calc, "delete_message", message_id=of_ann) == "forbidden"
        await edit(bot, of_bot, "still mine")
        await olga.call("delete_message", message_id=of_bot)  # owners can
        assert await visible(calc) == [("", "deleted"), ("hers", None)]
        for peer in (bot, calc):
            await peer.sync()
        await olga.call("take_over", agent="bot")
        id = (await olga.say("calc", "by the bot", on_behalf_of="bot"))["id"]
        await edit(olga, id, "as the bot")
        message = (await calc.take(2))[1]["message"]
        assert (message["sender_id"], message["sent_by"]) == ("bot", "olga")
        own = (await bot.take(2))[1]["message"]  # the agent sees messages sent in its name
        assert own["content"] == "as the bot"


@pytest.mark.behaviour("M-82")
async def test_an_agent_cannot_change_what_a_person_wrote_in_its_place() -> None:
    async with workspace([mod()], "olga", *PEOPLE) as (_, olga, ann, bot, calc):
        await olga.call("take_over", agent="bot")
        id = await post(olga, "pay 10", on_behalf_of="bot")
        await olga.call("hand_back", agent="bot")
        assert await refused(bot, "edit_message", message_id=id, text="pay 1000") == "forbidden"
        assert await refused(bot, "delete_message", message_id=id) == "forbidden"
        assert await visible(ann) == [("pay 10", None)]
        await edit(olga, id, "pay 20")
        assert await visible(calc) == [("pay 20", "edited")]


@pytest.mark.behaviour("M-83", "M-84")
async def test_deleted_content_is_hidden_except_from_author_and_owners() -> None:
    async with workspace([mod()], "olga", *PEOPLE) as (network, olga, ann, bot, calc):
        quote = {"message_id": await post(ann, "a secret"), "text": "secret"}
        id = await post(bot, "one", quote=quote)
        await edit(bot, id, "two")
        await bot.call("edit_message", message_id=id, content={"n": 3}, text_representation="three")
        history = [("sent", "bot", "one"), ("edited", "bot", "two"), ("edited", "bot", {"n": 3})]
        assert await versions(calc, id) == history
        assert (await calc.call("read_message", id=id))["text_representation"] == "three"
        await olga.call("delete_message", message_id=id)
        assert await refused(calc, "message_history", message_id=id) == "forbidden"
        for reader in (bot, olga):
            assert (await versions(reader, id))[-1] == ("deleted", "olga", "")
        page = await calc.call("read_thread", thread=DESK)
        _, gone, version, _, deletion = page["messages"]
        assert (gone["content"], gone["amended"], "quote" in gone) == ("", "deleted", False)
        assert (version["content"], version["amended"]) == ("", "deleted")
        assert deletion["amends"] == {"message_id": id, "kind": "deleted"}
        assert await refused(bot, "edit_message", message_id=id, text="x") == "not_found"
        assert await refused(bot, "delete_message", message_id=id) == "not_found"
        late = await network.join("calc", "agent")
        assert "two" not in str(late.ready["threads"])


@pytest.mark.behaviour("M-85")
async def test_invalid_late_and_too_many_edits_are_refused() -> None:
    clock = HandClock()
    mods, limits = [mod(within="1m", most=2)], {"text": 5000}
    async with workspace(mods, "olga", *PEOPLE, clock=clock, limits=limits) as (_, *people):
        olga, ann, bot, _calc = people
        id = await post(bot, "same")
        wrong: list[tuple[dict[str, JsonValue], str]] = [
            ({"text": "x" * 5001}, "too_large"),
            ({"text": "same"}, "bad_request"),
            ({}, "bad_request"),
            ({"text": "a", "content": {}}, "bad_request"),
            ({"text": "a", "text_representation": "b"}, "bad_request"),
            ({"text": ""}, "bad_request"),
        ]
        for args, code in wrong:
            assert await refused(bot, "edit_message", message_id=id, **args) == code, args
        assert await visible(bot) == [("same", None)]
        for text in ("1", "2"):
            change = (await edit(bot, id, text))["id"]
        assert await refused(bot, "edit_message", message_id=id, text="3") == "limit"
        assert await refused(bot, "edit_message", message_id=change, text="x") == "bad_request"
        assert await refused(bot, "message_history", message_id=change) == "bad_request"
        await bot.call("delete_message", message_id=id)
        task = (await ann.call("delegate", to="bot", task="count"))["id"]
        assert await refused(ann, "edit_message", message_id=task, text="x") == "forbidden"
        id = await post(bot, "before the limit")
        clock.wall += 59
        await edit(bot, id, "just in time")
        clock.wall += 2
        assert await refused(bot, "edit_message", message_id=id, text="x") == "forbidden"
        assert await refused(bot, "delete_message", message_id=id) == "forbidden"
        await olga.call("delete_message", message_id=id)
    async with workspace([mod(agents=False)], "bot") as (_, bot):
        id = await post(bot, "same")
        assert await refused(bot, "edit_message", message_id=id, text="a") == "forbidden"


@pytest.mark.behaviour("M-86")
async def test_an_edit_is_moderated_like_a_message() -> None:
    for on_word in ("reject", "mask"):
        words = ModerationConfig.model_validate({"words": ["badword"], "on_word": on_word})
        async with workspace([mod(), Moderation(words)], *PEOPLE) as (_, ann, bot, _calc):
            id = await post(ann, "fine")
            if on_word == "reject":
                code = await refused(ann, "edit_message", message_id=id, text="a badword")
                assert code == "rejected"
                assert await visible(ann) == [("fine", None)]
                assert await versions(ann, id) == [("sent", "ann", "fine")]
                continue
            await edit(ann, id, "a badword")
            assert await visible(bot) == [("a *******", "edited")]
            assert (await bot.take(2))[1]["message"]["content"] == "a *******"


@pytest.mark.behaviour("M-84", "M-88")
async def test_old_pages_newcomers_and_restarts_show_the_edited_text(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with workspace([mod()], "ann", "bot", store=store) as (network, ann, bot):
        ids = [await post(ann, f"old {n}") for n in range(112)]
        for n in (3, 60, 99, *range(105, 112)):
            await edit(ann, ids[n], f"new {n}")
        page = await visible(bot, before=101, limit=100)
        assert [text for text, mark in page if mark] == ["new 3", "new 60", "new 99"]
        assert len(page) == 100
        late = await network.join("bob", latest=True)
        [thread] = [each for each in late.ready["threads"] if each["id"] == DESK]
        texts = [each["content"] for each in thread["messages"] if "amends" not in each]
        expected = [*(f"old {n}" for n in (102, 103, 104)), *(f"new {n}" for n in range(105, 112))]
        assert texts == expected  # ten messages, not counting edits
        for n in range(1, 8):
            await edit(ann, ids[0], str(n))
    async with workspace([mod()], "ann", "bot", store=store) as (_, ann, bot):
        assert (await visible(bot, limit=100))[-1] == ("new 111", "edited")
        history: list[JsonValue] = []
        before: dict[str, Any] = {}
        more = True
        while more:
            page = await ann.call("message_history", message_id=ids[0], limit=3, **before)
            history = [*(each["content"] for each in page["versions"]), *history]
            before, more = {"before": page["versions"][0]["seq"]}, page["more"]
        assert history == ["old 0", *map(str, range(1, 8))]


@pytest.mark.behaviour("M-89")
async def test_an_edit_is_no_answer_and_changes_no_quote_or_last_speaker() -> None:
    async with workspace([mod()], *PEOPLE, turns=True) as (_, ann, bot, calc):
        id = await post(ann, "the sky is green")
        quote = {"message_id": id, "text": "sky is green"}
        quoting = await post(bot, "really?", quote=quote)
        await edit(ann, id, "the sky is blue")
        assert (await ann.call("read_message", id=quoting))["quote"] == quote
        under = await post(ann, "a question")
        mine = (await bot.call("reply", message_id=under, text="mine"))["id"]
        later = await calc.call("reply", message_id=under, text="later")
        await edit(bot, mine, "mine, better")
        answer = await ann.say(later["thread_id"], "go on")
        assert answer["queued"] == {"calc": 1}
        old = (await calc.say("bot", "by the way"))["id"]
        await bot.say("calc", "how many?", awaits=True)
        await edit(calc, old, "by the way!")
        # bot still waits for calc, so a question back would close a cycle.
        waits = {"to": "bot", "text": "?", "awaits": True}
        assert await refused(calc, "send_text_message", **waits) == "wait_cycle"


@pytest.mark.behaviour("M-381")
async def test_a_network_without_a_mod_of_its_store_logs_a_warning(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    runs: list[tuple[list[EditsMod], list[list[str]]]] = [([mod()], []), ([], [["edits"]])]
    for mods, missing in runs:
        with capture_logs() as records:
            async with workspace(mods, store=store):
                pass
        warnings = [each for each in records if "data in this store" in each["event"]]
        assert [each["mods"] for each in warnings] == missing
