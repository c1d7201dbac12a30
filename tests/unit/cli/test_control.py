"""What people in charge see and do at a shell, against a network with an agent."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub.cli.connection import NetworkTarget, joined
from hubbub.client import Client, WebSocketTransport
from hubbub.errors import OperationError
from hubbub.people.groups.turns import _cost, _lines
from hubbub.protocol.turns import (
    ChangedCall,
    PromptParts,
    Steering,
    Step,
    ToolCallRecord,
    Turn,
    TurnEnd,
    TurnStart,
    part_id,
)
from tests.unit.cli.conftest import Shell, running

NETWORK = """
network:
  name: town
  auth: open
  listen: '127.0.0.1:0'
  store: 'sqlite::memory:'
  budgets: {tokens: 1000, usd: 0.5}
  daily: {agent: {tokens: 2000}}
  breaker: {turns: 2, within: 1h}
channels: {general: {description: Everybody}}
humans: {ann: {roles: [owner]}, bob: {}}
"""
ASKED: dict[str, JsonValue] = {"path": "a.txt", "deep": {"n": 1}}
START = TurnStart(
    id="bot-m1",
    thread_id="dm.ann.bot",
    messages=("m1",),
    model="tiny",
    prompt_id="brief@1.0#5f2c61aa",
    components=("identity", "network"),
    tools=("finish",),
)
SYSTEM, USER = "Be brief.", "<conversation>\x1b</conversation>" + "x" * 3000
PROMPT = PromptParts(system=(part_id(SYSTEM),), user=(part_id(USER),), texts=(SYSTEM, USER))
FINISH = ToolCallRecord(id="c1", name="finish", arguments={"reason": "ok"}, result="done")
LOOK = ToolCallRecord(
    id="c2", name="look", arguments={}, result="seen", at_ms=3000.0, duration_ms=7.0
)
STEPS = (
    Step(n=1, text="thinking", calls=(FINISH,), tokens_in=300, tokens_out=100, cost_usd=0.125,
         at_ms=1500.0, duration_ms=12.0),
    Step(n=2, calls=(LOOK,), tokens_in=1, tokens_out=1, at_ms=2000.0),
)  # fmt: skip
END = TurnEnd(id=START.id, outcome="no_action", reason="nothing to do", text="a poem")
Work = Callable[[Client, Client], Awaitable[object]]


def together(url: str, work: Work) -> None:
    """Ann and bot do something in the network, and leave."""

    async def both() -> None:
        bots = Client(WebSocketTransport(url), "bot", "agent", turns=True)
        async with bots as bot, Client(WebSocketTransport(url), "ann", "human") as ann:
            await work(ann, bot)

    asyncio.run(both())


async def begin(ann: Client, bot: Client) -> None:
    """Ann asks bot for something, and bot sets to work."""
    await ann.call("send_text_message", to="bot", text="hello\x07 bot")
    await bot.call("begin_turn", start=START, prompt=PROMPT)


async def work(ann: Client, bot: Client) -> None:
    await begin(ann, bot)
    for step in STEPS:
        await bot.call("record_step", turn=START.id, step=step)
    await bot.call("send_text_message", to="ann", text="done", cause=START.id)
    await bot.call("end_turn", end=END)


def network(home: Path) -> AbstractContextManager[str]:
    return running(NETWORK, home)


@pytest.mark.behaviour("H-120", "H-121", "H-126", "U-5", "W-13")
def test_what_has_happened_is_told_as_stories_sums_and_turns(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    with network(home) as url:
        together(url, work)
        hubbub("send", "-c", "general", "just talking")
        told = hubbub.story(
            "turns interaction i1",
            "turns interaction m2",
            "messages why m1",
            "messages why m1 bot",
            "messages why m3 bot",
            "turns spending --agent bot --days 2",
            "turns list",
            "turns show bot-m1",
        )
        assert told == snapshot
        assert "\x1b" not in told
        assert "--full" not in hubbub("turns", "show", START.id, "--full").out
        told = hubbub("turns", "interaction", "i1", "--json").json()
        assert [m["id"] for m in told["interaction"]["messages"]] == ["m1", "m2"]
        assert told["budget"]["used"]["tokens"] == 402
        assert hubbub("messages", "why", "m1", "--json").json()["message_id"] == "m1"
        why = hubbub("messages", "why", "m1", "bot", "--json").json()
        assert (why["woken"], why["reason"]) == (True, "direct")
        assert hubbub("turns", "spending", "--json").json()["rows"]
        assert len(hubbub("turns", "list", "--json", "--agent", "bot").json()["turns"]) == 1
        record = hubbub("turns", "show", START.id, "--json").json()
        assert record["agent"] == "bot"
        assert [Step.model_validate(step) for step in record["steps"]] == list(STEPS)


def test_a_turn_is_shown_with_all_that_people_helpers_and_hooks_did(
    snapshot: SnapshotAssertion,
) -> None:
    changed = ChangedCall(by="ann", arguments={"to": "b", "n": 1}, names=("to",))
    mail = ToolCallRecord(
        id="c", name="mail", arguments={"to": "a", "n": 1}, result="sent", changed=changed
    )
    often = ToolCallRecord(id="d", name="fetch", arguments={}, result="ok", attempts=3)
    fork = ToolCallRecord(id="e", name="fork", arguments={"goal": "x"}, result="y")
    faster = Steering(message="m7", text="<incoming_message>faster</incoming_message>")
    steps = (
        Step(n=1, calls=(mail, often)),
        Step(n=2, calls=(fork,), steered=(faster,), text="well", notes=("a hook failed",)),
        Step(n=10_001, text="a part"),
    )
    end = TurnEnd(id="bot-m1", outcome="finished", notes=("the hook X raised Y",))
    at = datetime(2026, 1, 5, tzinfo=UTC)
    told = Turn(
        start=START,
        agent="bot",
        started_at=at,
        ended_at=at,
        system_prompt=SYSTEM,
        prompt="short",
        steps=steps,
        end=end,
    )
    assert "\n".join(_lines(told)) == snapshot


def test_money_is_shown_by_the_digits_that_count() -> None:
    for usd, shown in (
        (None, ""), (0.0, "  $0.00"), (0.0000307, "  $0.000031"), (0.0042, "  $0.0042"),
        (0.25, "  $0.25"), (0.996, "  $1.00"), (12.345, "  $12.35"),
    ):  # fmt: skip
        assert _cost(usd) == shown


def test_what_cannot_be_is_one_sentence_with_a_way_on(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    lines = (
        "turns interaction i99",
        "turns interaction here",
        "messages why bot",
        "messages why m1 bto",
        "messages why bot m99",
        "messages why bot 99",
        "messages why m1 nobody",
        "turns show bot-m99",
        "turns list --agent bto",
        "stop agnt bot",
        "stop agent",
        "stop agent helpr",
        "stop all bot",
        "stop turn",
        "stop turn helper",
        "stop thread '#genral'",
        "resume turn bot-m1",
        "resume",
        "resume thread @nobody",
        "approvals approve a1 '[1]'",
        "approvals approve a1 '{'",
        "approvals approve a1 '{}' --edit",
        "approvals approve a1",
        "approvals deny a1",
        "agents takeover bto",
        "agents takeover bot '2 weeks'",
        "turns spending --agent bto",
        "turns spending --thread '#genral'",
        "send bot hi --mode stear",
    )
    with network(home) as url:

        async def come(ann: Client, bot: Client) -> None:
            async with Client(WebSocketTransport(url), "helper", "agent"):
                await ann.call("send_text_message", to="bot", text="hello")

        together(url, come)
        told = hubbub.story(*lines)
        assert told == snapshot
        assert told.count("hubbub: ") == told.count("(exit code 2)") == len(lines)
        assert told.count("\n") == 3 * len(lines)


@pytest.mark.behaviour("H-122")
def test_agents_turns_threads_and_everything_are_stopped_and_go_on(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    with network(home) as url:
        together(url, begin)
        told = hubbub("stop", "turn", "bot-m1", "--json").json()
        assert (told["scope"], told["target"], told["turns"]) == ("turn", "bot-m1", 1)
        assert "cancelled" in hubbub("turns", "list").out
        assert (
            hubbub.story(
                "stop agent bot 'too loud'",
                "network stops",
                "send bot 'are you there?'",
                "resume",
                "network stops",
                "send bot 'and now?'",
                "stop all",
                "stop thread '#general'",
                "resume",
                "resume thread '#general'",
            )
            == snapshot
        )
        assert [stop["scope"] for stop in hubbub("network", "stops", "--json").json()["stops"]] == [
            "all"
        ]
        assert hubbub("resume", "all").out == "everything is resumed\n"


@pytest.mark.behaviour("H-123")
def test_a_thread_of_the_breaker_is_listed_and_released(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    async def storm(ann: Client, bot: Client) -> None:
        for n in range(1, 4):
            sent = await ann.call("send_text_message", to="bot", text=str(n))
            assert isinstance(sent, dict)
            turn = f"bot-{sent['id']}"
            start = START.model_copy(update={"id": turn, "messages": (sent["id"],)})
            await bot.call("begin_turn", start=start)
            await bot.call("end_turn", end=TurnEnd(id=turn, outcome="finished"))

    with network(home) as url:
        with pytest.raises(OperationError, match="the breaker stopped this thread"):
            together(url, storm)
        assert (
            hubbub.story("network stops", "resume", "network stops", "resume thread @bot")
            == snapshot
        )


@pytest.mark.behaviour("H-124")
def test_approvals_are_shown_given_changed_and_denied(
    home: Path, hubbub: Shell, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    ids: list[str] = []

    async def ask(ann: Client, bot: Client) -> None:
        await begin(ann, bot)
        for n in range(1, 5):
            found = await bot.call(
                "request_approval", turn=START.id, call=f"1.c{n}", tool="delete_file",
                description="Deletes a file.", arguments=ASKED, reason="it cannot be undone",
            )  # fmt: skip
            assert isinstance(found, dict)
            ids.append(str(found["id"]))

    def named(text: str) -> str:
        for n, id in enumerate(ids, 1):
            text = text.replace(id, f"<a{n}>")
        return text

    with network(home) as url:
        together(url, ask)
        given, changed, edited, denied = ids
        editor = home / "editor"
        editor.write_text('#!/bin/sh\nsed -i s/a.txt/c.txt/ "$2"\n')
        editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
        row = hubbub("turns", "list").out.splitlines()[1]
        assert "parked" in row
        assert f"waits for approval {given}" in row
        told = hubbub.story("approvals list")
        for program in ("false", "no-such-editor"):
            monkeypatch.setenv("VISUAL", program)
            told += hubbub.story(f"approvals approve {edited} --edit")
        assert sorted(ids) == sorted(
            a["id"] for a in hubbub("approvals", "list", "--json").json()["approvals"]
        )
        monkeypatch.setenv("VISUAL", f"{editor} --wait")
        told += hubbub.story(
            f"approvals approve {edited} --edit",
            f'approvals approve {changed} \'{{"path": "b.txt"}}\'',
            f"approvals deny {denied} 'not that file'",
        )
        assert "was approved by ann" in hubbub("approvals", "approve", given[:6]).out
        told += hubbub.story("approvals list", f"approvals approve {given}")
        assert named(told) == snapshot
        assert "was approved by ann" in hubbub("approvals", "list", "--state", "all").out
        found: list[JsonValue] = []

        async def look(ann: Client, bot: Client) -> None:
            for id in ids:
                told = await ann.call("read_approval", id=id)
                assert isinstance(told, dict)
                found.append([told["state"], told.get("final"), told.get("verdict", "")])

        together(url, look)
        assert found == [
            ["approved", ASKED, ""],
            ["approved", {"path": "b.txt"}, ""],
            ["approved", {**ASKED, "path": "c.txt"}, ""],
            ["denied", None, "not that file"],
        ]


@pytest.mark.behaviour("H-125", "H-127")
def test_an_agent_is_spoken_for_and_what_it_delegates_is_listed(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    with network(home) as url:

        async def delegate(ann: Client, bot: Client) -> None:
            await work(ann, bot)
            async with Client(WebSocketTransport(url), "helper", "agent", turns=True):
                await bot.call("delegate", to="helper", task="count\nthe files", deadline_s=600)

        together(url, delegate)
        assert (
            hubbub.story(
                "turns requests",
                "agents takeover bot 1h",
                "send -c general 'a word' --speak-as bot",
                "messages list -n 1",
                "network stops",
                "agents release bot",
                "agents release bot",
                "send -c general more --speak-as bot",
                "send bot later --mode queue",
                "messages list -n 1",
                "turns spending --agent helper",
            )
            == snapshot
        )
        assert hubbub("turns", "requests", "--state", "all", "--json").json()


async def test_the_operator_joins_without_being_listed(town: str) -> None:
    async with joined(NetworkTarget()) as client:
        assert client.participant == "operator"
        assert "operator" not in {p.id for p in client.ready.participants}
