"""Whole networks are tested, recorded, replayed and branched."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import get_args

import pytest
from pydantic import JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub.app.preflight import load_valid
from hubbub.client import Client, WebSocketTransport
from hubbub.config.cases import Fault
from hubbub.config.loader import load
from hubbub.config.problems import ConfigProblems
from hubbub.lab.branches import branched, served
from hubbub.lab.cases import load_cases
from hubbub.lab.networks import FaultInjector, NetworkRun, replay
from hubbub.lab.recordings import HISTORY
from hubbub.protocol.frames import Event, Signal
from hubbub.protocol.operations import SendResult
from tests.unit.cli.conftest import CommandResult, Shell, calls, running, sends

pytestmark = [pytest.mark.slow, pytest.mark.behaviour("Q-12")]


INCOMING_ID = r'(?s).*<incoming_message[^>]* id="(?P<id>m\d+)"'
SCRIPT: JsonValue = {
    "rules": [
        {
            "when": {"incoming": "greet", "step": 1, "prompt": INCOMING_ID},
            "answer": calls("reply", message_id="{{ id }}", text="Good morning."),
        },
        {"when": {"incoming": "greet"}, "answer": calls("finish", reason="greeted")},
        {
            "when": {"system": "the one who wrote to you is asked"},
            "answer": calls("ask_human", question="A lamp it is. Go on?", options=["yes", "stop"]),
        },
        {"when": {"incoming": "yes"}, "answer": calls("finish", message="Gone on.")},
        {
            "when": {"system": "You look orders up", "step": 1},
            "answer": calls("find_order", number=7),
        },
        {"when": {"system": "You look orders up"}, "answer": sends("clerk", "Order 7 is a lamp.")},
        {"when": {"system": "You know orders"}, "answer": sends("clerk", "Order 7 is a lamp.")},
        {"when": {"incoming": "Order 7 is"}, "answer": sends("ann", "Money for the lamp it is.")},
        {"when": {"system": "You check", "step": 1}, "answer": calls("find_order", number=8)},
        {"when": {"system": "You check"}, "answer": sends("clerk", "Order 7 is missing.")},
        {"when": {"system": "You are kind"}, "answer": sends("ann", "Gladly!")},
        {"when": {"incoming": "refund"}, "answer": sends("billing", "What is order 7?")},
        {"when": {"incoming": "hello"}, "answer": sends("ann", "Good morning.")},
        {"when": {"incoming": "who", "step": 1}, "answer": calls("list_participants")},
        {"when": {"incoming": "who"}, "answer": sends("ann", "You.")},
        {"when": {"incoming": "mumble"}, "answer": {"text": "Hm ⟦.", "ignore_tool_choice": True}},
    ]
}
CONFIG = """\
network: {{name: shop, auth: open, listen: '127.0.0.1:0', store: 'sqlite::memory:'}}
models: {{default: {{model: m, base_url: '{url}', retries: 0}}}}
humans: {{ann: {{roles: [owner]}}}}
agents:
  clerk: {{instruction: You answer customers., tools: [send_text_message]}}
  billing:
    instruction: You look orders up.
    tools: [send_text_message, 'orders.py:find_order']
"""
PLAIN = CONFIG.replace("You look orders up.", "You know orders.").replace(
    ", 'orders.py:find_order'", ""
)
"""Without Python, which each command would import in a new process."""
ORDERS = """\
from hubbub import tool


@tool
def find_order(number: int) -> str:
    '''Look an order up.'''
    with open("looked-up", "a") as file:
        file.write("once ")
    return "a lamp"
"""
NAME = "refunds go through billing"
CASES = f"""\
cases:
  - name: {NAME}
    says: {{to: clerk, text: I want a refund.}}
    faults: [slow_model, rate_limit, agent_killed, person_silent]
    results: {{find_order: a lamp}}
    expect:
      - {{answered_by: clerk}}
      - {{tool_called: find_order}}
      - {{matches: Money}}
      - {{max_turns: 3}}
      - {{max_cost: 0}}
      - never_silent
      - no_loop
      - ends_with_finish
