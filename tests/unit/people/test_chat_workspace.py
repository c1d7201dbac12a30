"""Commands of mods in the chat, with the real client, hub and mods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub.client import Client
from hubbub.errors import UserError
from hubbub.mods.files.schemas import File
from hubbub.people.client import PersonClient
from hubbub.people.commands import CHAT
from hubbub.people.groups.files import save
from hubbub.people.state import ClientState
from tests.unit.people.chatroom import chatting, town

GENERAL = "channel.general"


async def ask(client: Client, name: str, /, **args: Any) -> dict[str, Any]:
    answer: JsonValue = await client.call(name, **args)
    assert isinstance(answer, dict)
    return answer


def in_folder(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.behaviour("M-310", "M-311", "M-319")
async def test_edits_and_deletions_appear_live_and_deletion_needs_confirmation(
    snapshot: SnapshotAssertion,
) -> None:
    async with town("edits") as network, chatting(network, patient=True) as chat:
        bob = await network.join("bob", "human")
        await chat.ann.enters("/tasks", "mine")
        await bob.call("post_to_channel", channel="general", text="helo")
        await chat.ann.sees("bob: helo")
        await bob.call("edit_message", message_id="m2", text="hello")
        await chat.ann.sees("m2 bob edited: hello")
        await chat.ann.enters("/edit m1 mine and better", "/history m1")
        await bob.call("delete_message", message_id="m2")
        await chat.ann.sees("m2 bob deleted it")
        await chat.ann.enters("/open #general", "/delete m1", "/delete m1 yes")
        assert chat.ann.status.session.unread == []
    assert chat.ann.transcript == snapshot


@pytest.mark.behaviour("M-310")
async def test_help_lists_available_commands_and_explains_their_arguments() -> None:
    async with town("edits") as network, chatting(network, patient=True) as chat:
        await chat.ann.enters("/help")
        help_text = "\n".join(chat.ann.shown)
        assert "/messages edit <message id> <text>" in help_text
        assert "/threads " in help_text
        assert "/tasks" not in help_text
        await chat.ann.enters("/help history", "/help nonsense")
        await chat.ann.sees("/messages history <message id>: Read the versions of a message")
        await chat.ann.sees("--limit  Maximum number of results.")
        await chat.ann.sees("there is no command 'nonsense'")


async def test_edits_count_neither_as_answers_nor_as_history() -> None:
    async with town("edits") as network:
        bob = await network.join("bob", "human")
        message = await ask(bob, "post_to_channel", channel="general", text="first")
        for n in range(45):
            await bob.call("edit_message", message_id=message["id"], text=f"version {n}.")
        async with chatting(network, patient=True) as chat:
            await chat.ann.enters("/more", "well?")
            await chat.ann.sees("bob [edited]: version 44.")
            await chat.ann.sees("ann: well?")
            chat.ann.types("/wait 30", "/agents list")
            for text in ("hallo", "hullo", "hello"):
                await bob.call("edit_message", message_id=message["id"], text=text)
                await chat.ann.sees(f"bob edited: {text}")
                assert not any("human" in line for line in chat.ann.shown), "ann still waits"
            await bob.call("post_to_channel", channel="general", text="yes")
            await chat.ann.sees("human")


async def test_commands_for_processes_take_the_name_of_a_bridge() -> None:
    async with town() as network:
        await network.join("irc", "service")
        async with chatting(network, patient=True) as chat:
            await chat.ann.enters("/agents logs irc", "/agents logs ircc")
            await chat.ann.sees("this network does not start 'irc'")
            await chat.ann.sees("there is no agent 'ircc'; did you mean irc?")


@pytest.mark.behaviour("M-312", "M-319")
async def test_reactions_appear_below_messages_and_threads_can_be_titled_and_muted(
    snapshot: SnapshotAssertion,
) -> None:
    async with town("reactions", "threads") as network:
        bob = await network.join("bob", "human")
        await bob.call("post_to_channel", channel="general", text="hello")
        async with chatting(network, patient=True) as chat:
            await chat.ann.enters("/react m1 👍")
            await bob.call("add_reaction", message_id="m1", emoji="👍")
            await chat.ann.sees("bob reacted")
            await chat.ann.enters(
                "/open #general", "/react m1 👍", "/reply m1 here", "/open m1",
                "/title Where it is", "/resolve", "/reopen", "/mute", "/unmute", '/title ""',
            )  # fmt: skip
            await bob.call("set_thread_title", thread=f"{GENERAL}.t1", title="Lost")
            await bob.call("resolve_thread", thread=f"{GENERAL}.t1")
            await chat.ann.sees("bob resolved this thread")
            assert chat.ann.transcript == snapshot
        async with chatting(network) as later:
            assert (await later.ann.sees("bob: hello")).endswith("\n      👍 1")


@pytest.mark.behaviour("M-313", "M-314")
async def test_tasks_and_polls_work_from_creation_to_end(snapshot: SnapshotAssertion) -> None:
    async with town("tasks", "polls") as network, chatting(network, patient=True) as chat:
        bob = await network.join("bob", "human")
        await chat.ann.enters(
            "/tasks", "/tasks board", "/tasks add Write", "/claim t1", "/tasks list --owner ann",
            "/finish t1 it is in d1", "/tasks show t1", "/tasks board", "/tasks list --ready",
            '/ask "Lunch?" soup | hot rice', "/vote p1 2",
        )  # fmt: skip
        await bob.call("vote", poll="p1", options=["hot rice"])
        await chat.ann.enters("/vote p1 none", "/polls", "/close p1", "/open broadcast")
        await bob.call("create_task", title="Print", thread=GENERAL, owner="ann")
        await chat.ann.sees("bob assigned you t2")
    assert chat.ann.transcript == snapshot


@pytest.mark.behaviour("M-315", "M-316")
async def test_files_are_sent_in_parts_and_saved_without_overwriting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    content = b"a,b\n" * 100_000  # three parts
    (tmp_path / "my plan.csv").write_bytes(content)
    (tmp_path / "empty").touch()
    (tmp_path / "a.txt").write_text("mine")
    progress: list[str] = []
    async with town("files") as network, chatting(network, patient=True) as chat:
        bob = await network.join("bob", "human")
        refresh = chat.ann.refresh

        def look() -> None:
            if (carrying := chat.ann.status.carrying) and carrying not in progress:
                progress.append(carrying)
            refresh()

        monkeypatch.setattr(chat.ann, "refresh", look)
        await chat.ann.enters('/attach "my plan.csv" the plan', "/files")
        assert progress == ["my plan.csv 0 %", "my plan.csv 38 %", "my plan.csv 76 %"]
        assert chat.ann.status.carrying == ""
        page = await ask(bob, "read_thread", thread=GENERAL)
        assert page["messages"][-1]["attachments"][0]["uri"] == "file:f1"
        await chat.ann.enters("/get f1", "/get f1 b.csv", "/get f1 b.csv", "/get f7")
        assert (tmp_path / "b.csv").read_bytes() == content
        await chat.ann.enters("/attach none", "/attach empty", "/open m1", "/attach a.txt")
        assert chat.ann.transcript == snapshot
        before = in_folder(tmp_path)
        file = File.model_validate(await ask(bob, "write_file", name="c.txt", text="theirs"))
        person = PersonClient(bob, ClientState("bob"), CHAT, here=True)
        other = file.model_copy(update={"sha256": "0" * 64})
        for source, name, reason in (
            (file, "a.txt", "already exists"),  # as if created meanwhile
            (other, "c.txt", "is corrupt"),
        ):
            with pytest.raises(UserError, match=reason):
                await save(person, source, tmp_path / name)
        assert (tmp_path / "a.txt").read_text() == "mine"
        assert in_folder(tmp_path) == before


@pytest.mark.behaviour("M-317")
async def test_documents_are_shown_with_their_changes(snapshot: SnapshotAssertion) -> None:
    async with town("documents") as network, chatting(network, patient=True) as chat:
        bob = await network.join("bob", "human")
        await chat.ann.enters("/documents")
        await bob.call("create_document", title="Plan", text="one\ntwo\n", thread=GENERAL)
        await chat.ann.enters("/diff d1")
        await bob.call("write_document", id="d1", base_version=1, text="one\ntwo and a half\n")
        await chat.ann.enters(
            "/documents",
            "/documents show d1",
            "/documents show --version 1 d1",
            "/diff d1",
            "/documents show d9",
        )
    assert chat.ann.transcript == snapshot


@pytest.mark.behaviour("M-318")
async def test_messages_digests_and_agents_are_found(snapshot: SnapshotAssertion) -> None:
    async with town("search", "digest", "directory") as network:
        bob = await network.join("bob", "human")
        for n in range(6):
            await bob.call("post_to_channel", channel="general", text=f"rice {n}.")
        writer = await network.join("writer", "agent")
        await writer.call("update_card", description="translates German contracts")
        async with chatting(network, patient=True) as chat:
            await chat.ann.enters("/search", "/search rice", "/search noodles")
            await chat.ann.enters("/find german", "/find a plumber", "/digest mark")
            await bob.call("send_text_message", to="ann", text="psst")
            await chat.ann.sees("psst")
            await chat.ann.enters("/digest", "/digest mark", "/digest")
    assert chat.ann.transcript == snapshot
