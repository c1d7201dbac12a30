"""What people in charge do at a shell, against a network with an agent."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.client import Client, WebSocketTransport
from hubbub.protocol.turns import Step, TurnEnd, TurnStart
from tests.unit.cli.conftest import Command, running

NETWORK = """
network:
  name: town
  auth: open
  listen: '127.0.0.1:0'
  store: 'sqlite:town.db'
  budgets: {tokens: 1000, usd: 0.5}
  daily: {agent: {tokens: 2000}}
  breaker: {turns: 2, within: 1h}
channels: {general: {description: Everybody}}
humans: {ann: {roles: [owner]}, bob: {}}
"""
ASKED: dict[str, JsonValue] = {"path": "a.txt", "deep": {"n": 1}}
Work = Callable[[Client, Client], Awaitable[None]]


@pytest.fixture
def town(home: Path) -> Iterator[str]:
    with running(NETWORK, home) as url:
        yield url


def begin(turn: str, message: str) -> TurnStart:
    return TurnStart(id=turn, thread_id="dm.ann.bot", messages=(message,), model="tiny")


def together(url: str, work: Work) -> None:
    """Ann and bot do something in the network, and leave."""

    async def both() -> None:
        bots = Client(WebSocketTransport(url), "bot", "agent", turns=True)
        async with bots as bot, Client(WebSocketTransport(url), "ann", "human") as ann:
            await work(ann, bot)

    asyncio.run(both())


@pytest.fixture
def worked(town: str) -> str:
    """Ann has asked bot for something, and bot has answered in a turn."""

    async def work(ann: Client, bot: Client) -> None:
        async with Client(WebSocketTransport(town), "helper", "agent"):
            pass  # it was here once
        await ann.call("send_text_message", to="bot", text="hello\x07 bot")
        await bot.call("begin_turn", start=begin("bot-m1", "m1"))
        step = Step(n=1, tokens_in=300, tokens_out=100, cost_usd=0.125, duration_ms=5.0)
        await bot.call("record_step", turn="bot-m1", step=step)
        await bot.call("send_text_message", to="ann", text="done", cause="bot-m1")
        await bot.call("end_turn", end=TurnEnd(id="bot-m1", outcome="finished"))

    together(town, work)
    return town


@pytest.fixture
def at_work(town: str) -> str:
    """Bot is in the middle of a turn."""

    async def work(ann: Client, bot: Client) -> None:
        await ann.call("send_text_message", to="bot", text="dig")
        await bot.call("begin_turn", start=begin("bot-m1", "m1"))

    together(town, work)
    return town


@pytest.fixture
def asked(at_work: str) -> str:
    """Bot asks whether it may run a tool; the approval's id."""
    ids: list[str] = []

    async def work(ann: Client, bot: Client) -> None:
        found = await bot.call(
            "request_approval", turn="bot-m1", call="1.c1", tool="delete_file",
            description="Deletes a file.", arguments=ASKED, reason="it cannot be undone",
        )  # fmt: skip
        assert isinstance(found, dict)
        ids.append(str(found["id"]))

    together(at_work, work)
    return ids[0]


def state_of(url: str, approval: str) -> dict[str, JsonValue]:
    """An approval as ann reads it."""
    found: list[JsonValue] = []

    async def work(ann: Client, bot: Client) -> None:
        found.append(await ann.call("read_approval", id=approval))

    together(url, work)
    assert isinstance(found[0], dict)
    return found[0]


# Stories ------------------------------------------------------------------------------------------


@pytest.mark.behaviour("H-120")
def test_an_interaction_is_a_tree_of_who_caused_what_with_its_budget(
    worked: str, hubbub: Command
) -> None:
    lines = hubbub("interaction", "i1").out.splitlines()
    assert lines[0].startswith("interaction i1  opened by ann, 1 turn, 400 tokens, $0.12")
    assert lines[1].endswith("m1 ann → bot  hello<U+0007> bot")
    assert "▸ bot  finished  1 step  400 tokens  $0.12" in lines[2]
    assert lines[3].strip().endswith("m2 bot → ann  done")
    assert [len(line) - len(line.lstrip(" │├└─")) for line in lines[1:4]] == [4, 8, 12]
    tokens = next(line for line in lines if " tokens  " in line and "█" in line)
    assert tokens.endswith("400 of 1000")
    assert any(line.endswith("$0.12 of $0.50") for line in lines)
    assert hubbub("interaction", "m2").out.splitlines()[0] == lines[0]