"""
NOWHERE = "http://127.0.0.1:1/v1"


@pytest.fixture
def shop(home: Path, endpoint: str) -> Path:
    """The folder of a network of two agents, which is not running."""
    (home / "hubbub.yaml").write_text(CONFIG.format(url=endpoint))
    (home / "orders.py").write_text(ORDERS)
    (home / "cases.yaml").write_text(CASES)
    return home


def statuses(result: CommandResult) -> list[str]:
    """The status of each run of the case."""
    assert result.out, result.err
    return [run["status"] for run in json.loads(result.out)["cases"][0]["runs"]]


def test_a_network_test_with_faults_repeats_from_its_cassettes_without_an_endpoint(
    shop: Path, hubbub: Shell
) -> None:
    faults, runs = get_args(Fault), 5
    injected = [FaultInjector(faults, f"{NAME} {n}").fault for n in range(runs)]
    assert set(injected) == {None, *faults}, "the runs cover every fault and none"
    expected = ["failed" if fault == "rate_limit" else "passed" for fault in injected]
    command = ("test", "hubbub.yaml", "cases.yaml", "-n", str(runs), "--json")
    assert statuses(hubbub(*command, "--bar=0", "--record")) == expected
    assert not (shop / "looked-up").exists(), "tools with side effects are not executed"

    (shop / "hubbub.yaml").write_text(CONFIG.format(url=NOWHERE))
    result = hubbub(*command, "--bar=1", "--junit=report.xml")
    assert (result.code, statuses(result)) == (1, expected)
    assert "there was no answer" in result.out
    assert "HTTP 429" in (shop / "report.xml").read_text()

    (shop / "hubbub.yaml").write_text(CONFIG.format(url=NOWHERE).replace("answer", "greet"))
    result = hubbub("test", "hubbub.yaml", "cases.yaml", "-n", "1")
    assert "the recording has no answer to: record again with --record" in result.out


def test_a_notice_that_the_model_refused_satisfies_never_silent(shop: Path, hubbub: Shell) -> None:
    def strikes_first(name: str) -> bool:
        injector = FaultInjector(["rate_limit"], f"{name} 0")
        return injector.fault == "rate_limit" and injector.strikes()

    name = next(name for name in map(str, range(100)) if strikes_first(name))
    case = f"{{name: '{name}', says: {{to: clerk, text: hello}}, expect: [never_silent]"
    (shop / "cases.yaml").write_text(f"cases: [{case}, faults: [rate_limit]}}]")
    result = hubbub("test", "hubbub.yaml", "cases.yaml", "-n", "1", "--record", "--json")
    assert statuses(result) == ["passed"], result.out
    assert "HTTP 429" in (shop / "cases.cassettes.jsonl").read_text()


def test_a_significantly_worse_result_than_the_last_is_reported(
    shop: Path, hubbub: Shell, endpoint: str
) -> None:
    greeting = "  - {name: hi, says: {to: clerk, text: hello}, expect: [{answered_by: clerk}]}\n"
    (shop / "cases.yaml").write_text(CASES.replace("    faults:", "    # faults:") + greeting)
    command = ("test", "hubbub.yaml", "cases.yaml", "-n", "6")
    assert "the last time" not in hubbub(*command, "--record").out
    (shop / "hubbub.yaml").write_text(CONFIG.format(url=NOWHERE))
    same = hubbub(*command)
    assert "the last time" not in same.out
    assert "2 of 2 cases passed" in same.out
    text = (shop / "cases.yaml").read_text()
    (shop / "cases.yaml").write_text(text.replace("Money", "Gold"))
    worse = hubbub(*command)
    assert "last time 6/6: worse" in worse.out
    assert "6 x matches: Gold: it sent 'Money for the lamp it is.'" in worse.out
    (shop / "cases.yaml").write_text(text.replace("{find_order: a lamp}", "{}"))
    (shop / "hubbub.yaml").write_text(CONFIG.format(url=endpoint))
    (shop / "cases.cassettes.jsonl").unlink()
    missing = hubbub(*command, "-n", "1", "-k", "refund").out
    assert (
        "there was no answer; the case has no result for find_order: add one to `results`"
        in missing
    )
    assert "tool_called" not in missing


def test_an_interaction_of_a_running_network_is_replayed_and_becomes_a_case(
    shop: Path, hubbub: Shell
) -> None:
    text = (shop / "hubbub.yaml").read_text()
    with running(text, shop):
        assert hubbub("ask", "clerk", "hello", "--as", "ann").out == "Good morning.\n"
        assert hubbub("ask", "clerk", "a refund, please", "--as", "ann").code == 0
        listed = hubbub("messages", "list", "--json").out.splitlines()
        refund = next(m["id"] for m in map(json.loads, listed) if "refund" in m["content"])
        result = hubbub("record", refund, "--out", "refund.json")
        assert (result.code, result.out) == (0, "refund.json: 4 messages, 3 turns\n")
        assert hubbub("record", refund, "--case", "new.yaml").code == 0
        assert "already has the case" in hubbub("record", refund, "--case", "new.yaml").err
        nothing = hubbub("record", "i999", "--out", "x.json")
        assert (nothing.code, nothing.err) == (2, "hubbub: no interaction i999 is visible to you\n")
    assert (shop / "looked-up").read_text() == "once "

    (shop / "hubbub.yaml").write_text(CONFIG.format(url=NOWHERE))
    result = hubbub("replay", "refund.json")
    assert (result.code, result.out) == (0, "refund.json: 3 turns, all as recorded\n")
    result = hubbub("test", "hubbub.yaml", "new.yaml", "-n", "2")
    assert (result.code, result.err, result.out[:13]) == (0, "", "passed    2/2")
    assert "tool_called: find_order" in (shop / "new.yaml").read_text()
    assert (shop / "looked-up").read_text() == "once "

    (shop / "hubbub.yaml").write_text(CONFIG.format(url=NOWHERE).replace("look orders", "look all"))
    result = hubbub("replay", "refund.json")
    assert result.code == 1
    place, _, _, _, *diff = result.out.splitlines()
    assert place == "billing: its turn about 'What is order 7?' of clerk, the system prompt"
    assert diff[:2] == ["-You look orders up.", "+You look all up."]
    assert replay("hubbub.yaml", "refund.json") is not None
    shutil.copytree(shop, shop / "new")
    (shop / "hubbub.yaml").write_text(CONFIG.format(url=NOWHERE))
    assert hubbub("replay", "refund.json").code == 0
    assert hubbub("replay", "refund.json", "--code", "new").out == result.out


def test_a_replay_has_edits_quotes_attachments_reply_threads_and_ids_of_messages_as_recorded(
    shop: Path, hubbub: Shell
) -> None:
    text = (shop / "hubbub.yaml").read_text() + "mods: [edits, threads]\n"
    text = text.replace("tools: [send_text_message]", "tools: [reply]")
    with running(text, shop) as url:
        asked = asyncio.run(say_a_lot(url))
        assert hubbub("record", asked, "--out", "hello.json").code == 0
    assert "secret" not in (shop / "hello.json").read_text()
    (shop / "hubbub.yaml").write_text(text)
    result = hubbub("replay", "hello.json")
    assert (result.code, result.err) == (0, ""), result.out
    assert result.out == "hello.json: 1 turn, all as recorded\n"


async def say_a_lot(url: str) -> str:
    """Fill a conversation with the clerk, ask it under its first message, and edit the question
    afterwards. Returns the question's id."""
    async with Client(WebSocketTransport(url), "ann", "human") as ann:

        async def say(text: str, **more: JsonValue) -> str:
            sent = await ann.call(
                "send_text_message", to="clerk", text=text, silent=True, cid=None, **more
            )
            return str(SendResult.model_validate(sent).id)

        first = await say("the first of many")
        for n in range(HISTORY):
            await say(f"no {n}")
        wrong, secret = await say("order 5"), await say("a secret")
        await ann.call("edit_message", message_id=secret, text="another secret")
        await ann.call("delete_message", message_id=secret)
        await ann.call("edit_message", message_id=wrong, text="order 6")
        link: JsonValue = {"name": "plan", "uri": "https://example.org/plan"}
        await say("see", quote={"message_id": wrong, "text": "order"}, attachments=[link])
        question = await ann.call(
            "reply", message_id=first, text="@clerk greet us", attachments=[link]
        )
        asked = SendResult.model_validate(question).id
        async for item in ann.events():
            match item:
                case Event() if item.message.text == "Good morning.":
                    await ann.call("edit_message", message_id=asked, text="@clerk greet us!")
                case Signal(type="turn_ended"):  # what still runs cannot be recorded
                    return asked
    raise AssertionError("events end by an error")


