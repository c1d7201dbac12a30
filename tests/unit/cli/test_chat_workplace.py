"""What mods bring, at the chat: a scripted person, the real client, a real hub with real mods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.cli.chat.known import Known
from hubbub.cli.control.asker import Asker
from hubbub.cli.control.words import CHAT
from hubbub.cli.workplace.carrying import save
from hubbub.client import Client
from hubbub.errors import UserError
from hubbub.mods.files.words import File
from tests.unit.cli.chatroom import Chat, chatting, town

GENERAL = "channel.general"


async def ask(client: Client, name: str, /, **args: Any) -> dict[str, Any]:
    answer: JsonValue = await client.call(name, **args)
    assert isinstance(answer, dict)
    return answer


def in_folder(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def bob_says(bob: Client, chat: Chat, text: str) -> str:
    """Bob speaks in #general, which ann sees; the message's id."""
    said = await ask(bob, "post_to_channel", channel="general", text=text)
    await chat.ann.sees(f"bob: {text}")
    return str(said["id"])


async def tells(chat: Chat, *told: str) -> None:
    for text in told:
        await chat.ann.sees(text)


@pytest.mark.behaviour("M-310", "M-311", "M-319")
async def test_messages_are_edited_and_deleted_live_and_deletion_is_asked_about() -> None:
    async with town("edits") as network, chatting(network, patient=True) as chat:
        bob = await network.join("bob", "human")
        chat.ann.types("/help", "/tasks")
        await tells(chat, "/edit <m42> <text>", "//text says /text", "/tasks is not to be had here")
        theirs = await bob_says(bob, chat, "helo")
        await bob.call("edit_message", message_id=theirs, text="hello")
        await tells(chat, f"{theirs} bob edited: hello")
        chat.ann.types("mine")
        mine = (await chat.ann.sees("ann: mine")).split()[1]
        chat.ann.types(f"/edit {mine} mine and better", f"/history {mine}")
        await tells(chat, f"{mine} ann edited: mine and better", "sent by ann", "edited by ann")
        await bob.call("delete_message", message_id=theirs)
        await tells(chat, f"{theirs} bob deleted it")
        chat.ann.types("/open #general")
        await tells(chat, f"{theirs} bob [deleted]", "ann [edited]: mine and better")
        assert chat.ann.status.session.unread == []
        chat.ann.types(f"/delete {mine}", f"/delete {mine} yes")
        await tells(chat, "mine and better", f"/delete {mine} yes deletes it")
        await tells(chat, f"{mine} ann deleted it")


async def test_edits_are_neither_answers_nor_pages_of_history() -> None:
    async with town("edits") as network:
        bob = await network.join("bob", "human")
        said = await ask(bob, "post_to_channel", channel="general", text="first")
        for n in range(45):
            await bob.call("edit_message", message_id=said["id"], text=f"version {n}.")
        async with chatting(network, patient=True) as chat:
            chat.ann.types("/more")
            await tells(chat, "bob [edited]: version 44.")
            chat.ann.types("well?")
            await tells(chat, "ann: well?")
            chat.ann.types("/wait 30", "/who")
            for text in ("hallo", "hullo", "hello"):
                await bob.call("edit_message", message_id=said["id"], text=text)
                await tells(chat, f"bob edited: {text}")
                assert not any("human" in line for line in chat.ann.shown), "ann still waits"
            await bob.call("post_to_channel", channel="general", text="yes")
            await tells(chat, "human")


