"""What mods bring, at the chat: a scripted person, the real client, a real hub with real mods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.cli.chat.known import Known
from hubbub.cli.control.asker import Asker
from hubbub.cli.control.words import CHAT
from hubbub.cli.workplace.carrying import save
from hubbub.client import Client
from hubbub.config.models import NetworkFile
from hubbub.errors import UserError
from hubbub.mods.files.words import File
from hubbub.mods.loader import find_mod
from hubbub.mods.settings import settings_of
from hubbub.testing.network import LocalNetwork
from tests.unit.cli.test_chat_conversation import FILE as TOWN
from tests.unit.cli.test_chat_conversation import Chat, chatting

MODS = ("edits", "threads", "reactions", "files", "documents", "tasks", "polls", "search")
BESIDE = ("digest", "directory")
GENERAL = "channel.general"


def network_with(*names: str) -> LocalNetwork:
    kinds = [find_mod(name).kind for name in names]
    file = NetworkFile.model_validate(
        TOWN.model_dump(exclude_unset=True) | {"humans": {"ann": {"roles": ["owner"]}, "bob": {}}}
    )
    return LocalNetwork(file, mods=[kind(settings_of(kind, {})) for kind in kinds])


@pytest.fixture
async def network() -> AsyncIterator[LocalNetwork]:
    async with network_with(*MODS, *BESIDE) as network:
        yield network


@pytest.fixture
async def bob(network: LocalNetwork) -> Client:
    return await network.join("bob", "human")


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


@pytest.mark.behaviour("M-310")
async def test_help_has_the_commands_that_the_hub_has_operations_for() -> None:
    async with network_with("reactions") as network, chatting(network) as chat:
        chat.ann.types("/help")
        await chat.ann.sees("/react <m42> <emoji>")
        await chat.ann.sees("//text says /text")
        chat.ann.types("/help", "/tasks")
        await chat.ann.sees("/react <m42> <emoji>")
        assert "/tasks is not to be had here" in await chat.ann.sees("/tasks")


@pytest.mark.behaviour("M-311")
async def test_edits_and_deletions_are_made_and_told_live(
    network: LocalNetwork, bob: Client
) -> None:
    async with chatting(network) as chat:
        theirs = await bob_says(bob, chat, "helo")
        await bob.call("edit_message", message_id=theirs, text="hello")
        await chat.ann.sees(f"{theirs} bob edited: hello")
        chat.ann.types("mine")
        mine = (await chat.ann.sees("ann: mine")).split()[1]
        chat.ann.types(f"/edit {mine} mine and better", f"/history {mine}")
        await chat.ann.sees(f"{mine} ann edited: mine and better")
        await chat.ann.sees("sent by ann")
        await chat.ann.sees("edited by ann")
        await bob.call("delete_message", message_id=theirs)
        await chat.ann.sees(f"{theirs} bob deleted it")
        chat.ann.types("/open #general")
        await chat.ann.sees(f"{theirs} bob [deleted]")
        await chat.ann.sees("ann [edited]: mine and better")
        assert chat.ann.status.session.unread == []


@pytest.mark.behaviour("M-319")
async def test_a_deletion_is_asked_about_first(network: LocalNetwork) -> None:
    async with chatting(network) as chat:
        chat.ann.types("oops")
        mine = (await chat.ann.sees("ann: oops")).split()[1]
        chat.ann.types(f"/delete {mine}")
        await chat.ann.sees(f"{mine} ann: oops")
        await chat.ann.sees(f"/delete {mine} yes deletes it")
        chat.ann.types(f"/delete {mine} yes")
        await chat.ann.sees(f"{mine} ann deleted it")


async def test_an_edit_is_no_answer_that_somebody_waits_for(
    network: LocalNetwork, bob: Client
) -> None:
    async with chatting(network, patient=True) as chat:
        theirs = await bob_says(bob, chat, "helo")
        chat.ann.types("well?")
        await chat.ann.sees("ann: well?")
        chat.ann.types("/wait 30", "/who")
        for text in ("hallo", "hullo", "hello"):
            await bob.call("edit_message", message_id=theirs, text=text)
            await chat.ann.sees(f"bob edited: {text}")
            assert not any("human" in line for line in chat.ann.shown), "ann still waits"
        await bob.call("post_to_channel", channel="general", text="yes")
        await chat.ann.sees("human")


@pytest.mark.behaviour("M-312")
async def test_reactions_are_added_taken_back_and_stand_below(
    network: LocalNetwork, bob: Client
) -> None:
    async with chatting(network) as chat:
        theirs = await bob_says(bob, chat, "hello")
        chat.ann.types(f"/react {theirs} 👍")
        await chat.ann.sees(f"{theirs}: 👍 1")
        await bob.call("add_reaction", message_id=theirs, emoji="👍")
        await chat.ann.sees(f"{theirs} bob reacted 👍 (👍 2)")
        chat.ann.types("/open #general")
        assert (await chat.ann.sees("bob: hello")).endswith("\n      👍 2")
        chat.ann.types(f"/react {theirs} 👍")
        await chat.ann.sees(f"{theirs}: 👍 1")
    async with chatting(network) as later:
        assert (await later.ann.sees("bob: hello")).endswith("\n      👍 1")


@pytest.mark.behaviour("M-313")
async def test_a_task_goes_its_way(network: LocalNetwork, bob: Client) -> None:
    async with chatting(network) as chat:
        chat.ann.types("/tasks", "/tasks board")
        await chat.ann.sees("no tasks")
        await chat.ann.sees("this thread has no board; /todo begins one")
        chat.ann.types("/todo Write", "/claim t1", "/tasks mine")
        await chat.ann.sees("t1 open: Write")
        await chat.ann.sees("t1 claimed by ann: Write")
        assert "#general  Write" in await chat.ann.sees("t1    claimed")
        chat.ann.types("/done t1 it is in d1", "/task t1", "/tasks board", "/tasks ready")
        await chat.ann.sees("t1 done by ann: Write")
        await chat.ann.sees("  it is in d1")
        await chat.ann.sees("ann  finished")
        await chat.ann.sees("  - [x] t1 Write (ann)")
        await chat.ann.sees("no tasks")
        chat.ann.types("/open broadcast")
        await chat.ann.sees("── broadcast")
        await bob.call("create_task", title="Print", thread=GENERAL, owner="ann")
        await chat.ann.sees("[#general] bob gives you t2: Print")


@pytest.mark.behaviour("M-314")
async def test_a_poll_is_asked_voted_in_and_ended(network: LocalNetwork, bob: Client) -> None:
    async with chatting(network) as chat:
        chat.ann.types('/poll "Lunch?" soup | hot rice')
        await chat.ann.sees("p1 is asked; /polls p1 shows how it stands")
        chat.ann.types("/vote p1 2")
        await chat.ann.sees("p1 open, 1 vote: Lunch?")
        assert (await chat.ann.sees("hot rice")).startswith("*  2  hot rice  1      ann")
        await bob.call("vote", poll="p1", options=["hot rice"])
        chat.ann.types("/vote p1 none", "/polls")
        await chat.ann.sees("p1 open, 1 vote: Lunch?")
        await chat.ann.sees("/vote p1 <number> votes")
        await chat.ann.sees("p1    open   1")
        assert not any("bob voted" in line for line in chat.ann.shown)
        chat.ann.types("/closepoll p1")
        await chat.ann.sees("decided: hot rice")


@pytest.mark.behaviour("M-315")
async def test_a_file_is_sent_in_parts_and_shown(
    network: LocalNetwork, bob: Client, tmp_path: Path
) -> None:
    path = tmp_path / "my plan.csv"
    path.write_text("a,b\n" * 100_000)  # three parts
    told = []
    async with chatting(network) as chat:
        await chat.ann.sees("── #general ──")
        refresh = chat.ann.refresh

        def look() -> None:
            told.append(chat.ann.status.carrying)
            refresh()

        chat.ann.refresh = look  # type: ignore[method-assign]
        chat.ann.types(f'/attach "{path}" the plan', "/files")
        line = await chat.ann.sees("ann [outside]: the plan")
        assert line.endswith("[f1 my plan.csv, text/csv, 400.0 kB] ✓")
        await chat.ann.sees("f1    my plan.csv  text/csv  400.0 kB  ann")
    progress = [each for n, each in enumerate(told) if each and each not in told[:n]]
    assert progress == ["my plan.csv 0 %", "my plan.csv 38 %", "my plan.csv 76 %"]
    assert chat.ann.status.carrying == ""
    page = await ask(bob, "read_thread", thread=GENERAL)
    assert page["messages"][-1]["attachments"][0]["uri"] == "file:f1"


async def test_what_cannot_be_sent_is_said(network: LocalNetwork, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    async with chatting(network) as chat:
        chat.ann.types(f"/attach {tmp_path}/none", f"/attach {tmp_path}/empty")
        await chat.ann.sees("there is no such file")
        await chat.ann.sees("the file is empty")


async def test_a_file_begins_a_reply_thread(
    network: LocalNetwork, bob: Client, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("x")
    async with chatting(network) as chat:
        theirs = await bob_says(bob, chat, "where is it?")
        chat.ann.types(f"/open {theirs}", f"/attach {tmp_path}/a.txt")
        await chat.ann.sees(f"── #general › {theirs} ──")
        assert "[f1 a.txt, text/plain, 1 byte]" in await chat.ann.sees("ann [outside]: a.txt")


@pytest.mark.behaviour("M-316")
async def test_a_file_is_saved_and_replaces_nothing(
    network: LocalNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content = b"a,b\n" * 100_000
    (tmp_path / "a.csv").write_bytes(content)
    async with chatting(network) as chat:
        chat.ann.types("/attach a.csv", "/get f1", "/get f1 b.csv", "/get f1 b.csv", "/get f7")
        await chat.ann.sees("a.csv is there already; name another place")
        await chat.ann.sees("f1 is saved: b.csv (400.0 kB)")
        await chat.ann.sees("b.csv is there already; name another place")
        await chat.ann.sees("there is no file f7 for you; /files lists them")
    assert (tmp_path / "b.csv").read_bytes() == content
    assert in_folder(tmp_path) == ["a.csv", "b.csv"]


@pytest.mark.behaviour("M-317")
async def test_documents_are_shown_with_what_has_changed(
    network: LocalNetwork, bob: Client
) -> None:
    async with chatting(network) as chat:
        await chat.ann.sees("── #general ──")
        chat.ann.types("/docs")
        await chat.ann.sees("this thread has no documents")
        await bob.call("create_document", title="Plan", text="one\ntwo\n", thread=GENERAL)
        chat.ann.types("/diff d1")
        await chat.ann.sees("d1 has nothing to compare with")
        await bob.call("write_document", id="d1", base_version=1, text="one\ntwo and a half\n")
        chat.ann.types("/docs", "/doc d1", "/doc d1 v1", "/diff d1", "/doc d9")
        await chat.ann.sees("d1   2        bob")
        await chat.ann.sees("── d1 Plan, version 2 ──")
        await chat.ann.sees("  two and a half")
        await chat.ann.sees("── d1 Plan, version 1 ──")
        await chat.ann.sees("── d1 Plan, version 1 to 2 ──")
        await chat.ann.sees("-two")
        await chat.ann.sees("+two and a half")
        await chat.ann.sees("there is no document d9 for you; /docs lists them")


@pytest.mark.behaviour("M-318")
async def test_what_was_said_is_found_page_by_page(network: LocalNetwork, bob: Client) -> None:
    for n in range(12):
        await bob.call("post_to_channel", channel="general", text=f"rice {n}.")
    async with chatting(network) as chat:
        await chat.ann.sees("rice 11.")
        chat.ann.types("/search", "/search rice")
        await chat.ann.sees("there is no next page")
        await chat.ann.sees("    rice")
        await chat.ann.sees("/search shows what comes next")
        chat.ann.types("/search", "/search noodles")
        await chat.ann.sees("    rice")
        await chat.ann.sees("nothing found")


@pytest.mark.behaviour("M-318")
async def test_a_digest_tells_what_is_new_until_it_is_marked(
    network: LocalNetwork, bob: Client
) -> None:
    async with chatting(network) as chat:
        await chat.ann.sees("── #general ──")
        await bob.call("send_text_message", to="ann", text="psst")
        await chat.ann.sees("psst")
        chat.ann.types("/digest mark", "/digest")
        await chat.ann.sees("look at it first: /digest")
        await chat.ann.sees("@bob: 1 message")
        await chat.ann.sees("bob: psst")
        chat.ann.types("/digest mark", "/digest")
        await chat.ann.sees("the next digest begins here")
        await chat.ann.sees("nothing new")


@pytest.mark.behaviour("M-318")
async def test_who_can_do_something_is_found(network: LocalNetwork) -> None:
    card = {"description": "translates German contracts"}
    client = await network.join("writer", "agent")
    await client.call("update_card", **card)
    async with chatting(network) as chat:
        chat.ann.types("/find german", "/find a plumber")
        await chat.ann.sees("writer  free")
        await chat.ann.sees("/who shows them all")


@pytest.mark.behaviour("M-319")
async def test_the_open_thread_is_titled_resolved_and_muted(
    network: LocalNetwork, bob: Client
) -> None:
    async with chatting(network) as chat:
        theirs = await bob_says(bob, chat, "where is it?")
        chat.ann.types(f"/reply {theirs} here", f"/open {theirs}")
        await chat.ann.sees(f"── #general › {theirs} ──")
        chat.ann.types("/title Where it is", "/resolve", "/reopen", "/mute", "/unmute", "/title")
        await chat.ann.sees(f"#general › {theirs} is called: Where it is")
        await chat.ann.sees("is resolved")
        await chat.ann.sees("is open again")
        await chat.ann.sees("is muted")
        await chat.ann.sees("is not muted")
        await chat.ann.sees("has no title")
        thread = f"{GENERAL}.t{theirs[1:]}"
        await bob.call("set_thread_title", thread=thread, title="Lost")
        await chat.ann.sees("bob calls this thread: Lost")
        await bob.call("resolve_thread", thread=thread)
        await chat.ann.sees("bob has resolved this thread")


async def test_pages_of_nothing_but_edits_do_not_look_like_the_beginning(
    network: LocalNetwork, bob: Client
) -> None:
    said = await ask(bob, "post_to_channel", channel="general", text="first")
    for n in range(45):
        await bob.call("edit_message", message_id=said["id"], text=f"version {n}.")
    async with chatting(network) as chat:
        await chat.ann.sees("── #general ──")
        chat.ann.types("/more")
        await chat.ann.sees("bob [edited]: version 44.")


@pytest.mark.behaviour("M-316")
async def test_what_has_come_to_stand_there_meanwhile_is_not_replaced(
    network: LocalNetwork, bob: Client, tmp_path: Path
) -> None:
    written = await ask(bob, "write_file", name="a.txt", text="theirs")
    place = tmp_path / "a.txt"
    place.write_text("mine")
    asker = Asker(bob, Known("bob"), CHAT, here=True)
    with pytest.raises(UserError, match="is there already"):
        await save(asker, File.model_validate(written), place, lambda so_far: None)
    assert place.read_text() == "mine"


async def test_a_file_that_arrives_otherwise_than_it_was_kept_is_not_left_behind(
    network: LocalNetwork, bob: Client, tmp_path: Path
) -> None:
    written = await ask(bob, "write_file", name="a.txt", text="theirs")
    other = File.model_validate(written).model_copy(update={"sha256": "0" * 64})
    asker = Asker(bob, Known("bob"), CHAT, here=True)
    with pytest.raises(UserError, match="is not what was kept"):
        await save(asker, other, tmp_path / "a.txt", lambda so_far: None)
    assert in_folder(tmp_path) == []


async def test_where_nobody_has_spoken_yet_there_is_nothing_before(
    network: LocalNetwork, bob: Client
) -> None:
    async with chatting(network) as chat:
        chat.ann.types("/dm bob", "/more")
        await chat.ann.sees("── @bob ──")
        await chat.ann.sees("that was the beginning of this thread")