def test_a_replay_with_another_prompt_asks_the_model_for_missing_answers(
    shop: Path, hubbub: Shell, endpoint: str
) -> None:
    (shop / "hubbub.yaml").write_text(PLAIN.format(url=endpoint))
    with running((shop / "hubbub.yaml").read_text(), shop):
        hubbub("ask", "clerk", "a refund, please", "--as", "ann")
        assert hubbub("record", "i1", "-o", "refund.json").code == 0
    (shop / "kind.txt").write_text("You are kind.")
    result = hubbub("replay", "refund.json", "--prompt", "clerk=kind.txt")
    assert result.code == 1
    place, *diff = result.out.splitlines()
    assert place == "clerk: its turn about 'a refund, please' of ann, step 1"
    assert '+send_text_message {"text": "Gladly!", "to": "ann"}' in diff
    result = hubbub("replay", "refund.json", "--model", "default")
    assert (result.code, result.out) == (0, "refund.json: 3 turns, all as recorded\n")
    assert hubbub("replay", "refund.json", "--prompt", "clark=kind.txt").err == (
        "hubbub: there is no agent 'clark'; did you mean 'clerk'?\n"
    )


def test_a_recording_of_a_model_that_cannot_call_tools_is_replayed(
    shop: Path, hubbub: Shell, endpoint: str
) -> None:
    text = PLAIN.format(url=endpoint).replace("[send", "[list_participants, send")
    with running(text.replace("retries: 0", "retries: 0, dialect: tool_call"), shop):
        hubbub("ask", "clerk", "who is here?", "--as", "ann")  # she is not in the replay
        hubbub("ask", "clerk", "mumble", "--as", "ann")
        assert hubbub("record", "m1", "m3", "-o", "both.json").code == 0
    (shop / "hubbub.yaml").write_text(text)  # as if the endpoint had refused tools before
    assert hubbub("replay", "both.json").out == "both.json: 2 turns, all as recorded\n"


