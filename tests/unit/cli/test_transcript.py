"""`transcript export | import`, `remind` and `reminders`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hubbub.cli.transcript import MOST_LINES, _parts
from hubbub.client import Client, WebSocketTransport
from tests.unit.cli.conftest import NETWORK, Command, running

TOWN = f"{NETWORK}\nmods: [transcript, schedule]\n"
OTHER = TOWN.replace("town", "other")


def say(url: str, *texts: str) -> None:
    async def speak() -> None:
        async with Client(WebSocketTransport(url), "bob", "human") as bob:
            for text in texts:
                await bob.call("broadcast_text_message", text=text)

    asyncio.run(speak())


@pytest.mark.behaviour("M-224")
def test_a_transcript_is_written_in_the_format_of_its_file(home: Path, hubbub: Command) -> None:
    with running(TOWN, home) as url:
        say(url, "Lunch?", "<b>Yes</b>")
        ran = hubbub("transcript", "export", "--all", "-o", "out.html")
        assert (ran.code, ran.out) == (0, "2 messages in out.html\n")
        assert "&lt;b&gt;Yes" in (home / "out.html").read_text()
        hubbub("transcript", "export", "--thread", "broadcast", "-o", "out.md")
        assert (home / "out.md").read_text().startswith("# broadcast (town)")
        ran = hubbub("transcript", "export", "--interaction", "i1", "--format", "jsonl")
        assert [json.loads(line).get("content") for line in ran.out.splitlines()] == [
            None, "Lunch?"
        ]  # fmt: skip
        assert not list(home.glob(".*.part"))


@pytest.mark.behaviour("M-224")
def test_a_file_stays_as_it_was_when_an_export_fails(home: Path, hubbub: Command) -> None:
    with running(TOWN, home):
        out = home / "out.md"
        out.write_text("before")
        for args in (["--thread", "channel_nowhere"], ["--interaction", "i9"], []):
            assert hubbub("transcript", "export", *args, "-o", "out.md").code == 2
            assert out.read_text() == "before"
        ran = hubbub("transcript", "export", "--all", "-o", "no/such/folder.md")
        assert (ran.code, "cannot be written" in ran.err) == (2, True)
        assert not list(home.glob(".*.part"))


@pytest.mark.behaviour("M-224")
def test_a_transcript_moves_into_another_network(home: Path, hubbub: Command) -> None:
    with running(TOWN, home) as url:
        say(url, *(f"no {n}" for n in range(150)))
        assert hubbub("transcript", "export", "--all", "-o", "out.jsonl").code == 0
    with running(OTHER, home):
        ran = hubbub("transcript", "import", "out.jsonl")
        assert (ran.code, ran.out) == (0, "150 messages imported\n"), ran.err
        ran = hubbub("transcript", "import", "out.jsonl")
        assert ran.out == "0 messages imported, 150 were there before\n"
        ran = hubbub("transcript", "export", "--all", "--format", "jsonl")
        assert len(ran.out.splitlines()) == 151
        wrong = home / "wrong.jsonl"
        wrong.write_text((home / "out.jsonl").read_text() + "{}\n")
        ran = hubbub("transcript", "import", "wrong.jsonl")
        assert (ran.code, "line 152: " in ran.err) == (2, True)
        assert hubbub("transcript", "import", "nothing.jsonl").code == 2
        (home / "odd.jsonl").write_bytes(b"\xff\xfe")
        assert "UTF-8" in hubbub("transcript", "import", "odd.jsonl").err


@pytest.mark.behaviour("M-224")
def test_a_file_goes_in_parts_that_a_frame_holds() -> None:
    lines = [f"{n}\n" for n in range(2 * MOST_LINES + 1)]
    assert [(first, len(part)) for first, part in _parts(iter(lines))] == [
        (2, MOST_LINES), (2 + MOST_LINES, MOST_LINES), (2 + 2 * MOST_LINES, 1),
    ]  # fmt: skip
    big = ["x" * 100_000] * 3
    assert [first for first, _ in _parts(iter(big))] == [2, 3, 4]
    assert list(_parts(iter([]))) == [(2, [])]


@pytest.mark.behaviour("M-212")
def test_reminders_are_set_listed_paused_and_cancelled_in_a_shell(
    home: Path, hubbub: Command
) -> None:
    with running(TOWN, home):
        ran = hubbub("remind", "Water the flowers", "every 2h", "--thread", "broadcast")
        assert ran.code == 0, ran.err
        assert ran.out.startswith("r1  20")
        listed = hubbub("reminders", "list")
        assert "Water the flowers" in listed.out
        assert hubbub("reminders", "pause", "r1").out == "r1  paused  broadcast\n"
        assert hubbub("reminders", "resume", "r1").out.startswith("r1  20")
        assert hubbub("reminders", "cancel", "r1").out == "r1 is cancelled\n"
        told = hubbub("reminders", "list", "--all", "--json").json()
        assert told == {"reminders": [], "more": False}
        wrong = hubbub("remind", "x", "some day")
        assert (wrong.code, "is no time; write" in wrong.err) == (2, True)
        assert hubbub("reminders", "cancel", "r9").code == 2