@pytest.mark.behaviour("M-312", "M-319")
async def test_reactions_stand_below_and_threads_are_titled_resolved_and_muted() -> None:
    async with town("reactions", "threads") as network:
        bob = await network.join("bob", "human")
        async with chatting(network, patient=True) as chat:
            theirs = await bob_says(bob, chat, "hello")
            chat.ann.types(f"/react {theirs} 👍")
            await tells(chat, f"{theirs}: 👍 1")
            await bob.call("add_reaction", message_id=theirs, emoji="👍")
            await tells(chat, f"{theirs} bob reacted 👍 (👍 2)")
            chat.ann.types("/open #general")
            assert (await chat.ann.sees("bob: hello")).endswith("\n      👍 2")
            chat.ann.types(f"/react {theirs} 👍")
            await tells(chat, f"{theirs}: 👍 1")
            chat.ann.types(f"/reply {theirs} here", f"/open {theirs}", "/title Where it is")
            chat.ann.types("/resolve", "/reopen", "/mute", "/unmute", "/title")
            await tells(
                chat,
                f"── #general › {theirs} ──",
                f"#general › {theirs} is called: Where it is",
                "is resolved",
                "is open again",
                "is muted",
                "is not muted",
                "has no title",
            )
            thread = f"{GENERAL}.t{theirs[1:]}"
            await bob.call("set_thread_title", thread=thread, title="Lost")
            await bob.call("resolve_thread", thread=thread)
            await tells(chat, "bob calls this thread: Lost", "bob has resolved this thread")
        async with chatting(network) as later:
            assert (await later.ann.sees("bob: hello")).endswith("\n      👍 1")


@pytest.mark.behaviour("M-313", "M-314")
async def test_tasks_and_polls_go_their_way() -> None:
    async with town("tasks", "polls") as network, chatting(network, patient=True) as chat:
        bob = await network.join("bob", "human")
        chat.ann.types("/tasks", "/tasks board", "/todo Write", "/claim t1", "/tasks mine")
        await tells(chat, "no tasks", "this thread has no board; /todo begins one")
        await tells(chat, "t1 open: Write", "t1 claimed by ann: Write")
        assert "#general  Write" in await chat.ann.sees("t1    claimed")
        chat.ann.types("/done t1 it is in d1", "/task t1", "/tasks board", "/tasks ready")
        await tells(chat, "t1 done by ann: Write", "  it is in d1", "ann  finished")
        await tells(chat, "  - [x] t1 Write (ann)", "no tasks")
        chat.ann.types('/poll "Lunch?" soup | hot rice', "/vote p1 2")
        await tells(chat, "p1 is asked; /polls p1 shows how it stands", "p1 open, 1 vote: Lunch?")
        assert (await chat.ann.sees("hot rice")).startswith("*  2  hot rice  1      ann")
        await bob.call("vote", poll="p1", options=["hot rice"])
        chat.ann.types("/vote p1 none", "/polls")
        await tells(chat, "p1 open, 1 vote: Lunch?", "/vote p1 <number> votes", "p1    open   1")
        assert not any("bob voted" in line for line in chat.ann.shown)
        chat.ann.types("/closepoll p1", "/open broadcast")
        await tells(chat, "decided: hot rice", "── broadcast")
        await bob.call("create_task", title="Print", thread=GENERAL, owner="ann")
        await tells(chat, "[#general] bob gives you t2: Print")


