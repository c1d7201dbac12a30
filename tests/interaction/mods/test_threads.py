"""Titles, resolved threads, following and muting, and quotes, on a running network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.errors import OperationError
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.threads.mod import ThreadsMod
from hubbub.mods.threads.settings import ThreadsConfig
from hubbub.testing.mod_contract import mod_contract
from tests.interaction.peers import Frame, Network, Networks, Peer, config
from tests.interaction.stores import MoodyStore

test_it_is_a_good_neighbour = pytest.mark.behaviour("M-95")(mod_contract(ThreadsMod))

NETWORKS = Networks(sockets=False)
FILE = config(
    network={"limits": {"calls_per_second": 10_000, "burst": 10_000}},
    channels={
        "desk": {"members": ["ann", "bob", "bot", "calc"]},
        "other": {"members": ["ann"]},
    },
)


def mod(**settings: JsonValue) -> ThreadsMod:
    return ThreadsMod(ThreadsConfig.model_validate(settings))


async def people(network: Network) -> tuple[Peer, Peer, Peer]:
    """A person and two agents."""
    return (
        await network.join("ann"),
        await network.join("bot", "agent", turns=True),
        await network.join("calc", "agent", turns=True),
    )


async def post(peer: Peer, text: str = "Shall we ship it? I think so.", **more: Any) -> str:
    return str((await peer.call("post_to_channel", channel="desk", text=text, **more))["id"])


async def replied(peer: Peer, under: str, text: str = "yes") -> str:
    """The reply thread."""
    return str((await peer.call("reply", message_id=under, text=text))["thread_id"])


async def refused(peer: Peer, name: str, **args: Any) -> OperationError:
    with pytest.raises(OperationError) as caught:
        await peer.call(name, **args)
    return caught.value


async def infos(peer: Peer, **args: Any) -> list[Frame]:
    found: list[Frame] = (await peer.call("list_thread_info", **args))["threads"]
    return found


async def info(peer: Peer, thread: str) -> Frame:
    return next(each for each in await infos(peer) if each["thread_id"] == thread)


# Titles ----------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-95")
async def test_a_reply_thread_is_called_as_its_first_message_begins_until_somebody_calls_it() -> (
    None
):
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        thread = await replied(bot, await post(ann))
        found = await info(ann, thread)
        assert (found["automatic"], "title" in found) == ("Shall we ship it?", False)
        told = await bot.call("set_thread_title", thread=thread, title=" The  release ")
        assert (told["title"], told["titled_by"]) == ("The release", "bot")
        assert (await info(ann, thread))["title"] == "The release"
        await ann.call("set_thread_title", thread=thread, title="")
        assert "title" not in await info(bot, thread)


@pytest.mark.behaviour("M-95")
async def test_an_automatic_title_follows_edits() -> None:
    mods = [mod(), EditsMod(EditsConfig())]
    async with NETWORKS.start(FILE, mods=mods) as network:
        ann, bot, _ = await people(network)
        under = await post(ann, "A tpyo")
        thread = await replied(bot, under)
        await ann.call("edit_message", message_id=under, text="A typo")
        assert (await info(bot, thread))["automatic"] == "A typo"
        await ann.call("delete_message", message_id=under)
        assert "automatic" not in await info(bot, thread)


@pytest.mark.behaviour("M-95")
@pytest.mark.parametrize("title", ["x" * 121, "two\nlines", "\x00"])
async def test_a_title_is_one_short_line(title: str) -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        thread = await replied(bot, await post(ann))
        error = await refused(ann, "set_thread_title", thread=thread, title=title)
        assert error.code in ("bad_request", "bad_frame")


# Resolving -------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-96")
async def test_a_thread_is_resolved_and_opened_again_and_pages_are_told_at_once() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, calc = await people(network)
        thread = await replied(bot, await post(ann))
        told = await ann.call("resolve_thread", thread=thread)
        assert (told["resolved_by"], "resolved_at" in told) == ("ann", True)
        again = await bot.call("resolve_thread", thread=thread)
        assert again == told
        signal = await calc.signal("mod.threads")
        assert signal["thread_id"] == thread
        assert signal["data"] == {"kind": "resolved", "data": told}
        assert [each["thread_id"] for each in await infos(bot, state="resolved")] == [thread]
        assert await infos(bot, state="open") == []
        await calc.call("reopen_thread", thread=thread)
        assert (await calc.signal("mod.threads"))["data"]["kind"] == "reopened"
        assert "resolved_by" not in await info(bot, thread)


@pytest.mark.behaviour("M-96")
@pytest.mark.parametrize(
    ("reopen", "person", "agent"),
    [("all", True, True), ("people", True, False), ("nobody", False, False)],
)
async def test_a_new_message_opens_a_resolved_thread_as_the_settings_say(
    reopen: str, person: bool, agent: bool
) -> None:
    mods = [mod(reopen=reopen), EditsMod(EditsConfig())]
    async with NETWORKS.start(FILE, mods=mods) as network:
        ann, bot, _ = await people(network)
        mine = await post(ann, "mine")
        for speaker, opens in ((ann, person), (bot, agent)):
            thread = await replied(speaker, await post(ann))
            await ann.call("resolve_thread", thread=thread)
            assert (await ann.signal("mod.threads"))["data"]["kind"] == "resolved"
            await ann.call("edit_message", message_id=mine, text=f"edit for {speaker}")
            await speaker.say(thread, "one more thing")
            if opens:
                told = await ann.signal("mod.threads")
                assert told["data"]["kind"] == "reopened"
            found = await info(ann, thread)
            assert ("resolved_by" not in found) == opens


@pytest.mark.behaviour("M-96")
async def test_an_edit_in_a_resolved_thread_does_not_open_it_and_is_no_reply() -> None:
    mods = [mod(), EditsMod(EditsConfig())]
    async with NETWORKS.start(FILE, mods=mods) as network:
        ann, bot, _ = await people(network)
        answer = await bot.call("reply", message_id=await post(ann), text="yse")
        thread = answer["thread_id"]
        await bot.call("reply", message_id="m1", text="and more")
        await ann.call("resolve_thread", thread=thread)
        await bot.call("edit_message", message_id=answer["id"], text="yes")
        await network.quiet()
        found = await info(ann, thread)
        assert (found["resolved_by"], found["replies"]) == ("ann", 2)


@pytest.mark.behaviour("M-96")
async def test_a_message_that_the_disk_refuses_opens_nothing() -> None:
    store = MoodyStore()
    async with NETWORKS.start(FILE, store=store, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        thread = await replied(bot, await post(ann))
        await ann.call("resolve_thread", thread=thread)
        store.failing = 1
        assert (await refused(ann, "send_text_message", to=thread, text="x")).code == (
            "store_unavailable"
        )
        await ann.say("bot", "something else")
        assert (await info(ann, thread))["resolved_by"] == "ann"
        await ann.say(thread, "now")
        await ann.until(lambda: len(ann.signals) >= 2)
        assert "resolved_by" not in await info(ann, thread)


@pytest.mark.behaviour("M-96")
async def test_title_and_resolving_at_once_are_both_kept() -> None:
    store = MoodyStore()
    async with NETWORKS.start(FILE, store=store, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        thread = await replied(bot, await post(ann))
        store.gate.clear()
        one = await ann.post("set_thread_title", thread=thread, title="Release")
        two = await bot.post("resolve_thread", thread=thread)
        await ann.call("list_channels")
        await bot.call("list_channels")
        store.gate.set()
        await ann.answer(one)
        await bot.answer(two)
        found = await info(ann, thread)
        assert (found["title"], found["resolved_by"]) == ("Release", "bot")


@pytest.mark.behaviour("M-96")
@pytest.mark.parametrize("name", ["set_thread_title", "resolve_thread", "reopen_thread"])
async def test_only_reply_threads_have_titles_and_are_resolved(name: str) -> None:
    args = {"title": "x"} if name == "set_thread_title" else {}
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, *_ = await people(network)
        assert (await refused(ann, name, thread="channel.desk", **args)).code == "bad_request"


@pytest.mark.behaviour("M-97")
@pytest.mark.parametrize(
    "name",
    [
        "set_thread_title",
        "resolve_thread",
        "reopen_thread",
        "follow_thread",
        "unfollow_thread",
        "mute_thread",
        "unmute_thread",
        "list_thread_info",
    ],
)
async def test_a_thread_that_somebody_does_not_read_is_as_if_it_were_not_there(name: str) -> None:
    args = {"title": "x"} if name == "set_thread_title" else {}
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, _, calc = await people(network)
        hidden = await replied(ann, (await ann.say("bot", "between us"))["id"])
        missing = hidden.replace(".t1", ".t999")
        first = await refused(calc, name, thread=hidden, **args)
        second = await refused(calc, name, thread=missing, **args)
        assert (first.code, first.message) == (second.code, second.message.replace("t999", "t1"))
        assert await infos(calc) == []


# Following and muting ---------------------------------------------------------------------------


@pytest.mark.behaviour("M-98")
async def test_a_muted_thread_wakes_an_agent_only_when_it_is_mentioned() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        thread = await replied(bot, await post(ann))
        assert (await ann.say(thread, "go on"))["queued"] == {"bot": 1}
        await bot.call("mute_thread", thread=thread)
        told = await ann.say(thread, "and on")
        assert told["not_woken"] == {"bot": "muted"}
        why = await ann.call("explain_wake", message_id=told["id"], agent="bot")
        assert (why["woken"], why["reason"]) == (False, "muted")
        assert (await ann.say(thread, "@bot, please"))["queued"] == {"bot": 2}
        await bot.call("unmute_thread", thread=thread)
        assert (await ann.say(thread, "thanks"))["queued"] == {"bot": 3}


@pytest.mark.behaviour("M-98")
async def test_what_is_muted_still_arrives() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        await ann.say("bot", "hello")
        await bot.call("mute_thread", thread="direct_ann")
        await ann.say("bot", "are you there?")
        first, second = await bot.take(2)
        assert ("wake" in first, "wake" in second) == (True, False)
        spent = await ann.call("read_thread", thread="direct_bot")
        assert len(spent["messages"]) == 2


@pytest.mark.behaviour("M-98")
async def test_muting_a_channel_mutes_its_threads_except_those_that_are_followed() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        quiet, loud = [await replied(bot, await post(ann, f"topic {n}")) for n in (1, 2)]
        await bot.call("mute_thread", thread="channel.desk")
        told = await bot.call("follow_thread", thread=loud)
        assert (told["followed"], told["muted"], told["chosen_in"]) == (True, False, loud)
        assert (await ann.say(quiet, "hm"))["not_woken"] == {"bot": "muted"}
        assert (await ann.say(loud, "hm"))["queued"] == {"bot": 1}
        told = await bot.call("unfollow_thread", thread=loud)
        assert (told["followed"], told["muted"], told["chosen_in"]) == (
            False,
            True,
            "channel.desk",
        )
        assert (await ann.say(loud, "hm"))["not_woken"] == {"bot": "muted"}


@pytest.mark.behaviour("M-98")
async def test_whoever_waits_for_an_answer_is_not_muted() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, calc = await people(network)
        await calc.say(["bot", "ann"], "hello")
        await calc.say("bot", "hello")
        await ann.say("bot", "hello")
        await bot.call("mute_thread", thread="direct_calc")
        await bot.call("mute_thread", thread="direct_ann")
        assert "not_woken" not in await calc.say("bot", "how many?", awaits=True)
        task = await ann.call("delegate", to="bot", task="count")
        assert "not_woken" not in task
        await calc.call("mute_thread", thread="direct_bot")
        work = await bot.call("delegate", to="calc", task="count")
        await calc.call("report", request=work["id"], status="result", text="3")
        ended = (await bot.sync())[-1]
        assert ended["wake"]["reason"] == "result"


@pytest.mark.behaviour("M-98")
async def test_a_wake_that_a_mute_keeps_back_is_not_counted() -> None:
    file = config(network={"budgets": {"wakes": 2}})
    async with NETWORKS.start(file, mods=[mod()]) as network:
        ann, bot, calc = await people(network)
        await network.join("dora", "agent", turns=True)
        await calc.say("bot", "hello")
        await calc.call("mute_thread", thread="direct_bot")
        asked = (await ann.say("bot", "go"))["id"]
        for _ in range(3):
            told = await bot.say("calc", "psst", cause=asked)
            assert told["not_woken"] == {"calc": "muted"}
        assert (await bot.say("dora", "you then", cause=asked))["queued"] == {"dora": 1}
        told = await bot.say("dora", "once more", cause=asked)
        assert told["not_woken"] == {"dora": "budget_wakes"}


@pytest.mark.behaviour("M-99")
async def test_only_who_chooses_is_told_what_it_has_chosen() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        other = await network.join("ann")
        thread = await replied(bot, await post(ann))
        told = await ann.call("mute_thread", thread=thread)
        signal = await other.signal("mod.threads")
        assert signal["data"] == {"kind": "chosen", "data": told}
        await bot.call("list_channels")
        assert [each for each in bot.signals if each["type"] == "mod.threads"] == []
        assert (await info(ann, thread))["muted"]
        assert not (await info(bot, thread))["muted"]


@pytest.mark.behaviour("M-99")
async def test_who_follows_nothing_may_unfollow_it() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, *_ = await people(network)
        await ann.call("mute_thread", thread="channel.desk")
        told = await ann.call("unfollow_thread", thread="channel.desk")
        assert (told["followed"], told["muted"]) == (False, True)


# Lists -----------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-99")
async def test_threads_are_listed_page_by_page_with_what_happened_last() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        threads = [await replied(bot, await post(ann, f"topic {n}")) for n in range(5)]
        await ann.say(threads[0], "more")
        first = await ann.call("list_thread_info", limit=3)
        second = await ann.call("list_thread_info", before=first["threads"][-1]["last_seq"])
        assert (first["more"], second["more"]) == (True, False)
        told = [each["thread_id"] for page in (first, second) for each in page["threads"]]
        assert told == [threads[n] for n in (0, 4, 3, 2, 1)]
        top = first["threads"][0]
        assert (top["replies"], top["last_by"], "last_at" in top) == (2, "ann", True)


@pytest.mark.behaviour("M-99")
async def test_a_list_is_of_one_thread_and_what_stands_in_it_or_of_what_is_followed() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        outer = await replied(bot, await post(ann))
        inner = await replied(ann, (await bot.say(outer, "by the way"))["id"])
        direct = await replied(ann, (await ann.say("bot", "hello"))["id"])
        told = [each["thread_id"] for each in await infos(ann, thread=outer)]
        assert told == [inner, outer]
        assert {each["thread_id"] for each in await infos(ann, thread="channel.desk")} == {
            "channel.desk",
            outer,
            inner,
        }
        await ann.call("follow_thread", thread=direct)
        await ann.call("follow_thread", thread="channel.desk")
        followed = {each["thread_id"] for each in await infos(ann, followed=True)}
        assert followed == {direct, "channel.desk", outer, inner}


@pytest.mark.behaviour("M-99")
async def test_all_of_it_is_there_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with NETWORKS.start(FILE, store=store, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        thread = await replied(bot, await post(ann))
        await ann.call("set_thread_title", thread=thread, title="Release")
        await ann.call("resolve_thread", thread=thread)
        await bot.call("mute_thread", thread=thread)
        before = await info(bot, thread)
    async with NETWORKS.start(FILE, store=store, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        assert await info(bot, thread) == before
        assert (await ann.say(thread, "still?"))["not_woken"] == {"bot": "muted"}


# Quotes ----------------------------------------------------------------------------------------

TEXT = "The **sky** is [blue](https://example.com) today. " + "And so on. " * 60


@pytest.mark.behaviour("M-100")
async def test_a_quote_without_words_gets_the_beginning() -> None:
    async with NETWORKS.start(FILE, mods=[mod(excerpt=40)]) as network:
        ann, bot, _ = await people(network)
        id = await post(ann, "The sky is blue today, and the sea is green.")
        told = await post(bot, "so what", quote={"message_id": id})
        quote = (await ann.call("read_message", id=told))["quote"]
        assert quote == {"message_id": id, "text": "The sky is blue today, and the sea is"}


@pytest.mark.behaviour("M-100")
@pytest.mark.parametrize(
    "words", ["sky** is", "sky is blue today", "The  **sky**\nis", "today. And so…", "the**"[-2:]]
)
async def test_words_that_stand_in_the_message_are_quoted(words: str) -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        id = await post(ann, TEXT)
        quote = {"message_id": id, "text": words}
        told = await post(bot, "so what", quote=quote)
        assert (await ann.call("read_message", id=told))["quote"] == quote


@pytest.mark.behaviour("M-100")
@pytest.mark.parametrize("words", ["sky is green", "blue is the sky", "👍", "x" * 5000, "…"])
async def test_words_that_do_not_stand_there_are_refused(words: str) -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        id = await post(ann, TEXT)
        args = {"channel": "desk", "text": "so", "quote": {"message_id": id, "text": words}}
        assert (await refused(bot, "post_to_channel", **args)).code == "rejected"


@pytest.mark.behaviour("M-100")
async def test_only_what_one_reads_is_quoted() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, calc = await people(network)
        id = (await ann.say("bot", "between us"))["id"]
        args = {"channel": "desk", "text": "look"}
        hidden = await refused(calc, "post_to_channel", quote={"message_id": id}, **args)
        missing = await refused(calc, "post_to_channel", quote={"message_id": "m999"}, **args)
        assert hidden.message.replace(id, "m999") == missing.message
        wrong = await refused(calc, "post_to_channel", quote={"message_id": "what"}, **args)
        assert wrong.code == "rejected"
        await post(bot, "he said", quote={"message_id": id, "text": "between"})


@pytest.mark.behaviour("M-100")
async def test_what_was_edited_is_quoted_as_it_is_now_and_what_was_deleted_not_at_all() -> None:
    mods = [mod(), EditsMod(EditsConfig())]
    async with NETWORKS.start(FILE, mods=mods) as network:
        ann, bot, _ = await people(network)
        id = await post(ann, "old words")
        change = (await ann.call("edit_message", message_id=id, text="new words"))["id"]
        args = {"channel": "desk", "text": "look"}
        old = {"message_id": id, "text": "old words"}
        assert (await refused(bot, "post_to_channel", quote=old, **args)).code == "rejected"
        told = await post(bot, "see", quote={"message_id": id})
        assert (await ann.call("read_message", id=told))["quote"]["text"] == "new words"
        error = await refused(bot, "post_to_channel", quote={"message_id": change}, **args)
        assert f"quote {id} itself" in error.message
        await ann.call("delete_message", message_id=id)
        error = await refused(bot, "post_to_channel", quote={"message_id": id}, **args)
        assert "deleted" in error.message


@pytest.mark.behaviour("M-100")
async def test_a_quote_that_must_be_looked_up_keeps_the_order_of_its_sender() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bot, _ = await people(network)
        id = await post(ann, "words")
        refs = [
            await bot.post("post_to_channel", channel="desk", text=str(n), quote={"message_id": id})
            if n % 2
            else await bot.post("post_to_channel", channel="desk", text=str(n))
            for n in range(6)
        ]
        seqs = [(await bot.answer(ref))["value"]["seq"] for ref in refs]
        assert seqs == sorted(seqs)


@pytest.mark.behaviour("M-100")
async def test_a_quote_that_is_repeated_with_its_cid_is_said_once() -> None:
    store = MoodyStore()
    async with NETWORKS.start(FILE, store=store, mods=[mod()]) as network:
        ann, *_ = await people(network)
        other = await network.join("ann")
        id = await post(ann, "words")
        store.reads.clear()
        args = {"channel": "desk", "text": "so", "quote": {"message_id": id}}
        refs = [await peer.post("post_to_channel", cid="c1", **args) for peer in (ann, other)]
        await network.quiet()
        store.reads.set()
        one, two = await ann.answer(refs[0]), await other.answer(refs[1])
        assert one["value"]["seq"] == two["value"]["seq"]