def test_a_turn_that_waits_for_a_persons_answer_is_recorded_with_it_and_replayed(
    shop: Path, hubbub: Shell
) -> None:
    text = (shop / "hubbub.yaml").read_text() + "    mode: interactive\n"
    with running(text, shop):
        question = hubbub("ask", "billing", "which order?", "--as", "ann")
        assert question.out.endswith("A lamp it is. Go on?\n1. yes\n2. stop\n")
        assert hubbub("ask", "billing", "yes", "--as", "ann").code == 0
        assert hubbub("record", "i1", "-o", "asks.json").code == 0
        listed = hubbub("messages", "list", "--json").out.splitlines()
        yes = next(m["id"] for m in map(json.loads, listed) if m["content"] == "yes")
        result = hubbub("record", yes, "-o", "resumed.json")
        assert (result.code, result.out[:14], result.out[-8:]) == (0, "resumed.json: ", "2 turns\n")

    (shop / "hubbub.yaml").write_text(text.replace(re.findall("http[^']*", text)[0], NOWHERE))
    result = hubbub("replay", "asks.json")
    assert (result.code, result.err, result.out) == (0, "", "asks.json: 1 turn, all as recorded\n")
    result = hubbub("replay", "resumed.json")
    assert (result.code, result.err) == (0, "")
    assert result.out == "resumed.json: 2 turns, all as recorded\n"
    assert (shop / "looked-up").read_text() == "once "


WRONG = {
    "{says: {to: clark, text: a}, expect: [no_loop]}": "the unknown 'clark'; did you mean",
    "{message: a, prompt: p, expect: [no_loop]}": "it needs `says`",
    "{incoming: a, agent: clerk, faults: [rate_limit], expect: [valid_json]}": "`faults` belong",
    "{says: {to: clerk, text: a}, agent: clerk, expect: [no_loop]}": "belong to `incoming`",
    "{expect: [no_loop]}": "expected either `message`",
}


def test_a_network_with_another_program_is_tested_unless_a_message_wakes_the_program(
    shop: Path, hubbub: Shell
) -> None:
    with (shop / "hubbub.yaml").open("a") as file:
        file.write("  robot: {kind: program, command: ['false']}\n")
    case = "cases: [{name: c, says: {to: %s, text: hello}, expect: [never_silent]}]"
    (shop / "c.yaml").write_text(case % "clerk")
    command = ("test", "hubbub.yaml", "c.yaml", "-n", "1", "--record", "--json")
    assert statuses(hubbub(*command)) == ["passed"]
    (shop / "c.yaml").write_text(case % "robot")
    refused = hubbub(*command)
    assert refused.code == 2
    assert "agents.robot was woken: other programs do not run" in refused.err