@pytest.mark.behaviour("M-315", "M-316")
async def test_files_are_sent_in_parts_shown_and_saved_and_replace_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content = b"a,b\n" * 100_000  # three parts
    (tmp_path / "my plan.csv").write_bytes(content)
    (tmp_path / "empty").touch()
    progress: list[str] = []
    async with town("files") as network, chatting(network, patient=True) as chat:
        bob = await network.join("bob", "human")
        await tells(chat, "── #general ──")
        refresh = chat.ann.refresh

        def look() -> None:
            if (carrying := chat.ann.status.carrying) and carrying not in progress:
                progress.append(carrying)
            refresh()

        monkeypatch.setattr(chat.ann, "refresh", look)
        chat.ann.types('/attach "my plan.csv" the plan', "/files")
        line = await chat.ann.sees("ann [outside]: the plan")
        assert line.endswith("[f1 my plan.csv, text/csv, 400.0 kB] ✓")
        await tells(chat, "f1    my plan.csv  text/csv  400.0 kB  ann")
        assert progress == ["my plan.csv 0 %", "my plan.csv 38 %", "my plan.csv 76 %"]
        assert chat.ann.status.carrying == ""
        page = await ask(bob, "read_thread", thread=GENERAL)
        assert page["messages"][-1]["attachments"][0]["uri"] == "file:f1"
        chat.ann.types("/get f1", "/get f1 b.csv", "/get f1 b.csv", "/get f7")
        chat.ann.types("/attach none", "/attach empty")
        await tells(
            chat,
            "my plan.csv is there already; name another place",
            "f1 is saved: b.csv (400.0 kB)",
            "b.csv is there already; name another place",
            "there is no file f7 for you; /files lists them",
            "there is no such file",
            "the file is empty",
        )
        assert (tmp_path / "b.csv").read_bytes() == content
        theirs = await bob_says(bob, chat, "where is it?")
        (tmp_path / "a.txt").write_text("mine")
        chat.ann.types(f"/open {theirs}", "/attach a.txt")
        await tells(chat, f"── #general › {theirs} ──")
        assert "[f2 a.txt, text/plain, 4 bytes]" in await chat.ann.sees("ann [outside]: a.txt")
        before = in_folder(tmp_path)
        file = File.model_validate(await ask(bob, "write_file", name="c.txt", text="theirs"))
        asker = Asker(bob, Known("bob"), CHAT, here=True)
        other = file.model_copy(update={"sha256": "0" * 64})
        for kept, place, why in (
            (file, "a.txt", "is there already"),  # it has come to stand there meanwhile
            (other, "c.txt", "is not what was kept"),
        ):
            with pytest.raises(UserError, match=why):
                await save(asker, kept, tmp_path / place, lambda so_far: None)
        assert (tmp_path / "a.txt").read_text() == "mine"
        assert in_folder(tmp_path) == before


@pytest.mark.behaviour("M-317")
async def test_documents_are_shown_with_what_has_changed() -> None:
    async with town("documents") as network, chatting(network, patient=True) as chat:
        bob = await network.join("bob", "human")
        chat.ann.types("/docs")
        await tells(chat, "this thread has no documents")
        await bob.call("create_document", title="Plan", text="one\ntwo\n", thread=GENERAL)
        chat.ann.types("/diff d1")
        await tells(chat, "d1 has nothing to compare with")
        await bob.call("write_document", id="d1", base_version=1, text="one\ntwo and a half\n")
        chat.ann.types("/docs", "/doc d1", "/doc d1 v1", "/diff d1", "/doc d9")
        await tells(
            chat,
            "d1   2        bob",
            "── d1 Plan, version 2 ──",
            "  two and a half",
            "── d1 Plan, version 1 ──",
            "── d1 Plan, version 1 to 2 ──",
            "-two",
            "+two and a half",
            "there is no document d9 for you; /docs lists them",
        )


@pytest.mark.behaviour("M-318")
async def test_messages_news_and_agents_are_found() -> None:
    async with town("search", "digest", "directory") as network:
        bob = await network.join("bob", "human")
        for n in range(12):
            await bob.call("post_to_channel", channel="general", text=f"rice {n}.")
        writer = await network.join("writer", "agent")
        await writer.call("update_card", description="translates German contracts")
        async with chatting(network, patient=True) as chat:
            chat.ann.types("/search", "/search rice", "/search", "/search noodles")
            await tells(chat, "there is no next page", "    rice", "/search shows what comes next")
            await tells(chat, "    rice", "nothing found")
            chat.ann.types("/find german", "/find a plumber")
            await tells(chat, "writer  free", "/who shows them all")
            await bob.call("send_text_message", to="ann", text="psst")
            await tells(chat, "psst")
            chat.ann.types("/digest mark", "/digest", "/digest mark", "/digest")
            await tells(chat, "look at it first: /digest", "@bob: 1 message", "bob: psst")
            await tells(chat, "the next digest begins here", "nothing new")
