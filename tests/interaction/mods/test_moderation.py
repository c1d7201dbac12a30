"""Moderation rules and redaction of secrets in a running network, also under attack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import OperationError
from hubbub.mods.api import PASS, Mod, Reject
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.moderation.mod import Moderation
from hubbub.mods.moderation.rules import ModerationConfig
from hubbub.protocol.messages import Draft, TimerMark
from tests.interaction.mods.files_harness import files_mod
from tests.interaction.mods.workspace import DESK, post, refusal, refused, workspace
from tests.interaction.peers import Peer, soon
from tests.interaction.stop_harness import HandClock

AWS = "AKIA" + "Q3EGRTZ5XN7WPL2M"
SWELLS = "\ufdfa"
"""One letter that normalises to eighteen."""


def mod(*rules: dict[str, Any], **settings: Any) -> Moderation:
    return Moderation(ModerationConfig.model_validate({"rules": rules, **settings}))


async def rejection(peer: Peer, text: str) -> str:
    """The message of the rejection."""
    error = await refusal(peer, "send_text_message", to=DESK, text=text)
    assert error.code == "rejected"
    return error.message


def on_disk(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in folder.glob("x.db*"))


@pytest.mark.behaviour("M-242", "M-351")
async def test_a_secret_never_enters_the_log_and_its_sender_is_notified(tmp_path: Path) -> None:
    mods: list[Mod] = [mod({"words": ["darn"]}), EditsMod(EditsConfig()), files_mod()]
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with workspace(mods, "ann", "bot", store=store) as (network, ann, bot):
        sent = await ann.say("bot", f"use {AWS} please", cid="c1")
        [note] = sent["notes"]
        assert ("aws key" in note, AWS in note) == (True, False)
        message = (await bot.event())["message"]
        assert message["content"] == "use [redacted: aws key] please"
        assert "notes" not in message
        assert "notes" not in await bot.say("ann", "thanks")
        id = await post(ann, "fine")
        with pytest.raises(OperationError, match="a word that is not allowed"):
            await ann.call("edit_message", message_id=id, text="darn")
        await ann.call("edit_message", message_id=id, text=f"key {AWS}")
        read = await ann.call("read_message", id=id)
        assert read["content"] == "key [redacted: aws key]"
        await network.quiet()
        written = on_disk(tmp_path)
        assert (b"[redacted: aws key]" in written, AWS.encode() in written) == (True, False)
        file = await bot.call("write_file", name="env.txt", text=f"key {AWS}\n", thread=DESK)
        attachments = [
            {"name": "a", "uri": "x:y", "media_type": AWS},
            {"name": "env.txt", "uri": f"file:{file['id']}"},
        ]
        await bot.say(DESK, "see", attachments=attachments)
        page = await ann.call("read_thread", thread=DESK)
        assert AWS not in json.dumps(page)
        excerpt = page["messages"][-1]["attachments"][1]["excerpt"]
        assert excerpt.startswith("key [redacted: aws key]")


@pytest.mark.behaviour("M-244", "M-350")
async def test_slow_or_large_messages_are_checked_without_delaying_others() -> None:
    links = {"links": {"allow": ["example.org"]}}
    endless = {"regex": r"((a+)+)+$", "threads": ["direct"]}
    rules: list[Any] = [
        *({"words": [word]} for word in ("badword", "other", "third")),
        links,
        endless,
    ]
    async with workspace([mod(*rules, regex_time=0.02)], "ann", "bot") as (network, ann, bot):
        attachments = [{"name": SWELLS * 250, "uri": "x:y"}] * 250
        large: Any = {"to": DESK, "text": f"badword {AWS}", "attachments": attachments}
        assert await refused(bot, "send_text_message", **large) == "rejected"
        assert (await ann.call("read_thread", thread=DESK))["messages"] == []
        async with soon():
            for _ in range(3):
                error = await refusal(ann, "send_text_message", to="bot", text="a" * 60_000 + "!")
                assert "could not be checked" in error.message
            await bot.say(DESK, "a" * 60_000 + "!")
            await ann.say("bot", "fine")
        assert not network.hub.services.mods.failures
    async with workspace([mod(most_judged=100)], "bot") as (_, bot):
        await bot.say(DESK, "x" * 100)
        attachments = [{"name": "x" * 100, "uri": ""}]
        long: Any = {"to": DESK, "text": "x", "attachments": attachments}
        error = await refusal(bot, "send_text_message", **long)
        assert "more than 100 characters" in error.message

    class Broken(Moderation):
        def _author(self, draft: object) -> Any:
            raise RuntimeError("broken")

    async with workspace([Broken(ModerationConfig(words=("badword",)))], "bot") as (network, bot):
        await rejection(bot, "badword")
        assert [mod for mod, _ in network.hub.services.mods.failures] == ["moderation"]


@pytest.mark.behaviour("M-246")
async def test_a_rate_limit_ignores_messages_that_other_rules_reject() -> None:
    clock = HandClock()
    rules: list[dict[str, Any]] = [{"rate": {"messages": 2, "per": "10s"}}, {"words": ["darn"]}]
    async with workspace([mod(*rules)], "ann", "bob", clock=clock) as (network, ann, bob):
        for _ in range(3):
            assert "a word" in await rejection(ann, "darn")
        await ann.say(DESK, "1", cid="c1")
        clock.wall += 4
        await ann.say(DESK, "2")
        for _ in range(3):
            assert "again in 6.0 s" in await rejection(ann, "3")
        again = await ann.ask("send_text_message", to=DESK, text="1", cid="c1")
        assert again["duplicate"], "a repeated cid is not counted"
        await bob.say(DESK, "1")
        clock.wall += 6
        await ann.say(DESK, "3")
        own = network.hub.services.mods.pipeline.mods[0]
        network.hub.services.mods.configure(own, own.config)
        assert "again in 4.0 s" in await rejection(ann, "4")


@pytest.mark.behaviour("M-245")
async def test_rules_apply_only_to_their_threads_and_senders() -> None:
    rules: list[Any] = [
        {"words": ["darn"], "threads": ["channel_desk"]},
        {"words": ["heck"], "exempt_owners": True},
        {"words": ["gosh"], "senders": ["agent"]},
    ]
    async with workspace([mod(*rules)], "olga", "ann", "bot") as (network, olga, ann, bot):
        await ann.say("bot", "darn")
        top = await post(ann, "fine")
        assert await refused(ann, "reply", message_id=top, text="darn") == "rejected"
        own = network.hub.services.mods.pipeline.mods[0]
        await olga.say(DESK, "heck")
        assert "a word" in await rejection(bot, "heck")
        # A reminder is checked like a message of its owner.
        draft = Draft("hub", "system", "broadcast", "broadcast", "gosh")
        assert own.on_message(draft) is PASS
        assert own.on_message(draft.replace(purpose=TimerMark("ann"))) is PASS
        assert isinstance(own.on_message(draft.replace(purpose=TimerMark("bot"))), Reject)
    async with workspace([mod()], auth="tokens") as (network,):
        owns = network.hub.services.mods.pipeline.mods[0].host.owns
        assert [owns(who) for who in ("olga", "ann", "nobody")] == [True, False, False]
