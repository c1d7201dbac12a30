"""What mods bring, in the full-screen client: keys and what one sees, against a real hub."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual.widgets import OptionList, Static

from hubbub.cli.full.charge import AnswerScreen, ChoiceScreen
from hubbub.cli.full.dialogs import HelpScreen
from hubbub.client import Client
from hubbub.mods.loader import find_mod
from hubbub.mods.settings import settings_of
from hubbub.testing.network import LocalNetwork
from tests.interaction.full_rig import FILE, Desk, sitting

pytestmark = pytest.mark.slow  # a whole screen is drawn for each key

MODS = ("edits", "threads", "reactions", "files", "documents", "tasks")
GENERAL = "channel.general"


@pytest.fixture
async def network() -> AsyncIterator[LocalNetwork]:
    kinds = [find_mod(name).kind for name in MODS]
    mods = [kind(settings_of(kind, {})) for kind in kinds]
    async with LocalNetwork(FILE, mods=mods) as network:
        yield network


@pytest.fixture
async def bob(network: LocalNetwork) -> Client:
    return await network.join("bob", "human")


async def answer(desk: Desk) -> str:
    """What lies above everything; it is closed then."""
    await desk.sees(lambda: isinstance(desk.app.screen, AnswerScreen))
    text = str(desk.app.screen.query_one(Static).render())
    await desk.presses("escape")
    await desk.sees(lambda: desk.app.screen is desk.chat)
    return text


@pytest.mark.behaviour("M-321")
async def test_edits_and_reactions_show_in_their_message_and_deletions_are_asked_about(
    network: LocalNetwork, bob: Client
) -> None:
    value = await bob.call("post_to_channel", channel="general", text="helo")
    assert isinstance(value, dict)
    theirs = str(value["id"])
    await bob.call("add_reaction", message_id=theirs, emoji="🎉")
    async with sitting(network) as desk:
        await desk.reads("helo")
        await desk.reads("🎉 1")
        await bob.call("edit_message", message_id=theirs, text="hello all")
        await desk.reads("hello all")
        await desk.reads("[edited]")
        assert not any("helo" in line for line in desk.conversation)
        await desk.says(f"/react {theirs} 🎉")
        await desk.reads("🎉 2")
        await bob.call("remove_reaction", message_id=theirs, emoji="🎉")
        await desk.reads("🎉 1")
        await desk.says("mine")
        await desk.reads("mine")
        await desk.says("/edit m3 mine and better")
        await desk.reads("mine and better")
        for keys in (["enter"], ["escape"], ["down", "enter"]):
            await desk.reads("mine and better")
            await desk.says("/delete m3")
            await desk.sees(lambda: isinstance(desk.app.screen, ChoiceScreen))
            options = desk.app.screen.query_one(OptionList).options
            assert "Delete it for everybody: mine and better" in str(options[1].prompt)
            await desk.presses(*keys)
            await desk.sees(lambda: desk.app.screen is desk.chat)
        await desk.reads("[deleted]")
        await desk.sees(lambda: "unread" not in desk.status)


@pytest.mark.behaviour("M-310", "M-321")
async def test_files_boards_and_documents_are_brought_and_looked_at(
    network: LocalNetwork, bob: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("a,b\n")
    async with sitting(network) as desk:
        await desk.says("/attach a.csv the figures")
        await desk.reads("the figures")
        await desk.reads("[f1 a.csv, text/csv, 4 bytes]")
        await desk.says("/get f1 b.csv")
        await desk.tells("f1 is saved: b.csv")
        await desk.says("/get f1 b.csv")
        await desk.tells("is there already")
        assert (tmp_path / "b.csv").read_text() == "a,b\n"
        await bob.call("create_document", title="Plan", text="one\ntwo\n", thread=GENERAL)
        await bob.call("write_document", id="d1", base_version=1, text="one\nthree\n")
        await bob.call("create_task", title="Write", thread=GENERAL, owner="ann")
        await desk.tells("bob gives you t1: Write")
        await desk.says("/diff d1")
        assert {"-two", "+three"} <= set((await answer(desk)).splitlines())
        await desk.says("/tasks board")
        assert "- [ ] t1 Write (ann)" in await answer(desk)
        await desk.says("/done t1")
        await desk.tells("t1 done by ann: Write")
        await desk.says("/help")
        await desk.sees(lambda: isinstance(desk.app.screen, HelpScreen))
        text = str(desk.app.screen.query_one(Static).render())
        assert "/react <m42> <emoji>" in text
        assert "/poll" not in text
        await desk.presses("escape")
        await desk.says("/polls")
        await desk.tells("/polls is not to be had here")
