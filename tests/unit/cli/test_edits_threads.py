"""`edit`, `delete`, `history` and `thread` against a running network."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from hubbub.client import Client, WebSocketTransport
from hubbub.mods.edits.words import MessageVersions
from tests.unit.cli.conftest import NETWORK, Command, running

MODS = "mods: [edits, threads]"


@pytest.mark.behaviour("M-101")
def test_messages_are_edited_deleted_and_their_history_shown_in_a_shell(
    home: Path, hubbub: Command
) -> None:
    with running(f"{NETWORK}\n{MODS}\n", home):
        assert hubbub("send", "#general", "frist").code == 0
        assert hubbub("edit", "m1", "first").out == "m1 says something else now (m2)\n"
        assert hubbub("edit", "m1", "x", "--as", "bob").code == 2
        lines = hubbub("history", "m1").out.splitlines()
        assert [re.sub(r"^\S+ \S+ ", "", line) for line in lines] == [
            "sent by ann  frist",
            "edited by ann  first",
        ]
        assert "[edits m1]  first" in hubbub("log").out
        assert hubbub("delete", "m1").out == "m1 is deleted (m3)\n"
        assert "there are earlier ones; see --before 3" in hubbub("history", "m1", "-n", "1").out
        shown = hubbub("history", "m1", "--json").json()
        versions = MessageVersions.model_validate(shown).versions
        assert [each.kind for each in versions] == ["sent", "edited", "deleted"]


@pytest.mark.behaviour("M-101")
def test_threads_are_titled_resolved_and_muted_in_a_shell(home: Path, hubbub: Command) -> None:
    with running(f"{NETWORK}\n{MODS}\n", home) as url:
        assert hubbub("send", "#general", "Ship it? Now?").code == 0

        async def reply() -> None:
            async with Client(WebSocketTransport(url), "bob", "human") as bob:
                await bob.call("reply", cid=None, message_id="m1", text="yes")

        asyncio.run(reply())
        thread = "#general › m1"
        assert hubbub("thread", "title", thread, "Release").out == f"{thread} open: Release\n"
        assert hubbub("thread", "resolve", thread).out == f"{thread} resolved by ann: Release\n"
        assert hubbub("thread", "mute", "#general").out == "#general muted\n"
        assert hubbub("thread", "follow", thread).out == f"{thread} followed\n"
        followed = hubbub("thread", "follow", thread, "--json").json()
        assert isinstance(followed, dict)
        assert (followed["followed"], followed["muted"]) == (True, False)
        rows = hubbub("thread", "list", "--state", "resolved").out.splitlines()
        assert rows[1].startswith(f"{thread}  resolved, followed  1")
        assert rows[1].endswith("Release")
        assert hubbub("thread", "unfollow", thread).out == f"{thread} muted, as #general is\n"
        assert hubbub("thread", "unmute", "#general").out == (
            "#general neither followed nor muted\n"
        )
        assert hubbub("thread", "reopen", thread).out == f"{thread} open: Release\n"
        listed = hubbub("thread", "list", "--followed", "--json").json()
        assert listed == {"threads": [], "more": False}
