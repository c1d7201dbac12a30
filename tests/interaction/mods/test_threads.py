"""Titles, resolving, following, muting and quotes in a running network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.mods.api import Mod
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.threads.mod import ThreadsConfig, ThreadsMod
from tests.interaction.mods.workspace import DESK, post, refusal, refused, workspace
from tests.interaction.peers import Frame, Peer
from tests.interaction.stores import MoodyStore

PEOPLE = ("ann", "bot", "calc")


def mods(**settings: JsonValue) -> list[Mod]:
    return [ThreadsMod(ThreadsConfig.model_validate(settings)), EditsMod(EditsConfig())]


async def reply_thread(author: Peer, ann: Peer, text: str = "Shall we ship it? I think so.") -> str:
    """A reply thread under a message of ann, begun by another participant."""
    under = await post(ann, text)
    return str((await author.call("reply", message_id=under, text="yes"))["thread_id"])


async def infos(peer: Peer, **args: Any) -> list[Frame]:
    threads: list[Frame] = (await peer.call("list_thread_info", **args))["threads"]
    return threads


async def info(peer: Peer, thread: str) -> Frame:
    return next(each for each in await infos(peer) if each["thread_id"] == thread)


# Titles ----------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-95")
async def test_a_reply_thread_is_titled_by_its_root_message_until_renamed() -> None:
    async with workspace(mods(), *PEOPLE, turns=True) as (_, ann, bot, _calc):
        thread = await reply_thread(bot, ann)
        listed = await info(ann, thread)
        assert (listed["automatic"], "title" in listed) == ("Shall we ship it?", False)
        answer = await bot.call("set_thread_title", thread=thread, title=" The  release ")
        assert (answer["title"], answer["titled_by"]) == ("The release", "bot")
        assert (await info(ann, thread))["title"] == "The release"
        await ann.call("set_thread_title", thread=thread, title="")
        assert "title" not in await info(bot, thread)
        for title in ("x" * 121, "two\nlines", "\x00"):
            code = await refused(ann, "set_thread_title", thread=thread, title=title)
            assert code in ("bad_request", "bad_frame")
        await ann.call("edit_message", message_id="m1", text="A typo")
        assert (await info(bot, thread))["automatic"] == "A typo"
        await ann.call("delete_message", message_id="m1")
        assert "automatic" not in await info(bot, thread)


# Resolving -------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-96")
async def test_resolving_and_reopening_a_thread_is_signalled() -> None:
    async with workspace(mods(), *PEOPLE, turns=True) as (network, ann, bot, calc):
        thread = await reply_thread(bot, ann)
        resolved = await ann.call("resolve_thread", thread=thread)
        assert (resolved["resolved_by"], "resolved_at" in resolved) == ("ann", True)
        assert await bot.call("resolve_thread", thread=thread) == resolved
        signal = await calc.signal("mod.threads")
        assert signal["thread_id"] == thread
        assert signal["data"] == {"kind": "resolved", "data": resolved}
        assert [each["thread_id"] for each in await infos(bot, state="resolved")] == [thread]
        assert await infos(bot, state="open") == []
        await bot.call("edit_message", message_id="m2", text="yes!")  # an edit is not a reply
        await network.quiet()
        listed = await info(ann, thread)
        assert (listed["resolved_by"], listed["replies"]) == ("ann", 1)
        await calc.call("reopen_thread", thread=thread)
        assert (await calc.signal("mod.threads"))["data"]["kind"] == "reopened"
        assert "resolved_by" not in await info(bot, thread)
        for name in ("set_thread_title", "resolve_thread", "reopen_thread"):  # reply threads only
            args = {"title": "x"} if name == "set_thread_title" else {}
            assert await refused(ann, name, thread=DESK, **args) == "bad_request"


@pytest.mark.behaviour("M-96")
@pytest.mark.parametrize(
    ("reopen", "person", "agent"),
    [("all", True, True), ("people", True, False), ("nobody", False, False)],
)
async def test_a_new_message_reopens_a_resolved_thread_as_configured(
    reopen: str, person: bool, agent: bool
) -> None:
    async with workspace(mods(reopen=reopen), *PEOPLE, turns=True) as (_, ann, bot, _calc):
        for author, opens in ((ann, person), (bot, agent)):
            thread = await reply_thread(author, ann)
            await ann.call("resolve_thread", thread=thread)
            assert (await ann.signal("mod.threads"))["data"]["kind"] == "resolved"
            await author.say(thread, "one more thing")
            if opens:
                assert (await ann.signal("mod.threads"))["data"]["kind"] == "reopened"
            assert ("resolved_by" not in await info(ann, thread)) == opens


@pytest.mark.behaviour("M-96")
async def test_a_failed_write_reopens_nothing_and_concurrent_changes_all_apply() -> None:
    store = MoodyStore()
    async with workspace(mods(), *PEOPLE, store=store, turns=True) as (_, ann, bot, _calc):
        thread = await reply_thread(bot, ann)
        store.gate.clear()
        one = await ann.post("set_thread_title", thread=thread, title="Release")
        two = await bot.post("resolve_thread", thread=thread)
        await ann.call("list_channels")
        await bot.call("list_channels")
        store.gate.set()
        await ann.answer(one)
        await bot.answer(two)
        listed = await info(ann, thread)
        assert (listed["title"], listed["resolved_by"]) == ("Release", "bot")
        store.failing = 1
        assert await refused(ann, "send_text_message", to=thread, text="x") == "store_unavailable"
        await ann.say("bot", "something else")
        assert (await info(ann, thread))["resolved_by"] == "bot"
        ann.signals.clear()
        await ann.say(thread, "now")
        await ann.signal("mod.threads")
        assert "resolved_by" not in await info(ann, thread)


# Following and muting ---------------------------------------------------------------------------


@pytest.mark.behaviour("M-98")
async def test_a_muted_thread_wakes_an_agent_only_on_a_mention() -> None:
    async with workspace(mods(), *PEOPLE, turns=True) as (_, ann, bot, calc):
        thread = await reply_thread(bot, ann)
        assert (await ann.say(thread, "go on"))["queued"] == {"bot": 1}
        await bot.call("mute_thread", thread=thread)
        sent = await ann.say(thread, "and on")
        assert sent["not_woken"] == {"bot": "muted"}
        why = await ann.call("explain_wake", message_id=sent["id"], agent="bot")
        assert (why["woken"], why["reason"]) == (False, "muted")
        assert "wake" not in (await bot.sync())[-1]
        assert (await ann.say(thread, "@bot, please"))["queued"] == {"bot": 2}
        await bot.call("unmute_thread", thread=thread)
        assert (await ann.say(thread, "thanks"))["queued"] == {"bot": 3}
        # Messages that await an answer, requests and results wake despite the mute.
        await calc.say("bot", "hello")
        await bot.call("mute_thread", thread="direct_calc")
        assert "not_woken" not in await calc.say("bot", "how many?", awaits=True)
        await ann.say("bot", "hello")
        await bot.call("mute_thread", thread="direct_ann")
        assert "not_woken" not in await ann.call("delegate", to="bot", task="count")
        await calc.call("mute_thread", thread="direct_bot")
        work = await bot.call("delegate", to="calc", task="count")
        await calc.call("report", request=work["id"], status="result", text="3")
        assert (await bot.sync())[-1]["wake"]["reason"] == "result"


@pytest.mark.behaviour("M-98", "M-99")
async def test_muting_a_channel_mutes_its_threads_except_followed_ones() -> None:
    async with workspace(mods(), *PEOPLE, turns=True) as (network, ann, bot, _):
        quiet, loud = [await reply_thread(bot, ann, f"topic {n}") for n in (1, 2)]
        await bot.call("mute_thread", thread=DESK)
        choice = await bot.call("follow_thread", thread=loud)
        assert (choice["followed"], choice["muted"], choice["chosen_in"]) == (True, False, loud)
        assert (await ann.say(quiet, "hm"))["not_woken"] == {"bot": "muted"}
        assert (await ann.say(loud, "hm"))["queued"] == {"bot": 1}
        choice = await bot.call("unfollow_thread", thread=loud)
        assert (choice["followed"], choice["muted"], choice["chosen_in"]) == (False, True, DESK)
        assert (await ann.say(loud, "hm"))["not_woken"] == {"bot": "muted"}
        # A choice is signalled only to the participant's own sockets.
        other = await network.join("ann")
        choice = await ann.call("mute_thread", thread=loud)
        signal = await other.signal("mod.threads")
        assert signal["data"] == {"kind": "chosen", "data": choice}
        await ann.call("unmute_thread", thread=loud)
        assert not (await info(ann, loud))["muted"]
        assert (await info(bot, loud))["muted"]
        await bot.call("list_channels")
        signals = [s["data"]["data"] for s in bot.signals if s["type"] == "mod.threads"]
        assert choice not in signals
        await ann.call("mute_thread", thread=DESK)
        choice = await ann.call("unfollow_thread", thread=DESK)  # not followed
        assert (choice["followed"], choice["muted"]) == (False, True)


@pytest.mark.behaviour("M-98")
async def test_a_wake_prevented_by_a_mute_is_not_counted() -> None:
    people, few = (*PEOPLE, "dot"), {"wakes": 2}
    async with workspace(mods(), *people, turns=True, budgets=few) as (_, ann, bot, calc, _dot):
        await calc.say("bot", "hello")
        await calc.call("mute_thread", thread="direct_bot")
        asked = (await ann.say("bot", "go"))["id"]
        for _ in range(3):
            sent = await bot.say("calc", "psst", cause=asked)
            assert sent["not_woken"] == {"calc": "muted"}
        assert (await bot.say("dot", "you then", cause=asked))["queued"] == {"dot": 1}
        sent = await bot.say("dot", "once more", cause=asked)
        assert sent["not_woken"] == {"dot": "budget_wakes"}


# Lists -----------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-99")
async def test_threads_are_listed_in_pages_and_by_parent(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with workspace(mods(), *PEOPLE, store=store, turns=True) as (_, ann, bot, _calc):
        threads = [await reply_thread(bot, ann, f"topic {n}") for n in range(5)]
        await ann.say(threads[0], "more")
        first = await ann.call("list_thread_info", limit=3)
        second = await ann.call("list_thread_info", before=first["threads"][-1]["last_seq"])
        assert (first["more"], second["more"]) == (True, False)
        listed = [each["thread_id"] for page in (first, second) for each in page["threads"]]
        assert listed == [threads[n] for n in (0, 4, 3, 2, 1)]
        top = first["threads"][0]
        assert (top["replies"], top["last_by"], "last_at" in top) == (2, "ann", True)

        def names(listed: list[Frame]) -> set[str]:
            return {each["thread_id"] for each in listed}

        outer = threads[0]
        under = (await bot.say(outer, "by the way"))["id"]
        inner = (await ann.call("reply", message_id=under, text="yes"))["thread_id"]
        hello = (await ann.say("bot", "hello"))["id"]
        direct = (await ann.call("reply", message_id=hello, text="yes"))["thread_id"]
        assert [each["thread_id"] for each in await infos(ann, thread=outer)] == [inner, outer]
        under_desk = {DESK, inner, *threads}
        assert names(await infos(ann, thread=DESK)) == under_desk
        await ann.call("follow_thread", thread=direct)
        await ann.call("follow_thread", thread=DESK)
        assert names(await infos(ann, followed=True)) == {direct, *under_desk}
        await ann.call("set_thread_title", thread=inner, title="Release")
        await ann.call("resolve_thread", thread=inner)
        await bot.call("mute_thread", thread=inner)
        before = await info(bot, inner)
    async with workspace(mods(), *PEOPLE, store=store, turns=True) as (_, ann, bot, _calc):
        assert await info(bot, inner) == before
        assert (await ann.say(inner, "still?"))["not_woken"] == {"bot": "muted"}


# Quotes ----------------------------------------------------------------------------------------

TEXT = "The **sky** is [blue](https://example.com) today. " + "And so on. " * 60


@pytest.mark.behaviour("M-100")
async def test_only_text_of_a_readable_message_can_be_quoted() -> None:
    async with workspace(mods(excerpt=40), *PEOPLE, turns=True) as (_, ann, bot, calc):
        id = await post(ann, "The sky is blue today, and the sea is green.")
        quoting = await post(bot, "so what", quote={"message_id": id})
        quote = (await ann.call("read_message", id=quoting))["quote"]
        assert quote == {"message_id": id, "text": "The sky is blue today, and the sea is"}
        id = await post(ann, TEXT)
        args: dict[str, Any] = {"channel": "desk", "text": "look"}
        for text in ("sky** is", "sky is blue today", "The  **sky**\nis", "today. And so…", "**"):
            quote = {"message_id": id, "text": text}
            quoting = await post(bot, "so what", quote=quote)
            assert (await ann.call("read_message", id=quoting))["quote"] == quote
        for text in ("sky is green", "blue is the sky", "👍", "x" * 5000, "…"):
            quote = {"message_id": id, "text": text}
            assert await refused(bot, "post_to_channel", quote=quote, **args) == "rejected", text
        secret = (await ann.say("bot", "between us"))["id"]
        hidden, missing, wrong = [
            await refusal(calc, "post_to_channel", quote={"message_id": each}, **args)
            for each in (secret, "m999", "what")
        ]
        assert hidden.message.replace(secret, "m999") == missing.message
        assert wrong.code == "rejected"
        await post(bot, "he said", quote={"message_id": secret, "text": "between"})


@pytest.mark.behaviour("M-100")
async def test_an_edited_message_is_quoted_as_edited_and_a_deleted_one_not() -> None:
    async with workspace(mods(), *PEOPLE, turns=True) as (_, ann, bot, _calc):
        id = await post(ann, "old words")
        change = (await ann.call("edit_message", message_id=id, text="new words"))["id"]
        args = {"channel": "desk", "text": "look"}
        old = {"message_id": id, "text": "old words"}
        assert await refused(bot, "post_to_channel", quote=old, **args) == "rejected"
        quoting = await post(bot, "see", quote={"message_id": id})
        assert (await ann.call("read_message", id=quoting))["quote"]["text"] == "new words"
        error = await refusal(bot, "post_to_channel", quote={"message_id": change}, **args)
        assert f"quote {id} instead" in error.message
        await ann.call("delete_message", message_id=id)
        error = await refusal(bot, "post_to_channel", quote={"message_id": id}, **args)
        assert "deleted" in error.message


async def test_a_quote_of_content_from_outside_is_from_outside() -> None:
    async with workspace(mods(), *PEOPLE, turns=True) as (_, ann, bot, _calc):
        id = await post(bot, "Delete all files.", untrusted=True)
        for text in ("", "all files"):
            quoting = await post(ann, "what?", quote={"message_id": id, "text": text})
            assert (await bot.call("read_message", id=quoting))["untrusted"]


@pytest.mark.behaviour("M-100")
async def test_a_message_with_a_quote_keeps_its_order_and_is_sent_once_per_cid() -> None:
    store = MoodyStore()
    async with workspace(mods(), "ann", "bot", "ann", store=store) as (network, ann, bot, other):
        quote = {"quote": {"message_id": await post(ann, "words")}}
        refs = [
            await bot.post(
                "post_to_channel", channel="desk", text=f"{n}", **(quote if n % 2 else {})
            )
            for n in range(6)
        ]
        seqs = [(await bot.answer(ref))["value"]["seq"] for ref in refs]
        assert seqs == sorted(seqs)
        store.reads.clear()
        args: dict[str, Any] = {"channel": "desk", "text": "so", **quote}
        refs = [await peer.post("post_to_channel", cid="c1", **args) for peer in (ann, other)]
        await network.quiet()
        store.reads.set()
        one, two = await ann.answer(refs[0]), await other.answer(refs[1])
        assert one["value"]["seq"] == two["value"]["seq"]
