"""Edits and deletions, as people and agents of a running network use and see them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from structlog.testing import capture_logs

from hubbub.errors import OperationError
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.moderation import Moderation, ModerationConfig
from hubbub.testing.mod_contract import mod_contract
from hubbub.testing.network import LocalNetwork
from tests.interaction.hand_clock import HandClock
from tests.interaction.peers import Network, Networks, Peer, config
from tests.interaction.stores import MoodyStore

test_it_is_a_good_neighbour = pytest.mark.behaviour("M-80")(mod_contract(EditsMod))

NETWORKS = Networks(sockets=False)
FILE = config(
    network={"limits": {"calls_per_second": 10_000, "burst": 10_000, "text": 5000}},
    channels={"desk": {"members": ["ann", "bob", "bot", "calc"]}},
)


def mod(**settings: JsonValue) -> EditsMod:
    return EditsMod(EditsConfig.model_validate(settings))


async def refused(peer: Peer, name: str, **args: Any) -> str:
    """The code of the error."""
    with pytest.raises(OperationError) as caught:
        await peer.call(name, **args)
    return str(caught.value.code)


async def edit(peer: Peer, id: str, text: str, **more: Any) -> Any:
    return await peer.call("edit_message", message_id=id, text=text, **more)


async def post(peer: Peer, text: str = "frist") -> str:
    return str((await peer.call("post_to_channel", channel="desk", text=text))["id"])


async def shown(peer: Peer, thread: str = "channel.desk", **args: Any) -> list[Any]:
    """What a thread says: content and mark of each message, edits left out."""
    page = await peer.call("read_thread", thread=thread, **args)
    said = [message for message in page["messages"] if "amends" not in message]
    return [(message["content"], message.get("amended")) for message in said]


async def versions(peer: Peer, id: str, **args: Any) -> list[tuple[str, str, JsonValue]]:
    told = await peer.call("message_history", message_id=id, **args)
    return [(each["kind"], each["by"], each["content"]) for each in told["versions"]]


async def people(network: Network) -> tuple[Peer, Peer, Peer]:
    """A person, who is an owner as everybody is here, and two agents."""
    return (
        await network.join("ann"),
        await network.join("bot", "agent", turns=True),
        await network.join("calc", "agent", turns=True),
    )


@pytest.mark.behaviour("M-80")
async def test_who_reads_a_message_later_is_shown_its_latest_text() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        id = await post(ann)
        await edit(ann, id, "first")
        await edit(ann, id, "First!")
        assert await shown(bot) == [("First!", "edited")]
        message = await bot.call("read_message", id=id)
        assert (message["content"], message["amended"]) == ("First!", "edited")
        [thread] = (await bot.call("list_threads"))["threads"]
        assert thread["head"] == 3


@pytest.mark.behaviour("M-81")
async def test_an_edit_reaches_whom_the_message_has_reached_and_wakes_nobody() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, calc = await people(network)
        id = await post(ann, "look at this")
        told = await edit(ann, id, "@bot look at this, @calc too")
        assert told["amends"] == {"message_id": id, "kind": "edited"}
        assert "queued" not in told
        for agent in (bot, calc):
            first, second = await agent.take(2)
            assert "wake" not in first
            assert "wake" not in second
            assert second["message"]["amends"] == {"message_id": id, "kind": "edited"}
            assert second["message"]["interaction_id"] == first["message"]["interaction_id"]
        why = await ann.call("explain_wake", message_id=told["id"], agent="bot")
        assert (why["woken"], why["reason"]) == (False, "amendment")


@pytest.mark.behaviour("M-81")
async def test_a_direct_message_is_edited_for_both_and_wakes_the_agent_once() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        second = await network.join("ann")
        id = (await ann.say("bot", "what is 1 + 1?"))["id"]
        await edit(ann, id, "what is 2 + 2?")
        first, after = await bot.take(2)
        assert ("wake" in first, "wake" in after) == (True, False)
        told = [event["message"] for event in await second.take(2)]
        assert [message["content"] for message in told] == ["what is 1 + 1?", "what is 2 + 2?"]
        why = await ann.call("explain_wake", message_id=after["message"]["id"], agent="bot")
        assert why["reason"] == "amendment"


@pytest.mark.behaviour("M-82")
async def test_only_the_author_edits() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, calc = await people(network)
        of_bot, of_ann = await post(bot, "mine"), await post(ann, "hers")
        assert await refused(calc, "edit_message", message_id=of_bot, text="x") == "forbidden"
        assert await refused(calc, "delete_message", message_id=of_ann) == "forbidden"
        assert await refused(ann, "edit_message", message_id=of_bot, text="x") == "forbidden"
        await edit(bot, of_bot, "still mine")
        await ann.call("delete_message", message_id=of_bot)  # owners do
        assert await shown(calc) == [("", "deleted"), ("hers", None)]


@pytest.mark.behaviour("M-82")
@pytest.mark.parametrize("name", ["edit_message", "delete_message", "message_history"])
async def test_what_somebody_does_not_read_is_as_if_it_were_not_there(name: str) -> None:
    args = {"text": "x"} if name == "edit_message" else {}
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, _, calc = await people(network)
        id = (await ann.say("bot", "between us"))["id"]
        with pytest.raises(OperationError) as hidden:
            await calc.call(name, message_id=id, **args)
        with pytest.raises(OperationError) as missing:
            await calc.call(name, message_id="m999", **args)
        assert str(hidden.value).replace(id, "m999") == str(missing.value)


@pytest.mark.behaviour("M-82")
async def test_a_person_edits_what_it_has_said_for_an_agent() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, calc = await people(network)
        await ann.call("take_over", agent="bot")
        id = (await ann.say("calc", "by the bot", speak_as="bot"))["id"]
        await edit(ann, id, "as the bot")
        message = (await calc.take(2))[1]["message"]
        assert (message["sender_id"], message["spoken_by"]) == ("bot", "ann")
        own = (await bot.take(2))[1]["message"]  # so that it knows what it is said to have said
        assert own["content"] == "as the bot"


@pytest.mark.behaviour("M-83")
async def test_what_was_deleted_is_shown_to_nobody_and_stays_so() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        _, bot, calc = await people(network)
        quote = {"message_id": "m1", "text": "secret"}
        await post(bot, "a secret")
        id = (await bot.call("post_to_channel", channel="desk", text="one", quote=quote))["id"]
        await edit(bot, id, "two")
        await bot.call("delete_message", message_id=id)
        page = await calc.call("read_thread", thread="channel.desk")
        _, gone, version, deletion = page["messages"]
        assert (gone["content"], gone["amended"]) == ("", "deleted")
        assert "quote" not in gone
        assert (version["content"], version["amended"]) == ("", "deleted")
        assert deletion["amends"] == {"message_id": id, "kind": "deleted"}
        assert await refused(bot, "edit_message", message_id=id, text="x") == "not_found"
        assert await refused(bot, "delete_message", message_id=id) == "not_found"
        late = await network.join("calc", "agent")
        assert "two" not in str(late.ready["threads"])


@pytest.mark.behaviour("M-84")
async def test_the_history_tells_who_said_what_and_when() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, calc = await people(network)
        id = await post(bot, "one")
        await edit(bot, id, "two")
        await bot.call("edit_message", message_id=id, content={"n": 3}, text_representation="three")
        assert await versions(calc, id) == [
            ("sent", "bot", "one"),
            ("edited", "bot", "two"),
            ("edited", "bot", {"n": 3}),
        ]
        assert (await calc.call("read_message", id=id))["text_representation"] == "three"
        await ann.call("delete_message", message_id=id)
        assert await refused(calc, "message_history", message_id=id) == "forbidden"
        for reader in (bot, ann):
            assert (await versions(reader, id))[-1] == ("deleted", "ann", "")


@pytest.mark.behaviour("M-84")
async def test_a_long_history_is_read_page_by_page() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, *_ = await people(network)
        id = await post(ann, "0")
        for n in range(1, 8):
            await edit(ann, id, str(n))
        found: list[JsonValue] = []
        before: dict[str, Any] = {}
        more = True
        while more:
            page = await ann.call("message_history", message_id=id, limit=3, **before)
            found = [*(each["content"] for each in page["versions"]), *found]
            before, more = {"before": page["versions"][0]["seq"]}, page["more"]
        assert found == [str(n) for n in range(8)]


@pytest.mark.behaviour("M-85")
@pytest.mark.parametrize(
    ("settings", "args", "code"),
    [
        ({}, {"text": "x" * 5001}, "too_large"),
        ({}, {"text": "same"}, "bad_request"),
        ({}, {}, "bad_request"),
        ({}, {"text": "a", "content": {}}, "bad_request"),
        ({}, {"text": "a", "text_representation": "b"}, "bad_request"),
        ({}, {"text": ""}, "bad_request"),
        ({"agents": False}, {"text": "a"}, "forbidden"),
    ],
)
async def test_what_is_no_edit_is_refused(
    settings: dict[str, JsonValue], args: dict[str, JsonValue], code: str
) -> None:
    async with NETWORKS.start(FILE, mods=[mod(**settings)]) as network:
        _, bot, _ = await people(network)
        id = await post(bot, "same")
        assert await refused(bot, "edit_message", message_id=id, **args) == code
        assert await shown(bot) == [("same", None)]


@pytest.mark.behaviour("M-85")
async def test_after_the_time_that_the_settings_give_only_owners_delete() -> None:
    clock = HandClock()
    async with NETWORKS.start(FILE, mods=[mod(within="1m")], clock=clock) as network:
        ann, bot, _ = await people(network)
        id = await post(bot, "soon old")
        clock.wall += 59
        await edit(bot, id, "still young")
        clock.wall += 2
        assert await refused(bot, "edit_message", message_id=id, text="x") == "forbidden"
        assert await refused(bot, "delete_message", message_id=id) == "forbidden"
        await ann.call("delete_message", message_id=id)


@pytest.mark.behaviour("M-85")
async def test_a_message_is_edited_only_so_often() -> None:
    async with NETWORKS.start(FILE, mods=[mod(most=2)]) as network:
        _, bot, _ = await people(network)
        id = await post(bot)
        await edit(bot, id, "1")
        await edit(bot, id, "2")
        assert await refused(bot, "edit_message", message_id=id, text="3") == "limit"
        await bot.call("delete_message", message_id=id)


@pytest.mark.behaviour("M-85")
async def test_an_edit_is_not_edited_and_what_belongs_to_a_request_stays() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, _, _ = await people(network)
        change = (await edit(ann, await post(ann), "first"))["id"]
        assert await refused(ann, "edit_message", message_id=change, text="x") == "bad_request"
        assert await refused(ann, "message_history", message_id=change) == "bad_request"
        task = (await ann.call("delegate", to="bot", task="count"))["id"]
        assert await refused(ann, "edit_message", message_id=task, text="x") == "forbidden"


@pytest.mark.behaviour("M-86")
async def test_nothing_forbidden_comes_in_by_an_edit() -> None:
    words = ModerationConfig(words=("badword",))
    async with NETWORKS.start(FILE, mods=[mod(), Moderation(words)]) as network:
        ann, *_ = await people(network)
        id = await post(ann, "fine")
        assert await refused(ann, "edit_message", message_id=id, text="a badword") == "rejected"
        assert await shown(ann) == [("fine", None)]
        assert await versions(ann, id) == [("sent", "ann", "fine")]


@pytest.mark.behaviour("M-86")
async def test_what_moderation_masks_is_masked_in_an_edit() -> None:
    words = ModerationConfig(words=("badword",), on_word="mask")
    async with NETWORKS.start(FILE, mods=[mod(), Moderation(words)]) as network:
        ann, bot, _ = await people(network)
        await edit(ann, await post(ann, "fine"), "a badword")
        assert await shown(bot) == [("a *******", "edited")]
        assert (await bot.take(2))[1]["message"]["content"] == "a *******"


@pytest.mark.behaviour("M-87")
async def test_of_edits_by_several_sockets_at_once_the_last_in_the_log_counts() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        sockets = [ann, *[await network.join("ann") for _ in range(4)]]
        id = await post(ann)
        told = await asyncio.gather(*(edit(s, id, f"by {n}") for n, s in enumerate(sockets)))
        order = sorted(range(5), key=lambda n: told[n]["seq"])
        assert await shown(bot) == [(f"by {order[-1]}", "edited")]
        assert [text for *_, text in await versions(bot, id)] == [
            "frist",
            *(f"by {n}" for n in order),
        ]


@pytest.mark.behaviour("M-87")
async def test_an_edit_that_comes_after_a_deletion_changes_nothing() -> None:
    store = MoodyStore()
    async with NETWORKS.start(FILE, store=store, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        other = await network.join("ann")
        id = await post(ann)
        store.gate.clear()
        deleting = await ann.post("delete_message", message_id=id)
        editing = await other.post("edit_message", message_id=id, text="back again")
        await ann.call("list_channels")
        await other.call("list_channels")
        store.gate.set()
        assert (await ann.answer(deleting))["op"] == "result"
        assert (await other.answer(editing))["op"] == "result"  # both were on their way
        assert await shown(bot) == [("", "deleted")]
        page = await bot.call("read_thread", thread="channel.desk")
        assert "back again" not in str(page)


@pytest.mark.behaviour("M-87")
async def test_an_edit_that_is_repeated_with_its_cid_happens_once() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, *_ = await people(network)
        id = await post(ann)
        first = await edit(ann, id, "first", cid="c1")
        assert await edit(ann, id, "first", cid="c1") == first
        assert len(await versions(ann, id)) == 2


@pytest.mark.behaviour("M-87")
async def test_an_edit_that_the_disk_refuses_is_none() -> None:
    store = MoodyStore()
    async with NETWORKS.start(FILE, store=store, mods=[mod()]) as network:
        ann, *_ = await people(network)
        id = await post(ann)
        store.failing = 1
        assert await refused(ann, "edit_message", message_id=id, text="x") == "store_unavailable"
        assert await shown(ann) == [("frist", None)]
        await edit(ann, id, "first")
        assert await shown(ann) == [("first", "edited")]


@pytest.mark.behaviour("M-88")
async def test_edits_are_there_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with NETWORKS.start(FILE, store=store, mods=[mod()]) as network:
        ann, *_ = await people(network)
        await edit(ann, await post(ann), "first")
    async with NETWORKS.start(FILE, store=store, mods=[mod()]) as network:
        ann, *_ = await people(network)
        assert await shown(ann) == [("first", "edited")]
        assert len(await versions(ann, "m1")) == 2


@pytest.mark.behaviour("M-88")
async def test_a_page_of_the_past_shows_what_was_edited_since() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        ids = [await post(ann, f"old {n}") for n in range(120)]
        for n in (3, 60, 99):
            await edit(ann, ids[n], f"new {n}")
        page = await shown(bot, before=101, limit=100)
        assert [text for text, mark in page if mark] == ["new 3", "new 60", "new 99"]
        assert len(page) == 100


@pytest.mark.behaviour("M-88")
async def test_who_joins_is_shown_the_latest_and_ten_messages_besides_the_edits() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, *_ = await people(network)
        ids = [await post(ann, f"old {n}") for n in range(12)]
        for n in range(5, 12):
            await edit(ann, ids[n], f"new {n}")
        late = await network.join("bob", latest=True)
        [thread] = [each for each in late.ready["threads"] if each["id"] == "channel.desk"]
        said = [each["content"] for each in thread["messages"] if "amends" not in each]
        assert said == ["old 2", "old 3", "old 4", *(f"new {n}" for n in range(5, 12))]


@pytest.mark.behaviour("M-89")
async def test_a_quote_of_an_edited_message_stays_what_it_was() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        id = await post(ann, "the sky is green")
        quote = {"message_id": id, "text": "sky is green"}
        told = await bot.call("post_to_channel", channel="desk", text="really?", quote=quote)
        await edit(ann, id, "the sky is blue")
        assert (await ann.call("read_message", id=told["id"]))["quote"] == quote


@pytest.mark.behaviour("M-89")
async def test_an_agent_that_edits_has_not_spoken_last() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, calc = await people(network)
        under = await post(ann, "a question")
        mine = (await bot.call("reply", message_id=under, text="mine"))["id"]
        told = await calc.call("reply", message_id=under, text="later")
        await edit(bot, mine, "mine, better")
        answer = await ann.say(told["thread_id"], "go on")
        assert answer["queued"] == {"calc": 1}


@pytest.mark.behaviour("M-89")
async def test_an_edit_is_no_answer_for_who_waits() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        _, bot, calc = await people(network)
        old = (await calc.say("bot", "by the way"))["id"]
        await bot.say("calc", "how many?", awaits=True)
        await edit(calc, old, "by the way!")
        # Who waits is still waited for: a circle would close.
        assert (
            await refused(calc, "send_text_message", to="bot", text="?", awaits=True)
            == "wait_cycle"
        )


@pytest.mark.behaviour("M-381")
async def test_a_network_that_leaves_out_a_mod_of_its_store_says_what_that_means(
    tmp_path: Path,
) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    runs: list[tuple[list[EditsMod], list[list[str]]]] = [([mod()], []), ([], [["edits"]])]
    for mods, missing in runs:
        with capture_logs() as told:
            async with LocalNetwork(store=store, mods=mods):
                pass
        assert [each["mods"] for each in told if "of this store" in each["event"]] == missing