def test_a_contradictory_case_is_refused(home: Path) -> None:
    (home / "hubbub.yaml").write_text(CONFIG.format(url=NOWHERE))
    (home / "orders.py").write_text(ORDERS)
    loaded, file = load(home / "hubbub.yaml"), home / "cases.yaml"
    for case, reason in WRONG.items():
        file.write_text("cases:\n  - " + case.replace("{", "{name: x, ", 1) + "\n")
        with pytest.raises(ConfigProblems) as caught:
            load_cases(loaded, [file])
        assert reason in str(caught.value)


STORED = CONFIG.replace("sqlite::memory:", "sqlite:shop.db")


@pytest.mark.behaviour("Q-13")
def test_a_branch_continues_with_other_settings_and_does_not_change_the_network(
    shop: Path, hubbub: Shell, endpoint: str, snapshot: SnapshotAssertion
) -> None:
    (shop / "hubbub.yaml").write_text(STORED.format(url=endpoint))
    with running((shop / "hubbub.yaml").read_text(), shop):
        for text, answer in (
            ("hello", "Good morning.\n"),
            ("a refund, please", "Money for the lamp it is.\n"),
            ("hello again", "Good morning.\n"),
        ):
            asked = hubbub("ask", "clerk", text, "--as", "ann")
            assert (asked.code, asked.out) == (0, answer), asked.err
        listed = hubbub("messages", "list", "--json").out
        ids = {m["content"]: m["id"] for m in map(json.loads, listed.splitlines())}
        refund, order = ids["a refund, please"], ids["What is order 7?"]

        kind = hubbub("branch", refund, "--with", "clerk.instruction=You are kind.", "--json")
        then, now = kind.json()["then"], kind.json()["now"]
        assert [m["text"] for m in then["said"]] == [
            "What is order 7?", "Order 7 is a lamp.", "Money for the lamp it is.",
        ]  # fmt: skip
        assert [m["text"] for m in now["said"]] == ["Gladly!"]
        assert (then["turns"], now["turns"]) == (3, 1)
        assert 0 < now["tokens_in"] < then["tokens_in"]
        answer = hubbub("branch", ids["Money for the lamp it is."], "--json").json()
        assert answer["message"] == ids["Order 7 is a lamp."], "it starts at the question"
        failed = hubbub("branch", order, "--with", "billing.instruction=x", "--json").json()["now"]
        (end,) = failed["said"]
        assert (end["sender"], end["thread_id"]) == ("hub", "dm.billing.clerk")
        assert end["text"].startswith("billing got no answer from its model: the model endpoint")
        assert (shop / "looked-up").read_text() == "once ", "a branch does not execute tools"
        assert hubbub("messages", "list", "--json").out == listed

        asyncio.run(continue_live(shop, refund))
        assert hubbub("messages", "list", "--json").out == listed

    lines = (
        f"branch {order} --with 'billing.instruction=You check orders.'",
        f"branch {order} --with 'billing.instruction=You check orders.' --result find_order=none",
        "branch m999",
        "branch m1 --with clark.instruction=x",
        "branch m1 --with clerk.instructions=x",
        "branch m1 --with clerk",
        "branch m1 --result find_order",
    )
    assert re.sub(r"\d+ in, \d+ out", "<tokens>", hubbub.transcript(*lines)) == snapshot


async def continue_live(shop: Path, message: str) -> None:
    """Join a branch served at its own address, and get an answer."""
    run = NetworkRun(load_valid(shop / "hubbub.yaml"), live=True)
    async with branched(run, int(message[1:])) as (hub, outcome), served(hub) as url:
        assert outcome.then.said == outcome.now.said
        transport = WebSocketTransport(url.replace("http", "ws", 1))
        async with Client(transport, "ann", "human") as ann:
            await ann.call("send_text_message", to="clerk", text="hello once more")
            async for item in ann.events():
                if isinstance(item, Event) and item.message.text == "Good morning.":
                    break
