"""Commands of mods, against a running network with these mods."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from hubbub.cli.transcripts import MOST_LINES, _parts
from hubbub.client import Client
from hubbub.mods.search.schemas import SearchHits
from hubbub.protocol.frames import Event
from tests.e2e.support.http_servers import QuietHandler, http_server
from tests.unit.cli.conftest import NETWORK, Shell, as_person, running

BIG = bytes(range(256)) * 1500
CARD = "{description: Translates contracts, skills: [German], cost: 0.02 a page}"


def network_with(*mods: str) -> str:
    return f"{NETWORK}mods: [{', '.join(mods)}]\n"


@pytest.mark.behaviour("M-153", "M-161", "M-230")
def test_tasks_polls_and_reactions_work_from_a_shell(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    with running(network_with("tasks", "polls", "reactions"), home):
        hubbub("send", "#general", "hello", "--as", "bob")
        output = hubbub.transcript(
            "tasks board",
            "tasks add Write it down -t '#general' --label book --label urgent",
            "tasks claim t1 --as bob",
            "tasks finish t1 d1",
            "tasks finish t1 it is in d1 --as bob",
            "tasks list --state done",
            "polls ask '#general' 'Lunch?' soup 'hot rice'",
            "polls vote p1 'hot rice' --as bob",
            "polls close p1",
            "polls vote p1 1",
            "messages react m1 👍",
            "messages react m1 👍",
            "messages react m1 nice",
        )
        assert output == snapshot
        task = hubbub("tasks", "add", "Print", "-b", "b1", "-o", "ann", "--json").json()
        assert (task["id"], task["state"], task["owner"]) == ("t2", "claimed", "ann")
        assert hubbub("tasks", "list", "--limit", "1", "--json").json()["more"]


@pytest.mark.behaviour("M-101")
def test_messages_are_edited_and_threads_titled_and_resolved_from_a_shell(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    with running(network_with("edits", "threads"), home) as url:
        hubbub("send", "#general", "frist")
        as_person(url, "bob", lambda bob: bob.call("reply", cid=None, message_id="m1", text="yes"))
        assert (
            hubbub.transcript(
                "messages edit m1 first of all",
                "messages edit m1 x --as bob",
                "messages delete m1",
                "messages history m1 -n 1",
                "threads title '#general › m1' Release",
                "threads resolve '#general › m1'",
                "threads mute '#general'",
                "threads follow '#general › m1'",
                "threads replies --state resolved",
            )
            == snapshot
        )
        versions = hubbub("messages", "history", "m1", "--json").json()["versions"]
        assert [version["kind"] for version in versions] == ["sent", "edited", "deleted"]


@pytest.mark.behaviour("M-101")
def test_the_list_shows_messages_as_edited_and_no_deleted_text(home: Path, hubbub: Shell) -> None:
    with running(network_with("edits"), home):
        hubbub("send", "#general", "frist")
        hubbub("send", "#general", "secret")
        hubbub("messages", "edit", "m2", "a secret")
        hubbub("messages", "edit", "m1", "first")
        hubbub("messages", "delete", "m2")
        listed = map(json.loads, hubbub("messages", "list", "--json").out.splitlines())
        shown = [(m["id"], m["content"], m.get("amended")) for m in listed]
    assert shown == [
        ("m1", "first", "edited"), ("m2", "", "deleted"), ("m3", "", "deleted"),
        ("m4", "first", None), ("m5", "", None),
    ]  # fmt: skip


@pytest.mark.behaviour("M-127")
def test_files_are_put_listed_and_fetched_and_a_mistake_leaves_no_file(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    (home / "plan.md").write_text("# Plan")
    (home / "data.bin").write_bytes(BIG)
    (home / ".hidden.md").write_text("# Hidden")
    (home / "empty.md").touch()
    (home / "there").mkdir()
    with running(network_with("files"), home):
        hubbub("send", "ann", "bob is here", "--as", "bob")
        assert hubbub.transcript(
            "files put plan.md data.bin -t '#general' --text look",
            "files list --as bob",
            "files list --limit 1",
            "files get f2 there --as bob",
            "messages list",
        ) == snapshot(name="files")
        assert (home / "there" / "data.bin").read_bytes() == BIG
        earlier = hubbub("files", "list", "--before", "f2", "-t", "#general", "--json").json()
        assert [file["id"] for file in earlier["files"]] == ["f1"]
        hubbub("files", "put", ".hidden.md")
        before = sorted(home.iterdir())
        assert hubbub.transcript(
            "files put none.md",
            "files put plan.md empty.md -t '#general' --text look",
            "files put plan.md --text x",
            "files put plan.md -t '#nowhere'",
            "files get f9",
            "files get f3 --as bob",
            "files get f1",
            "files get f3",
            "files get f1 none/x.md",
            "files get f1 --force",
        ) == snapshot(name="mistakes")
        assert sorted(home.iterdir()) == before
        files = hubbub("files", "list", "--json").json()["files"]
        assert [file["id"] for file in files if "deleted_by" not in file] == ["f3", "f2", "f1"]


@pytest.mark.behaviour("M-192")
def test_messages_digests_and_participants_are_searched_from_a_shell(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    lena = NETWORK.replace("The mayor}}}", f"The mayor}}}}, lena: {{card: {CARD}}}}}")
    with running(f"{lena}mods: [search, directory, digest]\n", home):
        output = hubbub.transcript(
            "messages digest",
            "messages search harbour",
            "send '#general' 'The harbour plan is late, @ann' --as bob",
            "send '#general' 'The plan of the harbour' --as bob",
            "messages search 'harbour plan' late",
            "messages search plan -t '#general' -n 1",
            "messages search --kind files plan",
            "messages digest --thread '#general'",
            "messages digest --mark",
            "messages digest",
            "messages digest 2001-01-01",
            "agents find translate German --people",
            "agents find cook",
            "agents list",
            "agents card lena",
        )
        assert re.sub(r"--cursor \S+", "--cursor <cursor>", output) == snapshot
        search = hubbub("messages", "search", "plan -late", "--json").json()
        hits = SearchHits.model_validate(search).hits
        assert [hit.snippet for hit in hits] == ["The plan of the harbour"]
        assert hubbub("messages", "digest", "--json").json()["threads"] == []
        assert hubbub("agents", "card", "lena", "--json").json()["skills"] == ["German"]


@pytest.mark.behaviour("M-212", "M-224")
def test_transcripts_are_exported_and_reminders_managed_from_a_shell(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    with running(network_with("transcript", "schedule"), home):
        assert hubbub.transcript(
            "send -b Lunch? --as bob",
            "send -b <b>Yes</b> --as bob",
            "messages export --all -o out.html",
            "messages export --all -o out.jsonl",
            "messages export --thread broadcast -o out.md",
            "messages export -t '#general' -o none.md",
            "messages export --thread channel_nowhere -o out.md",
            "messages export --interaction i9 -o out.md",
            "messages export -o out.md",
            "messages export --all -o no/such/folder.md",
            "messages export --all -o .",
        ) == snapshot(name="export")
        assert "&lt;b&gt;Yes" in (home / "out.html").read_text()
        assert (home / "out.md").read_text().startswith("# broadcast (town)")
        one = hubbub("messages", "export", "--interaction", "i1", "--format", "jsonl").out
        assert [json.loads(line).get("content") for line in one.splitlines()] == [None, "Lunch?"]
        assert not list(home.glob(".*.part"))
        assert hubbub.transcript(
            "reminders set 'every 2h' Water the flowers --thread broadcast",
            "reminders list",
            "reminders pause r1",
            "reminders resume r1",
            "reminders cancel r1",
            "reminders list --everybody --json",
            "reminders cancel r9",
            "reminders set 'some day' x",
        ) == snapshot(name="reminders")


def test_control_characters_of_a_transcript_do_not_reach_a_terminal(
    home: Path, hubbub: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(network_with("transcript"), home):
        hubbub("send", "-b", "\x1b]52;c;eA==\x07", "--as", "bob")
        assert "\x1b" in hubbub("messages", "export", "--all").out
        reading, writing = os.openpty()
        with os.fdopen(reading, "rb"), os.fdopen(writing, "w") as terminal:
            monkeypatch.setattr(sys, "stdout", terminal)
            hubbub("messages", "export", "--all")
            terminal.flush()
            shown = os.read(reading, 10_000).decode()
    assert "\x1b" not in shown
    assert "<U+001B>]52;c;eA==<U+0007>" in shown


@pytest.mark.behaviour("M-221")
def test_a_line_that_is_too_long_is_reported_by_number(home: Path, hubbub: Shell) -> None:
    transcript = home / "all.jsonl"
    with running(network_with("transcript"), home):
        hubbub("send", "-b", "short")
        hubbub("messages", "export", "--all", "-o", "all.jsonl")
        original = transcript.read_text().replace('"epoch":"01', '"epoch":"00')
        transcript.write_text(original.replace("short", r"\u007f" * 60_000))
        for_a_call = hubbub("messages", "import", "all.jsonl")
        with transcript.open("w", encoding="utf-8-sig") as file:  # as some editors write it
            long = original.replace("short", "x" * 70_000)
            file.write(
                long.replace('d":"broadcast', 'd":"channel.new').replace('"broadcast', '"channel')
            )
        for_a_text = hubbub("messages", "import", "all.jsonl")
    assert (for_a_call.code, for_a_text.code) == (2, 2)
    assert for_a_call.err.startswith("hubbub: line 2 is too long to import: ")
    assert for_a_text.err.startswith("hubbub: line 2: text: at most 65536 bytes")


@pytest.mark.behaviour("M-224")
def test_a_transcript_is_imported_into_another_network_once(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    with running(network_with("transcript"), home) as url:

        async def send(bob: Client) -> None:
            for n in range(150):
                await bob.call("broadcast_text_message", text=f"no {n}")

        as_person(url, "bob", send)
        hubbub("messages", "export", "--all", "-o", "out.jsonl")
    transcript = (home / "out.jsonl").read_text()
    assert transcript.count("\n") == 151
    (home / "wrong.jsonl").write_text(transcript + "{}\n")
    (home / "odd.jsonl").write_bytes(b"\xff\xfe")
    with running(network_with("transcript").replace("town", "other"), home):
        assert (
            hubbub.transcript(
                "messages import out.jsonl",
                "messages import out.jsonl",
                "messages import wrong.jsonl",
                "messages import nothing.jsonl",
                "messages import odd.jsonl",
            )
            == snapshot
        )
        out = hubbub("messages", "export", "--all", "--format", "jsonl").out
        assert out.count("\n") == 151


def test_a_transcript_is_imported_in_parts_that_fit_a_frame() -> None:
    lines = (f"{n}\n" for n in range(2 * MOST_LINES + 1))
    parts = [(first, len(part)) for first, part in _parts(lines)]
    assert parts == [(2, MOST_LINES), (2 + MOST_LINES, MOST_LINES), (2 + 2 * MOST_LINES, 1)]
    assert [first for first, _ in _parts(iter(["x" * 100_000] * 3))] == [2, 3, 4]
    assert list(_parts(iter([]))) == [(2, [])]


class Gone(QuietHandler):
    """Answers every webhook with 410 Gone."""

    def do_POST(self) -> None:
        self.send_response(410)
        self.end_headers()


async def notice_that_it_gave_up(ann: Client) -> None:
    async with asyncio.timeout(20):
        async for item in ann.events():
            if isinstance(item, Event) and "was given up" in item.message.text:
                return


@pytest.mark.behaviour("M-256", "M-257")
def test_webhooks_and_their_failed_deliveries_are_listed_and_retried(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    with http_server(Gone) as address:
        secret = "correct horse battery"
        hook = {"name": "audit", "url": f"http://{address}/x", "secret": secret, "events": ["join"]}
        mods = json.dumps([{"webhooks": {"hooks": [hook]}}])
        with running(f"{NETWORK}mods: {mods}\n", home) as town:
            hubbub("send", "ann", "hello", "--as", "bob")
            as_person(town, "ann", notice_that_it_gave_up)
            failed = ("webhooks", "deliveries", "audit", "--state", "failed", "--json")
            page = hubbub(*failed).json()["deliveries"]
            assert "410" in hubbub("webhooks", "deliveries", "audit", "--limit", "1").out
            assert "waiting again" in hubbub("webhooks", "retry", str(page[0]["id"])).out
            assert address in hubbub("webhooks", "list").out
            assert hubbub("webhooks", "list", "--json").json()["webhooks"][0]["name"] == "audit"
            assert (
                hubbub.transcript(
                    "webhooks deliveries nobody",
                    "webhooks serve --config town.yaml",
                    "tasks list",
                )
                == snapshot
            )