def test_an_interaction_as_json_is_what_the_hub_tells(worked: str, hubbub: Command) -> None:
    told = hubbub("interaction", "i1", "--json").json()
    assert isinstance(told, dict)
    page, budget = told["interaction"], told["budget"]
    assert isinstance(page, dict)
    assert isinstance(budget, dict)
    assert [m["id"] for m in page["messages"]] == ["m1", "m2"]  # type: ignore[index,union-attr,call-overload]
    assert budget["used"]["tokens"] == 400  # type: ignore[index,call-overload]


@pytest.mark.behaviour("H-121")
def test_the_story_of_a_message_names_everybody_whom_it_reached(
    worked: str, hubbub: Command
) -> None:
    lines = hubbub("why", "m1").out.splitlines()
    assert lines[0] == "m1  ann → bot"
    assert lines[1] == "  hello<U+0007> bot"
    assert "interaction i1, hop 0" in lines[2]
    bot = next(line for line in lines if line.startswith("  bot  "))
    for words in ("delivered", "woken (direct): it is a direct message", "turn bot-m1 ended: fin"):
        assert words in bot
    assert "it answered" in bot
    told = hubbub("why", "m1", "--json").json()
    assert isinstance(told, dict)
    assert told["message_id"] == "m1"


def test_the_story_may_be_one_agents_alone(worked: str, hubbub: Command) -> None:
    lines = hubbub("why", "bot", "m1").out.splitlines()
    assert lines[0].startswith("m1 woke bot (direct): ")
    assert "it answered" in lines[-1]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("interaction", "i99"), "there is no interaction i99"),
        (("interaction", "here"), "here"),
        (("why", "bot"), "'bot' is no message; they look like m42"),
        (("why", "bto", "m1"), "there is no agent 'bto'; did you mean bot?"),
        (("stop", "agnt", "bot"), "did you mean 'agent'?"),
        (("stop", "agent"), "name the agent"),
        (("stop", "agent", "helpr"), "did you mean helper?"),
        (("stop", "all", "bot"), "it takes no name"),
        (("stop", "turn"), "name the turn or its agent"),
        (("stop", "turn", "helper"), "no turn of helper runs"),
        (("stop", "thread", "#genral"), "did you mean general?"),
        (("resume", "turn", "bot-m1"), "a turn that was stopped is over"),
        (("resume",), "nothing is stopped"),
        (("breaker", "release"), "nothing is latched"),
        (("approve", "a1", "--arguments", "[1]"), "the arguments are a JSON object"),
        (("approve", "a1", "--arguments", "{"), "the arguments are no JSON"),
        (("approve", "a1", "--arguments", "{}", "--edit"), "not both"),
        (("approve", "a1"), "no approval 'a1' waits"),
        (("deny", "a1"), "no approval 'a1' waits"),
        (("take-over", "bto"), "did you mean bot?"),
        (("take-over", "bot", "--for", "2 weeks"), "'2 weeks' is no time up to a day"),
        (("spending", "--agent", "bto"), "did you mean bot?"),
        (("spending", "--thread", "#genral"), "did you mean general?"),
        (("send", "bot", "hi", "--mode", "stear"), "did you mean 'steer'?"),
    ],
)
def test_what_cannot_be_is_one_sentence_with_a_way_on(
    worked: str, hubbub: Command, args: tuple[str, ...], expected: str
) -> None:
    ran = hubbub(*args)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert expected in ran.err


# Stops --------------------------------------------------------------------------------------------


@pytest.mark.behaviour("H-122")
def test_an_agent_is_stopped_and_let_go_on(at_work: str, hubbub: Command) -> None:
    out = hubbub("stop", "agent", "bot", "--reason", "too loud").out
    assert out.startswith("ann has stopped bot: too loud (1 turn ended)")
    assert "hubbub resume agent bot lets it go on" in out
    assert "ann has stopped bot: too loud" in hubbub("stops").out
    sent = hubbub("send", "bot", "are you there?").out
    assert "bot was not woken: a person has stopped" in sent
    assert "hubbub resume lifts it" in sent
    assert hubbub("resume").out == "bot may go on\n"
    assert hubbub("stops").out == "nothing is stopped, latched or taken over\n"
    assert hubbub("send", "bot", "and now?").out.count("\n") == 1


