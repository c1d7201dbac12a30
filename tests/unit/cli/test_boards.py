"""`tasks` and `polls` against a running network."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hubbub.client import Client, WebSocketTransport
from tests.unit.cli.conftest import NETWORK, Command, running

MODS = "mods: [tasks, polls]"


@pytest.mark.behaviour("M-153")
def test_tasks_are_added_listed_claimed_and_finished_in_a_shell(
    home: Path, hubbub: Command
) -> None:
    with running(f"{NETWORK}\n{MODS}\n", home):
        assert "there is no board" in hubbub("tasks", "board").err
        assert hubbub("tasks", "add", "Write", "-t", "#general").out == "t1 open: Write\n"
        made = hubbub("tasks", "add", "Print", "-b", "b1", "-o", "ann", "-d", "All", "--json")
        task = made.json()
        assert isinstance(task, dict)
        assert (task["id"], task["state"]) == ("t2", "claimed")
        assert hubbub("tasks", "claim", "t1").out == "t1 claimed by ann: Write\n"
        held = hubbub("tasks", "claim", "t1", "--as", "bob")
        assert (held.code, held.out) == (2, "")
        assert 't1 "Write" is held by ann' in held.err
        assert hubbub("tasks", "finish", "t1", "d1").out == "t1 done by ann: Write\n"
        lines = hubbub("tasks", "list").out.splitlines()
        assert [line.split() for line in lines] == [
            ["TASK", "STATE", "OWNER", "DUE", "THREAD"],
            ["t2", "claimed", "ann", "#general", "Print"],
            ["t1", "done", "ann", "#general", "Write"],
        ]
        shown = hubbub("tasks", "show", "t1").out
        assert "result: d1" in shown
        assert [line.split()[2:] for line in shown.splitlines()[-3:]] == [
            ["ann", "finished"], ["ann", "claimed"], ["ann", "created"],
        ]  # fmt: skip
        assert hubbub("tasks", "board").out == (
            "# Tasks (b1)\n\n## In work\n\n- [ ] t2 Print (ann)\n\n## Done\n\n"
            "- [x] t1 Write (ann)\n"
        )
        listed = hubbub("tasks", "list", "--limit", "1", "--json").json()
        assert isinstance(listed, dict)
        assert listed["more"]


@pytest.mark.behaviour("M-161")
def test_polls_are_voted_in_and_closed_in_a_shell(home: Path, hubbub: Command) -> None:
    with running(f"{NETWORK}\n{MODS}\n", home) as url:

        async def ask() -> None:
            async with Client(WebSocketTransport(url), "ann", "human") as ann:
                args = {"question": "Lunch?", "options": ["Soup", "Hot rice"]}
                await ann.call("create_poll", cid=None, thread="channel.general", **args)

        asyncio.run(ask())
        assert hubbub("polls", "vote", "p1", "hot rice", "--as", "bob").code == 0
        assert hubbub("polls", "vote", "p1", "2").out == (
            "p1 open, 2 votes: Lunch?\n   1  0  Soup\n*  2  2  Hot rice  ann, bob\n"
        )
        assert hubbub("polls", "close", "p1").out.splitlines()[-1] == "decided: Hot rice"
        assert hubbub("polls", "show", "p1").out.startswith("p1 closed, 2 votes: Lunch?\n")
        assert hubbub("polls", "vote", "p1", "1").code == 2
        rows = hubbub("polls", "list").out.splitlines()
        assert rows[1].split()[:3] == ["p1", "closed", "2"]
        listed = hubbub("polls", "list", "--state", "open", "--json").json()
        assert listed == {"polls": [], "more": False}
