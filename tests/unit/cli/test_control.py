"""Commands to watch and control agents, against a network with an agent."""

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
ARGUMENTS: dict[str, JsonValue] = {"path": "a.txt", "deep": {"n": 1}}
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


def as_both(url: str, work: Work) -> None:
    """Join as ann and as bot, do the work, and leave."""

    async def join() -> None:
        agent = Client(WebSocketTransport(url), "bot", "agent", turns=True)
        async with agent as bot, Client(WebSocketTransport(url), "ann", "human") as ann:
            await work(ann, bot)

    asyncio.run(join())


async def begin_turn(ann: Client, bot: Client) -> None:
    """Ann sends bot a message, and bot begins its turn."""
    await ann.call("send_text_message", to="bot", text="hello\x07 bot")
    await bot.call("begin_turn", start=START, prompt=PROMPT)


async def take_turn(ann: Client, bot: Client) -> None:
    await begin_turn(ann, bot)
    for step in STEPS:
        await bot.call("record_step", turn=START.id, step=step)
    await bot.call("send_text_message", to="ann", text="done", cause=START.id)
    await bot.call("end_turn", end=END)


def network(home: Path) -> AbstractContextManager[str]:
    return running(NETWORK, home)


@pytest.mark.behaviour("H-120", "H-121", "H-126", "U-5", "W-13")
def test_interactions_wake_reasons_spending_and_turns_are_shown(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    with network(home) as url:
        as_both(url, take_turn)
        hubbub("send", "-c", "general", "just talking")
        output = hubbub.transcript(
            "turns interaction i1",
            "turns interaction m2",
            "messages why m1",
            "messages why m1 bot",
            "messages why m3 bot",
            "turns spending --agent bot --days 2",
            "turns list",
            "turns show bot-m1",
        )
        assert output == snapshot
        assert "\x1b" not in output
        assert "--full" not in hubbub("turns", "show", START.id, "--full").out
        shown = hubbub("turns", "interaction", "i1", "--json").json()
        assert [m["id"] for m in shown["interaction"]["messages"]] == ["m1", "m2"]
        assert shown["budget"]["used"]["tokens"] == 402
        assert hubbub("messages", "why", "m1", "--json").json()["message_id"] == "m1"
        why = hubbub("messages", "why", "m1", "bot", "--json").json()
        assert (why["woken"], why["reason"]) == (True, "direct")
        assert hubbub("turns", "spending", "--json").json()["rows"]
        assert len(hubbub("turns", "list", "--json", "--agent", "bot").json()["turns"]) == 1
        record = hubbub("turns", "show", START.id, "--json").json()
        assert record["agent"] == "bot"
        assert [Step.model_validate(step) for step in record["steps"]] == list(STEPS)


def test_a_turn_is_shown_with_edited_calls_retries_forks_steering_and_hook_notes(
    snapshot: SnapshotAssertion,
) -> None:
    changed = ChangedCall(by="ann", arguments={"to": "b", "n": 1}, names=("to",))
    mail = ToolCallRecord(
        id="c", name="mail", arguments={"to": "a", "n": 1}, result="sent", changed=changed
    )
    retried = ToolCallRecord(id="d", name="fetch", arguments={}, result="ok", attempts=3)
    fork = ToolCallRecord(id="e", name="fork", arguments={"goal": "x"}, result="y")
    faster = Steering(message="m7", text="<incoming_message>faster</incoming_message>")
    steps = (
        Step(n=1, calls=(mail, retried)),
        Step(n=2, calls=(fork,), steered=(faster,), text="well", notes=("a hook failed",)),
        Step(n=10_001, text="a part"),
    )
    end = TurnEnd(id="bot-m1", outcome="finished", notes=("the hook X raised Y",))
    at = datetime(2026, 1, 5, tzinfo=UTC)
    turn = Turn(
        start=START,
        agent="bot",
        started_at=at,
        ended_at=at,
        system_prompt=SYSTEM,
        prompt="short",
        steps=steps,
        end=end,
    )
    assert "\n".join(_lines(turn)) == snapshot


def test_costs_are_shown_with_their_significant_digits() -> None:
    for usd, shown in (
        (None, ""), (0.0, "  $0.00"), (0.0000307, "  $0.000031"), (0.0042, "  $0.0042"),
        (0.25, "  $0.25"), (0.996, "  $1.00"), (12.345, "  $12.35"),
    ):  # fmt: skip
        assert _cost(usd) == shown


def test_a_mistake_in_a_control_command_is_reported_in_one_line_with_a_remedy(
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

        async def join_and_send(ann: Client, bot: Client) -> None:
            async with Client(WebSocketTransport(url), "helper", "agent"):
                await ann.call("send_text_message", to="bot", text="hello")

        as_both(url, join_and_send)
        output = hubbub.transcript(*lines)
        assert output == snapshot
        assert output.count("hubbub: ") == output.count("(exit code 2)") == len(lines)
        assert output.count("\n") == 3 * len(lines)


@pytest.mark.behaviour("H-122")
def test_an_agent_a_turn_a_thread_or_everything_is_stopped_and_resumed(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    with network(home) as url:
        as_both(url, begin_turn)
        stop = hubbub("stop", "turn", "bot-m1", "--json").json()
        assert (stop["scope"], stop["target"], stop["turns"]) == ("turn", "bot-m1", 1)
        assert "cancelled" in hubbub("turns", "list").out
        assert (
            hubbub.transcript(
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
        (stop,) = hubbub("network", "stops", "--json").json()["stops"]
        assert stop["scope"] == "all"
        assert hubbub("resume", "all").out == "everything is resumed\n"


@pytest.mark.behaviour("H-123")
def test_a_thread_that_the_breaker_stopped_is_listed_and_resumed(
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
            as_both(url, storm)
        assert (
            hubbub.transcript("network stops", "resume", "network stops", "resume thread @bot")
            == snapshot
        )


@pytest.mark.behaviour("H-124")
def test_approvals_are_listed_approved_edited_and_denied(
    home: Path, hubbub: Shell, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    ids: list[str] = []

    async def ask(ann: Client, bot: Client) -> None:
        await begin_turn(ann, bot)
        for n in range(1, 5):
            approval = await bot.call(
                "request_approval", turn=START.id, call=f"1.c{n}", tool="delete_file",
                description="Deletes a file.", arguments=ARGUMENTS, reason="it cannot be undone",
            )  # fmt: skip
            assert isinstance(approval, dict)
            ids.append(str(approval["id"]))

    with network(home) as url:
        as_both(url, ask)
        approved, changed, edited, denied = ids
        editor = home / "editor"
        editor.write_text('#!/bin/sh\nsed -i s/a.txt/c.txt/ "$2"\n')
        editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
        row = hubbub("turns", "list").out.splitlines()[1]
        assert "parked" in row
        assert f"waits for approval {approved}" in row
        output = hubbub.transcript("approvals list")
        for program in ("false", "no-such-editor"):
            monkeypatch.setenv("VISUAL", program)
            output += hubbub.transcript(f"approvals approve {edited} --edit")
        listed = hubbub("approvals", "list", "--json").json()["approvals"]
        assert sorted(approval["id"] for approval in listed) == sorted(ids)
        monkeypatch.setenv("VISUAL", f"{editor} --wait")
        output += hubbub.transcript(
            f"approvals approve {edited} --edit",
            f'approvals approve {changed} \'{{"path": "b.txt"}}\'',
            f"approvals deny {denied} 'not that file'",
        )
        shown = hubbub("approvals", "approve", approved[:6]).out
        assert "was approved by ann\nit runs once bot is connected again\n" in shown
        output += hubbub.transcript("approvals list", f"approvals approve {approved}")
        for n, id in enumerate(ids, 1):
            output = output.replace(id, f"<a{n}>")
        assert output == snapshot
        assert "was approved by ann" in hubbub("approvals", "list", "--state", "all").out
        outcomes: list[JsonValue] = []

        async def read(ann: Client, bot: Client) -> None:
            for id in ids:
                approval = await ann.call("read_approval", id=id)
                assert isinstance(approval, dict)
                verdict = approval.get("verdict", "")
                outcomes.append([approval["state"], approval.get("final"), verdict])

        as_both(url, read)
        assert outcomes == [
            ["approved", ARGUMENTS, ""],
            ["approved", {"path": "b.txt"}, ""],
            ["approved", {**ARGUMENTS, "path": "c.txt"}, ""],
            ["denied", None, "not that file"],
        ]


@pytest.mark.behaviour("H-125", "H-127")
def test_an_agent_is_taken_over_and_its_requests_are_listed(
    home: Path, hubbub: Shell, snapshot: SnapshotAssertion
) -> None:
    with network(home) as url:

        async def delegate(ann: Client, bot: Client) -> None:
            await take_turn(ann, bot)
            async with Client(WebSocketTransport(url), "helper", "agent", turns=True):
                await bot.call("delegate", to="helper", task="count\nthe files", deadline_s=600)

        as_both(url, delegate)
        assert (
            hubbub.transcript(
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