@pytest.mark.parametrize("target", ["bot", "bot-m1"])
def test_a_turn_is_stopped_by_its_id_or_its_agents(
    at_work: str, hubbub: Command, target: str
) -> None:
    told = hubbub("stop", "turn", target, "--json").json()
    assert isinstance(told, dict)
    assert (told["scope"], told["target"], told["turns"]) == ("turn", "bot-m1", 1)
    assert "cancelled" in hubbub("turns").out


def test_everything_and_a_thread_are_stopped_at_once(at_work: str, hubbub: Command) -> None:
    assert hubbub("stop", "all").out.startswith("ann has stopped everything")
    assert hubbub("stop", "thread", "#general").out.startswith("ann has stopped #general")
    ran = hubbub("resume")
    assert ran.code == 2
    assert "2 things are stopped: name one; hubbub stops lists them" in ran.err
    assert hubbub("resume", "thread", "#general").out == "#general may go on\n"
    told = hubbub("stops", "--json").json()
    assert isinstance(told, dict)
    assert isinstance(told["stops"], list)
    assert [stop["scope"] for stop in told["stops"]] == ["all"]  # type: ignore[index,call-overload]
    assert hubbub("resume", "all").out == "everything may go on\n"


@pytest.mark.behaviour("H-123")
def test_a_latched_thread_is_listed_and_released(town: str, hubbub: Command) -> None:
    async def storm(ann: Client, bot: Client) -> None:
        for n in range(1, 4):
            sent = await ann.call("send_text_message", to="bot", text=str(n))
            assert isinstance(sent, dict)
            start = begin(f"bot-{sent['id']}", str(sent["id"]))
            try:
                await bot.call("begin_turn", start=start)
                await bot.call("end_turn", end=TurnEnd(id=start.id, outcome="finished"))
            except Exception:  # noqa: BLE001  the one too many, however it is refused
                break

    together(town, storm)
    listed = hubbub("breaker", "list").out
    assert listed.startswith("dm.ann.bot is latched: ") or "@bot" in listed
    assert hubbub("stops").out == listed
    assert "is released" in hubbub("breaker", "release").out
    assert hubbub("breaker", "list").out == "nothing is latched\n"
    assert hubbub("breaker", "release", "@bot").out == "@bot was not latched\n"


# Approvals ----------------------------------------------------------------------------------------


@pytest.mark.behaviour("H-124")
def test_what_waits_for_a_word_is_shown_with_what_to_type(asked: str, hubbub: Command) -> None:
    lines = hubbub("approvals").out.splitlines()
    assert lines[0] == "bot asks to run delete_file in @bot"
    for line in (
        "   Deletes a file.",
        "   because: it cannot be undone",
        '   path: "a.txt"',
        '   deep: {"n": 1}',
    ):
        assert line in lines
    assert f"hubbub approve {asked} or hubbub deny {asked} --reason …" in lines[-1]
    row = hubbub("turns").out.splitlines()[1]
    assert "parked" in row
    assert f"waits for approval {asked}" in row


def test_an_approval_is_given_by_a_part_of_its_id(
    asked: str, hubbub: Command, at_work: str
) -> None:
    assert f"delete_file of bot ({asked}) is approved by ann" in hubbub("approve", asked[:6]).out
    assert hubbub("approvals").out == "nothing waits for an approval\n"
    assert "is approved by ann" in hubbub("approvals", "--all").out
    told = state_of(at_work, asked)
    assert (told["state"], told["final"]) == ("approved", ASKED)
    assert hubbub("approve", asked).code == 2


def test_an_approval_is_denied_with_a_reason(asked: str, hubbub: Command, at_work: str) -> None:
    out = hubbub("deny", asked, "--reason", "not that file").out
    assert "is denied by ann: not that file" in out
    assert state_of(at_work, asked)["verdict"] == "not that file"


def test_arguments_are_changed_on_the_way(asked: str, hubbub: Command, at_work: str) -> None:
    out = hubbub("approve", asked, "--arguments", '{"path": "b.txt"}').out
    assert "with other arguments" in out
    assert state_of(at_work, asked)["final"] == {"path": "b.txt"}


def test_arguments_are_changed_in_an_editor(
    asked: str, hubbub: Command, at_work: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = home / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/a.txt/c.txt/ "$2"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("VISUAL", f"{editor} --wait")
    assert "with other arguments" in hubbub("approve", asked, "--edit").out
    assert state_of(at_work, asked)["final"] == {**ASKED, "path": "c.txt"}


def test_an_editor_that_fails_approves_nothing(
    asked: str, hubbub: Command, at_work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "false")
    ran = hubbub("approve", asked, "--edit")
    assert ran.code == 2
    assert "nothing is approved" in ran.err
    monkeypatch.setenv("VISUAL", "no-such-editor")
    assert "does not start" in hubbub("approve", asked, "--edit").err
    assert state_of(at_work, asked)["state"] == "pending"


def test_approvals_as_json_are_the_hubs_records(asked: str, hubbub: Command) -> None:
    told = hubbub("approvals", "--json").json()
    assert isinstance(told, list)
    assert [a["id"] for a in told] == [asked]  # type: ignore[index,call-overload]


# Take-over ----------------------------------------------------------------------------------------


@pytest.mark.behaviour("H-125")
def test_an_agent_is_spoken_for_and_handed_back(worked: str, hubbub: Command) -> None:
    out = hubbub("take-over", "bot", "--for", "1h").out
    assert out.startswith("you speak for bot until ")
    assert "hubbub send --speak-as bot … does, hubbub hand-back bot ends it" in out
    assert "sent as bot in " in hubbub("send", "-c", "general", "a word", "--speak-as", "bot").out
    assert "[ann as bot] #general  a word" in hubbub("log", "-n", "1").out
    assert "ann speaks for bot until" in hubbub("stops").out
    assert hubbub("hand-back", "bot").out == "bot speaks for itself again\n"
    assert hubbub("hand-back", "bot").out == "nobody speaks for bot\n"
    assert hubbub("send", "-c", "general", "more", "--speak-as", "bot").code == 2


# Spending, requests -------------------------------------------------------------------------------


@pytest.mark.behaviour("H-126")
def test_spending_is_told_by_day_agent_and_thread(worked: str, hubbub: Command) -> None:
    head, row, *rest = hubbub("spending", "--agent", "bot", "--days", "2").out.splitlines()
    assert head.split() == ["DAY", "AGENT", "THREAD", "TURNS", "WAKES", "TOKENS", "COST"]
    assert row.split()[1:2] == ["bot"]
    for words in ("300+100", "$0.12"):
        assert words in row
    assert rest[0] == "together: 1 turn, 400 tokens, $0.12"
    assert "400 of 2000" in rest[1]
    told = hubbub("spending", "--json").json()
    assert isinstance(told, dict)
    assert "rows" in told
    assert hubbub("spending", "--agent", "helper").out.startswith("together: 0 turns, 0 tokens")


@pytest.mark.behaviour("H-127")
def test_requests_are_listed_with_their_state(worked: str, hubbub: Command) -> None:
    async def delegate(ann: Client, bot: Client) -> None:
        async with Client(WebSocketTransport(worked), "helper", "agent", turns=True):
            await bot.call("delegate", to="helper", task="count\nthe files", deadline_s=600)

    together(worked, delegate)
    head, row = hubbub("requests").out.splitlines()
    assert head.split() == ["REQUEST", "WHO", "STATE", "DEADLINE", "THREAD", "TASK"]
    for words in ("bot → helper", "open", "count the files"):
        assert words in row
    assert hubbub("requests", "--all", "--json").json()


def test_a_message_says_what_it_wants_of_a_turn_that_runs(worked: str, hubbub: Command) -> None:
    told = hubbub("send", "bot", "later", "--mode", "queue", "--json").json()
    assert isinstance(told, dict)
    assert "[queue]" in hubbub("log", "-n", "1").out
